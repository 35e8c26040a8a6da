// What one pass over a filter's bits tells: how many are set, and the error rate that these very bits have.
//
// There are three error rates. Predicted: the mean over all filters with n keys, expected_fpr(n). Certified, here:
// of this one filter, from its bits as they are, whatever was done to it. Measured: by asking for absent keys
// (measure.hpp). In a sound filter they agree; audit.hpp tells whether the bits fit the count.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// What the bits of a filter say.
struct fill_statistics {
  std::uint64_t ones = 0;  ///< bits set; of a counting filter, counters that are not 0
  double current_fpr = 0;  ///< the probability that a random absent key is reported, given these bits; 0 to 1

  friend bool operator==(const fill_statistics&, const fill_statistics&) = default;
};

/// Counts the bits of a filter of these params, in one pass at the speed of memory.
///
/// The certified rate is the mean over blocks of the probability that a key of that block finds all its bits set:
///
///   classic           (X/m)^k                        X of m bits are set
///   blocked, blocked_page   mean of (x/b)^k                x of the b bits of a block are set
///   counting          mean of (x/128)^k              x of the 128 counters of a line are not 0
///   split_block, split_block512 mean of product of (x_j/w)     x_j of the w bits of word j of a block are set
///
/// and with it the hash collisions of as many keys as the bits suggest. The mean goes over blocks as often as keys
/// choose them. It knows nothing of n and supposes no even filling: it is exact for the bits there are, as far as an
/// absent key's bits are independent of each other within its block and of how the others were set. Of a layout they
/// are, to all that tests can see, whatever keys were put in; bits that no keys made can be arranged to deceive it. A
/// scheme's certificate goes by the scheme's own hashing (scheme.hpp), for guava nearly.
///
/// @param bytes  bytes_for(p.geometry.bits) of them; unused bits of the last byte are ignored
/// @throws error  invalid_argument: a layout or scheme that no table knows, or another number of bytes
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}));
///     assert(measure_fill(seen.parameters(), seen.bytes()).current_fpr == 0);
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const double rate = measure_fill(seen.parameters(), seen.bytes()).current_fpr;
///     assert(rate > 0.007 && rate < 0.013);
fill_statistics measure_fill(const params& p, std::span<const std::uint8_t> bytes);

}  // namespace bloomery
