// Estimates from set bits: their standard deviations, compared with all placements of a few keys and with thousands of
// filters.
//
// Z zeros of m bits, n keys, k probes, B blocks of b bits; J is Jaccard's index, shared keys over all keys.
#include <bloomery/measure.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/params.hpp>
#include <bloomery/scheme.hpp>

#include "math/occupancy.hpp"
#include "registry/tables.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

#include <bit>
#include <cstdio>
#include <cstdlib>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr double infinite = std::numeric_limits<double>::infinity();

// BLOOMERY_TABLES=1: what was found is printed.
bool wants_tables() { return std::getenv("BLOOMERY_TABLES") != nullptr; }

// ---- the spread of zeros --------------------------------------------------------------------------------------------

// Every way of one key to set bits, as masks; all are equally likely.
std::vector<std::uint64_t> ways_of_a_key(const occupancy& o) {
  std::vector<std::uint64_t> ways;
  for (std::uint64_t block = 0; block < o.blocks; ++block) {
    std::vector<std::uint64_t> in_block{0};
    const std::uint64_t choices = o.word_bits != 0 ? o.block_bits / o.word_bits : o.probes;
    for (std::uint64_t choice = 0; choice < choices; ++choice) {
      const std::uint64_t first = block * o.block_bits + (o.word_bits != 0 ? choice * o.word_bits : 0);
      const std::uint64_t count = o.word_bits != 0 ? o.word_bits : o.block_bits;
      std::vector<std::uint64_t> more;
      for (const std::uint64_t mask : in_block) {
        for (std::uint64_t bit = first; bit < first + count; ++bit) more.push_back(mask | std::uint64_t{1} << bit);
      }
      in_block = more;
    }
    ways.insert(ways.end(), in_block.begin(), in_block.end());
  }
  return ways;
}

struct moments {
  double mean = 0, variance = 0;
};

// Of the zeros, over all ways to place n keys.
moments zeros_by_enumeration(const occupancy& o, std::uint64_t n) {
  const std::vector<std::uint64_t> ways = ways_of_a_key(o);
  const auto m = static_cast<int>(o.blocks * o.block_bits);
  double all = 0, sum = 0, squares = 0;
  const auto place = [&](const auto& self, std::uint64_t left, std::uint64_t set) -> void {
    if (left == 0) {
      const double zeros = m - std::popcount(set);
      ++all;
      sum += zeros;
      squares += zeros * zeros;
      return;
    }
    for (const std::uint64_t way : ways) self(self, left - 1, set | way);
  };
  place(place, n, 0);
  return {sum / all, squares / all - sum / all * (sum / all)};
}

TEST(SpreadOfZeros, IsThatOfAllWaysToPlaceKeys) {
  const occupancy cases[] = {
      // Bits anywhere in a block: classic, blocked, blocked_page.
      {1, 2, 0, 1},
      {1, 2, 0, 2},
      {1, 3, 0, 2},
      {1, 5, 0, 3},
      {1, 12, 0, 2},
      {2, 1, 0, 1},
      {3, 1, 0, 2},
      {2, 2, 0, 1},
      {2, 2, 0, 3},
      {2, 4, 0, 2},
      {3, 3, 0, 2},
      {5, 4, 0, 1},
      // A bit in each word: split_block, split_block512.
      {1, 4, 2, 2},
      {1, 6, 3, 2},
      {1, 6, 2, 3},
      {2, 4, 2, 2},
      {2, 6, 3, 2},
      {3, 6, 2, 3},
      {4, 3, 3, 1},
  };
  for (const occupancy& o : cases) {
    for (const std::uint64_t n : {1u, 2u, 3u}) {
      SCOPED_TRACE(testing::Message() << o.blocks << " blocks of " << o.block_bits << " bits, words of " << o.word_bits
                                      << ", k " << o.probes << ", n " << n);
      const moments zeros = zeros_by_enumeration(o, n);

      const auto mean = static_cast<double>(static_cast<long double>(o.blocks * o.block_bits) *
                                            std::exp(static_cast<long double>(n) * log_of_staying_clear(o)));
      const auto spread = static_cast<double>(relative_variance_of_zeros(o, static_cast<long double>(n)));

      EXPECT_NEAR(mean, zeros.mean, 1e-12);
      EXPECT_NEAR(spread * mean * mean, zeros.variance, 1e-11);
    }
  }
}

TEST(SpreadOfZeros, IsNoneWithoutKeys) {
  EXPECT_EQ(relative_variance_of_zeros({1, 1000, 0, 7}, 0), 0);
  EXPECT_EQ(relative_variance_of_zeros({100, 256, 32, 8}, 0), 0);
}

params params_of(const char* layout, const geometry& g) {
  return {.layout = layout, .hash = "mix", .keys = key_kind::u64le, .geometry = g};
}

// sigma = sqrt(m (e^r - 1 - r)) / k, r = kn/m.  [Whang, Vander-Zanden & Taylor 1990; Swamidass & Baldi 2007]
TEST(EstimatedKeys, OfClassicHaveTheErrorOfLinearCounting) {
  for (const std::uint64_t m : {std::uint64_t{1} << 20, std::uint64_t{1} << 33}) {
    for (const std::uint32_t k : {1u, 4u, 8u}) {
      for (const double r : {0.01, 0.1, 0.5, 1.0, 3.0}) {
        const auto bits = static_cast<double>(m);
        const auto ones = static_cast<std::uint64_t>(bits * -std::expm1(-r));

        const estimate keys = estimated_keys(params_of("classic", {m, k}), ones);

        EXPECT_NEAR(keys.value * k / bits / r, 1, 2e-4);
        EXPECT_NEAR(keys.sigma / (std::sqrt(bits * (std::exp(r) - 1 - r)) / k), 1, 2e-3) << "m " << m << ", r " << r;
      }
    }
  }
}

// In blocks keys fall unevenly, which the number of keys does not mind but its error does.
TEST(EstimatedKeys, FollowFromTheClearBitsAndAreLessSureInSmallBlocks) {
  for (const layout_row& row : layout_rows()) {
    const geometry g{std::uint64_t{1} << 20, 8};
    const params p = params_of(row.name.data(), g);
    const auto m = static_cast<double>(g.bits);
    const double b = row.block_bits == 0 ? m : row.block_bits;
    const bool has_words = row.name == "split_block" || row.name == "split_block512";
    const double q = has_words ? 8 / b : -std::expm1(8 * std::log1p(-1 / b));  // a key sets a given bit of its block
    for (const std::uint64_t ones : {1u, 8u, 1000u, 500'000u, 1'000'000u}) {
      const estimate keys = estimated_keys(p, ones);
      const estimate of_classic = estimated_keys(params_of("classic", g), ones);

      const double expected = std::log1p(-static_cast<double>(ones) / m) / std::log1p(-q * b / m);
      EXPECT_NEAR(keys.value / expected, 1, 1e-9) << row.name << ", " << ones;
      if (ones > 1000) {
        EXPECT_GE(keys.sigma, of_classic.sigma * 0.99) << row.name << ", " << ones;
      }
    }
  }
}

TEST(EstimatedKeys, AreNoneInAnEmptyFilterAndInfiniteInAFullOne) {
  for (const layout_row& row : layout_rows()) {
    const params p = params_of(row.name.data(), {std::uint64_t{1} << 16, 8});

    const estimate none = estimated_keys(p, 0);
    const estimate all = estimated_keys(p, p.geometry.bits);
    const estimate nearly_all = estimated_keys(p, p.geometry.bits - 1);

    EXPECT_EQ(none.value, 0) << row.name;
    EXPECT_EQ(none.sigma, 0) << row.name;
    EXPECT_EQ(all.value, infinite) << row.name;
    EXPECT_EQ(all.sigma, infinite) << row.name;
    EXPECT_TRUE(std::isfinite(nearly_all.value) && std::isfinite(nearly_all.sigma)) << row.name;
  }
  EXPECT_EQ(estimated_keys(params_of("classic", {1, 1}), 0).value, 0);
  EXPECT_EQ(estimated_keys(params_of("classic", {1, 1}), 1).value, infinite);
}

TEST(EstimatedKeys, OfASchemeAreThoseOfClassicAndOthersAreRefused) {
  const geometry g{64'000, 5};

  for (const scheme& row : schemes()) {
    const estimate keys = estimated_keys({.scheme = std::string(row.name), .geometry = g}, 30'000);

    EXPECT_EQ(keys.value, estimated_keys(params_of("classic", g), 30'000).value);
    EXPECT_EQ(keys.sigma, estimated_keys(params_of("classic", g), 30'000).sigma);
  }
  EXPECT_EQ(code_of([&] { estimated_keys(params_of("nonesuch", g), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { expected_ones({}, 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { estimate_overlap({.scheme = "nonesuch", .geometry = g}, {}); }), errc::invalid_argument);
}

TEST(ExpectedOnes, AreTheInverseOfEstimatedKeys) {
  for (const layout_row& row : layout_rows()) {
    const params p = params_of(row.name.data(), {std::uint64_t{1} << 20, 8});
    for (const double n : {10.0, 1000.0, 100'000.0, 500'000.0}) {
      const estimate ones = expected_ones(p, n);

      const estimate keys = estimated_keys(p, static_cast<std::uint64_t>(std::llround(ones.value)));

      const double keys_a_one = n < 5e5 ? 1 : 40;
      EXPECT_NEAR(keys.value, n, keys_a_one) << row.name;
      const double ones_a_key = (expected_ones(p, 1.001 * n).value - expected_ones(p, 0.999 * n).value) / (0.002 * n);
      EXPECT_NEAR(ones.sigma / keys.sigma / ones_a_key, 1, 0.05) << row.name << ", " << n;
    }
    EXPECT_EQ(expected_ones(p, 0).value, 0);
    EXPECT_EQ(expected_ones(p, 0).sigma, 0);
    EXPECT_NEAR(expected_ones(p, 1e12).value, 0x1p20, 1e-3);
  }
}

TEST(Estimate, IsNoiseBelowThreeStandardDeviations) {
  EXPECT_TRUE((estimate{2.99, 1}.is_noise()));
  EXPECT_FALSE((estimate{3, 1}.is_noise()));
  EXPECT_TRUE((estimate{0, 1}.is_noise()));
  EXPECT_FALSE((estimate{0, 0}.is_noise()));  // certainly none
  EXPECT_TRUE((estimate{0, infinite}.is_noise()));
  EXPECT_TRUE((estimate{std::nan(""), 1}.is_noise()));
  EXPECT_EQ((estimate{10, 1.5}.margin()), 3);
}

// ---- a thousand filters ---------------------------------------------------------------------------------------------

// Mean and standard deviation of what is added.
class sample {
 public:
  void add(double x) {
    ++count_;
    const double step = x - mean_;
    mean_ += step / count_;
    squares_ += step * (x - mean_);
  }
  double mean() const { return mean_; }
  double deviation() const { return std::sqrt(squares_ / (count_ - 1)); }
  double error_of_mean() const { return deviation() / std::sqrt(count_); }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

constexpr int trials = 1000;  // the measured standard deviation has a relative error of 2.2%

// Keys that no other call returns.
std::span<const std::uint64_t> fresh_keys(std::size_t count) {
  static std::uint64_t next = 0;
  static std::vector<std::uint64_t> keys;
  keys.resize(count);
  std::iota(keys.begin(), keys.end(), next);
  next += count;
  return keys;
}

std::vector<params> all_layouts_with(const geometry& g) {
  std::vector<params> all;
  for (const layout_row& row : layout_rows()) all.push_back(params_of(row.name.data(), g));
  return all;
}

TEST(StatisticOfEstimatedKeys, IsUnbiasedWithTheReportedSigma) {
  const geometry g{std::uint64_t{1} << (bloomery_tests::is_long() ? 20 : 17), 8};
  const double capacity = static_cast<double>(g.bits) / 11.5;
  for (const params& p : all_layouts_with(g)) {
    any_filter seen(p);
    for (const double load : {0.1, 0.5, 1.0, 2.0}) {
      SCOPED_TRACE(testing::Message() << p.layout << ", load " << load);
      const auto n = static_cast<std::size_t>(load * capacity);
      sample errors, sigmas, ones;
      for (int trial = 0; trial < trials; ++trial) {
        seen.clear();
        seen.insert(fresh_keys(n));
        const std::uint64_t set = count_ones(seen.bytes());

        const estimate keys = estimated_keys(p, set);

        errors.add(keys.value - static_cast<double>(n));
        sigmas.add(keys.sigma);
        ones.add(static_cast<double>(set));
      }
      const estimate expected = expected_ones(p, static_cast<double>(n));
      if (wants_tables()) {
        std::printf("%-12s load %.1f: bias %+7.2f +- %5.2f, sd %7.2f, sigma %7.2f (%.3f)\n", p.layout.c_str(), load,
                    errors.mean(), errors.error_of_mean(), errors.deviation(), sigmas.mean(),
                    errors.deviation() / sigmas.mean());
      }
      EXPECT_NEAR(errors.mean(), 0, 4 * errors.error_of_mean());
      EXPECT_NEAR(errors.deviation() / sigmas.mean(), 1, 0.1);
      EXPECT_NEAR(ones.mean(), expected.value, 4 * ones.error_of_mean());
      EXPECT_NEAR(ones.deviation() / expected.sigma, 1, 0.1);
    }
  }
}

// ---- what two filters share -----------------------------------------------------------------------------------------

TEST(SharedOnes, AreCountedBitByBit) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0u, 1u, 7u, 100u, 16'383u, 16'384u, 16'385u, 40'000u}) {
    std::vector<std::uint8_t> a(size), b(size);
    for (std::uint8_t& byte : a) byte = static_cast<std::uint8_t>(random());
    for (std::uint8_t& byte : b) byte = static_cast<std::uint8_t>(random() & random());
    shared_ones expected;
    for (std::uint64_t x = 0; x < 8 * size; ++x) {
      expected.a += test_bit(a.data(), x) ? 1 : 0;
      expected.b += test_bit(b.data(), x) ? 1 : 0;
      expected.both += test_bit(a.data(), x) && test_bit(b.data(), x) ? 1 : 0;
    }

    const shared_ones ones = count_shared(a, b);

    EXPECT_EQ(ones.a, expected.a) << size;
    EXPECT_EQ(ones.b, expected.b) << size;
    EXPECT_EQ(ones.both, expected.both) << size;
    EXPECT_EQ(ones.either(), expected.a + expected.b - expected.both);
  }
  const std::vector<std::uint8_t> a(8), b(9);
  EXPECT_EQ(code_of([&] { count_shared(a, b); }), errc::invalid_argument);
}

// Two sets of n keys each that share 2nJ / (1 + J) keys, so that their Jaccard index is J.
TEST(StatisticOfOverlap, IsUnbiasedWithTheReportedSigma) {
  const geometry g{std::uint64_t{1} << (bloomery_tests::is_long() ? 20 : 17), 8};
  const auto n = static_cast<std::size_t>(static_cast<double>(g.bits) * 90'000 / 0x1p20);
  for (const params& p : all_layouts_with(g)) {
    any_filter a(p), b(p);
    for (const double j : {0.5, 0.1, 0.01, 0.0}) {
      SCOPED_TRACE(testing::Message() << p.layout << ", J " << j);
      const auto shared = static_cast<std::size_t>(2 * static_cast<double>(n) * j / (1 + j));
      sample both, sigma_of_both, jaccard, sigma_of_jaccard, either, sigma_of_either, by_chance;
      for (int trial = 0; trial < trials; ++trial) {
        a.clear();
        b.clear();
        const std::span<const std::uint64_t> keys = fresh_keys(2 * n - shared);
        a.insert(keys.first(n));
        b.insert(keys.last(n));

        const shared_ones ones = count_shared(a.bytes(), b.bytes());
        const overlap o = estimate_overlap(p, ones);

        both.add(o.keys_a.value + o.keys_b.value - o.keys_either.value);  // not yet cut off at 0
        sigma_of_both.add(o.keys_both.sigma);
        jaccard.add((o.keys_a.value + o.keys_b.value) / o.keys_either.value - 1);
        sigma_of_jaccard.add(o.jaccard.sigma);
        either.add(o.keys_either.value);
        sigma_of_either.add(o.keys_either.sigma);
        by_chance.add(o.shared_by_chance - static_cast<double>(ones.both));
        ASSERT_EQ(o.keys_both.value, std::max(0.0, o.keys_a.value + o.keys_b.value - o.keys_either.value));
        ASSERT_NEAR(o.jaccard.value, o.keys_both.value / o.keys_either.value, 1e-12);
      }
      const double true_j = static_cast<double>(shared) / static_cast<double>(2 * n - shared);
      if (wants_tables()) {
        std::printf(
            "%-12s J %.2f: both bias %+6.2f +- %5.2f, sd %6.2f, sigma %6.2f (%.3f); J bias %+.5f, sd %.5f (%.3f)\n",
            p.layout.c_str(), j, both.mean() - static_cast<double>(shared), both.error_of_mean(), both.deviation(),
            sigma_of_both.mean(), both.deviation() / sigma_of_both.mean(), jaccard.mean() - true_j, jaccard.deviation(),
            jaccard.deviation() / sigma_of_jaccard.mean());
      }
      EXPECT_NEAR(both.mean(), static_cast<double>(shared), 4 * both.error_of_mean());
      EXPECT_NEAR(both.deviation() / sigma_of_both.mean(), 1, 0.1);
      EXPECT_NEAR(jaccard.mean(), true_j, 4 * jaccard.error_of_mean());
      EXPECT_NEAR(jaccard.deviation() / sigma_of_jaccard.mean(), 1, 0.1);
      EXPECT_NEAR(either.mean(), static_cast<double>(2 * n - shared), 4 * either.error_of_mean());
      EXPECT_NEAR(either.deviation() / sigma_of_either.mean(), 1, 0.1);
      if (shared == 0) {
        EXPECT_NEAR(by_chance.mean(), 0, 4 * by_chance.error_of_mean());
      }
    }
  }
}

// Without a key in common three of a thousand pairs, or one more or less, seem to have some: one side of three sigma.
TEST(StatisticOfOverlap, OfUnrelatedFiltersIsNoise) {
  const params p = params_of("classic", {std::uint64_t{1} << 16, 8});
  any_filter a(p), b(p);
  int noise = 0;
  for (int trial = 0; trial < trials; ++trial) {
    a.clear();
    b.clear();
    a.insert(fresh_keys(5600));
    b.insert(fresh_keys(5600));

    noise += estimate_overlap(p, count_shared(a.bytes(), b.bytes())).keys_both.is_noise() ? 1 : 0;
  }

  EXPECT_GE(noise, trials - 8);
}

TEST(Overlap, OfOneFilterWithItselfIsAllOfIt) {
  for (const params& p : all_layouts_with({std::uint64_t{1} << 18, 8})) {
    any_filter seen(p);
    seen.insert(fresh_keys(20'000));

    const overlap o = estimate_overlap(p, count_shared(seen.bytes(), seen.bytes()));

    EXPECT_EQ(o.keys_both.value, o.keys_a.value) << p.layout;
    EXPECT_EQ(o.jaccard.value, 1) << p.layout;
    EXPECT_NEAR(o.keys_both.sigma / o.keys_a.sigma, 1, 1e-6) << p.layout;
    EXPECT_NEAR(o.jaccard.sigma, 0, 1e-6) << p.layout;
    EXPECT_FALSE(o.keys_both.is_noise());
  }
}

TEST(Overlap, OfEmptyFiltersIsNone) {
  for (const params& p : all_layouts_with({std::uint64_t{1} << 18, 8})) {
    const overlap both_empty = estimate_overlap(p, {0, 0, 0});
    const overlap one_empty = estimate_overlap(p, {0, 100'000, 0});

    EXPECT_EQ(both_empty.keys_either.value, 0) << p.layout;
    EXPECT_EQ(both_empty.keys_both.value, 0) << p.layout;
    EXPECT_EQ(both_empty.keys_both.sigma, 0) << p.layout;
    EXPECT_EQ(both_empty.jaccard.value, 0) << p.layout;
    EXPECT_EQ(both_empty.shared_by_chance, 0) << p.layout;
    EXPECT_EQ(one_empty.keys_both.value, 0) << p.layout;
    EXPECT_EQ(one_empty.keys_both.sigma, 0) << p.layout;
    EXPECT_EQ(one_empty.jaccard.value, 0) << p.layout;
    EXPECT_EQ(one_empty.jaccard.sigma, 0) << p.layout;
  }
}

TEST(Overlap, OfAFullFilterIsUnknown) {
  for (const params& p : all_layouts_with({std::uint64_t{1} << 18, 8})) {
    const std::uint64_t m = p.geometry.bits;

    const overlap one_full = estimate_overlap(p, {m, 1000, 1000});
    const overlap full_together = estimate_overlap(p, {m - 1000, m - 1000, m - 2000});

    EXPECT_EQ(one_full.keys_a.value, infinite) << p.layout;
    EXPECT_EQ(one_full.keys_either.value, infinite) << p.layout;
    for (const overlap& o : {one_full, full_together}) {
      EXPECT_TRUE(o.keys_both.is_noise()) << p.layout;
      EXPECT_EQ(o.jaccard.value, 0) << p.layout;
      EXPECT_EQ(o.jaccard.sigma, infinite) << p.layout;
    }
  }
}

// A file with a wrong count of bits must not produce NaN.
TEST(Overlap, OfMoreBitsThanThereAreIsThatOfFullFilters) {
  const params p = params_of("classic", {1000, 3});

  const overlap o = estimate_overlap(p, {1008, 1008, 1008});

  EXPECT_EQ(o.keys_both.value, 0);
  EXPECT_EQ(o.keys_both.sigma, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(o.keys_both.is_noise() && o.jaccard.is_noise());
}

// Ten values lead to three blocks: floor(3 v / 10) is block 0 for four of them, and 1 and 2 for three each.
TEST(Occupancy, CountsThatBlocksAreMetByUnequallyManyValues) {
  const occupancy uneven{3, 8, 4, 2, 10};
  const double n = 12;
  double clear = 0;
  for (const double values : {4.0, 3.0, 3.0}) clear += 8 * std::pow(1 - values / 10 / 4, n);

  const estimate ones = ones_of_keys(uneven, n);
  const estimate even = ones_of_keys({3, 8, 4, 2, 0}, n);

  EXPECT_NEAR(ones.value, 24 - clear, 1e-9);
  EXPECT_GT(std::abs(even.value - ones.value), 0.01);
  EXPECT_NEAR(keys_from_zeros(uneven, 10).value, keys_from_zeros({3, 8, 4, 2, 0}, 10).value, 0.5);
  EXPECT_NEAR(ones_of_keys(uneven, keys_from_zeros(uneven, 10).value).value, 14, 1e-6);
}

}  // namespace
}  // namespace bloomery
