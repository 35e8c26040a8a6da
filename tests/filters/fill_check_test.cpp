// Consistency checks: filters with correct counts pass, with few or many keys; chosen keys, wrong counts and wrong bits
// fail.
#include <bloomery/measure.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>

#include "registry/tables.hpp"
#include "support/test.hpp"

#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;

params of_integers(const std::string& layout, std::uint64_t capacity, double rate = 0.01) {
  return complete({.layout = layout, .hash = "mix", .keys = key_kind::u64le, .capacity = capacity, .target_fpr = rate});
}

// The audits of one kind of filter. What its keys let expect depends on their count alone, and is worked out once.
class auditor {
 public:
  explicit auditor(const params& p) : params_(p) {}

  fill_check operator()(std::uint64_t counted, std::uint64_t ones) {
    const auto [at, is_new] = known_.try_emplace(counted);
    if (is_new) at->second = check_fill(params_, counted, ones);
    fill_check result = at->second;
    result.ones = ones;
    return result;
  }

 private:
  params params_;
  std::map<std::uint64_t, fill_check> known_;
};

// Keys that no other call has given.
std::vector<std::uint64_t> fresh_keys(std::size_t count) {
  static std::uint64_t next = 0;
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), next);
  next += count;
  return keys;
}

any_filter filled(const params& p, std::size_t count) {
  any_filter filter(p);
  filter.insert(fresh_keys(count));
  return filter;
}

std::uint64_t ones_of(const any_filter& filter) { return count_ones(filter.bytes()); }

fill_check audit_of(const any_filter& filter) {
  return check_fill(filter.parameters(), filter.insert_count(), ones_of(filter));
}

// The most keys, of 1, 2, 4 .. times the capacity, that leave the rate below a half.
std::uint64_t keys_for_half(const params& p) {
  std::uint64_t keys = p.capacity;
  while (expected_fpr(p, 2 * keys) < 0.45) keys *= 2;
  return keys;
}

// ---- filters with correct counts ------------------------------------------------------------------------------------

// Some 100,000 filters, each of which may alarm with a probability of 2e-9.
TEST(StatisticOfFillChecks, OfCorrectFiltersPassesFromOneKeyUpToARateOfAHalf) {
  std::uint64_t filters = 0;
  for (const layout_row& layout : layout_rows()) {
    for (const std::uint64_t capacity : {1u, 100u, 10'000u, 1'000'000u}) {
      const params p = of_integers(std::string(layout.name), capacity);
      auditor audits(p);
      any_filter filter(p);
      std::vector<std::uint64_t> counts = {
          1, 2, 10, 50, 100, 1000, capacity / 10, capacity, 2 * capacity, keys_for_half(p)};
      std::sort(counts.begin(), counts.end());
      counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
      for (const std::uint64_t n : counts) {
        if (n == 0 || expected_fpr(p, n) > 0.45) continue;
        // As many as cost some million keys' time; each costs its bits, too.
        const std::uint64_t cost = 200 + n + p.geometry.bits / 500;
        const std::uint64_t trials = std::clamp<std::uint64_t>(2'000'000 / cost, 2, 2000);
        for (std::uint64_t trial = 0; trial < trials; ++trial) {
          filter.clear();
          filter.insert(fresh_keys(n));

          const fill_check result = audits(filter.insert_count(), ones_of(filter));

          ASSERT_TRUE(result.conclusive) << layout.name << " for " << capacity << ", " << n << " keys";
          ASSERT_FALSE(result.is_inconsistent())
              << layout.name << " for " << capacity << ", " << n << " keys: " << result.deviation() << " deviations of "
              << result.expected.sigma;
          ++filters;
        }
      }
    }
  }
  EXPECT_GT(filters, 60'000u);
}

// The deviations are unbiased and have the reported standard deviation, also where many keys are lost.
TEST(StatisticOfFillChecks, DeviationsOfCorrectFiltersMatchTheReportedSigma) {
  constexpr int trials = 300;
  for (const layout_row& layout : layout_rows()) {
    const params p = of_integers(std::string(layout.name), 2000);
    auditor audits(p);
    any_filter filter(p);
    for (const std::uint64_t n : {1000u, 2000u, 5000u}) {
      double sum = 0;
      double squares = 0;
      for (int trial = 0; trial < trials; ++trial) {
        filter.clear();
        filter.insert(fresh_keys(n));

        const double deviation = audits(filter.insert_count(), ones_of(filter)).deviation();

        sum += deviation;
        squares += deviation * deviation;
      }
      EXPECT_NEAR(sum / trials, 0, 5 / std::sqrt(double{trials})) << layout.name << ", " << n << " keys";
      EXPECT_NEAR(squares / trials, 1, 0.5) << layout.name << ", " << n << " keys";
    }
  }
}

TEST(FillCheck, OfAnEmptyFilterIsExact) {
  for (const layout_row& layout : layout_rows()) {
    const params p = of_integers(std::string(layout.name), 1000);

    const fill_check empty = check_fill(p, 0, 0);
    const fill_check with_bits = check_fill(p, 0, 8);

    EXPECT_TRUE(empty.conclusive);
    EXPECT_FALSE(empty.is_inconsistent());
    EXPECT_EQ(empty.deviation(), 0);
    EXPECT_TRUE(with_bits.is_inconsistent());
    EXPECT_EQ(with_bits.deviation(), INFINITY);
  }
}

// ---- filters with wrong counts --------------------------------------------------------------------------------------

TEST(FillCheck, AlarmsForKeysThatWereChosenToSetClearBitsOnly) {
  for (const char* const layout : {"classic", "split_block"}) {
    for (const std::uint64_t n : {1000u, 5000u}) {
      any_filter filter(of_integers(layout, 10'000));
      while (filter.insert_count() < n) {
        const std::uint64_t key = fresh_keys(1).front();
        const std::vector<std::uint64_t> cells = filter.cells(key);
        const std::uint8_t* const bits = filter.bytes().data();
        if (std::none_of(cells.begin(), cells.end(), [&](std::uint64_t cell) { return test_bit(bits, cell); })) {
          filter.insert(key);
        }
      }

      const fill_check polluted = audit_of(filter);

      EXPECT_TRUE(polluted.is_inconsistent()) << layout << ", " << n << " keys: " << polluted.deviation();
      EXPECT_GT(polluted.deviation(), 6);
    }
  }
}

TEST(StatisticOfFillChecks, AlarmForHalfAndForTwiceTheCount) {
  for (const layout_row& layout : layout_rows()) {
    for (const std::uint64_t n : {10u, 100u, 1000u, 10'000u}) {
      const any_filter filter = filled(of_integers(std::string(layout.name), 10'000), n);
      const std::uint64_t ones = ones_of(filter);

      const fill_check half = check_fill(filter.parameters(), filter.insert_count() / 2, ones);
      const fill_check twice = check_fill(filter.parameters(), filter.insert_count() * 2, ones);

      EXPECT_TRUE(half.is_inconsistent() && half.deviation() > 0) << layout.name << ", " << n << " keys";
      EXPECT_TRUE(twice.is_inconsistent() && twice.deviation() < 0) << layout.name << ", " << n << " keys";
    }
  }
}

TEST(StatisticOfFillChecks, AlarmForSomeHundredBitsSetOrClearedAtRandom) {
  std::mt19937_64 random(1);
  for (const layout_row& layout : layout_rows()) {
    const any_filter filter = filled(of_integers(std::string(layout.name), 10'000), 1000);
    const params& p = filter.parameters();
    for (const bool set : {true, false}) {
      std::vector<std::uint8_t> bits(filter.bytes().begin(), filter.bytes().end());
      for (int changed = 0; changed < 300;) {
        const std::uint64_t cell = random() % p.geometry.bits;
        if (test_bit(bits.data(), cell) == set) continue;
        bits[cell / 8] ^= static_cast<std::uint8_t>(1u << cell % 8);
        ++changed;
      }

      const fill_check changed = check_fill(p, filter.insert_count(), count_ones(bits));

      EXPECT_TRUE(changed.is_inconsistent()) << layout.name << ": " << changed.deviation();
      EXPECT_EQ(changed.deviation() > 0, set);
    }
  }
}

// ---- filters that cannot be checked ---------------------------------------------------------------------------------

TEST(FillCheck, OfSchemesManyProbesAndNearlyFullFiltersIsNotConclusive) {
  const params line = of_integers("split_block512", 1000);
  const params scheme = {.scheme = "guava", .geometry = {64'000, 7}};
  const params many_probes = {.layout = "classic", .hash = "xxh3", .geometry = {64'000, 65}};
  const params most_probes = {.layout = "classic", .hash = "xxh3", .geometry = {64'000, 64}};
  std::uint64_t too_many = 1000;
  while (expected_fpr(line, too_many) <= 0.5) too_many += 100;
  const auto rate = [&](std::uint64_t n) { return expected_fpr(line, n); };

  const fill_check of_scheme = check_fill(scheme, 1000, 64'000);
  const fill_check of_many = check_fill(many_probes, 100, 64'000);
  const fill_check of_full =
      check_fill(line, expected_insertions(static_cast<double>(too_many), rate), line.geometry.bits);

  for (const fill_check& one : {of_scheme, of_many, of_full}) {
    EXPECT_FALSE(one.conclusive);
    EXPECT_FALSE(one.is_inconsistent());
  }
  EXPECT_TRUE(check_fill(most_probes, 100, 64'000).is_inconsistent());
  EXPECT_EQ(code_of([&] { check_fill({.layout = "nonesuch", .geometry = {64, 3}}, 1, 1); }), errc::invalid_argument);
}

TEST(FillCheck, AlarmsForFewerBitsThanTheCountedKeysAloneWouldLeaveHoweverManyTheyAre) {
  for (const layout_row& layout : layout_rows()) {
    const params p = of_integers(std::string(layout.name), 1000);
    for (const std::uint64_t counted : {std::uint64_t{100'000}, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
      const fill_check of_empty = check_fill(p, counted, 0);
      const fill_check of_full = check_fill(p, counted, p.geometry.bits);

      EXPECT_TRUE(of_empty.is_inconsistent() && of_empty.deviation() < 0) << layout.name << ", " << counted;
      EXPECT_FALSE(of_full.is_inconsistent()) << layout.name << ", " << counted;
    }
  }
}

TEST(StatisticOfFillChecks, OfCorrectFiltersFarBeyondTheirCapacityPasses) {
  for (const layout_row& layout : layout_rows()) {
    any_filter filter(of_integers(std::string(layout.name), 500));
    for (int trial = 0; trial < 20; ++trial) {
      filter.clear();
      for (const std::uint64_t more : {1000u, 1000u, 1000u, 2000u, 5000u, 10'000u}) {
        filter.insert(fresh_keys(more));

        // Anew each time: whether it is conclusive depends on the bits.
        const fill_check result = audit_of(filter);

        ASSERT_FALSE(result.is_inconsistent()) << layout.name << ": " << result.deviation() << " deviations";
      }
    }
  }
}

// ---- very large filters, by formula ---------------------------------------------------------------------------------

// Sum of rate(0) .. rate(n - 1) by Simpson's rule, far finer than it needs.
double losses(const params& p, std::uint64_t n) {
  constexpr int steps = 512;
  long double sum = 0;
  for (int i = 0; i <= steps; ++i) {
    const int weight = i == 0 || i == steps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * static_cast<long double>(expected_fpr(p, n / steps * static_cast<std::uint64_t>(i)));
  }
  return static_cast<double>(sum / steps / 3 * static_cast<long double>(n));
}

TEST(HugeFillCheck, HasNoBias) {
  for (const layout_row& layout : layout_rows()) {
    for (const std::uint64_t capacity :
         {std::uint64_t{100'000'000}, std::uint64_t{1'000'000'000}, std::uint64_t{10'000'000'000}}) {
      const params p = of_integers(std::string(layout.name), capacity);
      for (const double fill : {0.5, 1.0, 1.7, 2.5}) {
        const auto n = static_cast<std::uint64_t>(fill * static_cast<double>(capacity));
        const auto counted = static_cast<std::uint64_t>(std::llround(static_cast<double>(n) - losses(p, n)));
        const auto ones = static_cast<std::uint64_t>(std::llround(expected_ones(p, static_cast<double>(n)).value));

        const fill_check result = check_fill(p, counted, ones);

        EXPECT_LT(std::abs(result.deviation()), 1) << layout.name << ", " << n << " keys of " << capacity;
        EXPECT_FALSE(result.is_inconsistent());
      }
    }
  }
}

}  // namespace
}  // namespace bloomery
