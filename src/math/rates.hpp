// Exact false-positive rates of all layouts, as sums of positive terms, without cancellation between 1e-12 and 1.
//
// n keys, m bits, k probes, B blocks. long double throughout: on x86-64 it leaves eight digits at n = 1e10.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bloomery::rates {

/// Probability that k independent uniform probes into m bits all hit bits set by n*k earlier probes.
long double classic(std::uint64_t m, std::uint32_t k, std::uint64_t n);

class triangle;

/// classic(m, k, i) for i = 0, 1, 2, ... keys, cached: the FPR of a block of m bits. Each further key costs k^2 / 2
/// steps, up to 48 m / k keys, which certainly fill a block. A number of keys far from the known ones costs k^3 / 6
/// steps per power of 2.
class block_rates {
 public:
  block_rates(std::uint64_t m, std::uint32_t k);
  ~block_rates();
  block_rates(block_rates&&) noexcept;

  /// i is a whole number. Accurate to 12 digits. Not thread-safe.
  long double operator()(long double i);

  /// The factors: the probability that k probes select d different bits, and the probability that d given bits are all
  /// set after i keys, d = 0 .. k. The result of covered() is valid until the next call.
  double falls_on(std::uint32_t d) const { return distinct_[d]; }
  const double* covered(std::size_t i);
  std::uint32_t probes() const { return k_; }

 private:
  static constexpr double unknown = -1;

  long double hit(std::uint32_t d) const;
  void restart();
  void jump(std::size_t keys);
  void step();
  void add_key(const double* from, double* to) const;

  std::uint64_t m_;
  std::uint32_t k_;
  std::vector<double> distinct_;  // distinct_[d]: an absent key's probes select d different bits
  std::vector<double> key_;       // the matrix that advances all_set_ by one key, column by column
  std::vector<triangle> powers_;  // the same for 2^i keys
  std::vector<double> all_set_;   // all_set_[d]: d given bits are all set after keys_ keys
  std::vector<double> next_;
  std::size_t keys_ = 0;
  std::vector<double> rates_;    // by number of keys, or unknown
  std::vector<double> covered_;  // k + 1 values per number of keys
};

/// Mean of covered(i)[d] over the number i of n keys in a block, as in blocked(); d = 0 .. k.
std::vector<double> blocked_covered(block_rates& in_block, std::uint64_t n, long double B);

/// Probability that one of n other keys has the same hash, among `space` equally likely hashes: 1 - (1 - 1/space)^n.
inline long double collision(long double space, std::uint64_t n) {
  return -std::expm1(static_cast<long double>(n) * std::log1p(-1 / space));
}

/// Probability that at least one of two independent events happens.
inline long double either(long double a, long double b) { return a + b - a * b; }

/// Mean of hit(i) over the number i of n keys in a block, which each key selects with probability 1/B:
/// sum over i of Binomial(i; n, 1/B) * hit(i). hit rises from 0 to 1.
template <class Hit>
long double blocked(std::uint64_t n, long double B, Hit hit) {
  if (n == 0) return 0;
  if (B == 1) return hit(static_cast<long double>(n));
  const long double keys = static_cast<long double>(n);
  const long double odds = 1 / (B - 1);
  const long double mode = std::floor((keys + 1) / B);
  // A block with this many keys is full in every layout, and the loops below would take sqrt(mode) steps.
  if (mode > 1e6L) return hit(mode);
  // Weights relative to the mode's, computed outwards from the mode by the ratio of neighbors, normalized at the end.
  const long double negligible = 1e-21L;
  long double hits = hit(mode);
  long double mass = 1;
  long double weight = 1;
  long double last = hits;
  for (long double i = mode + 1; i <= keys; ++i) {
    weight *= (keys - i + 1) / i * odds;
    const long double term = weight * hit(i);
    hits += term;
    mass += weight;
    if (weight < negligible * mass && term < negligible * hits && term <= last) break;
    last = term;
  }
  weight = 1;
  for (long double i = mode; i >= 1; --i) {
    weight *= i / ((keys - i + 1) * odds);
    hits += weight * hit(i - 1);
    mass += weight;
    if (weight < negligible * mass && weight * hit(i - 1) < negligible * hits) break;
  }
  return hits / mass;
}

/// The smallest x in [1, limit] with holds(x), for a monotone predicate; limit + 1 if there is none. The search starts
/// at `guess`.
template <class Predicate>
std::uint64_t smallest(std::uint64_t guess, std::uint64_t limit, Predicate holds) {
  std::uint64_t below = 0;  // does not hold
  std::uint64_t above = 0;  // holds
  std::uint64_t step = guess / 256 + 1;
  std::uint64_t x = guess < 1 ? 1 : (guess > limit ? limit : guess);
  if (holds(x)) {
    above = x;
    while (above > 1) {
      const std::uint64_t next = above > step ? above - step : 1;
      if (!holds(next)) {
        below = next;
        break;
      }
      above = next;
      step *= 2;
    }
  } else {
    below = x;
    while (above == 0) {
      if (below == limit) return limit + 1;
      const std::uint64_t next = limit - below > step ? below + step : limit;
      if (holds(next))
        above = next;
      else
        below = next;
      step *= 2;
    }
  }
  while (above - below > 1) {
    const std::uint64_t middle = below + (above - below) / 2;
    (holds(middle) ? above : below) = middle;
  }
  return above;
}

/// Throws unless `bits` is a positive multiple of block_bits with at most max_blocks blocks; `name` is the layout's.
void check_blocks(const char* name, std::uint64_t bits, std::uint32_t block_bits, std::uint64_t max_blocks);

/// @param fixed  the layout's number of probes; 0: 1 to 255
/// @throws error invalid_argument: another number of probes
void check_probes(const char* name, std::uint32_t probes, std::uint32_t fixed = 0);

/// Reports that no size of layout `name` keeps target FPR p at n keys. @throws error too_large, always
[[noreturn]] void refuse_target_fpr(const char* name, std::uint64_t n, double p);

/// @throws error invalid_argument unless n >= 1 and 0 < p < 1
void check_target_fpr(std::uint64_t n, double p);

}  // namespace bloomery::rates
