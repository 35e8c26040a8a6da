// scalable_filter<>: a filter for keys whose number nobody knows. It grows, and errs at most at the rate it was given.
//
//   insert -> | layer 3, the newest | layer 2 | layer 1 | layer 0 |      may_contain: is it in any of them?
//
// A layer is a filter of layout `split_block512` with a capacity and a share of the error rate. When the newest is
// full, another that has room for as many keys as all before it is put in front. The shares sum to the rate, so it
// holds however many layers there are (share_of_layer() in scalable_layers.hpp).
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/export.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// A set of keys that forgets which they were, and need not be told how many there will be: may_contain() never wrongly
/// says no, and wrongly says yes with a probability of at most p, at any size.
///
/// At 1 % it takes 16.5 bits for each key that its layers have room for, so 16.5 to 33 bits a key, where a filter<>
/// made for the right number takes 10; and a lookup of an absent key looks at a line of every layer, all of which are
/// fetched at once. Who knows the number of keys, be it roughly, makes a filter<>.
///
/// Layers are of layout `split_block512`, in which a key sets the same eight bits of its line whatever the size: they
/// are worked out once for all layers. (blocked would save 1.5 % of memory, and work out other bits for each number of
/// probes.)
///
/// @tparam Key   std::string_view (any bytes) or std::uint64_t
/// @tparam Hash  as of filter<>
///
/// Unlike a filter<>'s, its insert() can throw: it takes memory. That is taken without being written to, in small
/// pages, so that no single insert waits for more than one of them to be zeroed.
///
/// Threads: any number may look up while none inserts. A moved-from one may only be assigned to or destroyed.
///
/// Example:
///     scalable_filter<> seen(0.01);  // 1 %, of however many strings
///     assert(seen.insert("https://example.org/"));
///     assert(!seen.insert("https://example.org/"));
///     assert(seen.may_contain("https://example.org/"));
///     assert(seen.expected_fpr() <= 0.01);
template <class Key = std::string_view, class Hash = typename default_hash<Key>::type>
  requires hash_of<Hash, Key>
class scalable_filter {
 public:
  using key_type = Key;

  /// An empty filter.
  /// @param target_fpr  p, a probability in (0, 1), of the whole
  /// @param first_layer_keys     1 to 2^40: keys at which it grows for the first time
  /// @throws error  invalid_argument: a number out of its range; too_large: no filter has so low a rate
  explicit scalable_filter(double target_fpr, Hash hash = {},
                           std::uint64_t first_layer_keys = scalable_layers::usual_first_layer)
      : hash_(hash), layers_(target_fpr, first_layer_keys) {
    kind::describe(layouts::split_block512::geometry_for(1, 0.5), 1, 0.5,
                   hash);  // refuses a seed that the hash does not know
  }

  /// Adds a key. True: it is certainly new. False: it, or keys that share its cells, came before, and nothing changes.
  /// @throws error too_large: it had to grow, and there is no memory for that; it stays as it was
  bool insert(const Key& key) { return layers_.insert(hash_(key)); }

  /// Adds keys one after another; `is_new` is empty or takes 1 or 0 for each key.
  /// @throws error  too_large, as above: the keys before the one that made it grow are in, and their answers given;
  ///                invalid_argument: another size of `is_new`; then nothing is inserted
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("scalable_filter::insert", keys.size(), is_new.size());
    std::uint8_t* const out = is_new.empty() ? nullptr : is_new.data();
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      layers_.insert(some, out == nullptr ? nullptr : out + first);
    });
  }

  /// False: the key was certainly never inserted. True: it probably was.
  bool may_contain(const Key& key) const noexcept { return layers_.may_contain(hash_(key)); }

  /// Looks keys up: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words; further words are left as they are.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("scalable_filter::may_contain", keys.size(), bitmap.size());
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      layers_.may_contain(some, bitmap.data() + first / 64);
    });
  }

  /// Forgets all keys, and gives back the memory of all layers but the first.
  void clear() noexcept { layers_.clear(); }

  double target_fpr() const noexcept { return layers_.target_fpr(); }  ///< p, which is kept at any size

  /// Keys that were certainly new when they came; with expected_losses(), all distinct ones.
  std::uint64_t insert_count() const noexcept { return layers_.insert_count(); }

  std::uint64_t byte_size() const noexcept { return layers_.byte_size(); }  ///< bytes of all layers
  std::vector<scalable_layer> layers() const { return layers_.layers(); }   ///< the oldest first

  /// The rate now, of the layers as they are: 1 - product of (1 - rate of a layer), each exact at the number of
  /// distinct keys that leaves its count.
  double expected_fpr() const { return layers_.expected_fpr(); }

  /// The rate of these very bits: the layers' certificates (measure_fill()), combined as above. Reads all bits.
  double current_fpr() const { return layers_.current_fpr(); }

  /// Distinct keys that insert() is expected to have taken for seen so far, wrongly: the older layers' at their final
  /// rates and the newest's as it fills, integrated. It is what deduplication loses.
  ///
  /// Example:
  ///     scalable_filter<std::uint64_t> seen(0.01);
  ///     std::uint64_t lost = 0;
  ///     for (std::uint64_t key = 0; key < 200'000; ++key) lost += seen.insert(key) ? 0 : 1;
  ///     const double expected = seen.expected_losses();
  ///     assert(expected > 100 && 2.0 * static_cast<double>(lost) > expected && static_cast<double>(lost) < 2 * expected);
  double expected_losses() const { return layers_.expected_losses(); }

 private:
  using kind = filter_kind<Key, layouts::split_block512, Hash>;

  Hash hash_;
  scalable_layers layers_;
};

}  // namespace bloomery
