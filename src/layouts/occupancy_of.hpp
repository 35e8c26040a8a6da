// The occupancy of a layout, from the constants of its type.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/layout.hpp>

#include "math/occupancy.hpp"

#include <cstdint>

namespace bloomery {

/// The occupancy of a layout L, which defines block_bits if it has blocks, and lane_bits if each word of a block has
/// one bit of a key.
template <class L>
constexpr occupancy occupancy_of(const geometry& g) {
  if constexpr (requires { L::lane_bits; }) {
    const bool by_32_bits = L::blocks_by == block_rule::upper_half;
    return {g.bits / L::block_bits, L::block_bits, L::lane_bits, g.probes, by_32_bits ? std::uint64_t{1} << 32 : 0};
  } else if constexpr (requires { L::block_bits; }) {
    return {g.bits / L::block_bits, L::block_bits / cell_bits_in<L>(), 0, g.probes};
  } else {
    return {1, g.bits, 0, g.probes};
  }
}

}  // namespace bloomery
