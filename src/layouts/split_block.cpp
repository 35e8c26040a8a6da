// split_block: sizes, rates and cell scans.
#include <bloomery/layouts/split_block.hpp>

#include <bloomery/error.hpp>

#include "layouts/occupancy_of.hpp"
#include "layouts/row_of.hpp"
#include "layouts/split_layout.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <cmath>
#include <string>

namespace bloomery {
namespace {

// The FPR for keys of a block that is selected by `uppers` of the 2^32 values of the upper 32 bits of hash64.
long double rate_of_block(std::uint64_t uppers, std::uint64_t keys) {
  return rates::either(
      rates::blocked(keys, 0x1p32L / static_cast<long double>(uppers), split_layout::block_hit<layouts::split_block>),
      rates::collision(0x1p64L / static_cast<long double>(uppers), keys));
}

// 2^32 is not a multiple of B: 2^32 mod B blocks are selected by one value more than the others, so they have more keys
// and get more lookups. This matters from about 2^28 blocks on.
double rate(std::uint64_t blocks, std::uint64_t keys) {
  const std::uint64_t fewer = layouts::split_block::max_blocks / blocks;
  const std::uint64_t larger_blocks = layouts::split_block::max_blocks % blocks;
  const long double share = static_cast<long double>(larger_blocks * (fewer + 1)) / 0x1p32L;
  long double mean = share > 0 ? share * rate_of_block(fewer + 1, keys) : 0;
  if (share < 1) mean += (1 - share) * rate_of_block(fewer, keys);
  return static_cast<double>(mean);
}

}  // namespace

geometry layouts::split_block::geometry_for(std::uint64_t capacity, double target_fpr) {
  return split_layout::geometry_for<split_block>(capacity, target_fpr, rate);
}

void layouts::split_block::check(const geometry& g) { split_layout::check<split_block>(g); }

double layouts::split_block::expected_fpr(const geometry& g, std::uint64_t keys) {
  return rate(g.bits / block_bits, keys);
}

double layouts::split_block::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy_of<layouts::split_block>(g), zeros).value;
}

namespace {

// Mean of the products, each weighted by the number of values u with (u * B) >> 32 == its block.
struct weighted_sum {
  std::uint64_t blocks;
  std::uint64_t first;  // block
  std::uint64_t fewer = layouts::split_block::max_blocks / blocks;
  std::uint64_t rest = layouts::split_block::max_blocks % blocks;
  // Of ceil(block * 2^32 / B) = floor((block * 2^32 + B - 1) / B).
  std::uint64_t carried = (first * rest + blocks - 1) % blocks;
  long double total = 0;

  void operator()(const std::uint64_t* products, std::size_t count) {
    std::uint64_t all = 0;
    std::uint64_t larger = 0;
    for (std::size_t i = 0; i < count; ++i) {
      carried += rest;
      const bool one_more = carried >= blocks;
      if (one_more) carried -= blocks;
      all += products[i];
      larger += one_more ? products[i] : 0;
    }
    total += static_cast<long double>(all) * static_cast<long double>(fewer) + static_cast<long double>(larger);
  }
};

}  // namespace

cell_scan_result cells_of_split_block(const geometry& g, const byte_slice& slice, const block_counters& counters,
                                      std::uint64_t even_blocks) {
  using namespace cell_scans;
  constexpr std::uint64_t block_bytes = layouts::split_block::block_bits / 8;
  const std::uint64_t blocks = g.bits / layouts::split_block::block_bits;
  const auto hash_values = static_cast<long double>(blocks) * 0x1p32L;
  const auto seen = [&](auto sum, std::uint64_t weight) {
    const std::uint64_t ones =
        each_block(counters.blocks, block_bytes, slice.bytes, [&](auto... some) { sum(some...); });
    return cell_scan_result{ones, per_block<layouts::split_block>(sum.total, weight), hash_values};
  };
  return blocks <= even_blocks
             ? seen(exact_sum{}, blocks)
             : seen(weighted_sum{blocks, slice.first / block_bytes}, layouts::split_block::max_blocks);
}

template <>
struct cell_scan<layouts::split_block> {
  static cell_scan_result scan(const geometry& g, const byte_slice& slice, const block_counters& counters) {
    return cells_of_split_block(g, slice, counters, std::uint64_t{1} << 25);
  }
};

template const layout_row& row_of<layouts::split_block>() noexcept;

}  // namespace bloomery
