// The sizes of layouts: the smallest geometry that keeps a target FPR, and which geometries are refused.
//
// n keys, m bits, k probes, B blocks, p the target FPR.
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "math/rates.hpp"
#include "support/test.hpp"

#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

template <class Layout>
class BlockedLayout : public testing::Test {};
using blocked_layouts = testing::Types<layouts::split_block512, layouts::blocked, layouts::blocked_page>;
TYPED_TEST_SUITE(BlockedLayout, blocked_layouts, names_of_layouts);

template <class Layout>
std::vector<std::uint32_t> probes_of() {
  if constexpr (std::is_same_v<Layout, layouts::split_block512>) return {8};
  return {1, 7, 20};
}

TYPED_TEST(BlockedLayout, HasARateThatRisesWithKeysAndFallsWithBlocks) {
  constexpr std::uint64_t b = TypeParam::block_bits;
  for (const std::uint32_t k : probes_of<TypeParam>()) {
    for (const std::uint64_t B : {1u, 2u, 100u, 1'000'000u}) {
      double before = 0;
      for (std::uint64_t n = 1; n < b * B; n = 2 * n + 1) {
        const double rate = TypeParam::expected_fpr({b * B, k}, n);
        EXPECT_GT(rate, 0);
        EXPECT_LE(rate, 1);
        EXPECT_GE(rate, before) << "k " << k << ", B " << B << ", n " << n;
        EXPECT_LE(TypeParam::expected_fpr({b * (B + 1), k}, n), rate * (1 + 1e-13))
            << "k " << k << ", B " << B << ", n " << n;
        before = rate;
      }
    }
  }
}

// From one key to the next: near capacity, and where the filter is nearly full.
TYPED_TEST(BlockedLayout, HasARateThatRisesWithEachKey) {
  constexpr std::uint64_t b = TypeParam::block_bits;
  for (const std::uint64_t first : {b / 10, b, 4 * b}) {
    double before = 0;
    for (std::uint64_t n = first; n < first + 100; ++n) {
      const double rate = TypeParam::expected_fpr({10 * b, 8}, n);
      EXPECT_GT(rate, before) << n;
      before = rate;
    }
  }
}

TYPED_TEST(BlockedLayout, HasARateThatIsRightAtItsEnds) {
  constexpr std::uint64_t b = TypeParam::block_bits;
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t B : {std::uint64_t{1}, std::uint64_t{1000}, TypeParam::max_blocks}) {
    EXPECT_EQ(TypeParam::expected_fpr({b * B, 8}, 0), 0) << B;
    EXPECT_EQ(TypeParam::expected_fpr({b * B, 8}, most), 1) << B;
    EXPECT_NEAR(TypeParam::expected_fpr({b * B, 8}, B < 1001 ? 50 * b * B : most), 1, 1e-14) << B;
  }
}

TYPED_TEST(BlockedLayout, HasTheSmallestSizeThatKeepsTheTarget) {
  constexpr std::uint64_t b = TypeParam::block_bits;
  for (const std::uint64_t n : {1u, 10u, 1000u, 1'000'000u, 1'000'000'000u}) {
    for (const double p : {0.9, 0.2, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-9}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", p " << p);
      const geometry g = TypeParam::geometry_for(n, p);

      TypeParam::check(g);
      EXPECT_EQ(TypeParam::bits_for(n, p), g.bits);
      EXPECT_LE(TypeParam::expected_fpr(g, n), p);
      if (g.bits > b) {
        EXPECT_GT(TypeParam::expected_fpr({g.bits - b, g.probes}, n), p);
      }
    }
  }
}

TYPED_TEST(BlockedLayout, TakesATrillionKeys) {
  constexpr std::uint64_t n = 1'000'000'000'000;

  const geometry g = TypeParam::geometry_for(n, 0.001);

  EXPECT_LE(TypeParam::expected_fpr(g, n), 0.001);
  EXPECT_NEAR(static_cast<double>(g.bits) / 1e12, static_cast<double>(TypeParam::bits_for(1'000'000'000, 0.001)) / 1e9,
              0.001);
}

// Up to some million keys, 1e-12 is above the 2^-64 per key by which equal hashes add to the FPR.
TYPED_TEST(BlockedLayout, KeepsATargetOfOneInATrillion) {
  for (const std::uint64_t n : {1u, 1000u, 1'000'000u}) {
    EXPECT_LE(TypeParam::expected_fpr(TypeParam::geometry_for(n, 1e-12), n), 1e-12) << n;
  }
  EXPECT_EQ(code_of([] { TypeParam::geometry_for(100'000'000, 1e-12); }), errc::too_large);
}

TYPED_TEST(BlockedLayout, RefusesWhatItCannotKeep) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const double nan = std::numeric_limits<double>::quiet_NaN();

  for (const double p : {0.0, 1.0, -0.1, 1.5, nan, HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(code_of([&] { TypeParam::geometry_for(1000, p); }), errc::invalid_argument) << p;
  }
  EXPECT_EQ(code_of([] { TypeParam::geometry_for(0, 0.01); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { TypeParam::geometry_for(most, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([] { TypeParam::geometry_for(1, 1e-300); }), errc::too_large);
}

TYPED_TEST(BlockedLayout, ChecksGivenGeometries) {
  constexpr std::uint64_t b = TypeParam::block_bits;

  EXPECT_EQ(code_of([] { TypeParam::check({0, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { TypeParam::check({b - 1, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { TypeParam::check({b + b / 2, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { TypeParam::check({b, 0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { TypeParam::check({b, 256}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { TypeParam::check({b * (TypeParam::max_blocks + 1), 8}); }), errc::too_large);
  EXPECT_EQ(code_of([] { TypeParam::check({b * TypeParam::max_blocks, 8}); }), std::nullopt);
  EXPECT_EQ(
      code_of([] {
        TypeParam::check({b, 7});
      }),
      (std::is_same_v<TypeParam, layouts::split_block512> ? std::optional(errc::invalid_argument) : std::nullopt));
}

// Bits that n keys leave clear: each of them misses a given bit of B blocks with chance 1 - q/B.
TYPED_TEST(BlockedLayout, EstimatesTheKeysFromTheZeroBits) {
  constexpr std::uint64_t b = TypeParam::block_bits;
  for (const std::uint32_t k : probes_of<TypeParam>()) {
    for (const std::uint64_t B : {1u, 1000u, 10'000'000u}) {
      const geometry g{b * B, k};
      const double q = std::is_same_v<TypeParam, layouts::split_block512>
                           ? 1.0 / 64
                           : 1 - std::pow(1 - 1.0 / static_cast<double>(b), k);
      for (const double load : {0.01, 0.5, 1.0, 3.0}) {  // bits set, repetitions counted, for each bit
        const double n = std::ceil(load * static_cast<double>(g.bits) / k);
        const double zeros = static_cast<double>(g.bits) * std::exp(n * std::log1p(-q / static_cast<double>(B)));
        const double keys_a_zero = static_cast<double>(B) / q / zeros;  // the error of rounding to whole zeros

        EXPECT_NEAR(TypeParam::keys_from_zeros(g, static_cast<std::uint64_t>(std::llround(zeros))), n,
                    0.51 * keys_a_zero + 1e-9 * n)
            << "k " << k << ", B " << B << ", load " << load;
      }
      EXPECT_EQ(TypeParam::keys_from_zeros(g, g.bits), 0);
      EXPECT_EQ(TypeParam::keys_from_zeros(g, 0), HUGE_VAL);
    }
  }
}

template <class Layout>
void expect_the_best_probes() {
  constexpr std::uint64_t b = Layout::block_bits;
  struct made {
    std::uint64_t n;
    double p;
    geometry g;
  };
  std::vector<made> cases;
  for (const std::uint64_t n : {1u, 10u, 777u, 5000u, 100'000u, 1'000'000'000u}) {
    for (const double p : {0.4, 0.2, 0.03, 0.004, 1e-3, 1e-4, 1e-6})
      cases.push_back({n, p, Layout::geometry_for(n, p)});
  }
  for (std::uint32_t k = 1; k <= 32; ++k) {  // 12 more than any of these rates needs
    for (const made& c : cases) {
      SCOPED_TRACE(testing::Message() << "n " << c.n << ", p " << c.p << ", k " << k);
      if (c.g.bits > b) {
        EXPECT_GT(Layout::expected_fpr({c.g.bits - b, k}, c.n), c.p) << "fewer blocks";
      }
      if (k < c.g.probes) {
        EXPECT_GT(Layout::expected_fpr({c.g.bits, k}, c.n), c.p) << "fewer probes";
      }
    }
  }
}

TEST(BlockedSize, IsTheSmallestOverAllNumbersOfProbes) { expect_the_best_probes<layouts::blocked>(); }
TEST(BlockedPageSize, IsTheSmallestOverAllNumbersOfProbes) { expect_the_best_probes<layouts::blocked_page>(); }

TEST(BlockedSize, IsThePublishedMemory) {
  struct {
    double p, line_bits, blocked_bits, page_bits;
  } const cases[] = {{0.01, 10.10, 9.92, 9.60}, {1e-3, 15.72, 15.55, 14.42}, {1e-4, 23.61, 22.03, 19.23}};
  constexpr std::uint64_t n = 1'000'000;
  for (const auto& c : cases) {
    EXPECT_NEAR(static_cast<double>(layouts::split_block512::bits_for(n, c.p)) / n, c.line_bits, 0.006) << c.p;
    EXPECT_NEAR(static_cast<double>(layouts::blocked::bits_for(n, c.p)) / n, c.blocked_bits, 0.006) << c.p;
    EXPECT_NEAR(static_cast<double>(layouts::blocked_page::bits_for(n, c.p)) / n, c.page_bits, 0.006) << c.p;
  }
}

// The comparisons that the headers of the layouts state.
TEST(BlockedSize, OfTheLayoutsComparesAsTheirHeadersSay) {
  constexpr std::uint64_t n = 1'000'000'000;
  const auto ratio = [](std::uint64_t (*a)(std::uint64_t, double), std::uint64_t (*b)(std::uint64_t, double),
                        double p) { return static_cast<double>(a(n, p)) / static_cast<double>(b(n, p)); };

  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 0.05), 0.90, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 0.01), 0.98, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 0.003), 1.00, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 1e-3), 0.99, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 1e-4), 0.93, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked::bits_for, layouts::split_block512::bits_for, 1e-6), 0.75, 0.005);
  EXPECT_NEAR(ratio(layouts::blocked_page::bits_for, layouts::classic::bits_for, 0.01), 1.001, 0.0005);
  EXPECT_NEAR(ratio(layouts::blocked_page::bits_for, layouts::classic::bits_for, 1e-6), 1.006, 0.0005);
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

constexpr double promises[] = {0.9, 0.5, 0.3, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12};
constexpr std::uint64_t capacities[] = {1, 2, 3, 10, 77, 1000, 12'345, 1'000'000, 100'000'000, 10'000'000'000};

TEST(ClassicSize, KeepsTheTargetAndOneBitLessDoesNot) {
  for (const std::uint64_t n : capacities) {
    for (const double p : promises) {
      const geometry g = layouts::classic::geometry_for(n, p);
      const geometry less{g.bits - 1, g.probes};

      layouts::classic::check(g);
      EXPECT_LE(layouts::classic::expected_fpr(g, n), p) << "n " << n << ", p " << p;
      ASSERT_GT(g.bits, 1u);
      EXPECT_GT(layouts::classic::expected_fpr(less, n), p) << "n " << n << ", p " << p;
      EXPECT_EQ(layouts::classic::bits_for(n, p), g.bits);
    }
  }
}

TEST(ClassicSize, IsTheSmallestOverAllNumbersOfProbes) {
  for (const std::uint64_t n : {1u, 2u, 3u, 4u, 10u, 77u}) {
    for (double p = 0.9; p > 1e-10; p *= 0.3) {
      const geometry g = layouts::classic::geometry_for(n, p);

      for (std::uint32_t k = 1; k <= 40; ++k) {
        ASSERT_GT(layouts::classic::expected_fpr({g.bits - 1, k}, n), p) << "n " << n << ", p " << p << ", k " << k;
      }
    }
  }
}

TEST(ClassicSize, ChoosesTheProbesWithTheLowestRate) {
  for (const std::uint64_t n : {1u, 3u, 10u, 1000u}) {
    for (const std::uint64_t bits_per_key : {1u, 3u, 8u, 10u, 13u, 40u}) {
      const std::uint64_t m = n * bits_per_key;

      const std::uint32_t best = layouts::classic::best_probes(m, n);

      const long double rate = rates::classic(m, best, n);
      for (std::uint32_t k = 1; k <= 64; ++k) {
        ASSERT_GE(rates::classic(m, k, n), rate * (1 - 1e-15L))
            << "m " << m << ", n " << n << ", k " << k << " beats " << best;
      }
    }
  }
}

TEST(SplitBlockSize, KeepsTheTargetAndOneBlockLessDoesNot) {
  for (const std::uint64_t n : capacities) {
    for (const double p : promises) {
      const double parquet_bits = -8 * static_cast<double>(n) / std::log1p(-std::pow(p, 1.0 / 8));
      const double twins_at_most_blocks = static_cast<double>(n) * 0x1p-64;
      if (parquet_bits > 0x1p38 || twins_at_most_blocks > p / 10)
        continue;  // may exceed the largest size of the layout
      const geometry g = layouts::split_block::geometry_for(n, p);

      layouts::split_block::check(g);
      EXPECT_LE(layouts::split_block::expected_fpr(g, n), p) << "n " << n << ", p " << p;
      EXPECT_EQ(layouts::split_block::bits_for(n, p), g.bits);
      if (g.bits == 256) continue;
      EXPECT_GT(layouts::split_block::expected_fpr({g.bits - 256, 8}, n), p) << "n " << n << ", p " << p;
    }
  }
}

TEST(Sizes, RefuseInvalidTargets) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.0, 1.0, -0.1, 1.5, nan, infinity, -infinity}) {
    EXPECT_EQ(code_of([&] { layouts::classic::geometry_for(1000, p); }), errc::invalid_argument) << p;
    EXPECT_EQ(code_of([&] { layouts::split_block::geometry_for(1000, p); }), errc::invalid_argument) << p;
  }
  EXPECT_EQ(code_of([] { layouts::classic::geometry_for(0, 0.01); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::split_block::geometry_for(0, 0.01); }), errc::invalid_argument);
}

TEST(Sizes, RefuseMoreThanALayoutHas) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  EXPECT_EQ(code_of([&] { layouts::classic::geometry_for(most, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([&] { layouts::classic::geometry_for(std::uint64_t{1} << 60, 1e-9); }), errc::too_large);
  EXPECT_EQ(code_of([] { layouts::classic::geometry_for(1, 1e-300); }),
            errc::too_large);  // below the hash's own 2^-128
  EXPECT_EQ(code_of([&] { layouts::split_block::geometry_for(most, 0.5); }), errc::too_large);
  EXPECT_EQ(code_of([] { layouts::split_block::geometry_for(1'000'000'000'000, 1e-3); }), errc::too_large);
}

TEST(Sizes, OfGivenGeometriesAreChecked) {
  EXPECT_EQ(code_of([] { layouts::classic::check({0, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::classic::check({(std::uint64_t{1} << 63) + 1, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::classic::check({100, 0}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::classic::check({100, 256}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::classic::check({std::uint64_t{1} << 63, 255}); }), std::nullopt);
  EXPECT_EQ(code_of([] { layouts::split_block::check({0, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::split_block::check({255, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::split_block::check({256, 7}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::split_block::check({(std::uint64_t{1} << 40) + 256, 8}); }), errc::too_large);
  EXPECT_EQ(code_of([] { layouts::split_block::check({std::uint64_t{1} << 40, 8}); }), std::nullopt);
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
