// Fill statistics: the number of set bits and the exact FPR of the present bits, from one pass over them.
//
// There are three false-positive rates. The expected FPR, expected_fpr(n), is the mean over all filters with n keys.
// The current FPR, computed here, is the exact rate of the present bits of this filter. The measured FPR comes from
// lookups of absent keys (measure.hpp). In a sound filter the three agree; fill_check.hpp checks whether the bits fit
// the count.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// Statistics of the present bits of a filter.
struct fill_statistics {
  std::uint64_t ones = 0;  ///< bits set; for counting filters: non-zero counters
  double current_fpr = 0;  ///< the probability that a random absent key is reported, given these bits; 0 to 1

  friend bool operator==(const fill_statistics&, const fill_statistics&) = default;
};

/// Computes the statistics in one pass, at memory speed.
///
/// The current FPR is the mean over blocks of the probability that a key of that block finds all its bits set:
///
///   classic           (X/m)^k                        X of m bits are set
///   blocked, blocked_page   mean of (x/b)^k                x of the b bits of a block are set
///   counting          mean of (x/128)^k              x of the 128 counters of a cache line are not 0
///   split_block, split_block512 mean of product of (x_j/w)     x_j of the w bits of word j of a block are set
///
/// plus the hash collisions of the number of keys that the bits suggest. Blocks are weighted by the probability that a
/// key chooses them. The rate does not depend on n and does not assume an even fill. It is exact for the present bits,
/// provided that the bits of an absent key are independent of each other within its block and of the set bits. For all
/// layouts, tests find no deviation from this, whatever keys were inserted. Bits that did not come from keys can be
/// arranged to make the rate wrong. For schemes the rate follows the scheme's own hashing (scheme.hpp); for guava it is
/// approximate.
///
/// @param bytes  bytes_for(p.geometry.bits) bytes; unused bits of the last byte are ignored
/// @throws error  invalid_argument: unknown layout or scheme, or another number of bytes
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}));
///     assert(measure_fill(seen.parameters(), seen.bytes()).current_fpr == 0);
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const double rate = measure_fill(seen.parameters(), seen.bytes()).current_fpr;
///     assert(rate > 0.007 && rate < 0.013);
fill_statistics measure_fill(const params& p, std::span<const std::uint8_t> bytes);

}  // namespace bloomery
