// The fill pass: one pass over all cells that counts those that are set, by range and by block.
#pragma once

#include "playground/histogram.hpp"
#include "playground/json.hpp"

#include <bloomery/cell_view.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace bloomery::playground {

/// The set cells per range and per block.
struct fill_seen {
  histogram by_blocks;
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ranges;  ///< non-zero cells per range
  std::vector<std::uint64_t> read;    ///< cells read per range; empty: all
};

/// Counts all cells with several threads.
/// @param progress  receives the completed share, from one of the threads
fill_seen fill_of(const cell_view& cells, const std::function<void(double)>& progress);

/// Adds heat map and histogram to the findings of a filter; uneven blocks make the verdict bad.
void add_fill(json& seen, const params& p, const fill_seen& fill);

}  // namespace bloomery::playground
