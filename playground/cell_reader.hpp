// Where a filter's bytes have its cells, as they are numbered here, and how many of them are set.
//
// Plain and counting filters number their cells as the library does. Those of a growing filter's layers follow each
// other, the oldest layer first. A filter that forgets has its cells without the bytes between them, and a cell is set
// if a generation that is remembered now has it.
#pragma once

#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bloomery::playground {

std::uint64_t cells_of(const params& p);

/// Cells of a block; 0: there are no blocks.
std::uint64_t block_cells_of(const params& p);

/// So many cells a range that there are at most `most`: whole blocks, or a part that divides a block.
/// @param block  cells of one; 0: there are no blocks
std::uint64_t range_for(std::uint64_t cells, std::uint64_t most, std::uint64_t block);

/// Whether a scheme counts the bits of a byte from its highest.
bool counts_from_top(const params& p);

/// The blocks of a windowed filter, which have a stamp before their cells.
struct window_shape {
  explicit window_shape(const params& p)
      : block_bytes(block_bits_of(p) / 8), cells_of_block(block_bytes - layouts::sliding::stamp_bytes) {}

  std::uint64_t byte_of(std::uint64_t cell) const {
    return window_state_bytes + cell / cells_of_block * block_bytes + (block_bytes - cells_of_block) +
           cell % cells_of_block;
  }
  std::uint64_t block_of(std::uint64_t byte) const { return byte - (byte - window_state_bytes) % block_bytes; }
  std::uint64_t cell_at(std::uint64_t byte) const {
    const std::uint64_t inside = byte - window_state_bytes;
    return inside / block_bytes * cells_of_block + inside % block_bytes - (block_bytes - cells_of_block);
  }

  std::uint64_t block_bytes;
  std::uint64_t cells_of_block;
};

/// The bytes of the cells, found once for however many are looked at. Lives no longer than the filter it looks at.
class cell_reader {
 public:
  /// @param epoch  at which a filter that forgets is seen
  cell_reader(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t epoch);
  explicit cell_reader(const scalable_layers& layers);

  std::uint32_t layer_of(std::uint64_t cell) const;
  std::uint32_t value(std::uint64_t cell) const;

  /// Cells of from .. to - 1 that are not 0.
  std::uint64_t ones(std::uint64_t from, std::uint64_t to) const;

  /// How many are not 0 of each of the runs of `run` cells that begin at `from`; the filter's last may be shorter.
  void count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const;

 private:
  struct segment {
    std::uint64_t first_cell;
    std::uint64_t cells;
    std::span<const std::uint8_t> bytes;
  };

  // Of a windowed filter's block. @param cells  the first of them, behind the block's stamp
  std::uint64_t block_ones(const std::uint8_t* cells) const;

  const params* params_ = nullptr;  // none: of layers
  bloomery::family family_ = family::plain;
  std::uint64_t mask_ = 0;
  std::vector<segment> segments_;
  std::optional<window_shape> shape_;
  std::uint32_t epoch_ = 0;
};

}  // namespace bloomery::playground
