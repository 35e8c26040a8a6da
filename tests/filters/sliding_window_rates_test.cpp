// False-positive rates of sliding-window filters: expected, exact and measured, and the sizes that follow from them.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "filters/sliding_windows.hpp"
#include "math/rates.hpp"
#include "support/test.hpp"

#include <bit>
#include <chrono>

namespace bloomery {
namespace {

using namespace bloomery_tests;

template <class Layout>
class SlidingWindowRate : public ::testing::Test {};
TYPED_TEST_SUITE(SlidingWindowRate, layouts_with_window);

TYPED_TEST(SlidingWindowRate, OfOneGenerationHasTheRateOfABlockedFilter) {
  for (const std::uint64_t blocks : {1u, 3u, 200u}) {
    for (const std::uint32_t k : {1u, 4u, 9u}) {
      for (const std::uint64_t keys : {0u, 1u, 10u, 3000u}) {
        rates::block_rates in_block(TypeParam::cells_of_block, k);
        const long double expected =
            rates::blocked(keys, static_cast<long double>(blocks), [&](long double i) { return in_block(i); });

        const double rate = TypeParam::rate_of(TypeParam::of_blocks(blocks, k), {&keys, 1});

        EXPECT_NEAR(rate, static_cast<double>(expected), 1e-11 * static_cast<double>(expected) + 1e-15);
      }
    }
  }
}

TYPED_TEST(SlidingWindowRate, HasTheRateOfItsGenerationsTogether) {
  constexpr std::uint64_t blocks = 3;
  constexpr std::uint32_t k = 3;
  constexpr int trials = 60'000;
  const std::uint64_t scale = TypeParam::cells_of_block / 60;
  const keys_by_generation keys = {9 * scale, 40 * scale, 0, 25 * scale, 25 * scale, 1, 60 * scale, 3 * scale};
  std::mt19937_64 random(7);
  const auto cell = [&] { return random() % TypeParam::cells_of_block; };
  int hits = 0;
  for (int set = 0; set < trials / 100; ++set) {
    std::vector<std::uint8_t> cells(TypeParam::cells_of_block);  // of the block that is looked up
    for (std::uint32_t lane = 0; lane < 8; ++lane) {
      for (std::uint64_t i = 0; i < keys[lane]; ++i) {
        if (random() % blocks != 0) continue;
        for (std::uint32_t probe = 0; probe < k; ++probe) cells[cell()] |= static_cast<std::uint8_t>(1u << lane);
      }
    }
    for (int query = 0; query < 100; ++query) {
      std::uint8_t all = 0xFF;
      for (std::uint32_t probe = 0; probe < k; ++probe) all &= cells[cell()];
      hits += all != 0 ? 1 : 0;
    }
  }

  const double rate = TypeParam::rate_of(TypeParam::of_blocks(blocks, k), keys);

  double sum = 0;
  for (const std::uint64_t n : keys) sum += TypeParam::rate_of(TypeParam::of_blocks(blocks, k), {&n, 1});
  EXPECT_LT(rate, sum);
  // Lookups in one filter share its fill: their hits vary more than independent ones.
  EXPECT_NEAR(hits, trials * rate, 6 * 2 * std::sqrt(trials * rate));
}

TYPED_TEST(SlidingWindowRate, IsTheSmallestThatKeepsItsTarget) {
  for (const std::uint64_t n : {1u, 6u, 1000u, 1'000'000u}) {
    for (const double p : {0.3, 0.01, 1e-4}) {
      const geometry g = TypeParam::geometry_for(n, p);
      const std::uint64_t blocks = TypeParam::blocks_of(g);

      EXPECT_LE(TypeParam::expected_fpr(g, n), p);
      TypeParam::check(g);
      if (blocks == 1) continue;
      for (std::uint32_t k = 1; k <= 20; ++k) {
        EXPECT_GT(TypeParam::expected_fpr(TypeParam::of_blocks(blocks - 1, k), n), p) << n << " " << p << " " << k;
      }
    }
  }
}

TEST(Sliding, NeedsSeventeenAndAQuarterBitsForAKeyOfTheWindowAtOnePercent) {
  EXPECT_NEAR(static_cast<double>(layouts::sliding::geometry_for(10'000'000, 0.01).bits) / 1e7, 17.23, 0.01);
  EXPECT_NEAR(static_cast<double>(layouts::sliding64::geometry_for(10'000'000, 0.01).bits) / 1e7, 28.16, 0.01);
}

// Expects the number of hits among absent keys to be that of the expected FPR, within six standard deviations.
template <class Filter>
void expect_measured(const Filter& filter, double rate, std::uint64_t queries = 300'000) {
  std::vector<std::uint64_t> keys(queries), answers((queries + 63) / 64);
  for (std::uint64_t i = 0; i < queries; ++i) keys[i] = (std::uint64_t{1} << 60) + i;
  filter.may_contain(keys, answers);
  std::uint64_t hits = 0;
  for (const std::uint64_t word : answers) hits += static_cast<std::uint64_t>(std::popcount(word));
  const double expected = rate * static_cast<double>(queries);
  EXPECT_NEAR(static_cast<double>(hits), expected, 6 * std::sqrt(expected) + 6) << rate;
}

TYPED_TEST(SlidingWindowRate, KeepsItsTargetAtTheWorstMoment) {
  constexpr std::uint64_t n = 100'000;
  filter_of_integers<TypeParam> filter({.window = window_of_keys(n)});
  const std::uint64_t slice = (n + 6) / 7;
  std::uint64_t key = 0;

  for (const int generations : {8, 12, 29}) {  // full for the first time, and after some rotations
    while (key < slice * static_cast<std::uint64_t>(generations)) filter.insert(key++);

    EXPECT_LE(filter.expected_fpr(), 0.01);
    EXPECT_GT(filter.expected_fpr(), 0.0097);
    // With some hundred blocks, of which the fullest dominate, filters differ by about 2%.
    EXPECT_NEAR(filter.current_fpr(), filter.expected_fpr(), 0.06 * 0.01);
    expect_measured(filter, filter.current_fpr());
    EXPECT_FALSE(filter.facts().has_overfull_generation());
    for (std::uint64_t i = key - n; i < key; ++i) ASSERT_TRUE(filter.may_contain(i)) << i;
  }
}

TYPED_TEST(SlidingWindowRate, AfterIdleTimeHasTheRateOfWhatIsLeft) {
  std::uint64_t now = some_day / 7000 * 7000;
  filter_of_integers<TypeParam> filter(
      {.window = window_of_milliseconds(7000), .capacity = 10'000, .clock = [&] { return now; }});
  for (std::uint64_t key = 0; key < 80'000; ++key) {
    if (key > 0 && key % 10'000 == 0) now += 1000;
    filter.insert(key);
  }
  const double full = filter.expected_fpr();
  const keys_by_generation three_left = {10'000, 10'000, 10'000};

  now += 5000;

  const double rate = TypeParam::rate_of(filter.parameters().geometry, three_left);
  EXPECT_NEAR(filter.expected_fpr(), rate, 0.005 * rate);
  EXPECT_LT(rate, 0.4 * full);
  expect_measured(filter, rate);
  filter.insert(1);  // only this insertion updates the cells
  EXPECT_NEAR(filter.current_fpr(), rate, 0.05 * rate);
  now += 7000;
  filter.insert(2);
  EXPECT_EQ(filter.facts().keys_held(), 1u + (filter.facts().keys[(now / 1000 - 7) % 8] != 0 ? 1u : 0u));
  EXPECT_LT(filter.current_fpr(), 1e-6);
}

TYPED_TEST(SlidingWindowRate, OfAWindowOfTimeIsKeptHoweverItsKeysCome) {
  constexpr std::uint64_t n = 20'000;
  std::uint64_t now = some_day / 7000 * 7000;
  filter_of_integers<TypeParam> filter(
      {.window = window_of_milliseconds(7000), .capacity = n, .clock = [&] { return now; }});
  const geometry sized = complete({.layout = std::string(TypeParam::name),
                                   .keys = key_kind::u64le,
                                   .capacity = n,
                                   .target_fpr = 0.01,
                                   .extra = window_of_milliseconds(7000)})
                             .geometry;
  EXPECT_EQ(filter.parameters().geometry, sized);

  for (std::uint64_t key = 0; key < n; ++key) filter.insert(key);  // all at one go
  EXPECT_FALSE(filter.facts().has_overfull_generation());
  EXPECT_LE(filter.current_fpr(), 0.0055);

  for (int slice = 1; slice < 7; ++slice) {  // and all of them again and again
    now += 1000;
    for (std::uint64_t key = 0; key < n; ++key) filter.insert(key);
  }
  EXPECT_LE(filter.current_fpr(), 0.0055);

  now += 1000;  // and as many others, when the first could have expired, but have not
  for (std::uint64_t key = n; key < 2 * n; ++key) filter.insert(key);
  EXPECT_FALSE(judge_fpr(filter.parameters(), filter.current_fpr()).is_broken());
  EXPECT_NEAR(filter.expected_fpr(n), 0.01, 0.0003);
  EXPECT_NEAR(filter.current_fpr(), filter.expected_fpr(n), 0.0012);
  expect_measured(filter, filter.current_fpr());
}

// A handle has the number of keys of each generation, and reads the bits before it reports too many keys.
TEST(SlidingWindowRateOfIntegers, OfAHandleIsNotBrokenByKeysThatRecur) {
  std::uint64_t now = some_day / 7000 * 7000;
  any_filter made(complete({.layout = "sliding",
                            .keys = key_kind::u64le,
                            .capacity = 20'000,
                            .target_fpr = 0.01,
                            .extra = window_of_milliseconds(7000)}));
  made.set_clock([&] { return now; });
  const auto filter = make_handle(std::move(made));
  std::vector<std::uint64_t> keys(20'000);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = i;

  for (int slice = 0; slice < 8; ++slice, now += 1000) filter->insert(keys);

  EXPECT_GT(filter->local()->window()->rate, 0.03);  // as if all keys were distinct
  EXPECT_FALSE(filter->is_overfull() || filter->summary().is_overfull);
  EXPECT_LT(*filter->summary().fpr, 0.0055);
}

TEST(SlidingWindowRateOfIntegers, OfAnEarlierFileHasRoomForASeventhOfTheKeysInASlice) {
  params p{.layout = "sliding", .keys = key_kind::u64le, .capacity = 7000, .target_fpr = 0.01};
  p.geometry = layouts::sliding::geometry_for(7000, 0.01);
  p.extra = window_of_time(std::chrono::hours(24));
  any_filter filter(complete(p));

  EXPECT_EQ(filter.window()->keys_per_slice, 1000u);
  for (std::uint64_t key = 0; key < 7000; ++key) filter.insert(key);
  EXPECT_TRUE(judge_fpr(filter.parameters(), filter.window()->rate).is_broken());
}

TEST(SlidingWindowRateOfIntegers, ReportsAnOverfullGeneration) {
  filter_of_integers<layouts::sliding> filter(
      {.window = window_of_time(std::chrono::hours(24)), .capacity = 100, .clock = [] { return some_day; }});
  for (std::uint64_t key = 0; key < 100; ++key) filter.insert(key);
  EXPECT_FALSE(filter.facts().has_overfull_generation());

  for (std::uint64_t key = 100; key < 130; ++key) filter.insert(key);

  EXPECT_TRUE(filter.facts().has_overfull_generation());
}

// The exact FPR by its definition: all pairs of cells of all blocks.
TYPED_TEST(SlidingWindowRate, HasTheCurrentRateThatEveryPossibleKeyWouldMeet) {
  constexpr std::uint64_t blocks = 3;
  constexpr std::uint32_t epoch = 1000;
  const geometry g = TypeParam::of_blocks(blocks, 2);
  std::mt19937_64 random(3);
  bytes all(bytes_for(g.bits));
  const window_state state{epoch, 5000, {}};
  std::memcpy(all.data(), &state, sizeof state);
  double hits = 0;
  std::array<std::uint64_t, 8> ones{};
  for (std::uint64_t block = 0; block < blocks; ++block) {
    std::uint8_t* const at = all.data() + 512 + block * TypeParam::block_bytes;
    const auto stamp = static_cast<std::uint32_t>(epoch - block * 3);  // two of the blocks are behind
    std::memcpy(at, &stamp, sizeof stamp);
    for (std::uint32_t i = 4; i < TypeParam::block_bytes; ++i) at[i] = static_cast<std::uint8_t>(random() & random());
    const std::uint8_t live = live_generations(stamp, epoch);
    for (std::uint32_t i = 4; i < TypeParam::block_bytes; ++i) {
      for (std::uint32_t j = 4; j < TypeParam::block_bytes; ++j) hits += (at[i] & at[j] & live) != 0 ? 1 : 0;
      for (std::uint32_t lane = 0; lane < 8; ++lane) ones[lane] += at[i] >> lane & live >> lane & 1;
    }
  }

  const window_cells found = TypeParam::scan_cells(all.data(), g, epoch);

  const double pairs = static_cast<double>(blocks) * TypeParam::cells_of_block * TypeParam::cells_of_block;
  EXPECT_NEAR(found.current_fpr, hits / pairs, 1e-12);
  EXPECT_EQ(found.ones, ones);
  const params p{.layout = std::string(TypeParam::name), .geometry = g, .extra = window_of_keys(7000)};
  EXPECT_EQ(measure_fill(p, all).current_fpr, found.current_fpr);
}

TYPED_TEST(SlidingWindowRate, FailsTheFillCheckWhenTheCountOfAGenerationIsWrong) {
  filter_of_integers<TypeParam> filter({.window = window_of_keys(70'000)});
  for (std::uint64_t key = 0; key < 200'000; ++key) filter.insert(key);
  bytes changed(filter.bytes().begin(), filter.bytes().end());
  window_state state = window_state::of(changed.data());
  state.keys[3] /= 2;
  std::memcpy(changed.data(), &state, sizeof state);

  EXPECT_FALSE(check_window_fill(filter.parameters(), filter.bytes()).is_inconsistent());
  EXPECT_LT(std::abs(check_window_fill(filter.parameters(), filter.bytes()).deviation()), 4);
  EXPECT_TRUE(check_window_fill(filter.parameters(), changed).is_inconsistent());
}

}  // namespace
}  // namespace bloomery
