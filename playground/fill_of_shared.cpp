#include "playground/fill_of_shared.hpp"

#include <bloomery/bits.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/layouts/counting.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t line_bytes = 64;
constexpr std::uint64_t most_whole = std::uint64_t{64} << 20;    // bytes that come over the network
constexpr std::uint64_t most_sampled = std::uint64_t{16} << 20;  // of a larger one

// A layer of a shard, or a generation.
struct stretch {
  std::uint64_t first = 0;  // its first line, of all the filter's
  std::uint64_t lines = 0;
  std::size_t group = 0;
};

// Stretches that are as full as each other, but for chance.
struct alike {
  geometry size = {0, 0};
  std::uint64_t ones = 0;
  std::uint64_t lines_read = 0;
};

class all_stretches {
 public:
  explicit all_stretches(const std::vector<redis_shard>& shards) {
    struct layer_of_shard {
      std::size_t shard;
      const redis_shard::layer* layer;
      double fill() const { return static_cast<double>(layer->ones) / static_cast<double>(layer->geometry.bits); }
    };
    std::map<std::int64_t, std::vector<layer_of_shard>> by_number;  // the oldest first
    for (std::size_t s = 0; s < shards.size(); ++s) {
      for (const redis_shard::layer& layer : shards[s].layers) by_number[layer.number].push_back({s, &layer});
    }
    for (auto& [number, layers] : by_number) {
      for (const layer_of_shard& one : layers) {
        const std::uint64_t lines = one.layer->geometry.bits / (8 * line_bytes);
        stretches_[{number, one.shard}] = {lines_, lines, 0};
        lines_ += lines;
      }
      // Shards that grow each for itself have their newest layers filled in part.
      std::sort(layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.fill() < b.fill(); });
      double most = -1;
      for (const layer_of_shard& one : layers) {
        if (one.fill() > most) {
          groups_.emplace_back();
          const double chance = 3 / std::sqrt(std::max(1.0, static_cast<double>(one.layer->ones)));
          most = one.fill() * (1 + std::max(0.01, chance));
        }
        stretches_[{number, one.shard}].group = groups_.size() - 1;
        alike& to = groups_.back();
        to.size.bits += one.layer->geometry.bits;
        to.size.probes = one.layer->geometry.probes;
        to.ones += one.layer->ones;
      }
    }
  }

  std::uint64_t lines() const noexcept { return lines_; }
  std::vector<alike>& groups() noexcept { return groups_; }

  /// Null: nobody knew of it.
  const stretch* find(std::uint64_t shard, std::int64_t layer) const {
    const auto at = stretches_.find({layer, static_cast<std::size_t>(shard)});
    return at == stretches_.end() ? nullptr : &at->second;
  }

 private:
  std::map<std::pair<std::int64_t, std::size_t>, stretch> stretches_;  // by number and shard
  std::vector<alike> groups_;
  std::uint64_t lines_ = 0;
};

// Each group's blocks have their own distribution, and the histogram has the sum.
void expect_of_groups(histogram& h, params p, const std::vector<alike>& groups) {
  constexpr std::size_t most_groups = 64;  // each takes milliseconds
  if (groups.size() > most_groups) return;
  h.expected.assign(h.blocks.size(), 0);
  for (const alike& g : groups) {
    if (g.lines_read == 0) continue;
    p.geometry = g.size;
    const double keys = estimated_keys(p, std::min(g.ones, g.size.bits)).value;
    const double share = static_cast<double>(g.lines_read * 8 * line_bytes) / static_cast<double>(g.size.bits);
    const std::vector<double> by_cell =
        std::isfinite(keys) ? expected_blocks(p, h.block_cells, g.lines_read, keys * share) : std::vector<double>();
    if (by_cell.empty()) {
      h.expected.clear();  // as good as full: nobody knows
      return;
    }
    for (std::size_t x = 0; x < by_cell.size(); ++x) h.expected[x / h.cells_of_bin] += by_cell[x];
  }
}

}  // namespace

fill_seen fill_of(redis_filter& filter, const params& p, const std::vector<redis_shard>& shards,
                  const std::function<void(double)>& progress) {
  all_stretches all(shards);
  const bool counts = cell_bits_of(p) > 1;
  const std::uint64_t cells_of_line = 8 * line_bytes / cell_bits_of(p);
  const bool whole = all.lines() * line_bytes <= most_whole;
  const std::uint64_t most = whole ? most_whole : most_sampled;
  // Of a sample a range has some runs of lines at least.
  const std::uint64_t most_ranges = whole ? 4096 : 1024;
  const std::uint64_t lines_of_range = std::max<std::uint64_t>((all.lines() + most_ranges - 1) / most_ranges, 1);
  fill_seen seen;
  seen.by_blocks = histogram_of(cells_of_line);
  seen.cells_of_range = lines_of_range * cells_of_line;
  seen.ranges.resize(static_cast<std::size_t>((all.lines() + lines_of_range - 1) / lines_of_range));
  seen.read.resize(seen.ranges.size());
  const auto expected = static_cast<double>(std::min(all.lines() * line_bytes, most));
  double heard = 0;
  std::vector<std::uint64_t> ones;
  filter.read_lines(most, [&](const redis_lines& some) {
    const stretch* const place = all.find(some.shard, some.layer);
    const std::size_t count = some.bytes.size() / line_bytes;
    if (place == nullptr || some.first + count > place->lines) return;
    ones.resize(count);
    if (counts) {
      for (std::size_t i = 0; i < count; ++i) {
        ones[i] = counting::cells_used(some.bytes.subspan(i * line_bytes, line_bytes));
      }
    } else {
      count_ones_of_lines(some.bytes, ones);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto range = static_cast<std::size_t>((place->first + some.first + i) / lines_of_range);
      seen.ranges[range] += ones[i];
      seen.read[range] += cells_of_line;
      add_block(seen.by_blocks, ones[i]);
    }
    all.groups()[place->group].lines_read += count;
    heard += static_cast<double>(some.bytes.size());
    progress(std::min(heard / expected, 1.0));
  });
  expect_of_groups(seen.by_blocks, p, all.groups());
  return seen;
}

}  // namespace bloomery::playground
