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

/// How full ranges and blocks are.
struct fill_seen {
  histogram by_blocks;
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ranges;  ///< cells that are not 0, of each range
  std::vector<std::uint64_t> read;    ///< cells of each range that were looked at; empty: all of them
};

/// Counts every cell once.
/// @param threads   that share the pass; 1: it starts none
/// @param progress  hears the share that is done, from one of them
fill_seen fill_of(const cell_view& cells, unsigned threads, const std::function<void(double)>& progress);

/// Adds heat and histogram to what is told of a filter; a verdict that was not bad becomes so if its blocks are uneven.
void add_fill(json& seen, const params& p, const fill_seen& fill);

}  // namespace bloomery::playground
