// Measured false-positive rates: their intervals, compared with published values and exact binomial sums; their keys;
// and the same result for any number of threads.
#include <bloomery/measure.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/params.hpp>
#include <bloomery/scheme.hpp>

#include "support/test.hpp"

#include <atomic>

namespace bloomery {
namespace {

// ---- intervals ------------------------------------------------------------------------------------------------------

TEST(Wilson, HasThePublishedIntervals) {
  struct {
    std::uint64_t hits, trials;
    double low, high;
  } const cases[] = {
      // [Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3; 95%]
      {81, 263, 0.2553, 0.3662},
      {15, 148, 0.0624, 0.1605},
      {0, 20, 0.0000, 0.1611},
      {1, 29, 0.0061, 0.1718},
  };
  for (const auto& c : cases) {
    const interval i = wilson(c.hits, c.trials);

    EXPECT_NEAR(i.low, c.low, 5e-5) << c.hits << " of " << c.trials;
    EXPECT_NEAR(i.high, c.high, 5e-5) << c.hits << " of " << c.trials;
  }
}

// Its definition: the ends are the p for which |hits/n - p| is z standard deviations sqrt(p (1-p) / n).
TEST(Wilson, EndsWhereTheHitsAreSoManyStandardDeviationsOff) {
  for (const std::uint64_t trials : {1u, 10u, 1000u, 40'000'000u}) {
    for (const double share : {0.0, 0.001, 0.3, 0.5, 0.999, 1.0}) {
      for (const double z : {1.0, 1.96, 4.0}) {
        const auto n = static_cast<double>(trials);
        const auto hits = static_cast<std::uint64_t>(std::llround(share * n));
        const double p = static_cast<double>(hits) / n;

        const interval i = wilson(hits, trials, z);

        EXPECT_TRUE(i.holds(p));
        if (hits > 0) {
          EXPECT_NEAR((p - i.low) / std::sqrt(i.low * (1 - i.low) / n) / z, 1, 1e-6) << hits << ", " << n;
        }
        if (hits < trials) {
          EXPECT_NEAR((i.high - p) / std::sqrt(i.high * (1 - i.high) / n) / z, 1, 1e-6) << hits;
        }
        if (hits == 0) {
          EXPECT_EQ(i.low, 0);
        }
        if (hits == trials) {
          EXPECT_EQ(i.high, 1);
        }
      }
    }
  }
}

TEST(Wilson, OfNothingTriedIsEverything) {
  const interval i = wilson(0, 0);

  EXPECT_EQ(i.low, 0);
  EXPECT_EQ(i.high, 1);
  EXPECT_TRUE(i.holds(0) && i.holds(1));
}

// How often the interval holds the truth, by the exact binomial distribution of the hits.
double coverage(std::uint64_t trials, double p, double z) {
  double covered = 0;
  const auto n = static_cast<double>(trials);
  for (std::uint64_t hits = 0; hits <= trials; ++hits) {
    const auto x = static_cast<double>(hits);
    const double weight = std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                                   (n - x) * std::log1p(-p));
    if (wilson(hits, trials, z).holds(p)) covered += weight;
  }
  return covered;
}

TEST(Wilson, HoldsTheTruthAsOftenAsItSays) {
  for (const std::uint64_t trials : {50u, 200u, 1000u, 3000u}) {
    double sum = 0;
    int count = 0;
    for (double p = 0.005; p < 1; p += 0.0199) {
      const double at_p = coverage(trials, p, 1.96);
      // It wavers from p to p, as every interval on counts does.
      if (p * static_cast<double>(trials) > 5) {
        EXPECT_GT(at_p, 0.92) << "p " << p << " of " << trials;
      }
      sum += at_p;
      ++count;
    }
    EXPECT_NEAR(sum / count, 0.95, 0.01) << trials;
  }
  EXPECT_NEAR(coverage(3000, 0.02, 4), 0.99994, 1e-4);
}

// ---- queries --------------------------------------------------------------------------------------------------------

TEST(QueriesToResolve, GiveTheRequestedRelativeError) {
  for (const double rate : {0.5, 0.01, 1e-3, 1e-5}) {
    for (const double relative : {0.5, 0.02, 0.003}) {
      for (const double z : {1.0, 4.0}) {
        const auto n = static_cast<double>(queries_to_resolve(rate, relative, z));

        const double deviation = std::sqrt(rate * (1 - rate) / n);  // binomial
        if (n > 100) {
          EXPECT_NEAR(z * deviation / (relative * rate), 1, 0.01) << rate << ", " << relative << ", " << z;
        }
      }
    }
  }
}

TEST(QueriesToResolve, AreAtLeastOneAndAtMost2To62) {
  const std::uint64_t most = std::uint64_t{1} << 62;

  EXPECT_EQ(queries_to_resolve(0.01, 0.02, 4), 3'960'000u);
  EXPECT_EQ(queries_to_resolve(0.001, 0.02, 4), 39'960'000u);
  EXPECT_EQ(queries_to_resolve(1, 0.02, 4), 1u);
  EXPECT_EQ(queries_to_resolve(0.9, 100, 1), 1u);
  EXPECT_EQ(queries_to_resolve(0, 0.02, 4), most);
  EXPECT_EQ(queries_to_resolve(1e-300, 0.02, 4), most);
  EXPECT_EQ(queries_to_resolve(std::numeric_limits<double>::quiet_NaN(), 0.02, 4), most);
}

// ---- chances --------------------------------------------------------------------------------------------------------

// P(lowest <= hits <= highest), term by term from the smallest.
double chance_between(std::uint64_t lowest, std::uint64_t highest, std::uint64_t trials, double rate) {
  std::vector<long double> chances(trials + 1);  // of each number of hits, after each further trial
  chances[0] = 1;
  for (std::uint64_t done = 0; done < trials; ++done) {
    for (std::uint64_t hits = done + 1; hits > 0; --hits) {
      chances[hits] = chances[hits] * (1 - static_cast<long double>(rate)) + chances[hits - 1] * rate;
    }
    chances[0] *= 1 - static_cast<long double>(rate);
  }
  long double sum = 0;
  for (std::uint64_t hits = lowest; hits <= highest; ++hits) sum += chances[hits];
  return static_cast<double>(sum);
}

TEST(ChanceOf, IsTheBinomialTailOnItsSideOfTheExpected) {
  for (const std::uint64_t trials : {1u, 2u, 17u, 300u}) {
    for (const double rate : {1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.9999}) {
      for (std::uint64_t hits = 0; hits <= trials; hits += trials < 20 ? 1 : 13) {
        const bool upwards = static_cast<double>(hits) >= static_cast<double>(trials) * rate;
        const double exact =
            upwards ? chance_between(hits, trials, trials, rate) : chance_between(0, hits, trials, rate);

        const double chance = chance_of(hits, trials, rate);

        EXPECT_LE(chance, 1);
        EXPECT_NEAR(chance, exact, 1e-9 * exact + 1e-300) << hits << " of " << trials << " at " << rate;
      }
    }
  }
}

TEST(ChanceOf, HasThePublishedValues) {
  const auto is = [](double chance, double known, double relative) {
    EXPECT_NEAR(chance / known, 1, relative) << chance << ", known: " << known;
  };

  is(chance_of(8, 10, 0.5), 56.0 / 1024, 1e-12);
  is(chance_of(2, 10, 0.5), 56.0 / 1024, 1e-12);
  is(chance_of(0, 1000, 0.5), 0x1p-1000, 1e-9);
  is(chance_of(1000, 1000, 0.5), 0x1p-1000, 1e-9);
  is(chance_of(1, 1000, 1e-5), -std::expm1(1000 * std::log1p(-1e-5)), 1e-12);
  is(chance_of(1, 1'000'000'000, 1e-12), -std::expm1(1e9 * std::log1p(-1e-12)), 1e-4);
  is(chance_of(0, 1'000'000'000, 1e-9), std::exp(-1.0), 1e-4);
  // [Poisson, mean 10: P(X >= 20) = 0.0034543, P(X <= 2) = 0.0027694]
  is(chance_of(20, 1'000'000'000, 1e-8), 0.0034543, 1e-4);
  is(chance_of(2, 1'000'000'000, 1e-8), 0.0027694, 1e-4);
  // Five standard deviations of the normal distribution, 2.8665e-7; its skewness is negligible here.
  is(chance_of(500'000'000 + 79'057, 1'000'000'000, 0.5), 2.8665e-7, 2e-3);
  is(chance_of(500'000'000 - 79'057, 1'000'000'000, 0.5), 2.8665e-7, 2e-3);
}

TEST(ChanceOf, OfCertainEventsIsOneAndOfImpossibleEventsZero) {
  EXPECT_EQ(chance_of(0, 0, 0.5), 1);
  EXPECT_EQ(chance_of(0, 1000, 0), 1);
  EXPECT_EQ(chance_of(1, 1000, 0), 0);
  EXPECT_EQ(chance_of(1000, 1000, 1), 1);
  EXPECT_EQ(chance_of(999, 1000, 1), 0);
  EXPECT_EQ(chance_of(0, 1'000'000'000, 0.5), 0);
  EXPECT_EQ(chance_of(1'000'000'000, 1'000'000'000, 1e-12), 0);
}

TEST(ChanceOf, OfTheExpectedNumberIsAboutAHalf) {
  for (const double rate : {0.5, 0.01, 1e-3}) {
    for (const std::uint64_t trials : {1'000'000u, 1'000'000'000u}) {
      const auto expected = static_cast<std::uint64_t>(std::llround(rate * static_cast<double>(trials)));

      EXPECT_NEAR(chance_of(expected, trials, rate), 0.5, 0.02) << trials << " at " << rate;
      EXPECT_NEAR(chance_of(expected - 1, trials, rate), 0.5, 0.02) << trials << " at " << rate;
    }
  }
}

// ---- measured -------------------------------------------------------------------------------------------------------

// A filter with an FPR of about 5%.
any_filter filled(params p) {
  p.capacity = 20'000;
  p.target_fpr = 0.05;
  any_filter filter(complete(p));
  for (std::uint64_t i = 0; i < p.capacity; ++i) {
    if (p.keys == key_kind::bytes)
      filter.insert("key " + std::to_string(i));
    else
      filter.insert(i);
  }
  return filter;
}

std::vector<params> kinds_of_filters() {
  std::vector<params> all;
  for (const char* const layout : {"split_block", "split_block512", "blocked", "blocked_page", "classic"}) {
    all.push_back({.layout = layout, .hash = "xxh3"});
    all.push_back({.layout = layout, .hash = "murmur3"});
    all.push_back({.layout = layout, .hash = "mix", .keys = key_kind::u64le});
    all.push_back({.layout = layout, .hash = "xxh3", .keys = key_kind::u64le});
  }
  for (const scheme& row : schemes()) all.push_back({.scheme = std::string(row.name)});
  return all;
}

std::string title(const params& p) { return p.layout + p.scheme + " " + p.hash + " " + name_of(p.keys); }

TEST(StatisticOfMeasuredRates, IsTheCurrentRateForEveryKindOfFilter) {
  for (const params& p : kinds_of_filters()) {
    const any_filter filter = filled(p);
    const std::uint64_t queries = p.scheme == "perl" ? 100'000 : 500'000;

    const measured_rate measured = measure_rate(filter, queries, /*seed=*/1);

    const double certified = measure_fill(filter.parameters(), filter.bytes()).current_fpr;
    EXPECT_EQ(measured.queries, queries);
    EXPECT_GT(certified, 0.02);  // redisbloom is made for half of its target
    EXPECT_TRUE(measured.within(4.5).holds(certified)) << title(p) << ": " << measured.rate() << " and " << certified;
  }
}

TEST(MeasuredRate, DoesNotDependOnThreads) {
  for (const params& p : {params{.layout = "split_block512", .hash = "xxh3"},
                          params{.layout = "classic", .keys = key_kind::u64le}, params{.scheme = "guava"}}) {
    const any_filter filter = filled(p);
    for (const std::uint64_t queries : {1u, 63u, 4095u, 4096u, 4097u, 50'001u}) {
      const measured_rate alone = measure_rate(filter, queries, 7, 1);

      for (const unsigned threads : {0u, 2u, 3u, 17u}) {
        const measured_rate together = measure_rate(filter, queries, 7, threads);

        EXPECT_EQ(together.queries, queries);
        EXPECT_EQ(together.hits, alone.hits) << title(p) << ", " << queries << " queries, " << threads << " threads";
      }
    }
  }
}

// The first queries of more are the same: a full filter reports them all, an empty one none.
TEST(MeasuredRate, CountsEachQueryOnce) {
  for (const key_kind keys : {key_kind::bytes, key_kind::u64le}) {
    any_filter full({.layout = "classic", .hash = "xxh3", .keys = keys, .geometry = {1, 1}});
    const any_filter empty({.layout = "split_block512", .hash = "xxh3", .keys = keys, .geometry = {512, 8}});
    if (keys == key_kind::bytes)
      full.insert("any");
    else
      full.insert(std::uint64_t{1});
    for (const std::uint64_t queries : {0u, 1u, 64u, 65u, 4096u, 4097u, 100'000u}) {
      EXPECT_EQ(measure_rate(full, queries).hits, queries);
      EXPECT_EQ(measure_rate(empty, queries).hits, 0u);
      EXPECT_EQ(measure_rate(full, queries).rate(), queries == 0 ? 0 : 1);
    }
  }
}

// A full filter reports every key as present: the hits are the queries.
TEST(MeasuredRate, EndsEarlyOnceItMayNotGoOnAndCountsWhatItAsked) {
  any_filter full({.layout = "classic", .hash = "xxh3", .geometry = {1, 1}});
  full.insert("any");
  for (const unsigned threads : {1u, 3u}) {
    for (const int allowed : {0, 1, 5}) {
      std::atomic<int> asked{0};

      const measured_rate m = measure_rate(full, 10'000'000, 0, threads, [&] { return asked++ < allowed; });

      EXPECT_EQ(m.queries, 4096u * static_cast<unsigned>(allowed)) << threads << " threads";
      EXPECT_EQ(m.hits, m.queries);
    }
  }
}

TEST(MeasuredRate, IsWholeAsLongAsItMayGoOn) {
  const any_filter filter = filled({.layout = "split_block512", .hash = "xxh3"});

  const measured_rate m = measure_rate(filter, 50'001, 7, 2, [] { return true; });

  EXPECT_EQ(m.queries, 50'001u);
  EXPECT_EQ(m.hits, measure_rate(filter, 50'001, 7).hits);
}

TEST(MeasuredRate, HasOtherKeysForEachSeed) {
  const any_filter filter = filled({.layout = "split_block512", .keys = key_kind::u64le});

  const measured_rate first = measure_rate(filter, 100'000, 1);
  const measured_rate again = measure_rate(filter, 100'000, 1);
  const measured_rate second = measure_rate(filter, 100'000, 2);

  EXPECT_EQ(first.hits, again.hits);
  EXPECT_NE(first.hits, second.hits);
}

// If each key came twice, the variance of the hits would double.
TEST(StatisticOfMeasuredRates, VariesFromSeedToSeedAsThatOfDistinctKeysDoes) {
  for (const key_kind keys : {key_kind::bytes, key_kind::u64le}) {
    const any_filter filter = filled({.layout = "split_block512", .hash = "xxh3", .keys = keys});
    const double rate = measure_fill(filter.parameters(), filter.bytes()).current_fpr;
    constexpr int seeds = 400;
    constexpr double queries = 5000;
    double squares = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const double off = static_cast<double>(measure_rate(filter, 5000, seed, 1).hits) - queries * rate;
      squares += off * off / (queries * rate * (1 - rate));
    }

    // The mean of `seeds` squares of normal variables is 1 +- sqrt(2 / seeds).
    EXPECT_NEAR(squares / seeds, 1, 4.5 * std::sqrt(2.0 / seeds));
  }
}

}  // namespace
}  // namespace bloomery
