// Cells: the values of the cells of a filter, and the cells that determine the lookup of a key.
//
// cell_view reads the cells of a filter in memory or in a file, for visualisations. key_explanation, the result of
// filter_handle::explain(), shows cell by cell why a key is reported as present or absent.
//
// A cell is a bit, a counter of a counting filter, a fingerprint of a static filter or a block of a quotient filter. In
// sliding-window filters a cell has one bit per generation. Cells are numbered from 0, through all layers from the
// oldest to the newest. The stamps between the cells of a sliding-window filter have no number.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The number of cells of a filter with these parameters. @throws error invalid_argument: unknown layout
///
/// Example:
///     assert(cells_of(complete({.layout = "classic", .geometry = {1000, 7}, .capacity = 100})) == 1000);
///     assert(cells_of(complete({.layout = "counting", .geometry = {1024, 7}, .capacity = 10})) == 256);
std::uint64_t cells_of(const params& p);

/// The number of cells of the block that contains all cells of a key; 0 if the layout has no blocks: classic, all
/// schemes, static filters.
/// @throws error as cells_of()
///
/// Example:
///     assert(block_cells_of({.layout = "split_block512"}) == 512 && block_cells_of({.layout = "counting"}) == 128);
std::uint64_t block_cells_of(const params& p);

/// A view of the cells of a filter. It owns no bytes: the filter must outlive it and must not grow meanwhile.
///
/// Threads: any number may read.
///
/// Example:
///     any_filter seen(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01}));
///     seen.insert("Madrid");
///     seen.insert("Madrid");
///     const cell_view cells(seen.parameters(), seen.bytes());
///     assert(cells.value(seen.cells("Madrid").front()) >= 2);
///     assert(cells.count_set(0, cells.size()) == measure_fill(seen.parameters(), seen.bytes()).ones);
class cell_view {
 public:
  /// @param bytes  the filter's bytes, bytes_for(p.geometry.bits) of them; none: the view has the numbers of the cells
  ///               but no values
  /// @param epoch  sliding-window filters: any_filter::epoch(); older generations have expired
  /// @throws error as cells_of()
  cell_view(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t epoch = 0);

  /// Adds a newer layer of the same layout. Requires cells of one bit.
  void add_layer(std::span<const std::uint8_t> bytes);

  std::uint64_t size() const noexcept;         ///< number of cells of all layers
  std::uint64_t block_cells() const noexcept;  ///< as block_cells_of()
  std::uint32_t layers() const noexcept { return static_cast<std::uint32_t>(layers_.size()); }
  std::uint32_t layer_of(std::uint64_t cell) const;  ///< 0 is the oldest layer. Requires cell < size().
  std::uint64_t first_cell(std::uint32_t layer) const { return layers_[layer].first_cell; }

  /// The value of a cell: a bit, a counter, a fingerprint, the number of used slots of a block, or the bit mask of live
  /// generations. Requires cell < size().
  std::uint32_t value(std::uint64_t cell) const;

  /// The number in this view of a cell that filter_handle::explain() reported for this layer.
  std::uint64_t number_of(std::uint64_t explained_cell, std::uint32_t layer) const;

  /// Whether the number of set cells shows the number of keys: false for fingerprints and blocks.
  bool shows_fill() const noexcept { return kind_ != kind::fingerprint && kind_ != kind::slots; }

  /// The number of non-zero cells in the range [from, to). Requires to <= size().
  std::uint64_t count_set(std::uint64_t from, std::uint64_t to) const;

  /// Non-zero cells of each of consecutive runs of `run` cells, the first beginning at `from`. The last run of the
  /// filter may be shorter.
  void count_set(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> counts) const;

 private:
  enum class kind : std::uint8_t { bit, counter, generations, fingerprint, slots };
  struct segment {
    std::uint64_t first_cell;
    std::uint64_t cells;
    std::span<const std::uint8_t> bytes;
  };
  struct window_block {
    const std::uint8_t* cells;
    std::uint8_t live;  // generations that have not expired
  };

  window_block block_at(std::uint64_t block) const;

  kind kind_;
  std::uint32_t cell_bits_;
  std::uint64_t block_cells_;
  std::uint64_t mask_;  // XORed with a cell's number; 7 for schemes that count the bits of a byte from the highest
  std::uint32_t epoch_;
  std::uint32_t (*used_in_block_)(const std::uint8_t* block) = nullptr;  // of a quotient filter
  std::vector<segment> layers_;
};

/// A cell of a key and its value.
struct explained_cell {
  std::uint64_t cell = 0;  ///< index in its layer
  /// A bit: 0 or 1; a counter: 0 to 15; a static filter: a fingerprint; a block of a quotient filter: the number of
  /// copies of the key's fingerprint in it.
  std::uint32_t value = 0;
  std::uint64_t offset = 0;  ///< on servers: the offset for SETBIT (bits) or BITFIELD (counters)
};

/// The cells of a key in one layer, in probe order; some may be equal.
struct explained_layer {
  std::vector<explained_cell> cells;
  std::uint64_t block = 0;       ///< the block that contains all of them
  std::uint64_t blocks = 0;      ///< blocks of this layer, on servers of this shard; 0: the layout has no blocks
  std::uint64_t first_byte = 0;  ///< of the block
  std::uint64_t bytes = 0;       ///< of a block
  std::string server_key = {};   ///< on servers: the key that holds the layer
  std::int64_t number = 0;       ///< on servers, or in a layered_filter: number of the layer or generation
};

/// A generation of a sliding-window filter in memory or in a file.
struct explained_generation {
  std::uint64_t epoch = 0;
  std::uint32_t cells_set = 0;  ///< number of the key's cells that are set
  bool maybe_present = false;   ///< all of them are set
};

/// The fingerprint of a key in a static filter. The key is absent unless the exclusive or of its three cells equals it.
struct explained_fingerprint {
  unsigned width = 0;              ///< bits
  std::uint32_t exclusive_or = 0;  ///< of the cells
  std::uint32_t expected = 0;      ///< the key's
};

/// The fingerprint of a key in a quotient filter. The key is absent unless one of its blocks has a copy.
struct explained_slots {
  std::uint32_t bucket = 0;     ///< of each block
  std::uint32_t remainder = 0;  ///< which is looked for in the slots of this bucket
  unsigned width = 0;           ///< bits of a remainder
};

/// The result of a lookup, with the cells that determine it.
struct key_explanation {
  bool maybe_present = false;
  std::optional<key_hash> hash = {};    ///< empty for schemes, which have their own hashes
  std::vector<explained_layer> layers;  ///< the newest first; empty: a partition of a static filter without keys
  std::uint64_t shard = 0;              ///< on servers, or in a layered_filter
  std::uint64_t shards = 0;             ///< on servers, or in a layered_filter; otherwise 0
  std::vector<explained_generation> generations = {};     ///< of a sliding-window filter, the newest first
  std::optional<explained_fingerprint> fingerprint = {};  ///< of a static filter
  std::optional<explained_slots> slots = {};              ///< of a quotient filter; its layer has one or two cells
};

}  // namespace bloomery
