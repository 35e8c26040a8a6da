// The error rate by experiment: absent keys are asked for, and the false alarms counted.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/export.hpp>

#include <cstdint>
#include <functional>

namespace BLOOMERY_EXPORT bloomery {

class filter_handle;

/// From `low` to `high`.
struct interval {
  double low = 0;
  double high = 1;

  bool holds(double value) const noexcept { return low <= value && value <= high; }
};

/// Where a probability lies, when it came true `hits` times in `trials`: Wilson's score interval, which stays within 0
/// to 1 and is meaningful also when nothing came true. [Wilson 1927]
///
/// @param sigmas  half its width, in standard deviations; 1.96 holds the truth in about 95 % of all cases (at few hits
///                in as
///                little as 87 %)
///
/// Example:
///     const interval i = wilson(0, 100, 1.96);
///     assert(i.low == 0 && i.high > 0.036 && i.high < 0.038);
interval wilson(std::uint64_t hits, std::uint64_t trials, double sigmas = 1.96);

/// How likely it is that a probability of `rate` comes true so often, or still further from what is expected on the
/// same side: the exact binomial tail. It tells chance from difference where wilson() is too coarse, at a few hits.
///
/// @param hits    at most trials
/// @param trials  up to 10^12; beyond, digits are lost
/// @param rate    a probability, 0 and 1 included
///
/// Example:
///     assert(chance_of(1, 1000, 1e-5) > 0.0099 && chance_of(1, 1000, 1e-5) < 0.01);
///     assert(chance_of(500, 1000, 0.5) > 0.5);
double chance_of(std::uint64_t hits, std::uint64_t trials, double rate);

/// Queries that measure `rate` to within `relative` of itself, at so many standard deviations: (z/d)^2 (1 - p)/p.
/// At least 1, at most 2^62.
///
/// Example:
///     assert(queries_to_resolve(0.001, 0.02, 4) == 39'960'000);
std::uint64_t queries_to_resolve(double rate, double relative, double sigmas);

/// The result of asking for absent keys.
struct measured_rate {
  std::uint64_t queries = 0;
  std::uint64_t hits = 0;  ///< false alarms
  double rate() const noexcept { return queries == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(queries); }
  interval within(double sigmas = 1.96) const { return wilson(hits, queries, sigmas); }
};

/// Asks for `queries` random keys: strings of 16 random bytes, or 64-bit integers. None of them is in a filter of n
/// other keys but with probability n / 2^128, or n / 2^64.
///
/// @param seed     other keys for each
/// @param threads  0: one a processor; the result does not depend on it
/// @param go_on    asked now and then, by all threads; once it says false the result is of fewer queries
///
/// Example:
///     any_filter seen(complete({.capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 1000; ++i) seen.insert(std::to_string(i));
///     const measured_rate m = measure_rate(seen, 100'000);
///     assert(m.within(5).holds(measure_fill(seen.parameters(), seen.bytes()).current_fpr));
measured_rate measure_rate(const any_filter& filter, std::uint64_t queries, std::uint64_t seed = 0,
                           unsigned threads = 0, const std::function<bool()>& go_on = {});

/// The same for any filter, with the same keys; in one thread if its lookups do not run in parallel.
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
