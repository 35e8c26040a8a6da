// Sizes of layouts with one probe in each word of a block: the common code of split_block and split_block512.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include "math/rates.hpp"

#include <cmath>
#include <cstdint>

namespace bloomery::split_layout {

/// (1 - (1 - 1/w)^i)^l for l words of w bits: the probability that an absent key's bits are all set in a block with i
/// keys.
template <class L>
long double block_hit(long double i) {
  const long double lane_hit = -std::expm1(i * std::log1p(-1.0L / L::lane_bits));
  return std::pow(lane_hit, static_cast<long double>(L::lanes));
}

/// @param rate  double(std::uint64_t blocks, std::uint64_t keys): the exact FPR
template <class L, class Rate>
geometry geometry_for(std::uint64_t capacity, double target_fpr, Rate rate) {
  rates::check_target_fpr(capacity, target_fpr);
  // Assuming equal block loads: each word is hit with probability p^(1/l).
  const double even_bits = -static_cast<double>(L::lanes) * static_cast<double>(capacity) /
                           std::log1p(-std::pow(target_fpr, 1.0 / L::lanes));
  const double guess = std::fmin(even_bits / L::block_bits + 1, static_cast<double>(L::max_blocks));
  const std::uint64_t blocks = rates::smallest(static_cast<std::uint64_t>(guess), L::max_blocks,
                                               [&](std::uint64_t b) { return rate(b, capacity) <= target_fpr; });
  if (blocks > L::max_blocks) rates::refuse_target_fpr(L::name.data(), capacity, target_fpr);
  return {blocks * L::block_bits, L::lanes};
}

template <class L>
void check(const geometry& g) {
  rates::check_blocks(L::name.data(), g.bits, L::block_bits, L::max_blocks);
  rates::check_probes(L::name.data(), g.probes, L::lanes);
}

}  // namespace bloomery::split_layout
