// How a layout's keys fall on its bits, and how many bits they leave clear: the mean, and the spread around it.
//
// n keys, m bits, B blocks of b bits; Z of the m bits are clear. Where cells have more bits than one, they are what is
// called bits here.
#pragma once

#include <bloomery/detail/estimate.hpp>
#include <bloomery/geometry.hpp>

#include <cstdint>

namespace bloomery {

/// A key chooses one of B blocks. There it sets a bit in each word of w bits, or else k independent bits.
struct occupancy {
  std::uint64_t blocks = 1;
  std::uint64_t block_bits = 0;
  std::uint32_t word_bits = 0;  ///< 0: anywhere in the block
  std::uint32_t probes = 0;

  /// How many equally likely values lead to blocks: if the blocks do not divide it, some are met by one value more. 0:
  /// by so many values that all blocks are alike.
  std::uint64_t values = 0;
};

/// ln of the probability that a key leaves a given bit clear, ln(1 - q/B).
long double log_of_staying_clear(const occupancy& o);

/// Var(Z) / E(Z)^2 after n keys, exact: the mean over all pairs of bits of P(both clear) / P(one clear)^2 - 1.
long double relative_variance_of_zeros(const occupancy& o, long double n);

/// Z zeros tell this many distinct keys, give or take; infinite for none.
estimate keys_from_zeros(const occupancy& o, std::uint64_t zeros);

/// Bits set by n keys, give or take.
estimate ones_of_keys(const occupancy& o, double n);

}  // namespace bloomery
