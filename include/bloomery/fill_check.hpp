// The consistency check: compares the number of set bits with the number expected from the key count. A difference
// means chosen keys, a wrong count, or damaged bits.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/params.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// The number of set bits of a filter, and the number expected from its key count.
struct fill_check {
  std::uint64_t ones = 0;   ///< bits set
  estimate expected;        ///< for random keys, of which the given count were certainly new
  bool conclusive = false;  ///< false: the count says too little (an overfull filter leaves most keys uncounted; a
                            ///< counting filter with fewer used cells than copies may hold repeated keys), or the
                            ///< filter uses a scheme, or more than 64 probes

  /// The z-score of the set bits; above 0: more bits than the keys explain.
  double deviation() const noexcept;

  /// Whether they differ by more than six standard deviations and seven bits. By chance this happens about once in 500
  /// million filters; other causes are pollution by chosen keys, a wrong count, or damaged pages.
  bool is_inconsistent() const noexcept;
};

/// Compares the set bits with the number expected from the count. The count must be exact: not an estimate
/// (count_is_estimate()), not from a file whose writer was killed, and not from threads that inserted the same keys at
/// the same time.
///
/// @param counted  keys that were certainly new when they came: insert_count()
/// @param ones     bits set, as measure_fill() counts them
/// @throws error   invalid_argument: unknown layout or scheme
///
/// Example:
///     any_filter seen(complete({.layout = "split_block512", .capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const std::uint64_t ones = measure_fill(seen.parameters(), seen.bytes()).ones;
///     assert(!check_fill(seen.parameters(), seen.insert_count(), ones).is_inconsistent());
///     assert(check_fill(seen.parameters(), seen.insert_count() / 2, ones).is_inconsistent());
fill_check check_fill(const params& p, std::uint64_t counted, std::uint64_t ones);

}  // namespace bloomery
