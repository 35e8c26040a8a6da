// fpr_judgement: whether a filter keeps its target FPR, allowing for chance. All messages, exit statuses and pages that
// report a kept or broken target FPR use this rule.
//
// A filter with exactly its capacity of keys has an FPR that varies by chance around the expected FPR, which is at most
// the target FPR. n keys, p the target FPR.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// How the FPR of a filter compares with its target FPR.
enum class fpr_verdict : std::uint8_t {
  no_target,      ///< the filter has no target FPR, or one of 100%
  kept,           ///< at most the target FPR
  within_chance,  ///< above the target FPR, but within the range of a filter that holds exactly its capacity
  broken,         ///< above that range
};

/// "no_target", "kept", "within_chance", "broken".
const char* name_of(fpr_verdict verdict) noexcept;

/// The judgment of an FPR.
struct fpr_judgement {
  fpr_verdict verdict = fpr_verdict::no_target;
  double fpr = 0;     ///< the FPR that was judged
  double target = 0;  ///< the target FPR
  double limit = 1;   ///< the highest FPR that is not broken

  bool is_broken() const noexcept { return verdict == fpr_verdict::broken; }
};

/// Standard deviations of its logarithm by which an FPR may exceed the FPR expected at capacity. The FPR of a filter is
/// nearly log-normal, so a filter that holds exactly its capacity is judged broken by chance once in 30,000 times.
inline constexpr double fpr_judgement_sigmas = 4;

/// Judges the exact FPR of the present bits, or the FPR expected for the present keys, of a filter of these parameters.
///
///   broken if fpr > max(p, E exp(4 s - s^2 / 2)),   E = expected_fpr(n),   s^2 = ln(1 + V)
///
/// where V is the relative variance of the FPR of a filter with n keys: the variance of the number of set bits, and of
/// the number of keys in each block. The size rules of some schemes miss the target FPR: E may then be up to 1.5 p. For
/// static filters, whose FPR does not depend on chance, V is 0. Without a capacity, n is the number of keys with which
/// the filter reaches p. Takes as long as a few calls of expected_fpr().
///
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 10'000, .target_fpr = 0.01});
///     assert(judge_fpr(p, 0.0099).verdict == fpr_verdict::kept);
///     assert(judge_fpr(p, 0.0102).verdict == fpr_verdict::within_chance);
///     assert(judge_fpr(p, 0.02).is_broken());
fpr_judgement judge_fpr(const params& p, double fpr);

/// Highest expected FPR at capacity that the size rule of a scheme may have without breaking the target FPR, as a
/// multiple of the target FPR.
inline constexpr double tolerated_by_size_rules = 1.5;

/// Judges the FPR that is expected when a filter of these parameters holds its capacity: broken if it is above 1.5
/// times the target FPR. Only schemes, whose size rules are those of other systems, can break it. no_target without a
/// capacity, and for more than 64 probes, where computing a rate takes a second.
///
/// Example:
///     assert(judge_size(complete({.scheme = "guava", .capacity = 1000, .target_fpr = 0.01})).fpr < 0.0102);
fpr_judgement judge_size(const params& p);

}  // namespace bloomery
