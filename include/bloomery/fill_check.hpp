// Do a filter's bits fit its count of keys? If not, somebody chose the keys, or the count or the bits are wrong.
#pragma once

#include <bloomery/estimate.hpp>
#include <bloomery/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// The set bits of a filter beside those that its count lets expect.
struct fill_check {
  std::uint64_t ones = 0;   ///< bits set
  estimate expected;        ///< by keys that came by chance, so many of which were certainly new
  bool conclusive = false;  ///< false: the count says too little (most keys of so full a filter are not counted, or a
                            ///< counting filter has fewer cells in use than copies: some may be of one key), or it is
                            ///< of a scheme, or of more than 64 probes

  /// Standard deviations between the two; above 0: more bits than the keys explain.
  double deviation() const noexcept;

  /// More than six standard deviations and seven bits between them, which chance does once in some 500 million filters:
  /// pollution by chosen keys, a wrong count, or damaged pages.
  bool is_inconsistent() const noexcept;
};

/// Only a count that is one tells anything: not an estimate (count_is_estimate()), not that of a file whose writer was
/// killed, not that of threads which inserted the same keys at once.
///
/// @param counted  keys that were certainly new when they came: insert_count()
/// @param ones     bits set, as measure_fill() counts them
/// @throws error   invalid_argument: a layout or scheme that no table knows
///
/// Example:
///     any_filter seen(complete({.layout = "split_block512", .capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const std::uint64_t ones = measure_fill(seen.parameters(), seen.bytes()).ones;
///     assert(!check_fill(seen.parameters(), seen.insert_count(), ones).is_inconsistent());
///     assert(check_fill(seen.parameters(), seen.insert_count() / 2, ones).is_inconsistent());
fill_check check_fill(const params& p, std::uint64_t counted, std::uint64_t ones);

}  // namespace bloomery
