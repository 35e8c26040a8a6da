#include <bloomery/layouts/split_block512.hpp>

#include <bloomery/error.hpp>

#include "layouts/occupancy_of.hpp"
#include "layouts/row_of.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

namespace bloomery {
namespace {

// (1 - (63/64)^i)^8: the probability that an absent key's bits are all set in a cache line with i keys.
long double computed_hit(long double i) {
  const long double lane_hit = -std::expm1(i * std::log1p(-1.0L / layouts::split_block512::lane_bits));
  return std::pow(lane_hit, static_cast<long double>(layouts::split_block512::lanes));
}

// The same from a table. Every rate needs the same few hundred values; caching them makes a rate twenty times as fast.
long double line_hit(long double i) {
  static const std::array<long double, 512> known = [] {
    std::array<long double, 512> hits;
    for (std::size_t keys = 0; keys < hits.size(); ++keys) hits[keys] = computed_hit(static_cast<long double>(keys));
    return hits;
  }();
  return i < static_cast<long double>(known.size()) ? known[static_cast<std::size_t>(i)] : computed_hit(i);
}

double rate(std::uint64_t lines, std::uint64_t keys) {
  return static_cast<double>(
      rates::either(rates::blocked(keys, static_cast<long double>(lines), line_hit), rates::collision(0x1p64L, keys)));
}

}  // namespace

geometry layouts::split_block512::geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const double p = target_fpr;
  // Assuming equal loads of all cache lines: each lane is hit with probability p^(1/8).
  const double even_bits = -8 * static_cast<double>(capacity) / std::log1p(-std::pow(p, 1.0 / 8));
  const double guess = std::fmin(even_bits / block_bits + 1, static_cast<double>(max_blocks));
  const std::uint64_t lines = rates::smallest(static_cast<std::uint64_t>(guess), max_blocks,
                                              [&](std::uint64_t b) { return rate(b, capacity) <= p; });
  if (lines > max_blocks) {
    rates::refuse_target_fpr("split_block512", capacity, p);
  }
  return {lines * block_bits, lanes};
}

void layouts::split_block512::check(const geometry& g) {
  rates::check_blocks("split_block512", g.bits, block_bits, max_blocks);
  if (g.probes != lanes) {
    throw error(errc::invalid_argument,
                {"probes of a split_block512 filter", "geometry", "8", std::to_string(g.probes), ""});
  }
}

double layouts::split_block512::expected_fpr(const geometry& g, std::uint64_t keys) {
  return rate(g.bits / block_bits, keys);
}

double layouts::split_block512::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy_of<layouts::split_block512>(g), zeros).value;
}

template <>
struct cell_scan<layouts::split_block512> {
  static cell_scan_result scan(const geometry& g, std::span<const std::uint8_t> bytes, const block_counters& counters) {
    using namespace cell_scans;
    exact_sum sum;
    const std::uint64_t ones = each_block(counters.blocks, layouts::split_block512::block_bits / 8, bytes,
                                          [&](auto... some) { sum(some...); });
    return {ones, per_block<layouts::split_block512>(sum.total, g.bits / layouts::split_block512::block_bits), 0x1p64L};
  }
};

template const layout_row& row_of<layouts::split_block512>() noexcept;

}  // namespace bloomery
