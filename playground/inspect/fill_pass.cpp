#include "playground/inspect/fill_pass.hpp"

#include "playground/inspect/verdict.hpp"

#include "app/parallel.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace bloomery::playground {

fill_pass::fill_pass(const cell_view& all) : cells_(all.size()) {
  constexpr std::uint64_t most_ranges = 4096;
  const std::uint64_t block_cells = block_of_histogram(all);
  // Ranges of whole blocks, so that one pass over the blocks serves both.
  const std::uint64_t blocks = (cells_ + block_cells - 1) / block_cells;
  blocks_of_range_ = (blocks + most_ranges - 1) / most_ranges;
  seen_.by_blocks = histogram_of(block_cells);
  seen_.cells_of_range = blocks_of_range_ * block_cells;
  seen_.ranges.resize(static_cast<std::size_t>((blocks + blocks_of_range_ - 1) / blocks_of_range_));
}

void fill_pass::add(const cell_view& slice, unsigned threads, const std::function<void(double)>& progress) {
  constexpr std::uint64_t blocks_at_once = 16'384;
  const std::uint64_t block_cells = seen_.by_blocks.block_cells;
  // Pieces of whole ranges, so that no two threads count in the same range.
  const std::uint64_t piece_blocks = std::max<std::uint64_t>(blocks_at_once / blocks_of_range_, 1) * blocks_of_range_;
  const std::uint64_t begin = done_ / block_cells;
  const std::uint64_t end = (done_ + slice.size() + block_cells - 1) / block_cells;
  const std::uint64_t first_piece = begin / piece_blocks;
  struct scratch {
    histogram by_blocks;
    std::vector<std::uint64_t> ones = {};
  };
  std::vector<scratch> of_workers(std::max(1u, threads), {histogram_of(block_cells)});
  app::parallel_for(threads, (end - 1) / piece_blocks - first_piece + 1, [&](unsigned worker, std::uint64_t piece) {
    auto& [by_blocks, ones] = of_workers[worker];
    const std::uint64_t first = std::max((first_piece + piece) * piece_blocks, begin);
    ones.resize(static_cast<std::size_t>(std::min((first_piece + piece + 1) * piece_blocks, end) - first));
    slice.count_set((first - begin) * block_cells, block_cells, ones);
    for (std::uint64_t i = 0; i < ones.size(); ++i) {
      const std::uint64_t number = first + i;
      seen_.ranges[static_cast<std::size_t>(number / blocks_of_range_)] += ones[static_cast<std::size_t>(i)];
      const bool whole = (number + 1) * block_cells <= cells_;
      if (whole) add_block(by_blocks, ones[static_cast<std::size_t>(i)]);
    }
    const std::uint64_t seen = std::min((first + ones.size()) * block_cells, cells_);
    if (worker == 0) progress(static_cast<double>(seen) / static_cast<double>(cells_));
  });
  for (const scratch& one : of_workers) {
    for (std::size_t i = 0; i < one.by_blocks.blocks.size(); ++i) seen_.by_blocks.blocks[i] += one.by_blocks.blocks[i];
  }
  done_ += slice.size();
}

fill_seen fill_of(const cell_view& cells, unsigned threads, const std::function<void(double)>& progress) {
  fill_pass pass(cells);
  pass.add(cells, threads, progress);
  return std::move(pass).result();
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
