// Sizing rules of textbooks and other systems, and the lower bound for all filters.
//
// n keys, p the target FPR, m bits, k probes. bloomery's own filters use the exact geometry_for() of their layout; the
// rules here reproduce the sizes of other systems.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/geometry.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Bits of a classic filter by the textbook rule, which assumes a real-valued number of probes.
///
///   m = ceil(-n * ln(p) / ln(2)^2)     [Broder & Mitzenmacher 2004, "Network Applications"]
///
/// With a whole number of probes the FPR is slightly above p (0.01004 for 0.01). classic::bits_for() keeps p exactly.
///
/// @param capacity    n, keys; 0 is allowed and needs 0 bits
/// @param target_fpr  p, a probability in (0, 1), not a percentage
/// @return            m, bits (not bytes)
/// @throws error  invalid_argument: p is outside (0, 1) or NaN; too_large: m does not fit in 64 bits
///
/// Example:
///     assert(textbook_bits(1'000'000, 0.01) == 9'585'059);  // 9.59 bits per key
std::uint64_t textbook_bits(std::uint64_t capacity, double target_fpr);

/// The lower bound for the memory of a filter: a filter of any kind with this FPR takes at least this many bits per
/// key, if there are far more than n/p possible keys.
///
///   log2(1/p)     [Carter, Floyd, Gill, Markowsky & Wegman 1978, "Exact and approximate membership testers"]
///
/// docs/theory.md derives it. A Bloom filter takes at least 1 / ln 2 = 1.44 times as many.
///
/// @param fpr  p, the FPR of the filter, above 0 and at most 1
/// @throws error  invalid_argument: p is outside this range or NaN
///
/// Example:
///     assert(lower_bound_bits_per_key(0.25) == 2);
///     const double times = 9.585059 / lower_bound_bits_per_key(0.01);  // the textbook's bits per key, see above
///     assert(times > 1.442 && times < 1.443);
double lower_bound_bits_per_key(double fpr);

/// The lower bound for a filter that reports all of `present` keys and none of `absent` other ones, in bits per present
/// key: the logarithm of the number of ways to choose the present keys among all of them.
///
///   log2(C(present + absent, present)) / present
///
/// @return  0 without present keys
///
/// Example:
///     const double bits = lower_bound_bits_per_key(8'000'000, 892'000'000);
///     assert(bits > 8.24 && bits < 8.26);
double lower_bound_bits_per_key(std::uint64_t present, std::uint64_t absent);

/// The rule of PharoPDS, both rounded up:  m0 = -n ln(p) / ln(2)^2,  m = ceil(m0),  k = ceil(m0 / n * ln 2).
///
/// This and the two rules below throw errors as textbook_bits(), and also
///   invalid_argument: n is 0;  too_large: more than 255 probes, that is, an FPR below 2^-255
///
/// Example:
///     assert((ceil_ceil_geometry(10, 0.1) == geometry{48, 4}));
///     assert((ceil_ceil_geometry(1'000'000'000, 0.02) == geometry{8'142'363'337, 6}));
geometry ceil_ceil_geometry(std::uint64_t capacity, double target_fpr);

/// The rule of Guava 31.1, rounded down, then up to at least one whole 64-bit word:  b = floor(m0),
/// m = 64 ceil(b / 64),  k = max(1, round(b / n * ln 2)).
/// Newer versions use k = round(-ln p / ln 2), which differs for tiny n only.
///
/// Example:
///     assert((floor_round_geometry(10'000, 0.0005) == geometry{158'208, 11}));
geometry floor_round_geometry(std::uint64_t capacity, double target_fpr);

/// The rule of Perl's Bloom::Filter, the smallest size over k = 1 .. 100:  m(k) = -k n / ln(1 - p^(1/k)),
/// m = int(m(k)) + 1.
///
/// Example:
///     assert((searched_geometry(1000, 0.01) == geometry{9593, 7}));
geometry searched_geometry(std::uint64_t capacity, double target_fpr);

/// Expected number of false positives while `keys` distinct keys are inserted one by one: sum of rate(i) for
/// i = 0 .. keys - 1. Deduplication loses these keys; they are far fewer than keys * rate(keys).
///
/// @param rate  the layout's expected FPR at a number of keys, non-decreasing
///
/// Example:
///     const geometry g = layouts::classic::geometry_for(100'000'000, 1e-4);
///     const auto rate = [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); };
///     const double lost = expected_losses(100'000'000, rate);
///     assert(lost > 960 && lost < 968);
double expected_losses(std::uint64_t keys, function_ref<double(std::uint64_t)> rate);

/// Estimated distinct keys, given that `counted` of them were certainly new when inserted. A key inserted after n
/// others is new with probability 1 - rate(n), so the estimate is the n at which the sum of 1 - rate reaches the count.
/// Far beyond capacity hardly any key is new, and the estimate is rough.
///
/// @param counted  keys for which insert() returned true
/// @param rate     as for expected_losses; called 64 times, several hundred times far beyond capacity
///
/// Example:
///     const geometry g = layouts::classic::geometry_for(1'000'000, 0.01);
///     const auto rate = [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); };
///     const std::uint64_t keys = estimate_distinct(998'000, rate);
///     assert(keys > 999'000 && keys < 1'001'000);
std::uint64_t estimate_distinct(std::uint64_t counted, function_ref<double(std::uint64_t)> rate);

/// Expected number of certainly new keys among `distinct` distinct keys inserted one by one: distinct -
/// expected_losses(distinct). This is the inverse of estimate_distinct(): a number of distinct keys estimated from the
/// bits must be converted by it before it is stored as a count.
///
/// @param distinct  distinct keys, not negative; values above 2^62, including infinity, count as 2^62
/// @param rate      as for expected_losses
///
/// Example:
///     const geometry g = layouts::classic::geometry_for(1'000'000, 0.1);
///     const auto rate = [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); };
///     const std::uint64_t counted = expected_insertions(1'000'000, rate);
///     assert(counted > 970'000 && counted < 980'000);
///     assert(std::abs(static_cast<double>(estimate_distinct(counted, rate)) - 1e6) < 1000);
std::uint64_t expected_insertions(double distinct, function_ref<double(std::uint64_t)> rate);

}  // namespace bloomery
