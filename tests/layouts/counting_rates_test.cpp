// Counting filters: expected and measured false-positive rates, consistency checks and counts of cells.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>

#include "layouts/counting_filters.hpp"
#include "support/rate_variance.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

TEST(CountingRate, IsKeptByTheSmallestGeometry) {
  for (const std::uint64_t n : {1u, 10u, 1000u, 100'000u}) {
    for (const double p : {0.3, 0.01, 1e-4, 1e-7}) {
      SCOPED_TRACE(std::to_string(n) + " keys at " + std::to_string(p));

      const geometry g = layouts::counting::geometry_for(n, p);

      layouts::counting::check(g);
      EXPECT_LE(layouts::counting::expected_fpr(g, n), p);
      for (std::uint32_t k = 1; g.bits > 512 && k <= 32; ++k) {
        EXPECT_GT(layouts::counting::expected_fpr({g.bits - 512, k}, n), p) << k;
      }
    }
  }
}

TEST(CountingRate, IsTheMeanOverManyFilters) {
  const geometry g{6 * 512, 4};
  constexpr int filters = 4000;
  constexpr std::uint64_t keys = 90;
  double sum = 0, square = 0, used = 0, used_square = 0;
  for (std::uint64_t i = 0; i < filters; ++i) {
    counting_filter<std::uint64_t> one(g);
    for (std::uint64_t key = 0; key < keys; ++key) one.insert(i << 32 | key);
    const double rate = one.current_fpr();
    const auto cells = static_cast<double>(layouts::counting::cells_used(one.bytes()));
    sum += rate;
    square += rate * rate;
    used += cells;
    used_square += cells * cells;
  }
  const double mean = sum / filters;
  const double sigma = std::sqrt(square / filters - mean * mean);
  const double mean_used = used / filters;
  const double variance_used = used_square / filters - mean_used * mean_used;

  EXPECT_NEAR(mean, layouts::counting::expected_fpr(g, keys), 5 * sigma / std::sqrt(filters));
  const estimate expected = expected_ones(params_of(g), keys);
  EXPECT_NEAR(mean_used, expected.value, 5 * std::sqrt(variance_used / filters));
  EXPECT_NEAR(std::sqrt(variance_used), expected.sigma, 0.06 * expected.sigma);
  EXPECT_NEAR(estimated_keys(params_of(g), static_cast<std::uint64_t>(std::lround(expected.value))).value, keys, 1);
}

// Expected, exact and measured rates after filling, and after half of the keys were removed.
TEST(CountingRate, AgreesWithWhatIsMeasuredAlsoAfterHalfWasRemoved) {
  constexpr std::uint64_t n = 200'000;
  counting_filter<std::uint64_t> here(n, 0.02);
  const geometry& g = here.parameters().geometry;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < n; ++key) keys.push_back(mix64(key));
  here.insert(keys);

  const auto compare = [&](std::uint64_t left) {
    const double certified = here.current_fpr();
    const double predicted = here.expected_fpr(left);
    const double spread = std::sqrt(bloomery_tests::variance_of_rate<layouts::counting>(g, static_cast<double>(left)));
    EXPECT_NEAR(certified / predicted, 1, 5 * spread);
    const std::uint64_t queries = static_cast<std::uint64_t>(runs(1)) * 1'000'000;
    std::uint64_t hits = 0;
    for (std::uint64_t i = 0; i < queries; ++i) hits += here.may_contain(mix64(n + i)) ? 1 : 0;
    EXPECT_GT(chance_of(hits, queries, certified), 1e-7) << hits << " at " << certified;
    EXPECT_NEAR(here.approximate_size(), static_cast<double>(left), 5 * here.estimated_keys().sigma);
  };
  compare(n);
  EXPECT_LE(here.expected_fpr(), 0.02);

  EXPECT_EQ(here.remove(std::span<const std::uint64_t>(keys).first(n / 2)), n / 2);

  compare(n / 2);
  counting_filter<std::uint64_t> of_the_others(g);
  of_the_others.insert(std::span<const std::uint64_t>(keys).last(n / 2));
  ASSERT_EQ(layouts::counting::cells_full(here.bytes()), 0u);
  EXPECT_TRUE(std::ranges::equal(here.bytes(), of_the_others.bytes()));
}

TEST(CountingRate, PassesTheFillCheckWithoutTakingCopiesForMissingKeys) {
  const geometry g = layouts::counting::geometry_for(10'000, 0.01);
  counting_filter<std::uint64_t> honest(g), repeated(g);
  for (std::uint64_t key = 0; key < 10'000; ++key) honest.insert(key);
  for (std::uint64_t key = 0; key < 10'000; ++key) repeated.insert(key / 2);
  const auto audited = [](const auto& f, std::uint64_t count) {
    return check_fill(f.parameters(), count, measure_fill(f.parameters(), f.bytes()).ones);
  };

  EXPECT_TRUE(audited(honest, 10'000).conclusive);
  EXPECT_FALSE(audited(honest, 10'000).is_inconsistent());
  EXPECT_TRUE(audited(honest, 5000).is_inconsistent());
  EXPECT_FALSE(audited(repeated, 10'000).conclusive);
  EXPECT_FALSE(audited(repeated, 10'000).is_inconsistent());
}

TEST(CountingRate, CountsCellsInUseAndFullOnesAsOneByOne) {
  std::mt19937_64 random(7);
  std::vector<std::uint8_t> bytes(64 * 9);
  for (const unsigned mask : {0xFFu, 0x33u, 0x0Fu, 0xF0u, 0u}) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>((random() | (random() & 0x88)) & mask);
    std::uint64_t used = 0, full = 0, sum = 0;
    for (std::uint64_t cell = 0; cell < 2 * bytes.size(); ++cell) {
      const unsigned value = cell % 2 == 0 ? bytes[cell / 2] % 16u : bytes[cell / 2] / 16u;
      used += value != 0 ? 1 : 0;
      full += value == 15 ? 1 : 0;
      sum += value;
      EXPECT_EQ(layouts::counting::counter(bytes.data(), cell), value);
    }

    EXPECT_EQ(layouts::counting::cells_used(bytes), used);
    EXPECT_EQ(layouts::counting::cells_full(bytes), full);
    EXPECT_NEAR(layouts::counting::copies_in({8 * bytes.size(), 1}, bytes), static_cast<double>(sum), 1e-6);
  }
  const std::vector<std::uint8_t> all(64 * 3, 0xFF);
  EXPECT_EQ(layouts::counting::cells_used(all), 384u);
  EXPECT_EQ(layouts::counting::cells_full(all), 384u);
}

}  // namespace
}  // namespace bloomery
