// The exact false-positive rate of classic filters against brute force and other formulas.
//
// n keys, m bits, k probes.
#include <bloomery/layouts/classic.hpp>

#include "math/rates.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

// By counting all m^(kn) ways to set bits and all m^k ways to look up: the share that finds only set bits.
long double rate_by_enumeration(std::uint64_t m, std::uint32_t k, std::uint64_t n) {
  std::uint64_t ways = 1;
  for (std::uint64_t i = 0; i < k * (n + 1); ++i) ways *= m;
  std::uint64_t found = 0;
  for (std::uint64_t way = 0; way < ways; ++way) {
    std::uint64_t rest = way;
    std::uint64_t set = 0;
    for (std::uint64_t i = 0; i < k * n; ++i, rest /= m) set |= std::uint64_t{1} << rest % m;
    bool all = true;
    for (std::uint64_t i = 0; i < k; ++i, rest /= m) all &= (set >> rest % m & 1) != 0;
    found += all ? 1 : 0;
  }
  return static_cast<long double>(found) / static_cast<long double>(ways);
}

// By the distribution of X, the number of set bits after kn probes, one probe at a time: the mean of (X / m)^k.
long double rate_by_occupancy(std::uint64_t m, std::uint32_t k, std::uint64_t n) {
  const auto bits = static_cast<long double>(m);
  std::vector<long double> chance(m + 1, 0);
  chance[0] = 1;
  for (std::uint64_t probe = 0; probe < k * n; ++probe) {
    for (std::uint64_t x = m; x > 0; --x) {
      chance[x] =
          chance[x] * static_cast<long double>(x) / bits + chance[x - 1] * static_cast<long double>(m - x + 1) / bits;
    }
    chance[0] = 0;
  }
  long double rate = 0;
  for (std::uint64_t x = 0; x <= m; ++x) rate += chance[x] * std::pow(static_cast<long double>(x) / bits, k);
  return rate;
}

TEST(ClassicRate, IsTheShareOfAllWaysToSetAndToLook) {
  for (const std::uint64_t m : {1u, 2u, 3u, 4u}) {
    for (const std::uint32_t k : {1u, 2u, 3u}) {
      for (const std::uint64_t n : {0u, 1u, 2u}) {
        EXPECT_NEAR(static_cast<double>(rates::classic(m, k, n)), static_cast<double>(rate_by_enumeration(m, k, n)),
                    1e-15)
            << "m " << m << ", k " << k << ", n " << n;
      }
    }
  }
}

TEST(ClassicRate, IsTheMeanOverTheNumberOfSetBits) {
  for (const std::uint64_t m : {1u, 2u, 7u, 32u, 96u, 300u}) {
    for (const std::uint32_t k : {1u, 2u, 3u, 7u, 14u, 40u}) {
      for (const std::uint64_t n : {1u, 2u, 10u, 33u}) {
        const long double expected = rate_by_occupancy(m, k, n);

        EXPECT_NEAR(static_cast<double>(rates::classic(m, k, n) / expected), 1, 1e-12)
            << "m " << m << ", k " << k << ", n " << n;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(rates::classic(958, 7, 100) / rate_by_occupancy(958, 7, 100)), 1, 1e-12);
}

// One key sets 1 bit with probability 1/m, otherwise 2: rates near 1e-24, exact to the last digits.
TEST(ClassicRate, KeepsItsDigitsWhereItIsTiny) {
  for (const long double m : {0x1p10L, 0x1p20L, 0x1p40L}) {
    const long double expected = (1 / m + (1 - 1 / m) * 4) / (m * m);

    EXPECT_NEAR(static_cast<double>(rates::classic(static_cast<std::uint64_t>(m), 2, 1) / expected), 1, 1e-15);
  }
}

// Bloom's own formula is (1 - (1 - 1/m)^(kn))^k.  [Bose et al. 2008]
TEST(ClassicRate, ExceedsBloomsFormulaByLessAndLessAsFiltersGrow) {
  struct {
    std::uint64_t n, m;
    std::uint32_t k;
    double ratio, half_a_digit;
  } const cases[] = {{3, 32, 3, 1.035, 5e-4},
                     {10, 96, 7, 1.066, 5e-4},
                     {100, 958, 7, 1.0065, 5e-5},
                     {1000, 9585, 7, 1.00065, 5e-6},
                     {1'000'000, 9'585'059, 7, 1.0000, 5e-5}};
  for (const auto& c : cases) {
    const double survival = std::exp(static_cast<double>(c.n * c.k) * std::log1p(-1 / static_cast<double>(c.m)));
    const double blooms = std::pow(1 - survival, c.k);

    EXPECT_NEAR(static_cast<double>(rates::classic(c.m, c.k, c.n)) / blooms, c.ratio, c.half_a_digit) << c.n;
  }
}

TEST(ClassicRate, RisesWithKeysAndFallsWithBits) {
  for (const std::uint32_t k : {1u, 7u, 30u}) {
    for (const std::uint64_t m : {10u, 1000u, 100'000u}) {
      double before = 0;
      for (std::uint64_t n = 1; n < 10 * m; n = 2 * n + 1) {
        const double rate = layouts::classic::expected_fpr({m, k}, n);
        EXPECT_GE(rate, before * (1 - 1e-12)) << "m " << m << ", k " << k << ", n " << n;
        EXPECT_LE(rate, 1);
        EXPECT_LE(layouts::classic::expected_fpr({m + 1, k}, n), rate * (1 + 1e-12))
            << "m " << m << ", k " << k << ", n " << n;
        before = rate;
      }
    }
  }
}

TEST(ClassicRate, IsRightAtItsEnds) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  EXPECT_EQ(rates::classic(1000, 7, 0), 0);
  EXPECT_EQ(rates::classic(1, 1, 1), 1);
  EXPECT_EQ(rates::classic(1, 255, 1), 1);
  EXPECT_EQ(rates::classic(1, 7, 0), 0);
  EXPECT_EQ(layouts::classic::expected_fpr({1000, 7}, most), 1);
  EXPECT_EQ(layouts::classic::expected_fpr({1000, 64}, most), 1);
  // One probe, one key: 1/m exactly, also for the largest filter.
  EXPECT_EQ(rates::classic(std::uint64_t{1} << 63, 1, 1), 0x1p-63L);
}

}  // namespace
}  // namespace bloomery
