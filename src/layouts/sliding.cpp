// sliding and sliding64: batch inserts and lookups, sizes and rates.
#include <bloomery/layouts/sliding.hpp>

#include <bloomery/error.hpp>

#include "layouts/free_probes.hpp"
#include "layouts/row_of.hpp"
#include "layouts/sliding_positions.hpp"
#include "math/rates.hpp"
#include "platform/machine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {
namespace {

template <std::uint32_t Bytes>
constexpr const char* name_of_blocks = Bytes == layouts::sliding::block_bytes ? "sliding" : "sliding64";

static_assert(probe_sequence::multiplier == kernels::window_multiplier && probe_sequence::step == kernels::window_step);

// A group of keys, their blocks and the positions of their cells.
template <std::uint32_t Bytes>
struct key_group {
  using blocks = layouts::sliding_blocks<Bytes>;

  std::array<std::uint64_t, fetched_together> hash64s;
  std::array<std::uint64_t, fetched_together> at;  // of the block, in bytes
  std::array<std::uint16_t, fetched_together * kernels::window_probes> positions;
  std::size_t size = 0;

  void take(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::size_t first, bool far) noexcept {
    size = std::min(fetched_together, keys.size() - first);
    for (std::size_t i = 0; i < size; ++i) {
      hash64s[i] = keys.hash64(first + i);
      at[i] = blocks::block_at(g, hash64s[i]);
      if (!far) continue;
      // Most cache lines of a block contain a cell of the key. Determining which costs more than prefetching all.
      for (std::uint64_t line = 0; line < Bytes; line += cache_line_bytes)
        __builtin_prefetch(bytes + at[i] + line, 0, 2);
    }
  }
};

// The function that computes the positions of many keys, if the chosen kernels have one and k is not too large; else
// null.
kernels::sliding_positions positions_for(const geometry& g) noexcept {
  static const kernels::sliding_positions chosen = kernels::chosen_sliding_positions();
  return g.probes <= kernels::window_probes ? chosen : nullptr;
}

// Calls work(first, group, whether its positions are known) for each group of keys, after prefetching their blocks.
template <std::uint32_t Bytes, class Work>
void each_group(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, Work work) noexcept {
  const kernels::sliding_positions positions = positions_for(g);
  const bool far = g.bits > near_bits;
  key_group<Bytes> groups[2];
  if (keys.size() != 0) groups[0].take(bytes, g, keys, 0, far);
  std::size_t turn = 0;
  for (std::size_t first = 0; first < keys.size(); first += fetched_together, turn = 1 - turn) {
    key_group<Bytes>& here = groups[turn];
    if (first + fetched_together < keys.size()) groups[1 - turn].take(bytes, g, keys, first + fetched_together, far);
    if (positions != nullptr) {
      positions(here.hash64s.data(), here.size, layouts::sliding_blocks<Bytes>::cells_of_block, g.probes,
                here.positions.data());
    }
    work(first, here, positions != nullptr);
  }
}

// sum over d of D(d) * (1 - product of (1 - a_j(d))) where a_j(d) is the mean of A(d, i) in generation j.
long double rate_of_lanes(rates::block_rates& in_block, std::uint64_t blocks, std::span<const std::uint64_t> keys) {
  const std::uint32_t k = in_block.probes();
  std::vector<double> log_of_none(k + 1, 0);
  std::optional<std::uint64_t> known;
  std::vector<double> covered;
  std::uint64_t all = 0;
  for (const std::uint64_t n : keys) {
    if (n == 0) continue;
    if (known != n) covered = rates::blocked_covered(in_block, n, static_cast<long double>(blocks));
    known = n;
    for (std::uint32_t d = 1; d <= k; ++d) log_of_none[d] += std::log1p(-covered[d]);
    all += std::min(n, (std::uint64_t{1} << 63) / window_generations);
  }
  long double rate = 0;
  for (std::uint32_t d = 1; d <= k; ++d) rate += in_block.falls_on(d) * -std::expm1(log_of_none[d]);
  return rates::either(std::min(rate, 1.0L), rates::collision(0x1p64L, all));
}

std::uint64_t keys_per_slice(std::uint64_t keys) { return keys / window_slices + (keys % window_slices != 0); }

keys_by_generation evenly(std::uint64_t keys) {
  keys_by_generation lanes;
  lanes.fill(keys_per_slice(keys));
  return lanes;
}

}  // namespace

window_state window_state::at(std::uint64_t epoch) const noexcept {
  window_state later = *this;
  if (epoch <= newest) return later;
  const std::uint64_t passed = std::min<std::uint64_t>(epoch - newest, window_generations);
  for (std::uint64_t i = 1; i <= passed; ++i) later.keys[(newest + i) % window_generations] = 0;
  later.newest = epoch;
  return later;
}

// If the positions are known, insert_into() and generations_with() are called with 0 probes: they only update the block
// to the epoch and return its live generations. The cells are processed here.
template <std::uint32_t Bytes>
window_insertions layouts::sliding_blocks<Bytes>::insert_keys(std::uint8_t* bytes, const geometry& g,
                                                              const hash_span& keys, std::uint32_t epoch,
                                                              std::uint8_t* is_new) noexcept {
  window_insertions done;
  const auto lane = static_cast<std::uint8_t>(1u << epoch % window_generations);
  const auto insert_group = [&](std::size_t first, const key_group<Bytes>& group, bool positions_known) {
    for (std::size_t i = 0; i < group.size; ++i) {
      std::uint8_t* const block = bytes + group.at[i];
      std::uint8_t had = insert_into(block, group.hash64s[i], positions_known ? 0 : g.probes, epoch);
      if (positions_known) {
        const std::uint16_t* const positions = &group.positions[i * kernels::window_probes];
        for (std::uint32_t c = 0; c < g.probes; ++c) {
          std::uint8_t& cell = block[stamp_bytes + positions[c]];
          had &= cell;
          cell |= lane;
        }
      }
      if (is_new != nullptr) is_new[first + i] = had == 0 ? 1 : 0;
      done.unseen += had == 0 ? 1 : 0;
      done.new_to_generation += (had & lane) == 0 ? 1 : 0;
    }
  };
  each_group<Bytes>(bytes, g, keys, insert_group);
  return done;
}

template <std::uint32_t Bytes>
void layouts::sliding_blocks<Bytes>::look_up_keys(const std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                                                  std::uint32_t epoch, std::uint64_t* bitmap) noexcept {
  const auto look_up_group = [&](std::size_t first, const key_group<Bytes>& group, bool positions_known) {
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < group.size; ++i) {
      const std::uint8_t* const block = bytes + group.at[i];
      std::uint8_t have = generations_with(block, group.hash64s[i], positions_known ? 0 : g.probes, epoch);
      if (positions_known) {
        // All positions: an early exit for absent keys would be mispredicted too often.
        const std::uint16_t* const positions = &group.positions[i * kernels::window_probes];
        for (std::uint32_t c = 0; c < g.probes; ++c) have &= block[stamp_bytes + positions[c]];
      }
      answers |= std::uint64_t{have != 0} << i;
    }
    std::uint64_t& word = bitmap[first / 64];
    word = (first % 64 == 0 ? 0 : word) | answers << (first % 64);
  };
  each_group<Bytes>(bytes, g, keys, look_up_group);
}

template <std::uint32_t Bytes>
void layouts::sliding_blocks<Bytes>::unite(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g,
                                           std::uint32_t epoch) noexcept {
  for (std::uint64_t b = 0; b < blocks_of(g); ++b) {
    std::uint8_t* const to = bytes + window_state_bytes + b * Bytes;
    const std::uint8_t* const from = other + window_state_bytes + b * Bytes;
    bring_to(to, epoch);
    const std::uint32_t stamp = stamp_of(from);
    const std::uint8_t live = live_generations(stamp, epoch);
    for (std::uint32_t at = stamp_bytes; at < Bytes; ++at) to[at] |= from[at] & live;
    if (is_ahead(from, epoch) && stamp - epoch > stamp_of(to) - epoch) std::memcpy(to, &stamp, sizeof stamp);
  }
}

template <std::uint32_t Bytes>
window_cells layouts::sliding_blocks<Bytes>::scan_cells(const std::uint8_t* bytes, const geometry& g,
                                                        std::uint32_t epoch) {
  std::array<double, cells_of_block + 1> hit;
  for (std::uint32_t c = 0; c < hit.size(); ++c) hit[c] = std::pow(static_cast<double>(c) / cells_of_block, g.probes);
  constexpr std::uint32_t sets = 1u << window_generations;
  window_cells found;
  long double sum = 0;
  for (std::uint64_t b = 0; b < blocks_of(g); ++b) {
    const std::uint8_t* const block = bytes + window_state_bytes + b * Bytes;
    const std::uint8_t live = live_generations(stamp_of(block), epoch);
    if (live == 0) continue;
    // having[S]: first the number of cells whose set bits are exactly S, then of those that have at least the bits of
    // S.
    std::array<std::uint32_t, sets> having{};
    for (std::uint32_t at = stamp_bytes; at < Bytes; ++at) ++having[block[at] & live];
    for (std::uint32_t bit = 1; bit < sets; bit *= 2) {
      for (std::uint32_t set = 0; set < sets; ++set) {
        if ((set & bit) == 0) having[set] += having[set | bit];
      }
    }
    double rate = 0;
    for (std::uint32_t set = 1; set < sets; ++set) {
      rate += std::popcount(set) % 2 != 0 ? hit[having[set]] : -hit[having[set]];
    }
    for (std::uint32_t lane = 0; lane < window_generations; ++lane) found.ones[lane] += having[std::size_t{1} << lane];
    sum += std::clamp(rate, 0.0, 1.0);
  }
  found.current_fpr = static_cast<double>(sum / static_cast<long double>(blocks_of(g)));
  return found;
}

template <std::uint32_t Bytes>
geometry layouts::sliding_blocks<Bytes>::geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  return geometry_for(evenly(capacity), target_fpr);
}

template <std::uint32_t Bytes>
geometry layouts::sliding_blocks<Bytes>::geometry_for(const keys_by_generation& fullest, double target_fpr) {
  const std::uint64_t most = *std::max_element(fullest.begin(), fullest.end());
  rates::check_target_fpr(most, target_fpr);
  const auto lanes = static_cast<double>(fullest.size()) -
                     static_cast<double>(std::count(fullest.begin(), fullest.end(), std::uint64_t{0}));
  const auto [blocks, probes] = free_probes::fewest_blocks(
      {name_of_blocks<Bytes>, cells_of_block, max_blocks, most_chosen_probes}, most, target_fpr,
      {most, target_fpr / lanes}, [&](rates::block_rates& in_block, std::uint64_t b) {
        return static_cast<double>(rate_of_lanes(in_block, b, fullest));
      });
  return of_blocks(blocks, probes);
}

template <std::uint32_t Bytes>
void layouts::sliding_blocks<Bytes>::check(const geometry& g) {
  const std::string what = std::string("invalid number of bits for a ") + name_of_blocks<Bytes> + " filter";
  constexpr std::uint64_t state_bits = 8 * window_state_bytes;
  if (g.bits <= state_bits || (g.bits - state_bits) % block_bits != 0) {
    throw error(errc::invalid_argument,
                {what, "geometry", "4096 and a multiple of " + std::to_string(block_bits), std::to_string(g.bits), ""});
  }
  rates::check_blocks(name_of_blocks<Bytes>, g.bits - state_bits, block_bits, max_blocks);
  rates::check_probes(name_of_blocks<Bytes>, g.probes);
}

template <std::uint32_t Bytes>
double layouts::sliding_blocks<Bytes>::rate_of(const geometry& g, std::span<const std::uint64_t> keys) {
  return static_cast<double>(rate_of_lanes(free_probes::rates_in_block<cells_of_block>(g.probes), blocks_of(g), keys));
}

template <std::uint32_t Bytes>
double layouts::sliding_blocks<Bytes>::expected_fpr(const geometry& g, std::uint64_t keys) {
  return rate_of(g, evenly(keys));
}

template class layouts::sliding_blocks<512>;
template class layouts::sliding_blocks<64>;

template <sliding_window_layout L>
struct cell_scan<L> {
  static cell_scan_result scan(const geometry& g, const byte_slice& all, const block_counters&) {
    const window_state s = window_state::of(all.bytes.data());
    const window_cells cells = L::scan_cells(all.bytes.data(), g, static_cast<std::uint32_t>(s.newest));
    return {std::accumulate(cells.ones.begin(), cells.ones.end(), std::uint64_t{0}), cells.current_fpr, 0};
  }
};

template const layout_row& row_of<layouts::sliding>() noexcept;
template const layout_row& row_of<layouts::sliding64>() noexcept;

}  // namespace bloomery
