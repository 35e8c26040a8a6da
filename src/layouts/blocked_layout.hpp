// Sizes and rates of blocked_layout, which blocked.cpp, blocked_page.cpp and counting.cpp instantiate.
#pragma once

#include <bloomery/layouts/probe_sequence.hpp>

#include "layouts/free_probes.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"

#include <cstdint>

namespace bloomery {
namespace free_probes {

inline double rate(rates::block_rates& in_block, std::uint64_t blocks, std::uint64_t keys) {
  return static_cast<double>(
      rates::either(rates::blocked(keys, static_cast<long double>(blocks), [&](long double i) { return in_block(i); }),
                    rates::collision(0x1p64L, keys)));
}

}  // namespace free_probes

template <class L, std::uint32_t BlockBits, std::uint32_t CellBits>
geometry layouts::blocked_layout<L, BlockBits, CellBits>::geometry_for(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const auto [blocks, probes] = free_probes::fewest_blocks(
      {L::name.data(), cells_of_block, L::max_blocks, L::most_chosen_probes}, capacity, target_fpr,
      {capacity, target_fpr},
      [&](rates::block_rates& in_block, std::uint64_t b) { return free_probes::rate(in_block, b, capacity); });
  return {blocks * BlockBits, probes};
}

template <class L, std::uint32_t BlockBits, std::uint32_t CellBits>
void layouts::blocked_layout<L, BlockBits, CellBits>::check(const geometry& g) {
  rates::check_blocks(L::name.data(), g.bits, BlockBits, L::max_blocks);
  rates::check_probes(L::name.data(), g.probes);
}

template <class L, std::uint32_t BlockBits, std::uint32_t CellBits>
double layouts::blocked_layout<L, BlockBits, CellBits>::expected_fpr(const geometry& g, std::uint64_t keys) {
  return free_probes::rate(free_probes::rates_in_block<cells_of_block>(g.probes), g.bits / BlockBits, keys);
}

template <class L, std::uint32_t BlockBits, std::uint32_t CellBits>
double layouts::blocked_layout<L, BlockBits, CellBits>::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  return bloomery::keys_from_zeros(occupancy{g.bits / BlockBits, cells_of_block, 0, g.probes}, zeros).value;
}

}  // namespace bloomery
