// Estimates from a filter's bits, with their standard deviations: distinct keys, and the overlap of two filters.
//
// Z zeros of m bits, n keys, B blocks; q is the probability that a key sets a given bit of its block.
#pragma once

#include <bloomery/detail/estimate.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// Estimated distinct keys of a filter with `ones` set bits; for counting filters, with `ones` non-zero counters.
///
///   n = ln(Z/m) / ln(1 - q/B),   sigma(n) = sigma(Z) / |dZ/dn|
///
/// where the variance of Z is the exact sum over all pairs of bits of their covariance; for classic that is linear
/// counting's m (e^r - 1 - r) / k^2, r = kn/m [Swamidass & Baldi 2007; Whang et al. 1990]. Infinite if all bits are
/// set. For static filters, whose cells do not depend on the number of keys: exactly the capacity.
///
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01});
///     const estimate keys = estimated_keys(p, p.geometry.bits / 2);
///     assert(keys.value > 900 && keys.value < 1000);
///     assert(keys.sigma > 1 && keys.sigma < 20);
estimate estimated_keys(const params& p, std::uint64_t ones);

/// Expected number of set bits, or non-zero counters, with `keys` distinct keys: m (1 - (1 - q/B)^n), and its standard
/// deviation.
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.layout = "classic", .geometry = {1000, 1}, .capacity = 100});
///     const estimate ones = expected_ones(p, 100);
///     assert(ones.value > 95.2 && ones.value < 95.3 && ones.sigma > 2 && ones.sigma < 2.2);
estimate expected_ones(const params& p, double keys);

/// Set bits of two filters of the same size.
struct shared_ones {
  std::uint64_t a = 0;     ///< of the first
  std::uint64_t b = 0;     ///< of the second
  std::uint64_t both = 0;  ///< set in both

  std::uint64_t either() const noexcept { return a + b - both; }
};

/// Counts the set bits in one pass. @throws error invalid_argument: `a` and `b` differ in size
///
/// Example:
///     const std::uint8_t a[] = {0x0F}, b[] = {0x3C};
///     const shared_ones ones = count_shared(a, b);
///     assert(ones.a == 4 && ones.b == 4 && ones.both == 2 && ones.either() == 6);
shared_ones count_shared(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

/// The estimated overlap of two filters.
struct overlap {
  estimate keys_a;
  estimate keys_b;
  estimate keys_either;         ///< distinct keys of the union
  estimate keys_both;           ///< distinct keys in both
  estimate jaccard;             ///< keys_both / keys_either, 0 to 1; 0 if both are empty
  double shared_by_chance = 0;  ///< expected common set bits of two such filters without a common key
};

/// n(A and B) = n(A) + n(B) - n(A or B), each estimated from its zeros. The errors of the three estimates are
/// correlated: with G(n) = Var(Z)/E(Z)^2 at n keys,
///
///   Var n(A and B) = (B/q)^2 (G(n_either) - G(n_a) - G(n_b) + 2 G(n_both))
///
/// If all bits of the union are set, the overlap is unknown: 0 with infinite sigma.
///
/// @param p  parameters of both filters, which must be compatible: difference(a, b) is empty
/// @throws error  incompatible: the cells are not single bits
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 10'000, .target_fpr = 0.01});
///     any_filter a(p), b(p);
///     for (int i = 0; i < 9000; ++i) a.insert(std::to_string(i));
///     for (int i = 6000; i < 15000; ++i) b.insert(std::to_string(i));
///     const overlap o = estimate_overlap(p, count_shared(a.bytes(), b.bytes()));
///     assert(o.keys_both.value > 2800 && o.keys_both.value < 3200);  // 3000
///     assert(!o.keys_both.is_noise());
overlap estimate_overlap(const params& p, const shared_ones& ones);

}  // namespace bloomery
