// scalable_layers: the layers of a scalable filter, for keys given as hashes. scalable_filter<> and the command use it.
//
// Read scalable_filter.hpp first.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class layered_filter;

/// A layer of a scalable filter: a filter of layout `split_block512`.
struct scalable_layer {
  bloomery::geometry geometry;
  std::uint64_t capacity = 0;  ///< distinct keys in this layer at which the next layer is added
  double share = 0;            ///< target FPR of the layer at its capacity
  std::uint64_t size = 0;      ///< keys that were certainly new when inserted into this layer
};

/// The target FPR of layer i of a scalable filter with target FPR p. The sum over all i is p.
///
///   p / 13            layers 0 .. 11, up to 2048 times the first layer's keys
///   p / 13 / 2^(i-11) from 12 on
///
/// The second layer has the capacity of the first, and each further layer twice its predecessor's, so the total
/// capacity doubles with each growth. Just after a growth the filter takes b bits per key for the present keys and b
/// for the same number of future keys. With equal shares this is at most 2b bits per present key, and b when full,
/// after every growth; any other shares of 12 layers are worse at some growth. More layers with equal shares make b
/// larger (16.49 bits at p = 1% for 13 shares of which 12 are equal). With fewer, b starts to rise earlier, by 1.8 bits
/// per layer. Twelve layers from 65,536 keys have a capacity of 134 million.
///
/// @param rate   p, a probability in (0, 1)
/// @param layer  0 is the first; shares are below 1e-300 from about layer 1000 on
///
/// Example:
///     double sum = 0;
///     for (std::size_t i = 0; i < 64; ++i) sum += share_of_layer(0.01, i);
///     assert(sum <= 0.01 && sum > 0.00999999);
double share_of_layer(double rate, std::size_t layer) noexcept;

/// Layer i of a scalable filter with target FPR p, still empty. Layers do not depend on the keys.
///
/// @param rate   p, a probability in (0, 1)
/// @param layer  0 is the first
/// @param first  capacity of the first layer, 1 to 2^40
/// @throws error too_large: no filter keeps the layer's share, or has its capacity
///
/// Example:
///     assert(scalable_layer_at(0.01, 0, 65'536).capacity == 65'536);
///     assert(scalable_layer_at(0.01, 3, 65'536).capacity == 4 * 65'536);
scalable_layer scalable_layer_at(double rate, std::size_t layer, std::uint64_t first);

/// Expected FPR of a scalable filter with target FPR p and `keys` distinct keys:
///
///   1 - product of (1 - FPR of a layer), over layers that fill one after another, each exact at its number of keys
///
/// A real filter behaves as if it had a few keys more or fewer: keys that are false positives in older layers do not
/// reach the newest layer, and a layer counts only the keys that were new to it.
///
/// @param rate   p, a probability in (0, 1)
/// @param keys   distinct keys
/// @param first  capacity of the first layer, 1 to 2^40
/// @throws error too_large, as scalable_layer_at
///
/// Example:
///     assert(scalable_fpr(0.01, 0, 65'536) == 0);
///     assert(scalable_fpr(0.01, 65'536, 65'536) <= share_of_layer(0.01, 0));
///     assert(scalable_fpr(0.01, 1'000'000'000, 65'536) < 0.01);
double scalable_fpr(double rate, std::uint64_t keys, std::uint64_t first);

/// A scalable filter for callers that already have hashes; same interface as scalable_filter. Only hash64 is read.
///
/// Threads: any number may look up while none inserts. A moved-from object may only be assigned to or destroyed.
///
/// Example:
///     scalable_layers seen(0.01);
///     assert(seen.insert(xxh3{}("Madrid")));
///     assert(!seen.insert(xxh3{}("Madrid")));
///     assert(seen.may_contain(xxh3{}("Madrid")) && !seen.may_contain(xxh3{}("Berlin")));
class scalable_layers {
 public:
  /// Default capacity of the first layer: 132 KiB at 1%.
  static constexpr std::uint64_t usual_first_layer = 65'536;

  /// @param target_fpr        p, a probability in (0, 1), for the whole filter at any size
  /// @param first_layer_keys  capacity of the first layer, 1 to 2^40
  /// @throws error  invalid_argument: out of range; too_large: no filter reaches this FPR
  explicit scalable_layers(double target_fpr, std::uint64_t first_layer_keys = usual_first_layer);

  /// The scalable filter that was copied. It accepts further keys and grows as the original does.
  /// @throws error  incompatible: a copy of a shared filter, or layers of other sizes than this version makes; damaged:
  ///                a number of keys that such layers never have; as above
  /// @param path  the file of the copy, for errors; empty: none
  explicit scalable_layers(const layered_filter& copy, const std::string& path = {});

  scalable_layers(scalable_layers&&) noexcept;
  scalable_layers& operator=(scalable_layers&&) noexcept;
  ~scalable_layers();

  /// Inserts a key. True: it is certainly new. False: the key, or keys that share its cells, were inserted before;
  /// nothing changes.
  /// @throws error too_large: not enough memory to grow; the filter is unchanged
  bool insert(key_hash hash);

  /// Inserts keys in order; is_new is null or receives 1 or 0 per key.
  /// @throws error too_large: not enough memory to grow; the keys before that are inserted, with their results
  void insert(const hash_span& keys, std::uint8_t* is_new = nullptr);

  /// False: the key was certainly never inserted.
  bool may_contain(key_hash hash) const noexcept;

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for key i; unused bits of the last word are 0.
  void may_contain(const hash_span& keys, std::uint64_t* bitmap) const noexcept;

  /// Removes all keys and frees the memory of all layers but the first.
  void clear() noexcept;

  double target_fpr() const noexcept;           ///< p
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when inserted
  std::uint64_t byte_size() const noexcept;     ///< bytes of all layers
  std::vector<scalable_layer> layers() const;   ///< the oldest first
  double expected_fpr() const;                  ///< now; see scalable_filter
  double current_fpr() const;                   ///< exact FPR of the present bits; reads all of them
  double expected_losses() const;               ///< see scalable_filter
  std::span<const std::uint8_t> bytes_of(std::size_t layer) const noexcept;  ///< of a layer of layers()

  /// The layout of all layers.
  static std::string_view layout_name() noexcept;

  /// The cells of a key in a layer of layers(), in probe order.
  std::vector<std::uint64_t> cells(std::size_t layer, key_hash hash) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
