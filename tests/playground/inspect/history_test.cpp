// The history of an inspection: its size, its times, and the pace of a filter that grows.
#include "playground/inspect/history.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>

namespace bloomery_tests {
namespace {

using bloomery::playground::history;
using bloomery::playground::json;

constexpr std::int64_t second = 1000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t start = 1'795'328'109'728;

TEST(History, KeepsOneSamplePerFiveSecondsOfTheLastHour) {
  history h;

  for (std::int64_t at = start; at <= start + 180 * minute; at += second)
    h.add(at, static_cast<std::uint64_t>(at - start), 0.01);

  const json samples = h.samples_after(0);
  EXPECT_LE(samples.size(), 721u);
  EXPECT_GE(samples.size(), 719u);
  EXPECT_EQ(samples.back()["at"], start + 180 * minute) << "the latest reading is always included";
  EXPECT_GE(samples.front()["at"], start + 120 * minute);
  for (const json& s : samples) EXPECT_EQ(s["keys"], s["at"].get<std::int64_t>() - start);
}

TEST(History, IsBoundedWhateverTheTimesAre) {
  history h;
  std::mt19937_64 random(7);
  std::int64_t at = start;

  for (int i = 0; i < 200'000; ++i) {
    at += static_cast<std::int64_t>(random() % 4000);
    if (random() % 5 == 0) h.add_gap(at);
    if (random() % 10'000 == 0) at -= 30 * minute;
    h.add(at, 1, 0.01);
    if (i % 1000 == 0) {
      ASSERT_LE(h.samples_after(0).size(), history::most_samples);
    }
  }
}

TEST(History, AnswersOnlyWhatIsLater) {
  history h;
  for (std::int64_t i = 0; i < 10; ++i) h.add(start + i * 10 * second, 5, 0.25);

  const json later = h.samples_after(start + 70 * second);

  const json expected = {{{"at", start + 80 * second}, {"keys", 5}, {"rate", 0.25}},
                         {{"at", start + 90 * second}, {"keys", 5}, {"rate", 0.25}}};
  EXPECT_EQ(later, expected);
  EXPECT_EQ(h.samples_after(start + 90 * second), json::array());
}

TEST(History, StartsAgainWhenTheClockIsSetBack) {
  history h;
  h.add(start, 100, 0.01);
  h.add(start - 20 * minute, 200, 0.02);

  EXPECT_EQ(h.samples_after(0).size(), 1u);
  EXPECT_EQ(h.samples_after(0)[0]["keys"], 200);
}

TEST(History, ThePaceIsTheSlope) {
  history h;
  for (std::int64_t i = 0; i <= 60; ++i) h.add(start + i * 5 * second, static_cast<std::uint64_t>(1000 + 35 * i), 0.01);

  ASSERT_TRUE(h.keys_per_second());
  EXPECT_DOUBLE_EQ(*h.keys_per_second(), 7.0);
}

TEST(History, ASingleBurstDoesNotChangeThePace) {
  history idle;
  history busy;
  for (std::int64_t i = 0; i <= 120; ++i) {
    const std::uint64_t burst = i > 70 ? 1'000'000 : 0;
    idle.add(start + i * 5 * second, 1'000'000 + burst, 0.01);
    busy.add(start + i * 5 * second, 1'000'000 + burst + static_cast<std::uint64_t>(10 * i), 0.01);
  }

  EXPECT_EQ(idle.keys_per_second(), std::nullopt);
  ASSERT_TRUE(busy.keys_per_second());
  EXPECT_NEAR(*busy.keys_per_second(), 2, 0.01);
}

TEST(History, ThereIsNoPaceWithoutGrowth) {
  history still;
  history falling;
  history brief;
  for (std::int64_t i = 0; i <= 30; ++i) {
    still.add(start + i * 5 * second, 500, 0.01);
    falling.add(start + i * 5 * second, static_cast<std::uint64_t>(500 - i), 0.01);
  }
  brief.add(start, 1, 0.01);
  brief.add(start + 9 * second, 900, 0.01);

  EXPECT_EQ(history().keys_per_second(), std::nullopt);
  EXPECT_EQ(still.keys_per_second(), std::nullopt);
  EXPECT_EQ(falling.keys_per_second(), std::nullopt);
  EXPECT_EQ(brief.keys_per_second(), std::nullopt);
}

TEST(History, ThePaceIsThatOfTheLastTenMinutes) {
  history h;
  for (std::int64_t i = 0; i <= 700; ++i) {
    const std::int64_t keys = i < 500 ? 100 * i : 50'000 + 5 * (i - 500);
    h.add(start + i * 5 * second, static_cast<std::uint64_t>(keys), 0.01);
  }

  ASSERT_TRUE(h.keys_per_second());
  EXPECT_DOUBLE_EQ(*h.keys_per_second(), 1.0);
}

// A filter that is replaced by an empty one, and a server that was away.
TEST(History, ThePaceBeginsAgainAfterAReplacementAndAfterAGap) {
  for (const bool away : {false, true}) {
    history h;
    for (std::int64_t i = 0; i < 60; ++i)
      h.add(start + i * 5 * second, static_cast<std::uint64_t>(90'000 + 500 * i), 0.01);
    if (away) h.add_gap(start + 60 * 5 * second);
    for (std::int64_t i = 61; i <= 80; ++i)
      h.add(start + i * 5 * second, static_cast<std::uint64_t>(20 * (i - 60)), 0.01);

    ASSERT_TRUE(h.keys_per_second());
    EXPECT_DOUBLE_EQ(*h.keys_per_second(), 4.0) << away;
  }
}

TEST(History, AGapIsOneSampleWithoutNumbers) {
  history h;
  h.add_gap(start);
  h.add(start + second, 5, 0.01);
  h.add_gap(start + 2 * second);
  h.add_gap(start + 90 * second);
  h.add(start + 91 * second, 5, 0.01);

  const json samples = h.samples_after(0);

  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1], (json{{"at", start + 2 * second}, {"keys", nullptr}, {"rate", nullptr}}));
  EXPECT_EQ(samples[2]["keys"], 5);
}

}  // namespace
}  // namespace bloomery_tests
