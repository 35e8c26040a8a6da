// Sizing rules against the exact sizes of the systems they come from, and expected_losses against the plain sum.
#include <bloomery/sizing.hpp>

#include <bloomery/layouts/classic.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

errc code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return errc::io;
}

// ---- textbook_bits --------------------------------------------------------------------------------------------------

TEST(TextbookBits, AreTheBooksAndNineAndAHalfAKeyAtOnePercent) {
  EXPECT_EQ(textbook_bits(1'000'000, 0.01), 9'585'059u);
  EXPECT_EQ(textbook_bits(10, 0.1), 48u);
  EXPECT_EQ(textbook_bits(1, 0.5), 2u);  // 1 / ln 2 = 1.44
}

TEST(TextbookBits, OfNoKeysAreNone) { EXPECT_EQ(textbook_bits(0, 0.01), 0u); }

TEST(TextbookBits, RefuseInvalidProbabilities) {
  for (const double p : {0.0, 1.0, -0.01, 1.5, not_a_number}) {
    EXPECT_EQ(code_of([&] { textbook_bits(1000, p); }), errc::invalid_argument) << p;
    EXPECT_EQ(code_of([&] { textbook_bits(0, p); }), errc::invalid_argument) << p;
  }
}

TEST(TextbookBits, RefuseMoreThanFitInto64Bits) {
  EXPECT_EQ(code_of([] { textbook_bits(std::uint64_t{1} << 63, 0.01); }), errc::too_large);
}

// ---- lower_bound_bits_per_key ---------------------------------------------------------------------------------------

// log2 of the number of ways to choose n of u keys.
long double log2_choices(long double u, long double n) {
  long double sum = 0;
  for (long double i = 0; i < n; ++i) sum += std::log2((u - i) / (n - i));
  return sum;
}

// A filter that reports n + p (u - n) of u possible keys as present serves the sets of n of these keys, so for all sets
// of n keys there must be at least C(u, n) / C(n + p (u - n), n) different filters.
TEST(LowerBoundBitsPerKey, IsTheLimitOfTheCountOfFiltersForManyPossibleKeys) {
  for (const double p : {1.0, 0.9, 0.5, 0.25, 0.01, 1e-3, 1e-6}) {
    for (const double n : {1.0, 2.0, 100.0, 1000.0}) {
      const long double u = 1e9L * n / p;
      const auto least = static_cast<double>((log2_choices(u, n) - log2_choices(n + p * (u - n), n)) / n);

      EXPECT_NEAR(lower_bound_bits_per_key(p), least, 1e-8) << p << ", " << n << " keys";
    }
  }
}

TEST(LowerBoundBitsPerKey, IsWholeForPowersOfTwo) {
  for (int k = 0; k <= 1074; ++k) EXPECT_EQ(lower_bound_bits_per_key(std::ldexp(1.0, -k)), k);
}

TEST(LowerBoundBitsPerKey, RefusesInvalidProbabilities) {
  for (const double p : {0.0, -0.01, std::nextafter(1.0, 2.0), not_a_number}) {
    EXPECT_EQ(code_of([&] { lower_bound_bits_per_key(p); }), errc::invalid_argument) << p;
  }
}

TEST(LowerBoundBitsPerKey, CountsTheChoicesOfThePresentKeys) {
  for (const auto& [present, absent] :
       {std::pair<std::uint64_t, std::uint64_t>{1, 1}, {1, 1000}, {7, 3}, {1000, 1000}, {1'000'000, 99'000'000}}) {
    const auto n = static_cast<long double>(present), others = static_cast<long double>(absent);
    EXPECT_NEAR(lower_bound_bits_per_key(present, absent), static_cast<double>(log2_choices(n + others, n) / n), 1e-9);
  }
  EXPECT_EQ(lower_bound_bits_per_key(0, 9), 0);
  EXPECT_EQ(lower_bound_bits_per_key(9, 0), 0);
}

// ---- the systems' rules ---------------------------------------------------------------------------------------------

TEST(CeilCeilGeometry, IsPharos) {
  EXPECT_EQ(ceil_ceil_geometry(10, 0.1), (geometry{48, 4}));
  EXPECT_EQ(ceil_ceil_geometry(1'000'000'000, 0.02), (geometry{8'142'363'337, 6}));
  EXPECT_EQ(ceil_ceil_geometry(100, 0.03), (geometry{730, 6}));
}

TEST(CeilCeilGeometry, TakesExactlyKProbesForTwoToTheMinusK) {
  double p = 1;
  for (std::uint32_t k = 1; k <= 255; ++k) {
    p /= 2;
    for (const std::uint64_t n : {1u, 3u, 10u, 1000u, 999'999u}) {
      EXPECT_EQ(ceil_ceil_geometry(n, p).probes, k) << n;
    }
  }
}

TEST(FloorRoundGeometry, IsGuavas) {
  EXPECT_EQ(floor_round_geometry(10'000, 0.0005), (geometry{158'208, 11}));
  EXPECT_EQ(floor_round_geometry(10, 0.01), (geometry{128, 7}));
  EXPECT_EQ(floor_round_geometry(1000, 0.03), (geometry{64 * 115, 5}));
  EXPECT_EQ(floor_round_geometry(1, 0.01), (geometry{64, 6}));  // newer ones: 7
}

TEST(FloorRoundGeometry, IsNeverWithoutAWord) { EXPECT_EQ(floor_round_geometry(1, 0.9), (geometry{64, 1})); }

TEST(SearchedGeometry, IsPerls) {
  EXPECT_EQ(searched_geometry(1000, 0.01), (geometry{9593, 7}));
  // As the module itself answers:
  EXPECT_EQ(searched_geometry(100, 0.001), (geometry{1438, 10}));
  EXPECT_EQ(searched_geometry(1'000'000, 0.000001), (geometry{28'755'279, 20}));
  EXPECT_EQ(searched_geometry(1, 0.5), (geometry{2, 1}));
}

// The table that the source of section 3 should have printed, in bytes per key.
TEST(SearchedGeometry, CostsAFifthMoreThanAByteForEachKeyAtOnePercent) {
  const auto bytes_a_key = [](std::uint64_t n, double p) {
    return static_cast<double>(searched_geometry(n, p).bits) / 8 / static_cast<double>(n);
  };

  EXPECT_NEAR(bytes_a_key(1000, 0.01), 1.20, 0.005);
  EXPECT_NEAR(bytes_a_key(1000, 0.001), 1.80, 0.005);
  EXPECT_NEAR(bytes_a_key(1000, 0.0001), 2.40, 0.005);
  EXPECT_NEAR(bytes_a_key(1'000'000, 0.0001), 2.40, 0.005);
  EXPECT_NEAR(bytes_a_key(1'000'000, 0.00001), 3.00, 0.005);
  EXPECT_NEAR(bytes_a_key(1'000'000, 0.000001), 3.59, 0.005);
}

TEST(SearchedGeometry, SurvivesRatesThatRoundingLoses) {  // 1 - p is 1 for k = 1
  const geometry g = searched_geometry(1000, 1e-20);

  EXPECT_EQ(g.probes, 66u);
  EXPECT_NEAR(static_cast<double>(g.bits), 1000 * 66.44 / std::log(2.0), 20);
}

TEST(SizingRules, RefuseZeroKeysAndInvalidProbabilities) {
  for (const auto rule : {ceil_ceil_geometry, floor_round_geometry, searched_geometry}) {
    EXPECT_EQ(code_of([&] { rule(0, 0.01); }), errc::invalid_argument);
    for (const double p : {0.0, 1.0, -0.01, 1.5, not_a_number}) {
      EXPECT_EQ(code_of([&] { rule(1000, p); }), errc::invalid_argument) << p;
    }
  }
}

TEST(SizingRules, RefuseSizesThatNoFilterHas) {
  for (const auto rule : {ceil_ceil_geometry, floor_round_geometry, searched_geometry}) {
    EXPECT_EQ(code_of([&] { rule(std::uint64_t{1} << 62, 0.01); }), errc::too_large);
  }
  for (const auto rule : {ceil_ceil_geometry, floor_round_geometry}) {
    EXPECT_EQ(code_of([&] { rule(1000, 1e-100); }), errc::too_large);  // 332 probes
  }
}

// ---- expected_losses ------------------------------------------------------------------------------------------------

double plain_sum(std::uint64_t keys, const std::function<double(std::uint64_t)>& rate) {
  double sum = 0;
  for (std::uint64_t i = 0; i < keys; ++i) sum += rate(i);
  return sum;
}

TEST(ExpectedLosses, EqualThePlainSumForPolynomials) {
  for (const int degree : {0, 1, 2, 3, 7, 14, 30}) {
    for (const std::uint64_t keys : {1u, 2u, 3u, 4u, 5u, 17u, 100u, 999u, 2048u, 2049u, 100'000u, 1'234'567u}) {
      const auto rate = [&](std::uint64_t i) {
        return std::pow(static_cast<double>(i) / static_cast<double>(keys), degree);
      };
      const double truth = plain_sum(keys, rate);

      const double losses = expected_losses(keys, rate);

      EXPECT_NEAR(losses, truth, 1e-4 * truth) << "degree " << degree << ", " << keys << " keys";
    }
  }
}

TEST(ExpectedLosses, EqualThePlainSumFarBeyondCapacity) {
  const auto rate = [](std::uint64_t i) { return std::pow(1 - std::exp(-7 * static_cast<double>(i) / 9585), 7); };
  for (const std::uint64_t keys : {1000u, 10'000u, 1'000'000u}) {
    const double truth = plain_sum(keys, rate);

    EXPECT_NEAR(expected_losses(keys, rate), truth, 1e-4 * truth) << keys;
  }
}

TEST(ExpectedLosses, EqualThePlainSumOfAClassicFiltersRate) {
  const geometry g = layouts::classic::geometry_for(3000, 0.001);
  const auto rate = [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); };
  const double truth = plain_sum(3000, rate);

  EXPECT_NEAR(expected_losses(3000, rate), truth, 1e-4 * truth);
}

TEST(ExpectedLosses, AreAboutATenthOfTheFinalRateForAHundredMillionUrls) {
  const geometry g = layouts::classic::geometry_for(100'000'000, 1e-4);

  const double lost =
      expected_losses(100'000'000, [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); });

  EXPECT_GT(lost, 960);
  EXPECT_LT(lost, 968);
}

TEST(ExpectedLosses, AskForAFewHundredRatesAtMost) {
  for (const int degree : {1, 7, 30}) {
    int asked = 0;

    expected_losses(10'000'000'000, [&](std::uint64_t i) {
      ++asked;
      return std::pow(static_cast<double>(i) / 1e10, degree);
    });

    EXPECT_LE(asked, 200) << degree;
    RecordProperty("rates_at_degree_" + std::to_string(degree), asked);
  }
}

TEST(ExpectedLosses, OfNoKeysAreNone) {
  EXPECT_EQ(expected_losses(0, [](std::uint64_t) { return 0.5; }), 0);
}

// ---- expected_insertions --------------------------------------------------------------------------------------------

TEST(ExpectedInsertions, AreThoseThatDistinctKeysStartsFrom) {
  for (const double p : {0.5, 0.1, 0.01, 1e-6}) {
    const geometry g = layouts::classic::geometry_for(50'000, p);
    const auto rate = [&](std::uint64_t n) { return layouts::classic::expected_fpr(g, n); };
    for (const double distinct : {0.0, 1.0, 2.0, 100.0, 25'000.0, 50'000.0, 75'000.0}) {
      const std::uint64_t counted = expected_insertions(distinct, rate);

      EXPECT_LE(static_cast<double>(counted), distinct);
      EXPECT_NEAR(static_cast<double>(estimate_distinct(counted, rate)), distinct, 1 + 0.002 * distinct) << p;
    }
  }
}

TEST(ExpectedInsertions, OfAFullFilterAreAsManyAsItsBitsAllow) {
  const auto rate = [](std::uint64_t n) { return layouts::classic::expected_fpr({1000, 7}, n); };

  EXPECT_LT(expected_insertions(INFINITY, rate), 1000u);
  EXPECT_EQ(expected_insertions(1e30, rate), expected_insertions(0x1p62, rate));
}

}  // namespace
}  // namespace bloomery
