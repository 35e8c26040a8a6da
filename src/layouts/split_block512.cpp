// split_block512: sizes, rates and cell scans.
#include <bloomery/layouts/split_block512.hpp>

#include <bloomery/error.hpp>

#include "layouts/occupancy_of.hpp"
#include "layouts/row_of.hpp"
#include "layouts/split_layout.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

namespace bloomery {
namespace {

// block_hit() from a table. Every FPR needs the same few hundred values; caching them makes it twenty times faster.
long double line_hit(long double i) {
  static const std::array<long double, 512> known = [] {
    std::array<long double, 512> hits;
    for (std::size_t keys = 0; keys < hits.size(); ++keys)
      hits[keys] = split_layout::block_hit<layouts::split_block512>(static_cast<long double>(keys));
    return hits;
  }();
  return i < static_cast<long double>(known.size()) ? known[static_cast<std::size_t>(i)]
                                                    : split_layout::block_hit<layouts::split_block512>(i);
}

double rate(std::uint64_t lines, std::uint64_t keys) {
  return static_cast<double>(
      rates::either(rates::blocked(keys, static_cast<long double>(lines), line_hit), rates::collision(0x1p64L, keys)));
}

}  // namespace

geometry layouts::split_block512::geometry_for(std::uint64_t capacity, double target_fpr) {
  return split_layout::geometry_for<split_block512>(capacity, target_fpr, rate);
}

void layouts::split_block512::check(const geometry& g) { split_layout::check<split_block512>(g); }

double layouts::split_block512::expected_fpr(const geometry& g, std::uint64_t keys) {
  return rate(g.bits / block_bits, keys);
}

double layouts::split_block512::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy_of<layouts::split_block512>(g), zeros).value;
}

template <>
struct cell_scan<layouts::split_block512> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters& counters) {
    using namespace cell_scans;
    exact_sum sum;
    const std::uint64_t ones = each_block(counters.blocks, layouts::split_block512::block_bits / 8, slice.bytes,
                                          [&](auto... some) { sum(some...); });
    return {ones, per_block<layouts::split_block512>(sum.total, g.bits / layouts::split_block512::block_bits), 0x1p64L};
  }
};

template const layout_row& row_of<layouts::split_block512>() noexcept;

}  // namespace bloomery
