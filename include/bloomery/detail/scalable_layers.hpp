// Layers of filters that grow with their keys, for keys that come as hashes: what scalable_filter<> and the command are
// made of.
//
// Read scalable_filter.hpp first; it says what the promise is.
#pragma once

#include <bloomery/detail/hash_span.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_hash.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// A layer of a growing filter: a filter of layout `split_block512`.
struct scalable_layer {
  bloomery::geometry geometry;
  std::uint64_t capacity = 0;  ///< distinct keys, of those that came to this layer, at which the next one is made
  double share = 0;            ///< error rate that it keeps at its capacity
  std::uint64_t size = 0;      ///< keys that were certainly new when it took them
};

/// How a growing filter of rate p spends it: layer i may err with share_of_layer(p, i). The sum over all i is p.
///
///   p / 13            layers 0 .. 11, up to 2048 times the first layer's keys
///   p / 13 / 2^(i-11) from 12 on
///
/// With `first` keys in the first layer the next takes as many and each further one twice its predecessor's: the whole
/// doubles whenever it grows. Just grown it then has b bits a key for the keys there are and b for as many to come:
/// with equal shares never more than 2b, and b when it is full, at every step alike. Any other shares of 12 layers
/// have a step that is worse. The more layers share alike the larger is b (16.49 bits at p = 1 % for 13 parts of which
/// 12 are spent so); the fewer, the sooner it rises, by 1.8 bits a layer. Twelve layers of at least 65,536 keys are
/// 134 million.
///
/// @param rate   p, a probability in (0, 1)
/// @param layer  0 is the first; its share is below 1e-300 from about 1000 on
///
/// Example:
///     double sum = 0;
///     for (std::size_t i = 0; i < 64; ++i) sum += share_of_layer(0.01, i);
///     assert(sum <= 0.01 && sum > 0.00999999);
double share_of_layer(double rate, std::size_t layer) noexcept;

/// Layer i of a growing filter of rate p, still empty: what it will be, and when, is known beforehand.
///
/// @param rate   p, a probability in (0, 1)
/// @param layer  0 is the first
/// @param first  keys of the first layer, 1 to 2^40
/// @throws error too_large: no filter keeps its share, or is so large
///
/// Example:
///     assert(scalable_layer_at(0.01, 0, 65'536).capacity == 65'536);
///     assert(scalable_layer_at(0.01, 3, 65'536).capacity == 4 * 65'536);
scalable_layer scalable_layer_at(double rate, std::size_t layer, std::uint64_t first);

/// Error rate of a growing filter of rate p once so many distinct keys are in, known beforehand as its layers are.
///
///   1 - product of (1 - rate of a layer), over layers that fill one after another, each exact at its number of keys
///
/// One that is filled is as if it had a few keys more or fewer: those that older layers take for seen reach no newer
/// one, and a layer ends the earlier by those that it took for its own.
///
/// @param rate   p, a probability in (0, 1)
/// @param keys   distinct ones that are in
/// @param first  keys of the first layer, 1 to 2^40
/// @throws error too_large, as scalable_layer_at
///
/// Example:
///     assert(scalable_fpr(0.01, 0, 65'536) == 0);
///     assert(scalable_fpr(0.01, 65'536, 65'536) <= share_of_layer(0.01, 0));
///     assert(scalable_fpr(0.01, 1'000'000'000, 65'536) < 0.01);
double scalable_fpr(double rate, std::uint64_t keys, std::uint64_t first);

/// A set of hashes of unknown number. See scalable_filter for what it promises; this has the same calls, for who hashes
/// elsewhere. Only the first half of a hash is read.
///
/// Threads: any number may look up while none inserts. A moved-from one may only be assigned to or destroyed.
///
/// Example:
///     scalable_layers seen(0.01);
///     assert(seen.insert(xxh3{}("Madrid")));
///     assert(!seen.insert(xxh3{}("Madrid")));
///     assert(seen.may_contain(xxh3{}("Madrid")) && !seen.may_contain(xxh3{}("Berlin")));
class scalable_layers {
 public:
  /// Keys of the first layer unless it is said otherwise: 132 KiB at 1 %.
  static constexpr std::uint64_t usual_first_layer = 65'536;

  /// @param target_fpr  p, a probability in (0, 1), of the whole, however large it grows
  /// @param first_layer_keys     1 to 2^40
  /// @throws error  invalid_argument: out of range; too_large: no filter has so low a rate
  explicit scalable_layers(double target_fpr, std::uint64_t first_layer_keys = usual_first_layer);
  scalable_layers(scalable_layers&&) noexcept;
  scalable_layers& operator=(scalable_layers&&) noexcept;
  ~scalable_layers();

  /// Adds a key. True: it is certainly new. False: it, or keys that share its cells, came before; then nothing changes.
  /// @throws error too_large: it had to grow, and there is no memory for that; it stays as it was
  bool insert(key_hash hash);

  /// Adds keys one after another; is_new is null or takes 1 or 0 for each.
  /// @throws error too_large, as above: the keys before the one that made it grow are in, and their answers given
  void insert(const hash_span& keys, std::uint8_t* is_new = nullptr);

  /// False: the key was certainly never inserted.
  bool may_contain(key_hash hash) const noexcept;

  /// Looks keys up: bit i%64 of bitmap[i/64] is the answer for key i, unused bits of the last word are 0.
  void may_contain(const hash_span& keys, std::uint64_t* bitmap) const noexcept;

  /// Forgets all keys, and gives back the memory of all layers but the first.
  void clear() noexcept;

  double target_fpr() const noexcept;           ///< p
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when they came
  std::uint64_t byte_size() const noexcept;     ///< bytes of all layers
  std::vector<scalable_layer> layers() const;   ///< the oldest first
  double expected_fpr() const;                  ///< now; see scalable_filter
  double current_fpr() const;                   ///< of these very bits; reads all of them
  double expected_losses() const;               ///< see scalable_filter
  std::span<const std::uint8_t> bytes_of(std::size_t layer) const noexcept;  ///< of a layer of layers()

  /// The layout of all layers.
  static std::string_view layout_name() noexcept;

  /// The cells of a key in a layer of layers(), in the order of its probes.
  std::vector<std::uint64_t> cells(std::size_t layer, key_hash hash) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
