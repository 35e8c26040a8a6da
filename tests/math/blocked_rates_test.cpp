// The exact false-positive rates of filters of blocks against brute force, closed sums and published values.
//
// n keys, m bits, k probes, B blocks.
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "math/rates.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

// ---- blocked --------------------------------------------------------------------------------------------------------

long double split_block_hit(long double i) { return std::pow(1 - std::pow(31.0L / 32, i), 8.0L); }

long double choose(std::uint64_t n, std::uint64_t k) {
  long double ways = 1;
  for (std::uint64_t i = 0; i < k; ++i) ways = ways * static_cast<long double>(n - i) / static_cast<long double>(i + 1);
  return ways;
}

// sum over j of (-1)^j C(8, j) [1 - (1 - (31/32)^j) / B]^n: exact, but it loses digits for low rates.
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
    for (const double bits_per_key : {1.0, 4.0, 8.0, 12.0, 16.0, 24.0}) {
      const auto B = static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) * bits_per_key / 256));
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
    std::uint64_t bits_per_key;
    double rate, half_a_digit;
  } const cases[] = {{8, 0.03321, 5e-6}, {12, 0.005420, 5e-7}, {16, 0.001316, 5e-7}};
  for (const auto& c : cases) {
    const geometry g{10'000'000 * c.bits_per_key, 8};

    EXPECT_NEAR(layouts::split_block::expected_fpr(g, 10'000'000), c.rate, c.half_a_digit) << c.bits_per_key;
  }
}

TEST(SplitBlockRate, RisesWithKeysAndFallsWithBlocks) {
  for (const std::uint64_t B : {1u, 2u, 100u, 1'000'000u}) {
    double before = 0;
    for (std::uint64_t n = 1; n < 1000 * B; n = 2 * n + 1) {
      const double rate = layouts::split_block::expected_fpr({256 * B, 8}, n);
      EXPECT_GT(rate, 0);
      EXPECT_LE(rate, 1);
      EXPECT_GE(rate, before) << "B " << B << ", n " << n;
      EXPECT_LE(layouts::split_block::expected_fpr({256 * (B + 1), 8}, n), rate) << "B " << B << ", n " << n;
      before = rate;
    }
  }
}

// 2^32 upper halves of hashes among B blocks: some blocks have one more of them than others. A Poisson distribution
// approximates the binomial one, with a difference of one in 10^9 here.
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

    const double rate = layouts::split_block::expected_fpr({blocks * 256, 8}, keys);

    EXPECT_NEAR(rate / expected, 1, 1e-6);
  }
}

// With almost no keys a false positive is a key with the same 32 bits in the same block: 256 times as likely as one
// with other bits of which all eight fall together.
TEST(SplitBlockRate, CountsKeysThatShareTheirWholeHash) {
  const double blocks = 1000;

  const double rate = layouts::split_block::expected_fpr({256'000, 8}, 1);

  EXPECT_NEAR(rate / ((0x1p-32 + 0x1p-40) / blocks), 1, 1e-9);
}

// ---- split_block512, blocked, blocked_page --------------------------------------------------------------------------

// The terms of the closed sums below alternate in sign and cancel: they need twice the digits of the result.
#ifdef __SIZEOF_FLOAT128__
__extension__ using quad = __float128;
#else
using quad = long double;  // has as many digits on machines without __float128
#endif

quad power(quad base, std::uint64_t exponent) {
  quad result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

quad choose_exactly(std::uint32_t n, std::uint32_t k) {
  quad ways = 1;
  for (std::uint32_t i = 0; i < k; ++i) ways = ways * (n - i) / (i + 1);
  return ways;
}

// sum over j of (-1)^j C(s, j) [1 - (1 - (1 - 1/w)^j) / B]^n for s lanes of w bits, one bit of a key in each.
double rate_of_lanes(std::uint32_t lanes, std::uint32_t lane_bits, std::uint64_t blocks, std::uint64_t n) {
  quad rate = 0;
  for (std::uint32_t j = 0; j <= lanes; ++j) {
    const quad thinning = (1 - power(1 - quad(1) / lane_bits, j)) / quad(blocks);
    const quad term = choose_exactly(lanes, j) * power(1 - thinning, n);
    rate += j % 2 == 0 ? term : -term;
  }
  return static_cast<double>(rate);
}

// sum over d of S(k, d) b (b-1) .. (b-d+1) / b^k sum over j <= d of (-1)^j C(d, j) [1 - (1 - (1 - j/b)^k) / B]^n
// for blocks of b bits, k of a key anywhere in one; S are Stirling's numbers of the second kind.
double rate_of_free_bits(std::uint32_t b, std::uint32_t k, std::uint64_t blocks, std::uint64_t n) {
  std::vector<quad> stirling(k + 1, 0);
  stirling[0] = 1;
  for (std::uint32_t i = 0; i < k; ++i) {
    for (std::uint32_t d = k; d > 0; --d) stirling[d] = d * stirling[d] + stirling[d - 1];
    stirling[0] = 0;
  }
  quad rate = 0;
  quad falling = 1;
  for (std::uint32_t d = 1; d <= k && d <= b; ++d) {
    falling *= b - d + 1;
    quad all_set = 0;
    for (std::uint32_t j = 0; j <= d; ++j) {
      const quad thinning = (1 - power(1 - quad(j) / b, k)) / quad(blocks);
      const quad term = choose_exactly(d, j) * power(1 - thinning, n);
      all_set += j % 2 == 0 ? term : -term;
    }
    rate += stirling[d] * falling / power(b, k) * all_set;
  }
  return static_cast<double>(rate);
}

// By counting all (B b^k)^(n+1) ways in which n keys and an absent one choose a block and k bits in it.
double rate_by_enumeration_of_blocks(std::uint64_t blocks, std::uint64_t b, std::uint32_t k, std::uint64_t n) {
  std::uint64_t ways = 1;
  for (std::uint64_t i = 0; i <= n; ++i) {
    ways *= blocks;
    for (std::uint32_t probe = 0; probe < k; ++probe) ways *= b;
  }
  std::uint64_t found = 0;
  for (std::uint64_t way = 0; way < ways; ++way) {
    std::uint64_t rest = way;
    std::uint64_t set = 0;
    for (std::uint64_t key = 0; key <= n; ++key) {
      const std::uint64_t first = rest % blocks * b;
      rest /= blocks;
      std::uint64_t bits = 0;
      for (std::uint32_t probe = 0; probe < k; ++probe, rest /= b) bits |= std::uint64_t{1} << (first + rest % b);
      if (key < n)
        set |= bits;
      else
        found += (set & bits) == bits ? 1 : 0;
    }
  }
  return static_cast<double>(found) / static_cast<double>(ways);
}

double rate_of_tiny_blocks(std::uint64_t blocks, std::uint64_t b, std::uint32_t k, std::uint64_t n) {
  rates::block_rates in_block(b, k);
  return static_cast<double>(
      rates::blocked(n, static_cast<long double>(blocks), [&](long double i) { return in_block(i); }));
}

// Adds the chance that another key has the same 64 bits, which matters in nearly empty filters only.
double with_twins(double rate, std::uint64_t n) { return rate + (1 - rate) * static_cast<double>(n) * 0x1p-64; }

// Also with the largest number of probes, and with fewer bits than probes.
TEST(BlockRates, AreThoseOfAClassicFilterAsLargeAsTheBlock) {
  for (const std::uint64_t b : {1u, 2u, 3u, 64u, 512u, 32'768u}) {
    for (const std::uint32_t k : {1u, 2u, 6u, 20u, 33u, 64u, 255u}) {
      rates::block_rates in_block(b, k);
      const double tolerance = k > 64 || k == 33 ? 1e-12 : 1e-14;
      for (const std::uint64_t keys : {1000u, 0u, 1u, 2u, 5u, 17u, 40u, 90u, 300u}) {  // in any order
        const auto expected = static_cast<double>(rates::classic(b, k, keys));

        EXPECT_NEAR(static_cast<double>(in_block(static_cast<long double>(keys))), expected, tolerance * expected)
            << "b " << b << ", k " << k << ", keys " << keys;
      }
    }
  }
}

// For few and many keys, in any order: earlier calls do not change the result.
TEST(BlockRates, DoNotDependOnWhatWasAskedBefore) {
  for (const std::uint32_t k : {1u, 7u, 26u}) {
    rates::block_rates asked(32'768, k);
    for (const std::uint64_t keys :
         {3000u, 2999u, 3001u, 63u, 64u, 65u, 127u, 128u, 5000u, 1u, 0u, 700u, 2000u, 3063u}) {
      const long double expected = rates::classic(32'768, k, keys);

      const long double actual = asked(static_cast<long double>(keys));
      rates::block_rates fresh(32'768, k);

      EXPECT_NEAR(static_cast<double>(actual), static_cast<double>(expected), 1e-12 * static_cast<double>(expected))
          << "k " << k << ", keys " << keys;
      EXPECT_NEAR(static_cast<double>(fresh(static_cast<long double>(keys))), static_cast<double>(expected),
                  1e-12 * static_cast<double>(expected))
          << "k " << k << ", keys " << keys;
    }
  }
}

// Sums of probabilities may round to slightly more than 1; the logarithm of the rest would then be NaN.
TEST(BlockRates, OfNearlyFullBlocksAreProbabilities) {
  for (const std::uint64_t cells : {60u, 508u}) {
    for (std::uint32_t k = 1; k <= 40; ++k) {
      rates::block_rates in_block(cells, k);
      for (const std::uint64_t keys : {50u, 200u, 1000u}) {
        for (const double covered : rates::blocked_covered(in_block, keys, 1)) {
          EXPECT_TRUE(covered >= 0 && covered <= 1)
              << covered - 1 << ": cells " << cells << ", k " << k << ", " << keys;
        }
      }
    }
  }
  for (const std::uint64_t keys : {200u, 1000u}) {
    EXPECT_NEAR(layouts::sliding64::rate_of(layouts::sliding64::of_blocks(1, 23), {&keys, 1}), 1, 1e-6);
    const double rate = layouts::sliding::rate_of(layouts::sliding::of_blocks(1, 23), {&keys, 1});
    EXPECT_TRUE(rate > 0.9 && rate <= 1) << rate;
  }
}

TEST(BlockRates, OfAFullBlockAreOneAndTakeNoTime) {
  for (const std::uint32_t k : {1u, 7u, 20u}) {
    rates::block_rates in_block(32'768, k);

    EXPECT_EQ(in_block(1e18L), 1);
    EXPECT_NEAR(static_cast<double>(in_block(47.0L * 32'768 / k)), 1, 1e-14) << k;  // the last that is computed
  }
}

TEST(FreeBitsRate, IsTheShareOfAllWaysToSetAndToLook) {
  for (const std::uint64_t blocks : {1u, 2u, 3u}) {
    for (const std::uint64_t b : {1u, 2u, 3u}) {
      for (const std::uint32_t k : {1u, 2u, 3u}) {
        for (const std::uint64_t n : {0u, 1u, 2u}) {
          SCOPED_TRACE(testing::Message() << "B " << blocks << ", b " << b << ", k " << k << ", n " << n);
          const double counted = rate_by_enumeration_of_blocks(blocks, b, k, n);

          EXPECT_NEAR(rate_of_tiny_blocks(blocks, b, k, n), counted, 1e-15);
          EXPECT_NEAR(rate_of_free_bits(static_cast<std::uint32_t>(b), k, blocks, n), counted, 1e-15);
        }
      }
    }
  }
}

TEST(SplitBlock512Rate, EqualsTheAlternatingSum) {
  for (const std::uint64_t n : {1u, 2u, 10u, 1000u, 1'000'000u, 1'000'000'000u}) {
    for (const double bits_per_key : {1.0, 4.0, 8.0, 12.0, 24.0, 60.0}) {
      const auto B = static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) * bits_per_key / 512));
      const double expected = with_twins(rate_of_lanes(8, 64, B, n), n);

      EXPECT_NEAR(layouts::split_block512::expected_fpr({512 * B, 8}, n) / expected, 1, 1e-11)
          << "n " << n << ", B " << B;
    }
  }
}

TEST(BlockedRate, EqualsTheAlternatingSum) {
  for (const std::uint64_t n : {1u, 2u, 10u, 1000u, 1'000'000u, 1'000'000'000u}) {
    for (const std::uint32_t k : {1u, 2u, 5u, 8u, 12u, 16u}) {
      for (const double bits_per_key : {1.0, 8.0, 16.0, 32.0}) {
        const auto B = static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) * bits_per_key / 512));
        const double expected = with_twins(rate_of_free_bits(512, k, B, n), n);

        EXPECT_NEAR(layouts::blocked::expected_fpr({512 * B, k}, n) / expected, 1, 1e-10)
            << "n " << n << ", B " << B << ", k " << k;
      }
    }
  }
}

TEST(BlockedPageRate, EqualsTheAlternatingSum) {
  for (const std::uint64_t n : {100u, 5000u, 1'000'000u, 1'000'000'000u}) {
    for (const std::uint32_t k : {1u, 2u, 7u, 13u, 20u}) {
      for (const double bits_per_key : {2.0, 9.6, 28.0}) {
        const auto B = static_cast<std::uint64_t>(std::ceil(static_cast<double>(n) * bits_per_key / 32'768));
        const double expected = with_twins(rate_of_free_bits(32'768, k, B, n), n);
        const double lost =
            1e-22 / expected;  // the error of the sum, whose terms reach C(20, 10) with an error of n times 1e-34 each
        if (lost > 1e-6) continue;

        EXPECT_NEAR(layouts::blocked_page::expected_fpr({32'768 * B, k}, n) / expected, 1, 1e-10 + lost)
            << "n " << n << ", B " << B << ", k " << k;
      }
    }
  }
}

// Blocks of b bits with k independent bits per key, c bits per key.
TEST(FreeBitsRate, IsThePublishedOneForTenMillionKeys) {
  struct {
    std::uint64_t b;
    std::uint32_t k;
    std::uint64_t c;
    double rate, half_a_digit;
  } const cases[] = {{64, 4, 8, 0.033541, 5e-7},
                     {64, 6, 16, 0.0040523, 5e-8},
                     {512, 6, 10, 0.009665, 5e-7},
                     {512, 11, 20, 1.978e-4, 5e-8}};
  constexpr std::uint64_t n = 10'000'000;
  for (const auto& each : cases) {
    rates::block_rates in_block(each.b, each.k);

    const long double rate =
        rates::blocked(n, static_cast<long double>(n * each.c / each.b), [&](long double i) { return in_block(i); });

    EXPECT_NEAR(static_cast<double>(rate), each.rate, each.half_a_digit) << "b " << each.b << ", k " << each.k;
  }
}

// One key in B lines: an absent key has the same line and the same bit in each of eight words, or the same 64 bits.
TEST(SplitBlock512Rate, OfOneKeyIsThatOfItsTwins) {
  for (const std::uint64_t B : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 40}) {
    const double expected = 0x1p-48 / static_cast<double>(B) + 0x1p-64;

    EXPECT_NEAR(layouts::split_block512::expected_fpr({512 * B, 8}, 1) / expected, 1, 1e-9) << B;
  }
}

TEST(SplitBlock512Rate, IsThePublishedOne) {
  struct {
    std::uint64_t bits_per_key;
    double rate, half_a_digit;
  } const cases[] = {
      {8, 0.0293, 5e-5}, {10, 0.01049, 5e-6}, {12, 0.00422, 5e-6}, {16, 9.09e-4, 5e-7}, {20, 2.60e-4, 5e-7}};
  for (const auto& c : cases) {
    EXPECT_NEAR(layouts::split_block512::expected_fpr({c.bits_per_key * 10'240'000, 8}, 10'240'000), c.rate,
                c.half_a_digit)
        << c.bits_per_key;
  }
}

TEST(BlockedRate, IsThePublishedOneWithTheBestProbes) {
  struct {
    std::uint64_t bits_per_key;
    std::uint32_t best_probes;
    double rate, half_a_digit;
  } const cases[] = {{8, 5, 0.0233, 5e-5},   {10, 6, 0.009665, 5e-7},  {12, 8, 0.00413, 5e-6},
                     {16, 9, 8.44e-4, 5e-7}, {20, 11, 1.978e-4, 5e-8}, {24, 12, 0, 0}};
  constexpr std::uint64_t n = 10'240'000;
  for (const auto& c : cases) {
    const std::uint64_t bits = c.bits_per_key * n;

    const double rate = layouts::blocked::expected_fpr({bits, c.best_probes}, n);

    if (c.rate > 0) {
      EXPECT_NEAR(rate, c.rate, c.half_a_digit) << c.bits_per_key;
    }
    EXPECT_LT(rate, layouts::blocked::expected_fpr({bits, c.best_probes - 1}, n)) << c.bits_per_key;
    EXPECT_LT(rate, layouts::blocked::expected_fpr({bits, c.best_probes + 1}, n)) << c.bits_per_key;
  }
}

}  // namespace
}  // namespace bloomery
