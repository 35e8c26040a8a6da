#include "playground/inspect/fill_pass.hpp"

#include "playground/inspect/verdict.hpp"

#include "app/parallel.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace bloomery::playground {

fill_seen fill_of(const cell_view& view, unsigned threads, const std::function<void(double)>& progress) {
  constexpr std::uint64_t most_ranges = 4096;
  constexpr std::uint64_t blocks_at_once = 16'384;
  const std::uint64_t cells = view.size();
  fill_seen seen;
  seen.by_blocks = histogram_for(view);
  const std::uint64_t block_cells = seen.by_blocks.block_cells;
  // Ranges of whole blocks, so that one pass over the blocks serves both.
  const std::uint64_t blocks = (cells + block_cells - 1) / block_cells;
  const std::uint64_t blocks_of_range = (blocks + most_ranges - 1) / most_ranges;
  const std::uint64_t pieces_blocks = std::max<std::uint64_t>(blocks_at_once / blocks_of_range, 1) * blocks_of_range;
  const std::uint64_t pieces = (blocks + pieces_blocks - 1) / pieces_blocks;
  seen.cells_of_range = blocks_of_range * block_cells;
  seen.ranges.resize(static_cast<std::size_t>((blocks + blocks_of_range - 1) / blocks_of_range));

  struct scratch {
    histogram by_blocks;
    std::vector<std::uint64_t> ones = {};
  };
  std::vector<scratch> of_workers(std::max(1u, threads), {seen.by_blocks});
  app::parallel_for(threads, pieces, [&](unsigned worker, std::uint64_t piece) {
    auto& [by_blocks, ones] = of_workers[worker];
    const std::uint64_t first = piece * pieces_blocks;
    ones.resize(static_cast<std::size_t>(std::min(pieces_blocks, blocks - first)));
    view.count_set(first * block_cells, block_cells, ones);
    for (std::uint64_t i = 0; i < ones.size(); ++i) {
      const std::uint64_t number = first + i;
      seen.ranges[static_cast<std::size_t>(number / blocks_of_range)] += ones[static_cast<std::size_t>(i)];
      const bool whole = (number + 1) * block_cells <= cells;
      if (whole) add_block(by_blocks, ones[static_cast<std::size_t>(i)]);
    }
    if (worker == 0) progress(static_cast<double>(piece + 1) / static_cast<double>(pieces));
  });
  for (const scratch& one : of_workers) {
    for (std::size_t i = 0; i < one.by_blocks.blocks.size(); ++i) seen.by_blocks.blocks[i] += one.by_blocks.blocks[i];
  }
  return seen;
}

void add_fill(json& seen, const params& p, const fill_seen& fill) {
  const histogram& h = fill.by_blocks;
  // Some foreign schemes hash unevenly even for random keys.
  const bool even = p.scheme.empty() || p.scheme == "guava";
  const double chance = even ? evenness(h).value_or(-1) : -1;
  const bool known = chance >= 0;
  seen["heat"] = {{"cells_of_range", fill.cells_of_range},
                  {"ones", fill.ranges},
                  {"read", fill.read.empty() ? json(nullptr) : json(fill.read)}};
  seen["histogram"] = {{"block_cells", h.block_cells},
                       {"cells_of_bin", h.cells_of_bin},
                       {"blocks", h.blocks},
                       {"expected", h.expected.empty() ? json(nullptr) : json(h.expected)},
                       {"chance", known ? json(chance) : json(nullptr)},
                       {"fits", known ? json(chance >= least_chance) : json(nullptr)}};
  const bool uneven = known && chance < least_chance;
  if (uneven && seen["verdict"]["level"] != "bad") {
    seen["verdict"] = verdict("bad", "uneven", "some blocks are fuller or emptier than chance explains");
  }
}

}  // namespace bloomery::playground
