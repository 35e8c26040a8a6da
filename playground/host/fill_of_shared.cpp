#include "playground/host/fill_of_shared.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t line_bytes = 64;
constexpr std::uint64_t most_whole = std::uint64_t{64} << 20;    // bytes over the network
constexpr std::uint64_t most_sampled = std::uint64_t{16} << 20;  // bytes of a larger filter

// The variance of fewer blocks has no significance.
constexpr std::uint64_t least_lines = 16;

// A layer or generation of one shard.
struct stretch {
  std::uint64_t first = 0;  // index of its first line in the filter
  std::uint64_t lines = 0;
  std::size_t pool = 0;
};

// A pool: stretches over whose lines keys are distributed uniformly, with their measured fill.
struct pool {
  std::uint64_t lines = 0;
  geometry read = {0, 0};
  std::uint64_t ones = 0;

  bool tells() const noexcept { return lines >= least_lines; }
};

class all_stretches {
 public:
  // Keys are distributed over all shards of a filter of fixed size, and of a generation that has begun in all of them.
  // Shards of scalable filters grow independently, so their layers are separate pools.
  all_stretches(const redis_info& now, const std::vector<redis_shard>& shards) {
    std::map<std::int64_t, std::vector<std::pair<std::size_t, geometry>>> by_number;  // the oldest first
    for (std::size_t s = 0; s < shards.size(); ++s) {
      for (const redis_shard::layer& layer : shards[s].layers) by_number[layer.number].emplace_back(s, layer.geometry);
    }
    for (const auto& [number, layers] : by_number) {
      const bool together = now.parameters.growth == redis_growth::none && layers.size() == shards.size();
      for (const auto& [shard, size] : layers) {
        if (!together || shard == layers.front().first) pools_.push_back({0, {0, size.probes}, 0});
        const std::uint64_t lines = size.bits / (8 * line_bytes);
        pools_.back().lines += lines;
        stretches_[{number, shard}] = {lines_, lines, pools_.size() - 1};
        lines_ += lines;
      }
    }
  }

  std::uint64_t lines() const noexcept { return lines_; }
  std::vector<pool>& pools() noexcept { return pools_; }

  /// Null for a stretch that began after info().
  const stretch* find(std::uint64_t shard, std::int64_t layer) const {
    const auto at = stretches_.find({layer, static_cast<std::size_t>(shard)});
    return at == stretches_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::pair<std::int64_t, std::size_t>, stretch> stretches_;  // by number and shard
  std::vector<pool> pools_;
  std::uint64_t lines_ = 0;
};

// The expected blocks, from the bits read rather than from info(), because other clients insert meanwhile. Each pool
// has a distribution of its own; the histogram has their sum.
// @param small  number of blocks in pools too small for a test
void expect_of_pools(histogram& h, params p, const std::vector<pool>& pools, const histogram& small) {
  std::map<std::uint32_t, std::vector<double>> by_probes;  // number of blocks by keys per block
  for (const pool& one : pools) {
    const std::uint64_t lines = one.read.bits / (8 * line_bytes);
    if (!one.tells() || lines == 0) continue;
    p.geometry = one.read;
    const double keys = estimated_keys(p, one.ones).value;
    if (!can_be_expected(p, h.block_cells, keys / static_cast<double>(lines))) return;
    add_loads(by_probes[one.read.probes], lines, keys);
  }
  h.expected.assign(small.blocks.begin(), small.blocks.end());
  for (const auto& [probes, with] : by_probes) {
    p.geometry.probes = probes;
    const std::vector<double> by_cell = blocks_of_loads(p, h.block_cells, with);
    for (std::size_t x = 0; x < by_cell.size(); ++x) h.expected[x / h.cells_of_bin] += by_cell[x];
  }
}

}  // namespace

std::optional<fill_seen> fill_of(redis_filter& filter, const redis_info& now, const std::vector<redis_shard>& shards,
                                 const std::function<void(double)>& progress) {
  const params& p = now.parameters.filter;
  all_stretches all(now, shards);
  const bool counts = cell_bits_of(p) > 1;
  const std::uint64_t cells_of_line = 8 * line_bytes / cell_bits_of(p);
  const bool whole = all.lines() * line_bytes <= most_whole;
  const std::uint64_t most = whole ? most_whole : most_sampled;
  // In a sample, each range has at least some runs of lines.
  const std::uint64_t most_ranges = whole ? 4096 : 1024;
  const std::uint64_t lines_of_range = std::max<std::uint64_t>((all.lines() + most_ranges - 1) / most_ranges, 1);
  fill_seen seen;
  seen.by_blocks = histogram_of(cells_of_line);
  seen.by_blocks.tolerated = tolerated_while_written;
  histogram small = histogram_of(cells_of_line);
  bool is_another = false;
  seen.cells_of_range = lines_of_range * cells_of_line;
  seen.ranges.resize(static_cast<std::size_t>((all.lines() + lines_of_range - 1) / lines_of_range));
  seen.read.resize(seen.ranges.size());
  const auto expected = static_cast<double>(std::min(all.lines() * line_bytes, most));
  double heard = 0;
  std::vector<std::uint64_t> ones;
  filter.read_lines(most, [&](const redis_lines& some) {
    is_another |= some.epoch != now.epoch;
    const stretch* const place = is_another ? nullptr : all.find(some.shard, some.layer);
    const std::size_t count = some.bytes.size() / line_bytes;
    if (place == nullptr || some.first + count > place->lines) return;
    ones.resize(count);
    if (counts) {
      for (std::size_t i = 0; i < count; ++i) {
        ones[i] = layouts::counting::cells_used(some.bytes.subspan(i * line_bytes, line_bytes));
      }
    } else {
      count_ones_of_lines(some.bytes, ones);
    }
    pool& to = all.pools()[place->pool];
    to.read.bits += 8 * some.bytes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto range = static_cast<std::size_t>((place->first + some.first + i) / lines_of_range);
      seen.ranges[range] += ones[i];
      seen.read[range] += cells_of_line;
      add_block(seen.by_blocks, ones[i]);
      if (!to.tells()) add_block(small, ones[i]);
      to.ones += ones[i];
    }
    heard += static_cast<double>(some.bytes.size());
    progress(std::min(heard / expected, 1.0));
  });
  if (is_another) return std::nullopt;
  expect_of_pools(seen.by_blocks, p, all.pools(), small);
  return seen;
}

}  // namespace bloomery::playground
