// scalable_filter<>: a filter for an unknown number of keys. It grows and keeps its target FPR at any size.
//
//   insert -> | layer 3, the newest | layer 2 | layer 1 | layer 0 |      may_contain: looks up in all layers
//
// A layer is a filter of layout `split_block512` with a capacity and a share of the target FPR. When the newest layer
// is full, a new one is added with the capacity of all earlier layers together. The shares sum to the target FPR, so
// it holds for any number of layers (share_of_layer() in detail/scalable_layers.hpp).
#pragma once

#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// A filter for an unknown number of keys, without false negatives and with an FPR of at most p at any size.
///
/// At 1% it takes 16.5 bits per key of its capacity, so 16.5 to 33 bits per inserted key, where a filter<> of the right
/// capacity takes 10. A lookup of an absent key reads one cache line of every layer; all of them are prefetched
/// together. If you know the number of keys even roughly, use filter<>.
///
/// Layers have layout `split_block512`, in which a key sets the same eight bits of its cache line at any size, so the
/// bits are computed once for all layers. (blocked would save 1.5% of memory, but needs other bits for each number of
/// probes.)
///
/// @tparam Key   std::string_view (any bytes) or std::uint64_t
/// @tparam Hash  as for filter<>
///
/// Unlike filter<>::insert(), insert() can throw, because it allocates memory. The memory is not written on allocation
/// and comes in small pages, so a single insert waits for the zeroing of at most one page.
///
/// Threads: any number may look up while none inserts. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     scalable_filter<> seen(0.01);  // 1%, for any number of strings
///     assert(seen.insert("https://example.org/"));
///     assert(!seen.insert("https://example.org/"));
///     assert(seen.may_contain("https://example.org/"));
///     assert(seen.expected_fpr() <= 0.01);
template <class Key = std::string_view, class Hash = default_hash_for<Key, layouts::split_block512>>
  requires hash_of<Hash, Key>
class scalable_filter {
 public:
  using key_type = Key;

  /// An empty filter.
  /// @param target_fpr        p, a probability in (0, 1), for the whole filter
  /// @param first_layer_keys  1 to 2^40: keys at which it grows for the first time
  /// @throws error  invalid_argument: a number out of range; too_large: no filter reaches this FPR
  explicit scalable_filter(double target_fpr, Hash hash = {},
                           std::uint64_t first_layer_keys = scalable_layers::usual_first_layer)
      : hash_(hash), layers_(target_fpr, first_layer_keys) {
    kind::describe(layouts::split_block512::geometry_for(1, 0.5), 1, 0.5,
                   hash);  // refuses a seed that the hash does not support
  }

  /// Inserts a key. True: it is certainly new. False: the key, or keys that share its cells, were inserted before;
  /// nothing changes.
  /// @throws error too_large: not enough memory to grow; the filter is unchanged
  bool insert(const Key& key) { return layers_.insert(hash_(key)); }

  /// Inserts keys in order; `is_new` is empty or receives 1 or 0 per key.
  /// @throws error  too_large: not enough memory to grow; the keys before that are inserted, with their results;
  ///                invalid_argument: `is_new` has another size; nothing is inserted
  void insert(std::span<const Key> keys, std::span<std::uint8_t> is_new = {}) {
    detail::check_answers("scalable_filter::insert", keys.size(), is_new.size());
    std::uint8_t* const out = is_new.empty() ? nullptr : is_new.data();
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      layers_.insert(some, out == nullptr ? nullptr : out + first);
    });
  }

  /// False: the key was certainly never inserted. True: it probably was.
  bool may_contain(const Key& key) const noexcept { return layers_.may_contain(hash_(key)); }

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words; further words are unchanged.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("scalable_filter::may_contain", keys.size(), bitmap.size());
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      layers_.may_contain(some, bitmap.data() + first / 64);
    });
  }

  /// Removes all keys and frees the memory of all layers but the first.
  void clear() noexcept { layers_.clear(); }

  /// Writes a copy of all layers to a file, whole or not at all. load() continues with it; open_filter() and
  /// layered_filter::open() open it for lookups. Of the options it uses `metadata`, `replace` and `no_lock`.
  /// @throws error  invalid_argument: the hash is not one of hash_names(); as layered_filter::save
  ///
  /// Example:
  ///     scalable_filter<> seen(0.01);
  ///     seen.insert("Madrid");
  ///     seen.save("seen.layers");
  ///     assert(open_filter("seen.layers")->contains("Madrid") && !open_filter("seen.layers")->contains("Lima"));
  void save(const std::string& path, const create_options& options = {}) const {
    const params p = kind::describe({}, 0, 0, hash_);
    layered_filter(layers_, p, options.metadata).save(path, options);
  }

  /// Reads a file of save() into memory. The filter accepts further keys and grows as the saved filter does.
  /// @param hash   equal to the saved filter's
  /// @throws error  as layered_filter::open; incompatible: a file of other keys or another hash, seed or secret; as
  ///                scalable_layers
  ///
  /// Example:
  ///     {
  ///       scalable_filter<std::uint64_t> seen(0.01);
  ///       seen.insert(7);
  ///       seen.save("numbers.layers");
  ///     }
  ///     auto seen = scalable_filter<std::uint64_t>::load("numbers.layers");
  ///     assert(!seen.insert(7) && seen.insert(8));
  static scalable_filter load(const std::string& path, Hash hash = {}) {
    const layered_filter copy = layered_filter::open(path, {.facts_only = true});
    const params& saved = copy.parameters().filter;
    detail::check_same_kind(path, difference(saved, kind::describe(saved.geometry, 0, 0, hash)));
    return scalable_filter(scalable_layers(copy, path), hash);
  }

  double target_fpr() const noexcept { return layers_.target_fpr(); }  ///< p, for any size

  /// Keys that were certainly new when inserted. With expected_losses(), this gives the number of distinct keys.
  std::uint64_t insert_count() const noexcept { return layers_.insert_count(); }

  std::uint64_t byte_size() const noexcept { return layers_.byte_size(); }  ///< bytes of all layers
  std::vector<scalable_layer> layers() const { return layers_.layers(); }   ///< the oldest first

  /// Expected FPR of the present layers: 1 - product of (1 - FPR of a layer), each exact at the number of distinct keys
  /// that the layer's count implies.
  double expected_fpr() const { return layers_.expected_fpr(); }

  /// Exact FPR of the present bits: the current FPRs of the layers (measure_fill()), combined as above. Reads all bits.
  double current_fpr() const { return layers_.current_fpr(); }

  /// Expected number of distinct keys for which insert() has wrongly returned false: the FPR of the older layers plus
  /// that of the newest as it fills, summed over the inserted keys. These are the keys that deduplication loses.
  ///
  /// Example:
  ///     scalable_filter<std::uint64_t> seen(0.01);
  ///     std::uint64_t lost = 0;
  ///     for (std::uint64_t key = 0; key < 200'000; ++key) lost += seen.insert(key) ? 0 : 1;
  ///     const double expected = seen.expected_losses();
  ///     const double actual = static_cast<double>(lost);
  ///     assert(expected > 100 && 2 * actual > expected && actual < 2 * expected);
  double expected_losses() const { return layers_.expected_losses(); }

 private:
  using kind = filter_kind<Key, layouts::split_block512, Hash>;

  scalable_filter(scalable_layers layers, Hash hash) : hash_(hash), layers_(std::move(layers)) {}

  Hash hash_;
  scalable_layers layers_;
};

}  // namespace bloomery
