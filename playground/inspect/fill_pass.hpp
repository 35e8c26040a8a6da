// The fill pass: one pass over all cells that counts those that are set, by range and by block.
#pragma once

#include "playground/inspect/histogram.hpp"
#include "playground/json/json.hpp"

#include <bloomery/cells.hpp>
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

/// Counts all cells.
/// @param threads   that share the pass; 1: it starts none
/// @param progress  receives the completed share, from one of the threads
fill_seen fill_of(const cell_view& cells, unsigned threads, const std::function<void(double)>& progress);

/// Adds heat map and histogram to the findings of a filter; uneven blocks make the verdict bad.
void add_fill(json& seen, const params& p, const fill_seen& fill);

}  // namespace bloomery::playground
