// Filters that forget, beside a model that remembers every key with its time, and a twin of their cells made of sets.
#include <bloomery/sliding_window_filter.hpp>

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/fold.hpp>

#include "math/rates.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/operations.hpp"
#include "support/processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::bytes;
using bloomery_tests::holds_for_all;
using bloomery_tests::read_file;
using bloomery_tests::scratch_folder;
using bloomery_tests::write_file;

constexpr std::uint64_t hour = 3'600'000;
constexpr std::uint64_t some_day = 1'700'000'000'000;  // milliseconds since 1970

template <class Layout>
using filter_of_integers = sliding_window_filter<std::uint64_t, Layout, mix>;

// The action throws this code, and says this.
#define EXPECT_ERROR(action, wanted, words)                                \
  do {                                                                     \
    const auto thrown = bloomery_tests::error_of([&] { action; });         \
    ASSERT_TRUE(thrown.has_value()) << #action;                            \
    EXPECT_EQ(thrown->code(), wanted) << thrown->what();                   \
    EXPECT_THAT(std::string(thrown->what()), ::testing::HasSubstr(words)); \
  } while (false)

// ---- the twin: for each epoch the set of its cells, by docs/format.md
// -------------------------------------------------

using cell_set = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // block, cell

__extension__ using wide = unsigned __int128;

cell_set cells_of(std::uint64_t key, std::uint64_t blocks, std::uint64_t cells, std::uint32_t probes) {
  const std::uint64_t hash64 = mix{}(key).hash64;
  const auto block = static_cast<std::uint64_t>(static_cast<wide>(hash64) * blocks >> 64);
  cell_set result;
  std::uint64_t x = (2 * hash64 + 1) * 0x9E3779B97F4A7C15;
  for (std::uint32_t i = 0; i < probes; ++i) {
    result.emplace(block, (x >> 32) * cells >> 32);
    x *= 0xD1342543DE82EF95;
  }
  return result;
}

template <class Layout>
class twin {
 public:
  explicit twin(const geometry& g)
      : blocks_((g.bits / 8 - 512) / Layout::block_bytes), cells_(Layout::block_bytes - 4), probes_(g.probes) {}

  bool has(std::uint64_t key, std::uint64_t now) const {
    const cell_set wanted = cells_of(key, blocks_, cells_, probes_);
    return std::any_of(epochs_.begin(), epochs_.end(), [&](const auto& of_epoch) {
      const auto& [epoch, cells] = of_epoch;
      return epoch + 7 >= now && std::includes(cells.begin(), cells.end(), wanted.begin(), wanted.end());
    });
  }

  void insert(std::uint64_t key, std::uint64_t epoch) {
    epochs_[epoch].merge(cells_of(key, blocks_, cells_, probes_));
    while (epochs_.begin()->first + 7 < epoch) epochs_.erase(epochs_.begin());
  }

 private:
  std::uint64_t blocks_, cells_;
  std::uint32_t probes_;
  std::map<std::uint64_t, cell_set> epochs_;
};

// ---- random operations ----------------------------------------------------------------------------------------------

struct operation {
  enum kind { insert, insert_many, look_up, look_up_many, wait, leap, turn_back } what;
  std::uint64_t key;
  std::uint64_t amount;
};

std::ostream& operator<<(std::ostream& out, const operation& o) {
  constexpr const char* names[] = {"insert", "insert_many", "look_up", "look_up_many", "wait", "leap", "turn_back"};
  return out << names[o.what] << " key " << o.key << " amount " << o.amount;
}

operation draw(std::mt19937_64& random) {
  const std::uint64_t dice = random() % 100;
  const auto what = dice < 35   ? operation::insert
                    : dice < 45 ? operation::insert_many
                    : dice < 70 ? operation::look_up
                    : dice < 75 ? operation::look_up_many
                    : dice < 94 ? operation::wait
                    : dice < 97 ? operation::leap
                                : operation::turn_back;
  return {what, random() % 60, random() % 23 + 1};
}

// What is wrong after these operations, on a filter and on the model; empty if nothing is.
template <class Layout>
std::string compared(const std::vector<operation>& operations, window_length length, std::uint64_t start) {
  std::uint64_t clock = start;
  filter_of_integers<Layout> filter(length, 24, 0.3, {}, [&] { return clock; });
  twin<Layout> cells(filter.parameters().geometry);
  const bool by_keys = length.keys != 0;
  const std::uint64_t whole = by_keys ? length.keys : length.milliseconds;
  const std::uint64_t part = (whole + 6) / 7;
  std::uint64_t newest = 0, insertions = 0;
  std::map<std::uint64_t, std::uint64_t> last;  // key -> moment, or insertion

  const auto epoch_now = [&] { return by_keys ? newest : std::max(newest, clock / part); };
  const auto moment_now = [&] { return by_keys ? insertions : std::max(clock, newest * part); };
  const auto problem = [&](bool answer, std::uint64_t key, const char* who) -> std::string {
    if (answer != cells.has(key, epoch_now())) return std::string(who) + " is not what the cells say";
    const auto seen = last.find(key);
    const bool in_window = seen != last.end() && moment_now() - seen->second < whole + (by_keys ? 1 : 0);
    if (in_window && !answer) return std::string(who) + " misses a key of the window";
    return {};
  };
  const auto note = [&](std::uint64_t key, bool is_new) -> std::string {
    newest = by_keys ? insertions / part : std::max(newest, clock / part);
    std::string wrong = problem(!is_new, key, "insert");
    cells.insert(key, newest);
    last[key] = moment_now();
    ++insertions;
    return wrong;
  };

  for (const operation& o : operations) {
    std::string wrong;
    if (o.what == operation::wait) clock += o.amount * part / 8;
    if (o.what == operation::leap) clock += o.amount * part * 3;
    if (o.what == operation::turn_back) clock -= std::min(clock, o.amount * part / 2);
    if (o.what == operation::insert) wrong = note(o.key, filter.insert(o.key));
    if (o.what == operation::look_up) wrong = problem(filter.may_contain(o.key), o.key, "may_contain");
    std::vector<std::uint64_t> some(o.amount);
    for (std::uint64_t i = 0; i < o.amount; ++i) some[i] = (o.key + i) % 60;
    if (o.what == operation::insert_many) {
      std::vector<std::uint8_t> is_new(some.size());
      filter.insert(some, is_new);
      for (std::size_t i = 0; i < some.size() && wrong.empty(); ++i) wrong = note(some[i], is_new[i] != 0);
    }
    if (o.what == operation::look_up_many) {
      std::uint64_t answers = 0;
      filter.may_contain(some, {&answers, 1});
      for (std::size_t i = 0; i < some.size() && wrong.empty(); ++i) {
        wrong = problem((answers >> i & 1) != 0, some[i], "may_contain of many");
      }
    }
    if (!wrong.empty()) return wrong;
    if (filter.facts().epoch != epoch_now()) return "the epoch is another";
    if (filter.facts().insertions != insertions) return "insertions are miscounted";
  }
  return {};
}

bool is_long() {
  const char* value = std::getenv("BLOOMERY_LONG");
  return value != nullptr && std::string(value) != "" && std::string(value) != "0";
}

template <class Layout>
class WindowedFilter : public ::testing::Test {};
using layouts_with_window = ::testing::Types<layouts::sliding, layouts::sliding64>;
TYPED_TEST_SUITE(WindowedFilter, layouts_with_window);

TYPED_TEST(WindowedFilter, ByTimeAnswersAsItsModelDoes) {
  for (const std::uint64_t start : {std::uint64_t{0}, some_day, (std::uint64_t{1} << 32) * 3 - 40}) {
    for (const std::uint64_t length : {1u, 7u, 20u, 1000u}) {
      SCOPED_TRACE(std::to_string(start) + ", " + std::to_string(length));
      EXPECT_TRUE(holds_for_all(is_long() ? 300 : 12, 150, draw, [&](const std::vector<operation>& operations) {
        return compared<TypeParam>(operations, {0, length}, start);
      }));
    }
  }
}

TYPED_TEST(WindowedFilter, ByKeysAnswersAsItsModelDoes) {
  for (const std::uint64_t length : {1u, 2u, 7u, 8u, 24u, 100u}) {
    SCOPED_TRACE(length);
    EXPECT_TRUE(holds_for_all(is_long() ? 300 : 20, 150, draw, [&](const std::vector<operation>& operations) {
      return compared<TypeParam>(operations, {length, 0}, 0);
    }));
  }
}

// The example of docs/format.md.
TEST(WindowBytes, OfMadridAreThoseOfTheFormat) {
  const auto bytes_set = [](const std::string& layout, std::uint64_t bits) {
    any_filter filter(complete({.layout = layout, .geometry = {bits, 4}, .capacity = 10, .window_milliseconds = 7000}));
    filter.set_clock([] { return std::uint64_t{13'500}; });  // epoch 13: lane 5
    filter.insert("Madrid");
    std::map<std::size_t, int> set;
    for (std::size_t i = 512; i < filter.bytes().size(); ++i) {
      if (filter.bytes()[i] != 0) set[i] = filter.bytes()[i];
    }
    EXPECT_EQ(filter.bytes()[0], 13);       // newest epoch
    EXPECT_EQ(filter.bytes()[8], 1);        // insertions
    EXPECT_EQ(filter.bytes()[16 + 40], 1);  // keys of lane 5
    return set;
  };
  using set = std::map<std::size_t, int>;
  EXPECT_EQ(bytes_set("sliding", 20'480), (set{{1024, 13}, {1039, 32}, {1270, 32}, {1275, 32}, {1367, 32}}));
  EXPECT_EQ(bytes_set("sliding64", 6144), (set{{576, 13}, {581, 32}, {608, 32}, {609, 32}, {620, 32}}));
}

// ---- the stamps -----------------------------------------------------------------------------------------------------

TEST(LiveLanes, AreThoseOfTheEpochsUpToTheStampThatHaveNotRunOut) {
  for (const std::uint32_t stamp : {0u, 1u, 5u, 7u, 8u, 1000u, 0xFFFFFFFCu, 0xFFFFFFFFu}) {
    for (std::uint32_t passed = 0; passed < 20; ++passed) {
      std::uint8_t live = 0;  // the epochs stamp - 7 .. stamp, but for those before now - 7
      for (std::uint32_t age = 0; age < 8; ++age) {
        if (age + passed < 8) live = static_cast<std::uint8_t>(live | 1u << (stamp - age) % 8);
      }

      EXPECT_EQ(live_generations(stamp, stamp + passed), live) << stamp << " and " << passed;
    }
  }
}

TEST(LiveLanes, AreAllOfABlockThatIsAhead) {
  for (const std::uint32_t stamp : {0u, 5u, 100'000u}) {
    EXPECT_EQ(live_generations(stamp, stamp - 1), 0xFF);
    EXPECT_EQ(live_generations(stamp, stamp - 65'535), 0xFF);
    EXPECT_EQ(live_generations(stamp, stamp - 65'536), 0);
  }
}

// A reader that asked for the epoch just before a writer began the next.
TYPED_TEST(WindowedFilter, IsFoundByAReaderThatTheWriterHasOvertaken) {
  const geometry g = TypeParam::of_blocks(2, 4);
  bytes all(bytes_for(g.bits));
  std::uint8_t* const block = all.data() + 512;
  TypeParam::insert_into(block, 42, 4, 1000);
  TypeParam::insert_into(block, 43, 4, 1003);

  for (const std::uint32_t reader : {1000u, 1002u, 1003u, 1007u}) {
    EXPECT_NE(TypeParam::generations_with(block, 42, 4, reader), 0) << reader;
  }
  EXPECT_EQ(TypeParam::generations_with(block, 42, 4, 1008) & 1, 0);
}

TEST(WindowedFilterOfIntegers, ForgetsAcrossTheEndOfTheStampsNumbers) {
  std::uint64_t now = (std::uint64_t{1} << 32) - 4;
  filter_of_integers<layouts::sliding> filter({0, 7}, 100, 0.01, {},
                                              [&] { return now; });  // generations of a millisecond

  for (std::uint64_t key = 0; key < 12; ++key, ++now) filter.insert(key);

  --now;
  for (std::uint64_t key = 0; key < 12; ++key) EXPECT_EQ(filter.may_contain(key), key >= 4) << key;
}

// ---- an insert always writes the newest generation ------------------------------------------------------------------

TYPED_TEST(WindowedFilter, RemembersAKeyWhoseCellsOlderGenerationsHadSet) {
  std::uint64_t now = some_day / 7000 * 7000;
  filter_of_integers<TypeParam> filter({0, 7000}, 20, 0.3, {}, [&] { return now; });
  for (std::uint64_t other = 1000; other < 1200; ++other) filter.insert(other);
  std::uint64_t key = 0;
  while (!filter.may_contain(key)) ++key;  // never inserted, all cells set

  now += 3000;
  EXPECT_FALSE(filter.insert(key));

  now += 5000;  // the others have run out
  EXPECT_EQ(filter.facts().keys_held(), 1u);
  EXPECT_TRUE(filter.may_contain(key));
  now += 2999;
  EXPECT_TRUE(filter.may_contain(key));
  now += 1;
  EXPECT_FALSE(filter.may_contain(key));
}

TEST(WindowedFilterOfIntegers, KeepsAKeyThatComesAgainFromThenOn) {
  std::uint64_t now = some_day;
  filter_of_integers<layouts::sliding> filter(window_of_time(std::chrono::hours(24)), 1000, 0.001, {},
                                              [&] { return now; });
  filter.insert(7);
  for (int day = 0; day < 10; ++day) {
    now += 24 * hour - 1;
    EXPECT_FALSE(filter.insert(7));
  }

  now += 24 * hour * 8 / 7 + 1;
  EXPECT_TRUE(filter.insert(7));
}

TEST(WindowedFilterOfIntegers, OfOneKeyRemembersTheLastOne) {
  filter_of_integers<layouts::sliding> filter(window_of_keys(1), 0, 1e-6);

  for (std::uint64_t key = 0; key < 1000; ++key) {
    EXPECT_TRUE(filter.insert(key));
    EXPECT_TRUE(filter.may_contain(key));
    if (key >= 8) {
      EXPECT_FALSE(filter.may_contain(key - 8));
    }
  }
}

TEST(WindowedFilterOfIntegers, StandsStillWhileTheClockIsBehind) {
  std::uint64_t now = some_day;
  filter_of_integers<layouts::sliding> filter(window_of_time(std::chrono::hours(7)), 1000, 0.001, {},
                                              [&] { return now; });
  filter.insert(1);
  now -= 100 * hour;
  EXPECT_FALSE(filter.insert(1));
  filter.insert(2);
  now += 99 * hour;

  EXPECT_TRUE(filter.may_contain(1));
  EXPECT_TRUE(filter.may_contain(2));
  EXPECT_EQ(filter.facts().epoch, some_day / hour);
}

TEST(WindowedFilterOfIntegers, IsEmptyAfterALeapOfTheClock) {
  std::uint64_t now = some_day;
  filter_of_integers<layouts::sliding> filter(window_of_time(std::chrono::hours(7)), 1000, 0.01, {},
                                              [&] { return now; });
  for (std::uint64_t key = 0; key < 100; ++key) filter.insert(key);

  now = std::numeric_limits<std::uint64_t>::max();  // a clock that is broken for good

  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_FALSE(filter.may_contain(key));
  EXPECT_TRUE(filter.insert(5));
  EXPECT_TRUE(filter.may_contain(5));
  EXPECT_EQ(filter.facts().keys_held(), 1u);
}

// ---- batches --------------------------------------------------------------------------------------------------------

TYPED_TEST(WindowedFilter, TakesManyKeysAsOneAfterAnother) {
  // Large enough that blocks are fetched ahead; generations end within batches.
  filter_of_integers<TypeParam> one(window_of_keys(70'011), 800'000, 0.01), many(window_of_keys(70'011), 800'000, 0.01);
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> keys(150'000);
  for (std::uint64_t& key : keys) key = random() % 100'000;
  std::vector<std::uint8_t> is_new(keys.size());

  many.insert(keys, is_new);

  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(one.insert(keys[i]), is_new[i] != 0) << i;
  EXPECT_TRUE(std::ranges::equal(one.bytes(), many.bytes()));
  EXPECT_EQ(one.size(), many.size());
  std::vector<std::uint64_t> answers((keys.size() + 63) / 64);
  many.may_contain(keys, answers);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(one.may_contain(keys[i]), (answers[i / 64] >> i % 64 & 1) != 0) << i;
  }
}

TYPED_TEST(WindowedFilter, HasTheBytesOfAnAnyFilter) {
  std::uint64_t now = some_day;
  const auto clock = [&] { return now; };
  sliding_window_filter<std::string_view, TypeParam> typed(window_of_time(std::chrono::hours(24)), 5000, 0.01, {},
                                                           clock);
  any_filter any(complete({.layout = std::string(TypeParam::name),
                           .capacity = 5000,
                           .target_fpr = 0.01,
                           .window_milliseconds = 24 * hour}));
  any.set_clock(clock);
  ASSERT_EQ(typed.parameters(), any.parameters());
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) keys.push_back("key-" + std::to_string(i));

  for (std::size_t i = 0; i < keys.size(); ++i, now += hour / 20) ASSERT_EQ(typed.insert(keys[i]), any.insert(keys[i]));

  EXPECT_TRUE(std::ranges::equal(typed.bytes(), any.bytes()));
  std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<std::uint64_t> a((keys.size() + 63) / 64), b(a.size());
  typed.may_contain(views, a);
  any.may_contain(views, b);
  EXPECT_EQ(a, b);
  for (const std::string& key : keys) EXPECT_EQ(typed.may_contain(key), any.may_contain(key));
  ASSERT_TRUE(any.window().has_value());
  EXPECT_EQ(any.window()->keys, typed.facts().keys);
  EXPECT_EQ(any.expected_fpr(), typed.expected_fpr());
  EXPECT_EQ(any.current_fpr(), typed.current_fpr());
}

// ---- rates ----------------------------------------------------------------------------------------------------------

TYPED_TEST(WindowedFilter, OfOneGenerationHasTheRateOfABlockedFilter) {
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

TYPED_TEST(WindowedFilter, HasTheRateOfItsGenerationsTogether) {
  constexpr std::uint64_t blocks = 3;
  constexpr std::uint32_t k = 3;
  constexpr int trials = 60'000;
  const std::uint64_t scale = TypeParam::cells_of_block / 60;
  const keys_by_generation keys = {9 * scale, 40 * scale, 0, 25 * scale, 25 * scale, 1, 60 * scale, 3 * scale};
  std::mt19937_64 random(7);
  const auto cell = [&] { return random() % TypeParam::cells_of_block; };
  int hits = 0;
  for (int set = 0; set < trials / 100; ++set) {
    std::vector<std::uint8_t> cells(TypeParam::cells_of_block);  // of the block that is asked
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
  // Queries of one set of keys share its fill: their hits spread wider than independent ones would.
  EXPECT_NEAR(hits, trials * rate, 6 * 2 * std::sqrt(trials * rate));
}

TYPED_TEST(WindowedFilter, IsTheSmallestThatKeepsItsPromise) {
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

// Hits among absent keys, and what chance allows around the expected rate.
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

TYPED_TEST(WindowedFilter, KeepsItsPromiseAtTheWorstMoment) {
  constexpr std::uint64_t n = 100'000;
  filter_of_integers<TypeParam> filter(window_of_keys(n), 0, 0.01);
  const std::uint64_t part = (n + 6) / 7;
  std::uint64_t key = 0;

  for (const int generations : {8, 12, 29}) {  // full for the first time; after some rotations
    while (key < part * static_cast<std::uint64_t>(generations)) filter.insert(key++);

    EXPECT_LE(filter.expected_fpr(), 0.01);
    EXPECT_GT(filter.expected_fpr(), 0.0097);
    // Some hundred blocks, and those filled most count most: two parts in a hundred from filter to filter.
    EXPECT_NEAR(filter.current_fpr(), filter.expected_fpr(), 0.06 * 0.01);
    expect_measured(filter, filter.current_fpr());
    EXPECT_FALSE(filter.facts().has_overfull_generation());
    for (std::uint64_t i = key - n; i < key; ++i) ASSERT_TRUE(filter.may_contain(i)) << i;
  }
}

TYPED_TEST(WindowedFilter, AfterIdleTimeHasTheRateOfWhatIsLeft) {
  std::uint64_t now = some_day / 7000 * 7000;
  filter_of_integers<TypeParam> filter({0, 7000}, 70'000, 0.01, {}, [&] { return now; });
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
  filter.insert(1);  // only now is it known to the cells, too
  EXPECT_NEAR(filter.current_fpr(), rate, 0.05 * rate);
  now += 7000;
  filter.insert(2);
  EXPECT_EQ(filter.facts().keys_held(), 1u + (filter.facts().keys[(now / 1000 - 7) % 8] != 0 ? 1u : 0u));
  EXPECT_LT(filter.current_fpr(), 1e-6);
}

TEST(WindowedFilterOfIntegers, SaysThatAGenerationGotMoreKeysThanItMay) {
  filter_of_integers<layouts::sliding> filter(window_of_time(std::chrono::hours(24)), 700, 0.01, {},
                                              [] { return some_day; });
  for (std::uint64_t key = 0; key < 100; ++key) filter.insert(key);
  EXPECT_FALSE(filter.facts().has_overfull_generation());

  for (std::uint64_t key = 100; key < 130; ++key) filter.insert(key);

  EXPECT_TRUE(filter.facts().has_overfull_generation());
}

// The certificate by its definition: all pairs of cells of all blocks.
TYPED_TEST(WindowedFilter, IsCertifiedByWhatEveryPossibleKeyWouldMeet) {
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
    const auto stamp = static_cast<std::uint32_t>(epoch - block * 3);  // two of them are behind
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
  const params p{.layout = std::string(TypeParam::name), .geometry = g, .window_keys = 7000};
  EXPECT_EQ(measure_fill(p, all).current_fpr, found.current_fpr);
}

TYPED_TEST(WindowedFilter, AuditAlarmsWhenTheCountOfAGenerationIsWrong) {
  filter_of_integers<TypeParam> filter(window_of_keys(70'000), 0, 0.01);
  for (std::uint64_t key = 0; key < 200'000; ++key) filter.insert(key);
  bytes changed(filter.bytes().begin(), filter.bytes().end());
  window_state state = window_state::of(changed.data());
  state.keys[3] /= 2;
  std::memcpy(changed.data(), &state, sizeof state);

  EXPECT_FALSE(check_window_fill(filter.parameters(), filter.bytes()).is_inconsistent());
  EXPECT_LT(std::abs(check_window_fill(filter.parameters(), filter.bytes()).deviation()), 4);
  EXPECT_TRUE(check_window_fill(filter.parameters(), changed).is_inconsistent());
}

// ---- files ----------------------------------------------------------------------------------------------------------

TYPED_TEST(WindowedFilter, ComesBackFromAFile) {
  const scratch_folder folder;
  std::uint64_t now = some_day;
  const auto clock = [&] { return now; };
  filter_of_integers<TypeParam> filter(window_of_time(std::chrono::hours(7)), 1000, 0.01, {}, clock);
  for (std::uint64_t key = 0; key < 500; ++key, now += hour / 100) filter.insert(key);
  filter.save(folder / "seen.bloom", "a note");

  {
    using mapped = sliding_window_filter<std::uint64_t, TypeParam, mix, mapped_storage>;
    auto again = mapped::open(folder / "seen.bloom", access::read_write, file_check::payload, {}, clock);
    EXPECT_TRUE(std::ranges::equal(again.bytes(), filter.bytes()));
    EXPECT_EQ(again.parameters(), filter.parameters());
    EXPECT_EQ(again.size(), filter.size());
    now += 5 * hour;
    again.insert(9999);
    filter.insert(9999);
    again.close();
  }
  const any_filter any = any_filter::open(folder / "seen.bloom", access::read_only, file_check::payload);
  EXPECT_TRUE(std::ranges::equal(any.bytes(), filter.bytes()));
  const auto loaded = filter_of_integers<TypeParam>::load(folder / "seen.bloom", {}, clock);
  EXPECT_TRUE(std::ranges::equal(loaded.bytes(), filter.bytes()));
  EXPECT_TRUE(loaded.may_contain(9999));
  EXPECT_EQ(loaded.facts().keys, filter.facts().keys);
}

TEST(WindowedFile, OpenedForReadingForgetsWithoutBeingWritten) {
  const scratch_folder folder;
  filter_of_integers<layouts::sliding> filter(window_of_time(std::chrono::hours(7)), 1000, 0.01, {},
                                              [] { return some_day; });
  filter.insert(1);
  filter.save(folder / "seen.bloom");
  const bytes before = read_file(folder / "seen.bloom");
  {
    any_filter any = any_filter::open(folder / "seen.bloom");
    any.set_clock([] { return some_day; });
    EXPECT_TRUE(any.may_contain(std::uint64_t{1}));
    any.set_clock([] { return some_day + 8 * hour; });
    EXPECT_FALSE(any.may_contain(std::uint64_t{1}));
    EXPECT_EQ(any.window()->keys_held(), 0u);
    EXPECT_EQ(any.expected_fpr(), 0);
  }
  EXPECT_EQ(read_file(folder / "seen.bloom"), before);
}

TEST(WindowedFile, OfAnotherWindowIsRefusedByAMerge) {
  filter_of_integers<layouts::sliding> a(window_of_time(std::chrono::hours(24)), 1000, 0.01);
  filter_of_integers<layouts::sliding> b(window_of_time(std::chrono::hours(12)), 1000, 0.01);

  EXPECT_ERROR(a.merge(b), errc::incompatible, "window, milliseconds: 86400000 and 43200000");
}

TEST(KilledWriterOfAWindow, LosesNoKeyOfTheWindow) {
  const scratch_folder folder;
  constexpr std::uint64_t keys_of_window = 2000;
  for (int round = 0; round < (is_long() ? 100 : 6); ++round) {
    const std::string path = folder / "seen.bloom";
    auto* const progress = static_cast<std::atomic<std::uint64_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const pid_t child = bloomery_tests::start_child([&] {
      using mapped = sliding_window_filter<std::uint64_t, layouts::sliding, mix, mapped_storage>;
      auto filter = mapped::create(path, window_of_keys(keys_of_window), 0, 0.01);
      for (std::uint64_t key = 0;; ++key) {
        filter.insert(key);
        progress->store(key + 1, std::memory_order_release);
      }
      return 0;
    });
    const std::uint64_t enough = 5000 + 3331 * static_cast<std::uint64_t>(round);
    while (progress->load(std::memory_order_acquire) < enough) ::sched_yield();
    ::kill(child, SIGKILL);
    EXPECT_EQ(bloomery_tests::wait_for(child), 128 + SIGKILL);
    const std::uint64_t done = *progress;
    ::munmap(progress, 4096);

    any_filter filter = any_filter::open(path, access::read_write, file_check::payload);

    EXPECT_FALSE(filter.opened_from()->clean);
    EXPECT_TRUE(filter.count_is_estimate());
    for (std::uint64_t key = done - keys_of_window; key < done; ++key) ASSERT_TRUE(filter.may_contain(key)) << key;
    EXPECT_LE(filter.window()->insertions, done + 1);
    EXPECT_GE(filter.window()->insertions + 1, done);
    filter.insert(std::uint64_t{1} << 50);
    filter.close();
    EXPECT_TRUE(inspect(path, file_check::payload).problems.empty());
  }
}

TYPED_TEST(WindowedFilter, OfALengthThatItCannotHaveLeavesTheOldFile) {
  const scratch_folder folder;
  const std::string path = folder / "seen.bloom";
  filter_of_integers<TypeParam>(window_of_keys(700), 0, 0.01).save(path);
  const bytes before = read_file(path);
  const std::uint64_t too_long = (std::uint64_t{1} << 62) + 1;
  using mapped = sliding_window_filter<std::uint64_t, TypeParam, mix, mapped_storage>;

  EXPECT_ERROR(mapped::create(path, {0, too_long}, 100, 0.01), errc::invalid_argument, "the window is too long");
  EXPECT_ERROR(mapped::create(path, {too_long, 0}, 100, 0.01), errc::invalid_argument, "the window is too long");
  EXPECT_ERROR(mapped::create(path, {5, 5}, 100, 0.01), errc::invalid_argument, "the window has two lengths");
  EXPECT_EQ(read_file(path), before);

  filter_of_integers<TypeParam> filter(window_of_keys(700), 0, 0.01);
  params p = filter.parameters();
  p.window_keys = too_long;
  EXPECT_ERROR(save_file(path, p, filter.bytes(), {}, ""), errc::invalid_argument, "length of a window");
  EXPECT_EQ(read_file(path), before);
}

// ---- blocks that are ahead of the state -----------------------------------------------------------------------------

// Eight generations of 100 keys, and some of the next, of which the state knows nothing: so a copy may look that was
// made beside a writer, or a file after a power failure.
template <class Layout>
class torn_filter {
 public:
  static constexpr std::uint64_t part = 1000;
  static constexpr std::uint64_t last_epoch = some_day / part;

  torn_filter(const std::string& path, std::uint64_t first_key) : first_key_(first_key) {
    std::uint64_t now = 0;
    filter_of_integers<Layout> filter({0, 7 * part}, 2000, 1e-6, {}, [&] { return now; });
    window_state state;
    for (std::uint64_t epoch = last_epoch - 7; epoch <= last_epoch + 1; ++epoch) {
      if (epoch == last_epoch + 1) state = window_state::of(filter.bytes().data());
      now = epoch * part;
      for (std::uint64_t i = 0; i < 100; ++i) filter.insert(key(epoch, i));
    }
    filter.save(path);
    bytes torn = read_file(path);
    std::memcpy(torn.data() + 4096, &state, sizeof state);
    write_file(path, torn);
  }

  std::uint64_t key(std::uint64_t epoch, std::uint64_t i) const {
    return first_key_ + (epoch - last_epoch + 7) * 100 + i;
  }

  // Keys of the window that are missing. Those of the first epoch went when the blocks came to the last.
  std::uint64_t missing(any_filter& filter, std::uint64_t epoch) const {
    filter.set_clock([epoch] { return epoch * part; });
    std::uint64_t result = 0;
    for (std::uint64_t of = std::max(last_epoch - 6, epoch - 7); of <= last_epoch + 1; ++of) {
      for (std::uint64_t i = 0; i < 100; ++i) result += filter.may_contain(key(of, i)) ? 0 : 1;
    }
    return result;
  }

 private:
  std::uint64_t first_key_;
};

TYPED_TEST(WindowedFilter, LosesNoKeyOfBlocksThatAreAheadOfTheState) {
  const scratch_folder folder;
  const torn_filter<TypeParam> torn(folder / "torn.bloom", 0);
  const std::uint64_t first = torn.last_epoch;
  any_filter filter = any_filter::open(folder / "torn.bloom", access::read_write);
  const auto mine = [](std::uint64_t epoch, std::uint64_t i) { return epoch * 1000 + i; };

  for (std::uint64_t epoch = first; epoch <= first + 16; ++epoch) {
    filter.set_clock([&] { return epoch * torn.part; });
    for (std::uint64_t i = 0; i < 100; ++i) filter.insert(mine(epoch, i));

    if (epoch <= first + 8) {
      EXPECT_EQ(torn.missing(filter, epoch), 0u) << epoch - first;
    }
    filter.set_clock([&] { return epoch * torn.part; });
    for (std::uint64_t of = std::max(first, epoch - 7); of <= epoch; ++of) {
      for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(filter.may_contain(mine(of, i))) << epoch - of;
    }
    // Forgotten is what always was: a block that was ahead is one like others when its epoch has come.
    if (epoch <= first + 9) continue;
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_FALSE(filter.may_contain(mine(epoch - 8, i))) << epoch - first;
  }
}

TYPED_TEST(WindowedFilter, UnitedWithBlocksThatAreAheadLosesNoKey) {
  const scratch_folder folder;
  const torn_filter<TypeParam> torn(folder / "torn.bloom", 0), other(folder / "other.bloom", 1'000'000);
  const std::uint64_t first = torn.last_epoch;
  std::uint64_t now = 0;
  filter_of_integers<TypeParam> sound({0, 7 * torn.part}, 2000, 1e-6, {}, [&] { return now; });
  const auto of_sound = [](std::uint64_t epoch) { return epoch * 1000; };
  for (std::uint64_t epoch = first - 7; epoch <= first; ++epoch) {
    now = epoch * torn.part;
    for (std::uint64_t i = 0; i < 100; ++i) sound.insert(of_sound(epoch) + i);
  }

  for (const char* into : {"sound.bloom", "torn.bloom"}) {
    SCOPED_TRACE(into);
    sound.save(folder / "sound.bloom");
    const char* from = std::string(into) == "sound.bloom" ? "torn.bloom" : "sound.bloom";
    any_filter all = any_filter::open(folder / into, access::read_write);
    all.merge(any_filter::open(folder / from));
    all.merge(any_filter::open(folder / "other.bloom"));

    for (std::uint64_t epoch = first; epoch <= first + 8; ++epoch) {
      EXPECT_EQ(torn.missing(all, epoch), 0u) << epoch - first;
      EXPECT_EQ(other.missing(all, epoch), 0u) << epoch - first;
      for (std::uint64_t of = epoch - 7; of <= first; ++of) {
        for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(all.may_contain(of_sound(of) + i)) << epoch - of;
      }
      all.insert(std::uint64_t{77});
    }
  }
}

// ---- hostile bytes --------------------------------------------------------------------------------------------------

class HostileWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    filter_of_integers<layouts::sliding> by_keys(window_of_keys(700), 0, 0.01);
    for (std::uint64_t key = 0; key < 1234; ++key) by_keys.insert(key);
    by_keys.save(folder_ / "seen.bloom");
    whole_ = read_file(folder_ / "seen.bloom");
  }

  // Opens the file with another state.
  void open_with(const window_state& state, std::size_t reserved = 0) {
    bytes changed = whole_;
    std::memcpy(changed.data() + 4096, &state, sizeof state);
    if (reserved != 0) changed[4096 + reserved] = 1;
    write_file(folder_ / "changed.bloom", changed);
    any_filter::open(folder_ / "changed.bloom");
  }

  window_state state() const { return window_state::of(whole_.data() + 4096); }

  scratch_folder folder_;
  bytes whole_;
};

TEST_F(HostileWindow, StateIsRefused) {
  const window_state sound = state();
  EXPECT_NO_THROW(open_with(sound));
  for (const std::uint64_t newest : {sound.newest + 1, sound.newest - 1, std::uint64_t{0}, ~std::uint64_t{0}}) {
    window_state s = sound;
    s.newest = newest;
    EXPECT_ERROR(open_with(s), errc::damaged, "newest generation of the window");
  }
  window_state s = sound;
  s.insertions = ~std::uint64_t{0};
  EXPECT_ERROR(open_with(s), errc::damaged, "insertions of the window");
  for (const std::uint64_t keys : {std::uint64_t{1200}, ~std::uint64_t{0}}) {
    s = sound;
    s.keys[2] = keys;
    EXPECT_ERROR(open_with(s), errc::damaged, "keys of the window's generations");
  }
  for (const std::size_t at : {sizeof(window_state), std::size_t{511}}) {
    EXPECT_ERROR(open_with(sound, at), errc::damaged, "reserved bytes of the window's state");
  }
}

TEST_F(HostileWindow, CellsAndStampsDoNoHarm) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    bytes changed = whole_;
    const std::size_t payload_bytes =
        512 + layouts::sliding::blocks_of(layouts::sliding::geometry_for(700, 0.01)) * 512;
    for (std::size_t at = 4096 + 512; at < 4096 + payload_bytes; ++at) {
      changed[at] = static_cast<std::uint8_t>(random());
    }
    write_file(folder_ / "changed.bloom", changed);

    any_filter filter = any_filter::open(folder_ / "changed.bloom", access::read_write);

    for (std::uint64_t key = 0; key < 300; ++key) filter.insert(key);
    for (std::uint64_t key = 0; key < 300; ++key) EXPECT_TRUE(filter.may_contain(key));
    EXPECT_GE(filter.current_fpr(), 0);
    EXPECT_LE(filter.current_fpr(), 1);
  }
}

// ---- merging --------------------------------------------------------------------------------------------------------

TYPED_TEST(WindowedFilter, MergedByTimeIsThatOfTheKeysOfBoth) {
  std::uint64_t now = some_day / 7000 * 7000;
  const auto clock = [&] { return now; };
  const auto make = [&] { return filter_of_integers<TypeParam>({0, 7000}, 500, 0.05, {}, clock); };
  filter_of_integers<TypeParam> a = make(), b = make(), both = make();
  std::mt19937_64 random(2);
  for (std::uint64_t key = 0; key < 1500; ++key, now += 11) {
    const bool to_a = now % 9000 < 4000 || key > 1400;  // b is behind at the end
    (to_a ? a : b).insert(key);
    both.insert(key);
  }
  now = 0;  // as of the newest epochs

  a.merge(b);

  for (std::uint64_t key = 0; key < 5000; ++key) ASSERT_EQ(a.may_contain(key), both.may_contain(key)) << key;
  EXPECT_EQ(a.current_fpr(), both.current_fpr());
  EXPECT_EQ(a.facts().epoch, both.facts().epoch);
  EXPECT_EQ(a.facts().insertions, both.facts().insertions);
  EXPECT_GE(a.facts().keys_held(), both.facts().keys_held());
}

TEST(MergedWindows, ByKeysAreRefused) {
  any_filter a(complete({.layout = "sliding", .target_fpr = 0.01, .window_keys = 700}));
  any_filter b(complete({.layout = "sliding", .target_fpr = 0.01, .window_keys = 700}));

  EXPECT_ERROR(a.merge(b), errc::incompatible, "windows that go by keys cannot be merged");
  EXPECT_FALSE(a.compatible_with(b));
}

TEST(MergedWindows, CannotBeIntersectedOrFolded) {
  const params p = complete({.layout = "sliding", .capacity = 700, .target_fpr = 0.01, .window_milliseconds = 1000});
  any_filter a(p), b(p);

  EXPECT_ERROR(a.intersect(b), errc::incompatible, "cannot be intersected");
  EXPECT_ERROR(estimated_keys(p, 5), errc::incompatible, "eight generations");
  EXPECT_EQ(times_foldable(p), 0u);
}

TEST(WindowInsertions, EndBeforeTheyAreMoreThanAFileMaySay) {
  const scratch_folder folder;
  const std::uint64_t most = std::uint64_t{1} << 62;
  filter_of_integers<layouts::sliding> filter({0, 7000}, 700, 0.01, {}, [] { return some_day; });
  filter.insert(1);
  filter.save(folder / "seen.bloom");
  bytes file = read_file(folder / "seen.bloom");
  window_state state = window_state::of(filter.bytes().data());
  state.insertions = most - 10;
  std::memcpy(file.data() + 4096, &state, sizeof state);
  write_file(folder / "seen.bloom", file);
  {
    any_filter full = any_filter::open(folder / "seen.bloom", access::read_write);
    for (std::uint64_t key = 0; key < 10; ++key) full.insert(key);
    const bytes before(full.bytes().begin(), full.bytes().end());

    EXPECT_ERROR(full.insert(std::uint64_t{10}), errc::too_large, "no more insertions");
    EXPECT_TRUE(std::ranges::equal(full.bytes(), before));
    EXPECT_ERROR(full.merge(any_filter::open(folder / "seen.bloom")), errc::too_large, "no more insertions");
    EXPECT_TRUE(std::ranges::equal(full.bytes(), before));
    full.close();
  }
  EXPECT_EQ(any_filter::open(folder / "seen.bloom").window()->insertions, most);
}

TEST(WindowInsertions, OfHalvesOfHashesAreRefused) {
  any_filter filter(complete({.layout = "sliding", .target_fpr = 0.01, .window_keys = 700}));
  const std::vector<std::uint64_t> hash64s{1, 2, 3};

  EXPECT_FALSE(filter.uses_hash64());
  EXPECT_ERROR(filter.insert_hash64s(hash64s), errc::incompatible, "halves of hashes");
}

// ---- parameters -----------------------------------------------------------------------------------------------------

TEST(WindowParameters, ThatContradictThemselvesAreRefused) {
  params p{.layout = "sliding", .capacity = 100, .target_fpr = 0.01};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window has no length");
  p.window_keys = p.window_milliseconds = 5;
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window has two lengths");
  p = {.layout = "split_block512", .capacity = 100, .target_fpr = 0.01, .window_keys = 5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "only sliding-window filters have a window");
  p = {.scheme = "guava", .capacity = 100, .target_fpr = 0.01, .window_keys = 5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "only sliding-window filters have a window");
  p = {.layout = "sliding", .geometry = {4096 + 4096 + 8, 3}, .window_keys = 5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "bits of a sliding filter");
  p = {.layout = "sliding64", .geometry = {4096, 3}, .window_keys = 5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "bits of a sliding64 filter");
  p = {.layout = "sliding", .geometry = {8192, 256}, .window_keys = 5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "probes of a sliding filter");
  p = {.layout = "sliding", .capacity = 5, .target_fpr = 0.1, .window_keys = std::uint64_t{1} << 63};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window is too long");
  EXPECT_ERROR(filter_of_integers<layouts::sliding>(window_length{}, 5, 0.1), errc::invalid_argument,
               "the window has no length");
}

}  // namespace
}  // namespace bloomery
