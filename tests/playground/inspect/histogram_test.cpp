// The expected distribution of set cells per block, compared with separate formulas, with simulated balls, and with
// filters of random and of chosen keys.
#include "playground/inspect/histogram.hpp"
#include "playground/session/shown_filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::any_filter;
using bloomery::params;
using namespace bloomery::playground;

constexpr std::uint64_t all_keys = 60'000;

params params_of(const std::string& layout) {
  return bloomery::complete({.layout = layout, .capacity = all_keys, .target_fpr = 0.01});
}

// Counts the whole blocks of a filter.
histogram counted(const shown_filter& filter) {
  histogram h = histogram_for(filter.view());
  std::vector<std::uint64_t> ones(filter.cells() / h.block_cells);
  filter.view().count_set(0, h.block_cells, ones);
  for (const std::uint64_t some : ones) add_block(h, some);
  return h;
}

histogram judged(const shown_filter& filter, double in) {
  histogram h = counted(filter);
  expect(h, filter.parameters(), in);
  return h;
}

shown_filter filled(const params& p, std::uint64_t count) {
  any_filter filter(p);
  for (std::uint64_t i = 0; i < count; ++i) filter.insert("key " + std::to_string(i));
  return shown_filter(std::move(filter));
}

double sum_of(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

double mean_of(const std::vector<double>& all) {
  double sum = 0;
  for (std::size_t x = 0; x < all.size(); ++x) sum += static_cast<double>(x) * all[x];
  return sum / sum_of(all);
}

TEST(ExpectedBlocks, OfClassicAreBinomial) {
  const params p = params_of("classic");
  const std::uint64_t blocks = p.geometry.bits / 512;

  const std::vector<double> expected = expected_blocks(p, 512, blocks, 1000);

  // Recurrence: P(x + 1) = P(x) (n - x) / (x + 1) q / (1 - q).
  const long double q = 1 - std::pow(1 - 1 / static_cast<long double>(p.geometry.bits), 1000.0L * p.geometry.probes);
  long double chance = std::pow(1 - q, 512.0L);
  for (std::size_t x = 0; x <= 512; ++x) {
    EXPECT_NEAR(expected[x], static_cast<double>(chance) * static_cast<double>(blocks),
                1e-9 * static_cast<double>(blocks))
        << x;
    chance *= (512 - static_cast<long double>(x)) / (static_cast<long double>(x) + 1) * q / (1 - q);
  }
}

TEST(ExpectedBlocks, HaveTheMeanOfTheExactFormula) {
  // A cell stays empty in a block of Poisson keys with the probability exp(-mean (1 - (1 - 1/b)^k)); with lanes b is a
  // lane's.
  const std::vector<std::pair<std::string, double>> layouts = {
      {"split_block512", 64}, {"split_block", 32}, {"blocked", 512}, {"counting", 128}, {"blocked_page", 32768}};
  for (const auto& [layout, lane] : layouts) {
    SCOPED_TRACE(layout);
    const params p = params_of(layout);
    const shown_filter empty{any_filter(p)};
    const std::uint64_t b = empty.block_cells();
    const std::uint64_t blocks = empty.cells() / b;
    const double mean = 1234.5 / static_cast<double>(blocks);
    const bool lanes = lane < static_cast<double>(b);
    const double k = lanes ? 1 : p.geometry.probes;

    const std::vector<double> expected = expected_blocks(p, b, blocks, 1234.5);

    const double empty_cell = std::exp(-mean * (1 - std::pow(1 - 1 / lane, k)));
    EXPECT_NEAR(sum_of(expected), static_cast<double>(blocks), 1e-6 * static_cast<double>(blocks));
    EXPECT_NEAR(mean_of(expected), static_cast<double>(b) * (1 - empty_cell), 1e-4);
  }
}

TEST(ExpectedBlocks, AreThoseOfBallsThrownOneByOne) {
  constexpr std::uint64_t blocks = 20'000;
  for (const std::string layout : {"split_block512", "blocked"}) {
    SCOPED_TRACE(layout);
    params p = params_of(layout);
    p.geometry.bits = 512 * blocks;
    const std::uint64_t in = 30 * blocks;
    std::mt19937_64 random(7);
    std::poisson_distribution<int> load(30);
    histogram h{.block_cells = 512, .blocks = std::vector<std::uint64_t>(513)};
    for (std::uint64_t i = 0; i < blocks; ++i) {
      std::vector<bool> set(512);
      const auto balls = static_cast<std::uint64_t>(load(random)) * p.geometry.probes;
      for (std::uint64_t ball = 0; ball < balls; ++ball) {
        set[layout == "split_block512" ? ball % 8 * 64 + random() % 64 : random() % 512] = true;
      }
      add_block(h, static_cast<std::uint64_t>(std::count(set.begin(), set.end(), true)));
    }

    expect(h, p, static_cast<double>(in));

    // Each bin is approximately a Poisson count.
    for (std::size_t x = 0; x <= 512; ++x) {
      EXPECT_NEAR(static_cast<double>(h.blocks[x]), h.expected[x], 5 * std::sqrt(h.expected[x]) + 6) << x;
    }
    EXPECT_GT(*evenness(h), least_chance);
  }
}

TEST(ExpectedBlocks, OfFewBlocksKnowThatOneHasWhatAnotherHasNot) {
  std::vector<double> with;

  add_loads(with, 1, 5.2);
  add_loads(with, 2, 2);

  ASSERT_EQ(with.size(), 6);
  EXPECT_NEAR(with[5], 1, 1e-12);
  for (const std::size_t j : {0, 2}) EXPECT_NEAR(with[j], 0.5, 1e-12);
  EXPECT_NEAR(with[1], 1, 1e-12);
}

TEST(ExpectedBlocks, OfManyBlocksAreTheSameByEitherWay) {
  const params p = params_of("split_block512");
  std::vector<double> with;
  add_loads(with, 1'000'000, 30e6);

  const std::vector<double> binomial = blocks_of_loads(p, 512, with);

  const std::vector<double> poisson = expected_blocks(p, 512, 1'000'000, 30e6);
  for (std::size_t x = 0; x <= 512; ++x) EXPECT_NEAR(binomial[x], poisson[x], 0.1) << x;
}

TEST(Evenness, OfRandomKeysIsLikely) {
  for (const std::string layout : {"classic", "split_block", "split_block512", "blocked", "blocked_page", "counting"}) {
    for (const std::uint64_t in : {all_keys / 20, all_keys}) {
      SCOPED_TRACE(layout + " " + std::to_string(in));
      const shown_filter filter = filled(params_of(layout), in);

      const std::optional<double> chance = evenness(judged(filter, static_cast<double>(in)));

      // A page has 4 KiB, so a filter of 19 pages allows no judgment.
      EXPECT_TRUE(layout == "blocked_page" || chance.has_value());
      EXPECT_GT(chance.value_or(1), 1e-4);
    }
  }
}

TEST(Evenness, OfKeysChosenForTheirBlocksIsBeyondChance) {
  for (const std::string layout : {"split_block", "split_block512", "blocked", "counting"}) {
    SCOPED_TRACE(layout);
    any_filter filter(params_of(layout));
    const shown_filter empty{any_filter(params_of(layout))};
    std::uint64_t in = 0;
    // Half of the keys are random; the other half hit a quarter of the blocks.
    for (std::uint64_t i = 0; in < all_keys / 2; ++i) {
      const std::string key = std::to_string(i);
      if (i % 2 != 0 && empty.places_of(key).front().cell > empty.cells() / 4) continue;
      filter.insert(key);
      ++in;
    }

    const shown_filter chosen(std::move(filter));
    const double estimated = chosen.facts(in).fill->estimated_keys->value;

    EXPECT_LT(*evenness(judged(chosen, estimated)), least_chance);
  }
}

TEST(Evenness, OfOneFullBlockAmongThousandsIsBeyondChance) {
  any_filter filter(params_of("split_block512"));
  const shown_filter empty{any_filter(params_of("split_block512"))};
  for (std::uint64_t i = 0; i < all_keys / 4; ++i) filter.insert(std::to_string(i));
  for (std::uint64_t i = all_keys; i < 100 * all_keys; ++i) {
    const std::string key = std::to_string(i);
    if (empty.places_of(key).front().cell < 512) filter.insert(key);
  }

  const shown_filter chosen(std::move(filter));

  EXPECT_LT(*evenness(judged(chosen, chosen.facts(std::nullopt).fill->estimated_keys->value)), least_chance);
}

TEST(Evenness, IsUnknownWithoutBlocksOrExpectation) {
  histogram h{.block_cells = 2, .blocks = {1, 2, 0}};

  EXPECT_EQ(evenness(h), std::nullopt);
  h.expected = {1, 1, 1};
  EXPECT_EQ(evenness(h), std::nullopt);
}

TEST(Evenness, OfAnEmptyFilterIsCertain) {
  EXPECT_EQ(evenness(judged(shown_filter(any_filter(params_of("split_block512"))), 0)), 1);
}

}  // namespace
}  // namespace bloomery_tests
