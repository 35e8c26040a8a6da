// layered_filter: the layers of a filter, in memory or in a file, for lookups: a copy of a scalable filter, of a shared
// filter that grows, or of a shared filter with a window of time.
//
//   shard 0 | layer 0 | layer 1 | layer 2, the newest |      a key belongs to one shard,
//   shard 1 | layer 0 | layer 1 |                            and a lookup reads one line of each layer of that shard
//
// In a copy of a window, a layer is a slice: the keys of a seventh of the window, which expire together. A copy accepts
// no keys; insert into the original filter. docs/format.md has the file format.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;
class scalable_layers;
struct layout_row;

/// A layer of a shard.
struct filter_layer {
  std::uint64_t shard = 0;
  bloomery::geometry geometry = {};  ///< of this shard's layer; bits are a multiple of 512
  std::uint64_t capacity = 0;        ///< certainly new keys at which the next layer is added
  /// Keys that were certainly new when inserted into this layer, or an upper bound; 0 in a window, which counts none.
  std::uint64_t keys = 0;
  /// Windows: when the slice begins, milliseconds since 1970, a multiple of the length of a slice, at most one slice
  /// after the copy.
  std::uint64_t start = 0;

  friend bool operator==(const filter_layer&, const filter_layer&) = default;
};

/// What the layers of a filter have in common.
struct layered_params {
  /// capacity: of the first layers; geometry: that of the first layers of all shards; extra: a window of time of a
  /// shared filter, at most 2^53 - 1 milliseconds. All layers of a window are of equal size.
  params filter = {};
  std::uint64_t shards = 1;   ///< S, 1 to 2^24
  bool is_shared = false;     ///< false: a scalable filter in memory, which has one shard
  std::uint64_t maximum = 0;  ///< shared filters: keys up to which it grows; 0: no limit
  std::string metadata = {};  ///< the user's own bytes, at most 1 MiB
  /// Windows: the server's time of the copy, milliseconds since 1970, at most 2^58. No slice had expired by then.
  std::uint64_t copied_at = 0;
};

/// When the keys of a slice expire, in milliseconds since 1970: eight slices after its start, and five seconds for
/// clocks that differ.
/// @param window  of time, at most 2^53 - 1 milliseconds  @param start  at most 2^58
///
/// Example:
///     assert(expiry_of_slice(window_of_milliseconds(7000), 100'000) == 113'000);
std::uint64_t expiry_of_slice(const window_length& window, std::uint64_t start) noexcept;

/// The layers of a filter that has grown, or the slices of one with a window.
///
/// Threads: any number may look up. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     const params first = {.layout = "split_block512", .geometry = {1024, 8}, .capacity = 90};
///     const layered_params all = {.filter = complete(first)};
///     layered_filter two(all, {{.geometry = {1024, 8}, .capacity = 90}, {.geometry = {2048, 8}, .capacity = 180}});
///     two.save("two.layers");
///     assert(layered_filter::open("two.layers").layers() == two.layers());
///     assert(!two.may_contain(xxh3_64{}("Madrid")));
class layered_filter {
 public:
  static constexpr std::uint64_t most_shards = std::uint64_t{1} << 24;
  static constexpr std::size_t most_layers = 64;  ///< of a shard

  /// Layers without bits; bytes_of() fills them.
  /// @param layers  in the order of their shards, the oldest of each shard first; each shard has at least one
  /// @throws error  invalid_argument: parameters that no such filter has; too_large: not enough memory
  layered_filter(layered_params p, std::vector<filter_layer> layers);

  /// A copy of a scalable filter. @param p  its hash, keys, seed and secret
  layered_filter(const scalable_layers& layers, params p, std::string metadata = {});

  /// Reads a file into memory and compares all of it with its checksums. Of the options it uses `secret` and
  /// `facts_only`. The file may be hostile: no more memory is taken than a small multiple of its length.
  /// @throws error  not_found, not_permitted, not_a_filter, wrong_version, damaged, io; incompatible: a secret that is
  ///                missing, wrong or not needed
  static layered_filter open(const std::string& path, const open_options& options = {});

  /// Writes the file, whole or not at all. Of the options it uses `replace`, `expected` and `no_lock`.
  /// @throws error  as save_file
  void save(const std::string& path, const create_options& options = {}) const;

  layered_filter(layered_filter&&) noexcept;
  layered_filter& operator=(layered_filter&&) noexcept;
  ~layered_filter();

  const layered_params& parameters() const noexcept { return params_; }
  const std::vector<filter_layer>& layers() const noexcept { return layers_; }

  /// Numbers of the layers of a shard: first_of(shard) to first_of(shard + 1) - 1, the oldest first.
  std::size_t first_of(std::uint64_t shard) const noexcept { return firsts_[shard]; }

  std::span<const std::uint8_t> bytes_of(std::size_t layer) const noexcept;
  std::span<std::uint8_t> bytes_of(std::size_t layer) noexcept;

  std::uint64_t byte_size() const noexcept { return bytes_.size(); }  ///< bytes of all layers
  std::uint64_t file_bytes() const noexcept;                          ///< length of the file that save() writes
  std::uint64_t keys() const noexcept;                                ///< the sum over all layers

  /// Windows: when the keys of a layer expire, as expiry_of_slice(). Otherwise 2^64 - 1.
  std::uint64_t expiry_of(std::size_t layer) const noexcept { return expiries_[layer]; }

  /// False: the key was certainly never inserted.
  /// @param now  windows: milliseconds since 1970; layers that have expired by then do not count. 0: as of the copy
  bool may_contain(key_hash hash, std::uint64_t now = 0) const;

  std::uint64_t shard_of(key_hash hash) const noexcept;

  /// The cells of a key in a layer of its shard, in probe order, counted from the layer's first.
  std::vector<std::uint64_t> cells(std::size_t layer, key_hash hash) const;

 private:
  layered_params params_;
  std::vector<filter_layer> layers_;
  std::vector<std::size_t> firsts_;     // of each shard, and the number of all layers
  std::vector<std::uint64_t> offsets_;  // of each layer in bytes_
  std::vector<std::uint64_t> expiries_;
  heap_storage bytes_;
  const layout_row* layout_ = nullptr;
};

/// A handle for lookups. A filter that was opened without its secret (open_options::facts_only) looks up nothing.
std::unique_ptr<filter_handle> make_handle(layered_filter filter);

/// The filter behind a handle of layers in memory or in a file; null for all others.
const layered_filter* layered_filter_of(const filter_handle& filter) noexcept;

}  // namespace bloomery
