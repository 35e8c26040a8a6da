// Occupancy: the distribution of clear bits of a layout after n keys, as mean and variance.
//
// n keys, m bits, B blocks of b bits; Z of the m bits are clear. For cells of more than one bit, "bit" means cell here.
#pragma once

#include <bloomery/detail/estimate.hpp>
#include <bloomery/detail/geometry.hpp>

#include <cstdint>

namespace bloomery {

/// The rule by which a key sets bits: it selects one of B blocks, and sets one bit in each word of w bits there, or k
/// independent bits.
struct occupancy {
  std::uint64_t blocks = 1;
  std::uint64_t block_bits = 0;
  std::uint32_t word_bits = 0;  ///< 0: anywhere in the block
  std::uint32_t probes = 0;

  /// Number of equally likely values that are mapped to blocks. If it is not a multiple of the number of blocks, some
  /// blocks get one value more. 0: so large that all blocks are equally likely.
  std::uint64_t values = 0;
};

/// ln of the probability that a key leaves a given bit clear, ln(1 - q/B).
long double log_of_staying_clear(const occupancy& o);

/// Var(Z) / E(Z)^2 after n keys, exact: the mean over all pairs of bits of P(both clear) / P(one clear)^2 - 1.
long double relative_variance_of_zeros(const occupancy& o, long double n);

/// Estimated distinct keys from Z zeros; infinite for Z = 0.
estimate keys_from_zeros(const occupancy& o, std::uint64_t zeros);

/// Expected number of set bits after n keys.
estimate ones_of_keys(const occupancy& o, double n);

}  // namespace bloomery
