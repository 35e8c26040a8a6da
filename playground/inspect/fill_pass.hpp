// The fill pass: one pass over all cells that counts those that are set, by range and by block.
#pragma once

#include "playground/inspect/histogram.hpp"
#include "playground/json/json.hpp"

#include <bloomery/cells.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace bloomery::playground {

/// The set cells per range and per block.
struct fill_seen {
  histogram by_blocks;
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ranges;  ///< non-zero cells per range
  std::vector<std::uint64_t> read;    ///< cells read per range; empty: all
};

/// The pass over a filter whose cells come in slices, in order.
class fill_pass {
 public:
  /// @param all  the cells of the filter, of which only the numbers are used
  explicit fill_pass(const cell_view& all);

  /// Counts the cells of the next slice: whole blocks, except for the last slice.
  /// @param threads   that share the work; 1: it starts none
  /// @param progress  receives the completed share of the filter, from one of the threads
  void add(const cell_view& slice, unsigned threads, const std::function<void(double)>& progress);

  /// Requires all cells.
  fill_seen result() && { return std::move(seen_); }

 private:
  std::uint64_t cells_;
  std::uint64_t blocks_of_range_;
  std::uint64_t done_ = 0;  // cells
  fill_seen seen_;
};

/// Counts all cells of a filter.
fill_seen fill_of(const cell_view& cells, unsigned threads, const std::function<void(double)>& progress);

/// Adds heat map and histogram to the findings of a filter; uneven blocks make the verdict bad.
void add_fill(json& seen, const params& p, const fill_seen& fill);

}  // namespace bloomery::playground
