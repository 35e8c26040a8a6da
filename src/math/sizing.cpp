// Sizing rules of other systems, computed in double with the systems' order of operations to reproduce their exact
// sizes.
#include <bloomery/sizing.hpp>

#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace bloomery {
namespace {

// m0 = -n ln(p) / ln(2)^2
double real_bits(std::uint64_t capacity, double target_fpr) {
  return -static_cast<double>(capacity) * std::log(target_fpr) / (std::log(2.0) * std::log(2.0));
}

// Returns `bits`, a whole number, if it and its next multiple of 64 fit into 64 bits.
std::uint64_t checked_bits(double bits) {
  if (bits < 0x1p64 - 0x1p12) return static_cast<std::uint64_t>(bits);
  throw error(errc::too_large, {"the filter would need too many bits", "capacity", "less than 2^64 bits",
                                std::to_string(bits), hint::use_fewer_keys});
}

std::uint32_t checked_probes(double probes) {
  if (probes <= max_probes) return static_cast<std::uint32_t>(probes);
  throw error(errc::too_large, {"the filter would need too many hashes", "rate", "at most 255 hashes per key",
                                std::to_string(probes), hint::use_higher_rate});
}

// Sum over i = a .. b - 1 of the parabola through (a, at_a), (middle, at_middle), (b, at_b): Simpson's rule for sums.
double parabola_sum(double a, double at_a, double middle, double at_middle, double b, double at_b) {
  const double count = b - a;
  if (middle == a) return at_a * count;
  const double slope = (at_middle - at_a) / (middle - a);
  const double curve = ((at_b - at_middle) / (b - middle) - slope) / (b - a);
  const double sum_of_offsets = count * (count - 1) / 2;
  const double sum_of_squares = sum_of_offsets * (2 * count - 1) / 3;
  return at_a * count + slope * sum_of_offsets + curve * (sum_of_squares - (middle - a) * sum_of_offsets);
}

// An interval: values of a function at a, in the middle and at b, and the estimated sum over a .. b - 1.
struct interval {
  std::uint64_t a, middle, b;
  double at_a, at_middle, at_b;

  double sum() const {
    return parabola_sum(static_cast<double>(a), at_a, static_cast<double>(middle), at_middle, static_cast<double>(b),
                        at_b);
  }
};

interval stretch_of(std::uint64_t a, double at_a, std::uint64_t b, double at_b,
                    function_ref<double(std::uint64_t)> rate) {
  const std::uint64_t middle = a + (b - a) / 2;
  return {a, middle, b, at_a, middle == a ? at_a : rate(middle), at_b};
}

// Bisects an interval until its halves agree with the whole; intervals of up to two keys are summed exactly.
double refined_sum(const interval& s, double tolerance, function_ref<double(std::uint64_t)> rate) {
  if (s.b - s.a <= 2) return s.sum();
  const interval left = stretch_of(s.a, s.at_a, s.middle, s.at_middle, rate);
  const interval right = stretch_of(s.middle, s.at_middle, s.b, s.at_b, rate);
  const double hash64s = left.sum() + right.sum();
  if (std::abs(hash64s - s.sum()) <= tolerance) return hash64s;
  return refined_sum(left, tolerance / 2, rate) + refined_sum(right, tolerance / 2, rate);
}

// Sum of the rates for 0 .. keys - 1, with an error of at most 1e-5 of the sum or `enough` keys.
double losses(std::uint64_t keys, double enough, function_ref<double(std::uint64_t)> rate) {
  if (keys == 0) return 0;
  const interval all = stretch_of(0, rate(0), keys, rate(keys), rate);
  return refined_sum(all, std::max(1e-5 * all.sum(), enough), rate);
}

// One step of Newton's method for n - expected_losses(n) = wanted, from a nearby n.
double refined(double n, double wanted, function_ref<double(std::uint64_t)> rate) {
  const auto keys = static_cast<std::uint64_t>(n);
  const double new_keys = static_cast<double>(keys) - expected_losses(keys, rate);
  return static_cast<double>(keys) + (wanted - new_keys) / std::max(1 - rate(keys), 1e-6);
}

}  // namespace

std::uint64_t textbook_bits(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(std::max<std::uint64_t>(capacity, 1), target_fpr);
  return checked_bits(std::ceil(real_bits(capacity, target_fpr)));
}

double lower_bound_bits_per_key(double fpr) {
  if (fpr == 1) return 0;
  rates::check_target_fpr(1, fpr);
  return -std::log2(fpr);
}

double lower_bound_bits_per_key(std::uint64_t present, std::uint64_t absent) {
  if (present == 0 || absent == 0) return 0;
  // The difference of logarithms that are much larger than itself requires long double.
  const auto n = static_cast<long double>(present), others = static_cast<long double>(absent);
  const long double ways = std::lgamma(n + others + 1) - std::lgamma(n + 1) - std::lgamma(others + 1);
  return static_cast<double>(ways / std::log(2.0L) / n);
}

geometry ceil_ceil_geometry(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  // m0 / n * ln 2 is -log2(p). Computed directly, rounding cannot turn the 1 of p = 1/2 into 2.
  return {textbook_bits(capacity, target_fpr), checked_probes(std::ceil(-std::log2(target_fpr)))};
}

geometry floor_round_geometry(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  const std::uint64_t bits = checked_bits(std::floor(real_bits(capacity, target_fpr)));
  const std::uint64_t words = std::max<std::uint64_t>(1, bits / 64 + (bits % 64 != 0));
  const double probes = std::round(static_cast<double>(bits) / static_cast<double>(capacity) * std::log(2.0));
  return {64 * words, checked_probes(std::max(1.0, probes))};
}

geometry searched_geometry(std::uint64_t capacity, double target_fpr) {
  rates::check_target_fpr(capacity, target_fpr);
  double fewest = INFINITY;
  std::uint32_t best = 1;
  for (std::uint32_t k = 1; k <= 100; ++k) {
    const double clear = 1 - std::pow(target_fpr, 1.0 / k);
    if (clear == 0 || clear == 1) continue;  // rounding error, for which Perl divides by zero
    const double bits = -static_cast<double>(k) * static_cast<double>(capacity) / std::log(clear);
    if (bits < fewest) {
      fewest = bits;
      best = k;
    }
  }
  return {checked_bits(std::floor(fewest)) + 1, best};
}

double expected_losses(std::uint64_t keys, function_ref<double(std::uint64_t)> rate) { return losses(keys, 0, rate); }

std::uint64_t estimate_distinct(std::uint64_t counted, function_ref<double(std::uint64_t)> rate) {
  constexpr double steps = 64;
  constexpr int most_steps = 400;
  const auto wanted = static_cast<double>(counted);
  double keys = 0;
  double reached = 0;
  double rate_here = 0;
  // Steps grow where few keys are new, so that a nearly full filter takes a few hundred steps.
  double step = std::max(wanted / steps, 1.0);
  for (int i = 0; i < most_steps && rate_here < 1; ++i) {
    const double rate_there = rate(static_cast<std::uint64_t>(keys + step));
    const double new_share = 1 - (rate_here + rate_there) / 2;
    if (reached + step * new_share >= wanted) {
      const double found = keys + (wanted - reached) / new_share;
      // The steps have an error of 1e-4 of the keys. Only for very many keys is this larger than the random error.
      return static_cast<std::uint64_t>(std::llround(wanted < 1e7 ? found : refined(found, wanted, rate)));
    }
    reached += step * new_share;
    keys += step;
    rate_here = rate_there;
    if (new_share < 0.5) step *= 1.25;
  }
  return std::max(counted, static_cast<std::uint64_t>(std::min(keys, 0x1p62)));
}

std::uint64_t expected_insertions(double distinct, function_ref<double(std::uint64_t)> rate) {
  const auto keys = static_cast<std::uint64_t>(std::llround(std::min(distinct, 0x1p62)));
  const double lost = losses(keys, 1e-3, rate);  // rounded to whole keys, so more precision is not needed
  return keys - std::min(keys, static_cast<std::uint64_t>(std::llround(lost)));
}

}  // namespace bloomery
