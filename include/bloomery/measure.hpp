// The measured FPR: lookups of random absent keys, with the statistics to judge the result.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <functional>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;

/// The interval from `low` to `high`.
struct interval {
  double low = 0;
  double high = 1;

  bool holds(double value) const noexcept { return low <= value && value <= high; }
};

/// Wilson's score interval for a probability after `hits` successes in `trials` trials. It stays within 0 to 1 and is
/// meaningful even without a hit. [Wilson 1927]
///
/// @param sigmas  half its width, in standard deviations; 1.96 covers the true probability in about 95% of all cases
///                (with few hits only 87%)
///
/// Example:
///     const interval i = wilson(0, 100, 1.96);
///     assert(i.low == 0 && i.high > 0.036 && i.high < 0.038);
interval wilson(std::uint64_t hits, std::uint64_t trials, double sigmas = 1.96);

/// The exact binomial tail: the probability of `hits` successes, or a number further from the mean on the same side, if
/// each trial succeeds with probability `rate`. For few hits it is more precise than wilson().
///
/// @param hits    at most trials
/// @param trials  up to 10^12; beyond, digits are lost
/// @param rate    a probability, 0 and 1 included
///
/// Example:
///     assert(chance_of(1, 1000, 1e-5) > 0.0099 && chance_of(1, 1000, 1e-5) < 0.01);
///     assert(chance_of(500, 1000, 0.5) > 0.5);
double chance_of(std::uint64_t hits, std::uint64_t trials, double rate);

/// Number of lookups needed to measure `rate` with a relative error of `relative`, at `sigmas` standard deviations:
/// (z/d)^2 (1 - p)/p. At least 1, at most 2^62.
///
/// Example:
///     assert(queries_to_resolve(0.001, 0.02, 4) == 39'960'000);
std::uint64_t queries_to_resolve(double rate, double relative, double sigmas);

/// The result of looking up absent keys.
struct measured_rate {
  std::uint64_t queries = 0;
  std::uint64_t hits = 0;  ///< false positives
  double rate() const noexcept { return queries == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(queries); }
  interval within(double sigmas = 1.96) const { return wilson(hits, queries, sigmas); }
};

/// Looks up `queries` random keys: strings of 16 random bytes, or 64-bit integers. The probability that such a key is
/// in a filter of n other keys is n / 2^128, or n / 2^64.
///
/// @param seed     selects the keys
/// @param threads  0: one per processor; does not change the result
/// @param go_on    called occasionally by all threads; if it returns false, measuring stops early with fewer lookups
///
/// Example:
///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const measured_rate m = measure_rate(seen, 100'000);
///     assert(m.within(5).holds(measure_fill(seen.parameters(), seen.bytes()).current_fpr));
measured_rate measure_rate(const any_filter& filter, std::uint64_t queries, std::uint64_t seed = 0,
                           unsigned threads = 0, const std::function<bool()>& go_on = {});

/// Measures a filter of any kind with the same keys; in one thread if its lookups cannot run in parallel.
/// @throws error  as filter_handle::contains
///
/// Example:
///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const std::uint64_t hits = measure_rate(seen, 100'000).hits;
///     assert(measure_rate(*make_handle(std::move(seen)), 100'000).hits == hits);
measured_rate measure_rate(filter_handle& filter, std::uint64_t queries, std::uint64_t seed = 0, unsigned threads = 0,
                           const std::function<bool()>& go_on = {});

}  // namespace bloomery
