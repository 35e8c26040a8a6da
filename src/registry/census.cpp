#include "registry/census.hpp"

#include <bloomery/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

#include "kernels/dispatch.hpp"
#include "layouts/occupancy_of.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>

namespace bloomery {
namespace {

constexpr std::size_t batch = 512;  // blocks counted together: their results stay in the first-level cache

long double power(long double x, std::uint32_t k) {
  long double result = 1;
  for (; k > 0; k >>= 1, x *= x) {
    if ((k & 1) != 0) result *= x;
  }
  return result;
}

// The certificate: the bits' own rate, and the collisions of as many keys as the bits suggest among `space` hashes.
census certify(const occupancy& o, std::uint64_t ones, long double hit, long double space) {
  if (ones == 0) return {};
  const std::uint64_t bits = o.blocks * o.block_bits;
  const double keys = std::round(keys_from_zeros(o, std::max<std::uint64_t>(bits - ones, 1)).value);
  const long double collision = rates::collision(space, static_cast<std::uint64_t>(std::min(keys, 0x1p62)));
  return {ones, static_cast<double>(std::min(rates::either(hit, collision), 1.0L))};
}

// Calls sum(results, count) for the results of `kernel` on all blocks, batch by batch; returns the ones.
template <class Sum>
std::uint64_t each_block(std::uint64_t (*kernel)(const std::uint8_t*, std::size_t, std::uint64_t*),
                         std::uint64_t block_bytes, std::span<const std::uint8_t> bytes, Sum sum) {
  std::array<std::uint64_t, batch> results;
  const std::uint64_t blocks = bytes.size() / block_bytes;
  std::uint64_t ones = 0;
  for (std::uint64_t first = 0; first < blocks; first += batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch, blocks - first));
    ones += kernel(bytes.data() + first * block_bytes, count, results.data());
    sum(results.data(), count);
  }
  return ones;
}

// Adds products below 2^49, 512 of them at a time, without loss.
struct exact_sum {
  long double total = 0;
  void operator()(const std::uint64_t* products, std::size_t count) {
    std::uint64_t part = 0;
    for (std::size_t i = 0; i < count; ++i) part += products[i];
    total += static_cast<long double>(part);
  }
};

// Mean of the products, each weighted by the values u with (u * B) >> 32 == its block.
struct weighted_sum {
  std::uint64_t blocks;
  std::uint64_t fewer = split_block::max_blocks / blocks;
  std::uint64_t rest = split_block::max_blocks % blocks;
  std::uint64_t carried = blocks - 1;  // of ceil(block * 2^32 / B) = floor((block * 2^32 + B - 1) / B)
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

template <class L>
long double per_block(long double sum, std::uint64_t blocks) {
  return sum / static_cast<long double>(blocks) / power(L::lane_bits, L::lanes);
}

}  // namespace

std::uint64_t used_ones(std::uint64_t bits, std::span<const std::uint8_t> bytes, bool from_top) {
  std::uint64_t ones = count_ones(bytes);
  if (const std::uint64_t used = bits % 8; used != 0) {
    const unsigned mask = from_top ? 0xFFu >> used : 0xFFu << used & 0xFFu;
    ones -= static_cast<std::uint64_t>(std::popcount(bytes.back() & mask));
  }
  return ones;
}

census census_of_split_block(const geometry& g, std::span<const std::uint8_t> bytes, std::uint64_t even_blocks) {
  const occupancy o = occupancy_of<split_block>(g);
  const auto kernel = chosen_kernels().census.split_block;
  const auto space = static_cast<long double>(o.blocks) * 0x1p32L;
  if (o.blocks <= even_blocks) {
    exact_sum sum;
    const std::uint64_t ones =
        each_block(kernel, split_block::block_bits / 8, bytes, [&](auto... some) { sum(some...); });
    return certify(o, ones, per_block<split_block>(sum.total, o.blocks), space);
  }
  weighted_sum sum{o.blocks};
  const std::uint64_t ones =
      each_block(kernel, split_block::block_bits / 8, bytes, [&](auto... some) { sum(some...); });
  return certify(o, ones, per_block<split_block>(sum.total, split_block::max_blocks), space);
}

template <>
census census_of<split_block>(const geometry& g, std::span<const std::uint8_t> bytes) {
  return census_of_split_block(g, bytes, std::uint64_t{1} << 25);
}

template <>
census census_of<split_block512>(const geometry& g, std::span<const std::uint8_t> bytes) {
  const occupancy o = occupancy_of<split_block512>(g);
  exact_sum sum;
  const std::uint64_t ones = each_block(chosen_kernels().census.split_block512, split_block512::block_bits / 8, bytes,
                                        [&](auto... some) { sum(some...); });
  return certify(o, ones, per_block<split_block512>(sum.total, o.blocks), 0x1p64L);
}

template <>
census census_of<blocked>(const geometry& g, std::span<const std::uint8_t> bytes) {
  const occupancy o = occupancy_of<blocked>(g);
  std::array<double, blocked::block_bits + 1> hit;
  for (std::uint32_t x = 0; x < hit.size(); ++x) {
    hit[x] = static_cast<double>(power(static_cast<long double>(x) / blocked::block_bits, g.probes));
  }
  long double sum = 0;
  const std::uint64_t ones = each_block(chosen_kernels().census.blocked, blocked::block_bits / 8, bytes,
                                        [&](const std::uint64_t* ones_of_line, std::size_t count) {
                                          // Four sums, which need not wait for each other.
                                          double a = 0, b = 0, c = 0, d = 0;
                                          std::size_t i = 0;
                                          for (; i + 4 <= count; i += 4) {
                                            a += hit[ones_of_line[i]];
                                            b += hit[ones_of_line[i + 1]];
                                            c += hit[ones_of_line[i + 2]];
                                            d += hit[ones_of_line[i + 3]];
                                          }
                                          for (; i < count; ++i) a += hit[ones_of_line[i]];
                                          sum += a + b + (c + d);
                                        });
  return certify(o, ones, sum / static_cast<long double>(o.blocks), 0x1p64L);
}

template <>
census census_of<blocked_page>(const geometry& g, std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t page_bytes = blocked_page::block_bits / 8;
  const occupancy o = occupancy_of<blocked_page>(g);
  const auto count = chosen_kernels().census.ones;
  std::uint64_t ones = 0;
  long double sum = 0;
  for (std::uint64_t i = 0; i < o.blocks; ++i) {
    const std::uint64_t here = count(bytes.data() + i * page_bytes, page_bytes);
    ones += here;
    sum += power(static_cast<long double>(here) / blocked_page::block_bits, g.probes);
  }
  return certify(o, ones, sum / static_cast<long double>(o.blocks), 0x1p64L);
}

template <>
census census_of<classic>(const geometry& g, std::span<const std::uint8_t> bytes) {
  const std::uint64_t ones = used_ones(g.bits, bytes, false);
  const long double fill = static_cast<long double>(ones) / static_cast<long double>(g.bits);
  return certify(occupancy_of<classic>(g), ones, power(fill, g.probes), 0x1p128L);
}

template <>
census census_of<counting>(const geometry& g, std::span<const std::uint8_t> bytes) {
  constexpr std::uint64_t line_bytes = counting::block_bits / 8;
  const occupancy o = occupancy_of<counting>(g);
  std::array<double, counting::cells_of_line + 1> hit;
  for (std::uint32_t x = 0; x < hit.size(); ++x) {
    hit[x] = static_cast<double>(power(static_cast<long double>(x) / counting::cells_of_line, g.probes));
  }
  std::uint64_t used = 0;
  long double sum = 0;
  for (std::uint64_t i = 0; i < o.blocks; ++i) {
    const std::uint64_t here = counting::cells_used(bytes.subspan(i * line_bytes, line_bytes));
    used += here;
    sum += hit[here];
  }
  return certify(o, used, sum / static_cast<long double>(o.blocks), 0x1p64L);
}

census take_census(const params& p, std::span<const std::uint8_t> bytes) {
  const layout_row* layout = find_layout(p.layout);
  const scheme* by_scheme = find_scheme(p.scheme);
  if (layout == nullptr && by_scheme == nullptr) {
    throw error(errc::invalid_argument,
                {"no such layout or scheme", "", "one of " + layout_names() + ", " + scheme_names(),
                 "'" + p.layout + p.scheme + "'", ""});
  }
  if (bytes.size() != bytes_for(p.geometry.bits)) {
    throw error(errc::invalid_argument, {"bytes of a filter", "census", std::to_string(bytes_for(p.geometry.bits)),
                                         std::to_string(bytes.size()), ""});
  }
  if (layout != nullptr) {
    layout->check(p.geometry);
    return layout->take_census(p.geometry, bytes);
  }
  by_scheme->check(p.geometry);
  return {used_ones(p.geometry.bits, bytes, by_scheme->from_top), by_scheme->certified_rate(p.geometry, bytes)};
}

}  // namespace bloomery
