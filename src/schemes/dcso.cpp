// dcso: the Bloom filter of DCSO (Go) and of Flor (Python), in which CIRCL publishes hashlookup.
//
//   h = FNV-1, 64 bits, of the key, % M         M = 2^64 - 59, the largest prime below 2^64
//   k times:  h = (h * g mod 2^64) % M;  bit = h % m         g = 2^64 - 1469
//
// Bit i is bit i % 64 of the little-endian word i / 64, which is bloomery's order.
//
// h * g mod 2^64 keeps the lowest bits of h apart from all others. If 2^a divides m, the lowest a bits of a position
// determine those of the next one: positions fall into 2^a groups by their remainder modulo 2^a, and a key has one bit
// in each of k groups that its first position determines. Such a filter is as uneven as one of small blocks. With 960
// bits for 100 keys at 1% (a = 6), the FPR is 2.1%. Half of all numbers of bits are odd and have no groups.
#include "hash/fnv.hpp"
#include "math/rates.hpp"
#include "schemes/schemes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bloomery {
namespace {

constexpr std::uint64_t prime = 0xFFFF'FFFF'FFFF'FFC5u;
constexpr std::uint64_t generator = 0xFFFF'FFFF'FFFF'FA43u;

void check(const geometry& g) { check_scheme_geometry(g, most_go_bits); }

// m = floor(-n ln(p) / ln(2)^2),  k = ceil(ln(2) m / n). The Go source rounds the negative number up, which is down.
geometry geometry_for(std::uint64_t capacity, double target_fpr) {
  return ceil_probes_geometry(capacity, std::floor(go_bits(capacity, target_fpr)));
}

void positions(std::string_view key, const geometry& g, const hash_choice& /*choice*/, std::uint64_t* out) {
  std::uint64_t hash = hashes::fnv1_64(key) % prime;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    hash = hash * generator % prime;
    out[i] = hash % g.bits;
  }
}

// ---- false-positive rate with groups --------------------------------------------------------------------------------
//
// g is 3 modulo 8, so multiplying by it permutes the remainders modulo 2^a in cycles: of length 2^(b-2) for those with
// b >= 3 bits above their trailing zeros. A cycle of L groups is a circle: a key that starts at group z sets one of the
// q bits of each of the groups z + 1 .. z + k modulo L. The number of keys per start is Poisson distributed with mean
// mu = n / 2^a. A group with load l has a given bit with probability 1 - x^l, x = 1 - 1 / q. The FPR is the mean of the
// product of these for the k groups of an absent key, expanded over the subsets S of the k groups:
//
//   sum over S of (-1)^|S| product over starts z of exp(-mu (1 - x^(number of groups of S that z reaches)))

constexpr std::uint32_t most_probes = 24;  // beyond, the sums of alternating signs lose too many digits

struct groups {
  std::uint32_t probes;
  long double keys_per_start;  // mu
  long double missed;          // x
};

long double choose(std::uint32_t n, std::uint32_t k) {
  long double ways = 1;
  for (std::uint32_t i = 0; i < k; ++i) ways = ways * (n - i) / (i + 1);
  return ways;
}

// Circles of at most 4 groups: by the number of chosen probes in each group.
template <std::size_t L>
long double rate_of_short_circle(const groups& g) {
  std::array<std::uint32_t, L> all{};
  for (std::uint32_t i = 1; i <= g.probes; ++i) ++all[i % L];
  std::array<std::uint32_t, L> chosen{};
  long double rate = 0;
  for (;;) {
    long double ways = 1;
    std::uint32_t size = 0;
    for (std::size_t group = 0; group < L; ++group) {
      ways *= choose(all[group], chosen[group]);
      size += chosen[group];
    }
    long double exponent = 0;
    for (std::size_t start = 0; start < L; ++start) {
      std::uint32_t reached = 0;
      for (std::uint32_t i = 1; i <= g.probes; ++i) reached += chosen[(start + i) % L];
      exponent += 1 - std::pow(g.missed, static_cast<long double>(reached));
    }
    rate += (size % 2 == 0 ? ways : -ways) * std::exp(-g.keys_per_start * exponent);
    std::size_t next = 0;
    while (next < L && chosen[next] == all[next]) chosen[next++] = 0;
    if (next == L) return rate;
    ++chosen[next];
  }
}

// Longer circles, as if they had no end. Each start reaches a prefix or a suffix of the k groups, so the sum over all
// subsets of one size follows from the number of chosen groups among the first j.
long double rate_of_long_circle(const groups& g) {
  std::array<long double, most_probes + 1> clear;  // probability that no key of a start hits any of i chosen groups
  for (std::uint32_t i = 0; i <= g.probes; ++i)
    clear[i] = std::exp(-g.keys_per_start * (1 - std::pow(g.missed, static_cast<long double>(i))));
  long double rate = 0;
  for (std::uint32_t size = 0; size <= g.probes; ++size) {
    std::array<long double, most_probes + 1> ways{1};  // by the number of chosen groups among the first j
    for (std::uint32_t j = 1; j <= g.probes; ++j) {
      for (std::uint32_t chosen = size + 1; chosen-- > 0;) {
        const long double sum = ways[chosen] + (chosen > 0 ? ways[chosen - 1] : 0);
        ways[chosen] = sum * clear[chosen] * (j < g.probes ? clear[size - chosen] : 1);
      }
    }
    rate += size % 2 == 0 ? ways[size] : -ways[size];
  }
  return rate;
}

double expected_fpr(const geometry& g, std::uint64_t keys) {
  const double independent = independent_rate(g, keys);
  const int a = std::countr_zero(g.bits);
  if (keys == 0 || a == 0 || g.probes > most_probes) return independent;
  const long double group_bits = static_cast<long double>(g.bits >> a);
  const groups all{g.probes, std::ldexp(static_cast<long double>(keys), -a), 1 - 1 / group_bits};
  // Half of all remainders have b = a, a quarter b = a - 1, and so on.
  long double rate = std::ldexp(rate_of_short_circle<1>(all), -a);  // the remainder 0
  for (int b = a; b >= 1; --b) {
    const long double share = std::ldexp(1.0L, b - a - 1);
    rate += share * (b == 1   ? rate_of_short_circle<1>(all)
                     : b <= 3 ? rate_of_short_circle<2>(all)
                     : b == 4 ? rate_of_short_circle<4>(all)
                              : 0);
  }
  if (a >= 5) rate += (1 - std::ldexp(1.0L, 4 - a)) * rate_of_long_circle(all);
  return static_cast<double>(std::clamp(rate, static_cast<long double>(independent), 1.0L));
}

// In larger filters the groups are so large that their loads hardly differ.
constexpr std::uint64_t most_counted_bits = std::uint64_t{1} << 27;

std::uint64_t beginning(const geometry& g) {
  return g.bits % 2 == 0 && g.bits <= most_counted_bits ? bytes_for(g.bits) : 0;
}

// Exact if the upper bits of positions are independent: for each first group, the product of the fill ratios of the k
// groups.
double current_fpr(const geometry& g, const scheme_bits& seen) {
  if (seen.beginning.empty()) return independent_current_fpr(g, seen);
  const std::uint64_t count = std::uint64_t{1} << std::countr_zero(g.bits);
  std::vector<std::uint32_t> set(count);
  for (std::uint64_t byte = 0; byte < seen.beginning.size(); ++byte) {
    for (unsigned bits = seen.beginning[byte]; bits != 0; bits &= bits - 1) {
      const std::uint64_t bit = 8 * byte + static_cast<unsigned>(std::countr_zero(bits));
      if (bit < g.bits) ++set[bit % count];
    }
  }
  const std::uint64_t group_bits = g.bits / count;
  double sum = 0;
  for (std::uint64_t first = 0; first < count; ++first) {
    double all = 1;
    std::uint64_t group = first;
    for (std::uint32_t i = 0; i < g.probes && all > 0; ++i) {
      group = group * generator % count;
      all *= static_cast<double>(set[group]) / static_cast<double>(group_bits);
    }
    sum += all;
  }
  return sum / static_cast<double>(count);
}

}  // namespace

constinit const scheme dcso_scheme = {.name = "dcso",
                                      .origin = "DCSO bloom (Go), Flor (Python), hashlookup",
                                      .geometry_for = geometry_for,
                                      .check = check,
                                      .positions = positions,
                                      .expected_fpr = expected_fpr,
                                      .current_fpr = current_fpr,
                                      .relative_error = 0.05,
                                      .beginning = beginning};

}  // namespace bloomery
