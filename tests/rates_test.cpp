// The exact error rates against brute force and published values, and the sizes that follow from them.
//
// n keys, m bits, k probes, B blocks, p the promised rate.
#include "rates.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>

#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::code_of;

// ---- classic --------------------------------------------------------------------------------------------------------

// By counting: of all m^(kn) ways to set bits and all m^k to look, the share that finds only set bits.
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

// One key sets 1 bit with probability 1/m, else 2: rates near 1e-24 to the last digits.
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
        const double rate = classic::false_positive_rate({m, k}, n);
        EXPECT_GE(rate, before * (1 - 1e-12)) << "m " << m << ", k " << k << ", n " << n;
        EXPECT_LE(rate, 1);
        EXPECT_LE(classic::false_positive_rate({m + 1, k}, n), rate * (1 + 1e-12))
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
  EXPECT_EQ(classic::false_positive_rate({1000, 7}, most), 1);
  EXPECT_EQ(classic::false_positive_rate({1000, 64}, most), 1);
  // One probe, one key: 1/m exactly, also for the largest filter.
  EXPECT_EQ(rates::classic(std::uint64_t{1} << 63, 1, 1), 0x1p-63L);
}

// ---- blocked --------------------------------------------------------------------------------------------------------

long double split_block_hit(long double i) { return std::pow(1 - std::pow(31.0L / 32, i), 8.0L); }

long double choose(std::uint64_t n, std::uint64_t k) {
  long double ways = 1;
  for (std::uint64_t i = 0; i < k; ++i) ways = ways * static_cast<long double>(n - i) / static_cast<long double>(i + 1);
  return ways;
}

// sum over j of (-1)^j C(8, j) [1 - (1 - (31/32)^j) / B]^n: exact, but loses digits as the rate falls.
long double split_block_rate_by_alternating_sum(std::uint64_t n, long double B) {
  long double rate = 0;
  for (std::uint64_t j = 0; j <= 8; ++j) {
    const long double thinning = (1 - std::pow(31.0L / 32, static_cast<long double>(j))) / B;
    const long double term = choose(8, j) * std::exp(static_cast<long double>(n) * std::log1p(-thinning));
    rate += j % 2 == 0 ? term : -term;
  }
  return rate;
}

TEST(BlockedRate, EqualsTheAlternatingSumWhereThatKeepsItsDigits) {
  for (const std::uint64_t n : {1u, 10u, 1000u, 100'000u, 10'000'000u}) {
    for (const double bits_a_key : {1.0, 4.0, 8.0, 12.0, 16.0, 24.0}) {
      const auto B = static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) * bits_a_key / 256));
      const long double expected = split_block_rate_by_alternating_sum(n, static_cast<long double>(B));
      const double lost = 1e-16 / static_cast<double>(expected);
      if (lost > 1e-6) continue;

      const long double actual = rates::blocked(n, B, split_block_hit);

      EXPECT_NEAR(static_cast<double>(actual / expected), 1, 1e-12 + lost) << "n " << n << ", B " << B;
    }
  }
}

TEST(BlockedRate, EqualsTheBinomialSumForFewKeys) {
  for (const std::uint64_t n : {1u, 2u, 5u, 30u}) {
    for (const std::uint64_t B : {2u, 3u, 10u, 1000u, 1'000'000u}) {
      const long double share = 1 / static_cast<long double>(B);
      long double expected = 0;
      for (std::uint64_t i = 1; i <= n; ++i) {
        expected += choose(n, i) * std::pow(share, static_cast<long double>(i)) *
                    std::pow(1 - share, static_cast<long double>(n - i)) * split_block_hit(static_cast<long double>(i));
      }

      EXPECT_NEAR(static_cast<double>(rates::blocked(n, B, split_block_hit) / expected), 1, 1e-14)
          << "n " << n << ", B " << B;
    }
  }
}

TEST(BlockedRate, IsRightAtItsEnds) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  EXPECT_EQ(rates::blocked(0, 1, split_block_hit), 0);
  EXPECT_EQ(rates::blocked(0, 1000, split_block_hit), 0);
  EXPECT_EQ(rates::blocked(5, 1, split_block_hit), split_block_hit(5));
  EXPECT_EQ(rates::blocked(most, 1, split_block_hit), 1);
  EXPECT_EQ(rates::blocked(most, std::uint64_t{1} << 32, split_block_hit), 1);
  EXPECT_NEAR(static_cast<double>(rates::blocked(1'000'000'000, 1000, split_block_hit)), 1, 1e-15);
}

TEST(BlockedRate, TakesTheMeanOfAnyHit) {
  const auto keys_in_block = [](long double i) { return i / 1000; };  // its mean is n / B

  EXPECT_NEAR(static_cast<double>(rates::blocked(7000, 100, keys_in_block)), 0.07, 1e-15);
}

// ---- split_block ----------------------------------------------------------------------------------------------------

TEST(SplitBlockRate, IsThePublishedOneForTenMillionKeys) {
  struct {
    std::uint64_t bits_a_key;
    double rate, half_a_digit;
  } const cases[] = {{8, 0.03321, 5e-6}, {12, 0.005420, 5e-7}, {16, 0.001316, 5e-7}};
  for (const auto& c : cases) {
    const geometry g{10'000'000 * c.bits_a_key, 8};

    EXPECT_NEAR(split_block::false_positive_rate(g, 10'000'000), c.rate, c.half_a_digit) << c.bits_a_key;
  }
}

TEST(SplitBlockRate, RisesWithKeysAndFallsWithBlocks) {
  for (const std::uint64_t B : {1u, 2u, 100u, 1'000'000u}) {
    double before = 0;
    for (std::uint64_t n = 1; n < 1000 * B; n = 2 * n + 1) {
      const double rate = split_block::false_positive_rate({256 * B, 8}, n);
      EXPECT_GT(rate, 0);
      EXPECT_LE(rate, 1);
      EXPECT_GE(rate, before) << "B " << B << ", n " << n;
      EXPECT_LE(split_block::false_positive_rate({256 * (B + 1), 8}, n), rate) << "B " << B << ", n " << n;
      before = rate;
    }
  }
}

// With almost no keys a false positive is a key with the same 32 bits in the same block: 256 times as likely as one with
// other bits of which all eight fall together.
// 2^32 upper halves among B blocks: some blocks answer for one more than others. Poisson stands in for the binomial, from
// which it differs by one in 10^9 here.
TEST(SplitBlockRate, KnowsThatManyBlocksDoNotShareTheHashEvenly) {
  for (const std::uint64_t blocks :
       {std::uint64_t{1'747'000'000}, std::uint64_t{3'000'000'000}, std::uint64_t{1} << 32}) {
    SCOPED_TRACE(blocks);
    const std::uint64_t keys = 17'000'000'000;
    double expected = 0;
    for (std::uint64_t extra = 0; extra <= 1; ++extra) {
      const double uppers = static_cast<double>((std::uint64_t{1} << 32) / blocks + extra);
      const auto larger = static_cast<double>((std::uint64_t{1} << 32) % blocks);
      const double count = extra == 1 ? larger : static_cast<double>(blocks) - larger;
      const double mean = static_cast<double>(keys) * uppers / 0x1p32;
      double weight = std::exp(-mean);
      double hit = 0;
      for (int i = 0; i < 400; ++i) {
        hit += weight * std::pow(1 - std::pow(31.0 / 32, i), 8);
        weight *= mean / (i + 1);
      }
      const double twin = mean / 0x1p32;
      expected += count * uppers / 0x1p32 * (hit + twin - hit * twin);
    }

    const double rate = split_block::false_positive_rate({blocks * 256, 8}, keys);

    EXPECT_NEAR(rate / expected, 1, 1e-6);
  }
}

TEST(SplitBlockRate, CountsKeysThatShareTheirWholeHash) {
  const double blocks = 1000;

  const double rate = split_block::false_positive_rate({256'000, 8}, 1);

  EXPECT_NEAR(rate / ((0x1p-32 + 0x1p-40) / blocks), 1, 1e-9);
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

constexpr double promises[] = {0.9, 0.5, 0.3, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12};
constexpr std::uint64_t capacities[] = {1, 2, 3, 10, 77, 1000, 12'345, 1'000'000, 100'000'000, 10'000'000'000};

TEST(ClassicSize, KeepsThePromiseAndOneBitLessDoesNot) {
  for (const std::uint64_t n : capacities) {
    for (const double p : promises) {
      const geometry g = classic::geometry_for(n, p);
      const geometry less{g.bits - 1, g.probes};

      classic::check(g);
      EXPECT_LE(classic::false_positive_rate(g, n), p) << "n " << n << ", p " << p;
      ASSERT_GT(g.bits, 1u);
      EXPECT_GT(classic::false_positive_rate(less, n), p) << "n " << n << ", p " << p;
      EXPECT_EQ(classic::bits_for(n, p), g.bits);
    }
  }
}

TEST(ClassicSize, IsTheSmallestOverAllNumbersOfProbes) {
  for (const std::uint64_t n : {1u, 2u, 3u, 4u, 10u, 77u}) {
    for (double p = 0.9; p > 1e-10; p *= 0.3) {
      const geometry g = classic::geometry_for(n, p);

      for (std::uint32_t k = 1; k <= 40; ++k) {
        ASSERT_GT(classic::false_positive_rate({g.bits - 1, k}, n), p) << "n " << n << ", p " << p << ", k " << k;
      }
    }
  }
}

TEST(ClassicSize, ChoosesTheProbesWithTheLowestRate) {
  for (const std::uint64_t n : {1u, 3u, 10u, 1000u}) {
    for (const std::uint64_t bits_a_key : {1u, 3u, 8u, 10u, 13u, 40u}) {
      const std::uint64_t m = n * bits_a_key;

      const std::uint32_t best = classic::best_probes(m, n);

      const long double rate = rates::classic(m, best, n);
      for (std::uint32_t k = 1; k <= 64; ++k) {
        ASSERT_GE(rates::classic(m, k, n), rate * (1 - 1e-15L))
            << "m " << m << ", n " << n << ", k " << k << " beats " << best;
      }
    }
  }
}

TEST(SplitBlockSize, KeepsThePromiseAndOneBlockLessDoesNot) {
  for (const std::uint64_t n : capacities) {
    for (const double p : promises) {
      const double parquet_bits = -8 * static_cast<double>(n) / std::log1p(-std::pow(p, 1.0 / 8));
      const double twins_at_most_blocks = static_cast<double>(n) * 0x1p-64;
      if (parquet_bits > 0x1p38 || twins_at_most_blocks > p / 10) continue;  // perhaps more than the layout has
      const geometry g = split_block::geometry_for(n, p);

      split_block::check(g);
      EXPECT_LE(split_block::false_positive_rate(g, n), p) << "n " << n << ", p " << p;
      EXPECT_EQ(split_block::bits_for(n, p), g.bits);
      if (g.bits == 256) continue;
      EXPECT_GT(split_block::false_positive_rate({g.bits - 256, 8}, n), p) << "n " << n << ", p " << p;
    }
  }
}

TEST(Sizes, RefuseWhatIsNoPromise) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.0, 1.0, -0.1, 1.5, nan, infinity, -infinity}) {
    EXPECT_EQ(code_of([&] { classic::geometry_for(1000, p); }), errc::invalid_argument) << p;
    EXPECT_EQ(code_of([&] { split_block::geometry_for(1000, p); }), errc::invalid_argument) << p;
  }
  EXPECT_EQ(code_of([] { classic::geometry_for(0, 0.01); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { split_block::geometry_for(0, 0.01); }), errc::invalid_argument);
}

TEST(Sizes, RefuseMoreThanALayoutHas) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  EXPECT_EQ(code_of([&] { classic::geometry_for(most, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([&] { classic::geometry_for(std::uint64_t{1} << 60, 1e-9); }), errc::too_large);
  EXPECT_EQ(code_of([] { classic::geometry_for(1, 1e-300); }), errc::too_large);  // below the hash's own 2^-128
  EXPECT_EQ(code_of([&] { split_block::geometry_for(most, 0.5); }), errc::too_large);
  EXPECT_EQ(code_of([] { split_block::geometry_for(1'000'000'000'000, 1e-3); }), errc::too_large);
}

TEST(Sizes, OfGivenGeometriesAreChecked) {
  EXPECT_EQ(code_of([] { classic::check({0, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { classic::check({(std::uint64_t{1} << 63) + 1, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { classic::check({100, 0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { classic::check({100, 256}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { classic::check({std::uint64_t{1} << 63, 255}); }), std::nullopt);
  EXPECT_EQ(code_of([] { split_block::check({0, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { split_block::check({255, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { split_block::check({256, 7}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { split_block::check({(std::uint64_t{1} << 40) + 256, 8}); }), errc::too_large);
  EXPECT_EQ(code_of([] { split_block::check({std::uint64_t{1} << 40, 8}); }), std::nullopt);
}

// ---- smallest -------------------------------------------------------------------------------------------------------

TEST(Smallest, IsFoundFromEveryGuess) {
  for (const std::uint64_t limit : {1u, 2u, 5u, 50u}) {
    for (std::uint64_t threshold = 1; threshold <= limit + 1; ++threshold) {
      for (std::uint64_t guess = 0; guess <= limit + 2; ++guess) {
        EXPECT_EQ(rates::smallest(guess, limit, [&](std::uint64_t x) { return x >= threshold; }), threshold)
            << "limit " << limit << ", guess " << guess;
      }
    }
  }
}

}  // namespace
}  // namespace bloomery
