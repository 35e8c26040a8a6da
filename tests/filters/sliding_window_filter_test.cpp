// Sliding-window filters, compared with a model that keeps the time of every key, and with a model of their cells made
// of sets.
#include <bloomery/any_filter.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "filters/sliding_windows.hpp"
#include "support/long_tests.hpp"
#include "support/operations.hpp"
#include "support/test.hpp"

#include <chrono>
#include <map>
#include <ostream>
#include <set>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- the twin: for each epoch the set of its cells, by docs/format.md -----------------------------------------------

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

// Applies the operations to a filter and to the model; returns the first difference, or nothing.
template <class Layout>
std::string compared(const std::vector<operation>& operations, window_length length, std::uint64_t start) {
  std::uint64_t clock = start;
  filter_of_integers<Layout> filter({.window = length, .capacity = 24, .fpr = 0.3, .clock = [&] { return clock; }});
  twin<Layout> cells(filter.parameters().geometry);
  const bool by_keys = !length.by_time();
  const std::uint64_t whole = length.count;
  const std::uint64_t slice = (whole + 6) / 7;
  std::uint64_t newest = 0, insertions = 0;
  std::map<std::uint64_t, std::uint64_t> last;  // key -> moment, or insertion

  const auto epoch_now = [&] { return by_keys ? newest : std::max(newest, clock / slice); };
  const auto moment_now = [&] { return by_keys ? insertions : std::max(clock, newest * slice); };
  const auto problem = [&](bool answer, std::uint64_t key, const char* who) -> std::string {
    if (answer != cells.has(key, epoch_now())) return std::string(who) + " is not what the cells say";
    const auto seen = last.find(key);
    const bool in_window = seen != last.end() && moment_now() - seen->second < whole + (by_keys ? 1 : 0);
    if (in_window && !answer) return std::string(who) + " misses a key of the window";
    return {};
  };
  const auto note = [&](std::uint64_t key, bool is_new) -> std::string {
    newest = by_keys ? insertions / slice : std::max(newest, clock / slice);
    std::string wrong = problem(!is_new, key, "insert");
    cells.insert(key, newest);
    last[key] = moment_now();
    ++insertions;
    return wrong;
  };

  for (const operation& o : operations) {
    std::string wrong;
    if (o.what == operation::wait) clock += o.amount * slice / 8;
    if (o.what == operation::leap) clock += o.amount * slice * 3;
    if (o.what == operation::turn_back) clock -= std::min(clock, o.amount * slice / 2);
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

template <class Layout>
class SlidingWindowFilter : public ::testing::Test {};
TYPED_TEST_SUITE(SlidingWindowFilter, layouts_with_window);

TYPED_TEST(SlidingWindowFilter, ByTimeAnswersAsItsModelDoes) {
  for (const std::uint64_t start : {std::uint64_t{0}, some_day, (std::uint64_t{1} << 32) * 3 - 40}) {
    for (const std::uint64_t length : {1u, 7u, 20u, 1000u}) {
      SCOPED_TRACE(std::to_string(start) + ", " + std::to_string(length));
      EXPECT_TRUE(holds_for_all(repetitions(12, 3, 300), 150, draw, [&](const std::vector<operation>& operations) {
        return compared<TypeParam>(operations, window_of_milliseconds(length), start);
      }));
    }
  }
}

TYPED_TEST(SlidingWindowFilter, ByKeysAnswersAsItsModelDoes) {
  for (const std::uint64_t length : {1u, 2u, 7u, 8u, 24u, 100u}) {
    SCOPED_TRACE(length);
    EXPECT_TRUE(holds_for_all(repetitions(20, 5, 300), 150, draw, [&](const std::vector<operation>& operations) {
      return compared<TypeParam>(operations, window_of_keys(length), 0);
    }));
  }
}

// The example of docs/format.md.
TEST(SlidingWindowBytes, OfMadridAreThoseOfTheFormat) {
  const auto bytes_set = [](const std::string& layout, std::uint64_t bits) {
    any_filter filter(complete({.layout = layout,
                                .hash = "xxh3",
                                .geometry = {bits, 4},
                                .capacity = 10,
                                .extra = window_of_time(std::chrono::seconds(7))}));
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

// ---- block stamps ---------------------------------------------------------------------------------------------------

TEST(LiveSlices, AreThoseOfTheEpochsUpToTheStampThatHaveNotRunOut) {
  for (const std::uint32_t stamp : {0u, 1u, 5u, 7u, 8u, 1000u, 0xFFFFFFFCu, 0xFFFFFFFFu}) {
    for (std::uint32_t passed = 0; passed < 20; ++passed) {
      std::uint8_t live = 0;  // the epochs stamp - 7 .. stamp, except those before now - 7
      for (std::uint32_t age = 0; age < 8; ++age) {
        if (age + passed < 8) live = static_cast<std::uint8_t>(live | 1u << (stamp - age) % 8);
      }

      EXPECT_EQ(live_generations(stamp, stamp + passed), live) << stamp << " and " << passed;
    }
  }
}

TEST(LiveSlices, AreAllOfABlockThatIsAhead) {
  for (const std::uint32_t stamp : {0u, 5u, 100'000u}) {
    EXPECT_EQ(live_generations(stamp, stamp - 1), 0xFF);
    EXPECT_EQ(live_generations(stamp, stamp - 65'535), 0xFF);
    EXPECT_EQ(live_generations(stamp, stamp - 65'536), 0);
  }
}

// A reader that read the epoch just before a writer began the next one.
TYPED_TEST(SlidingWindowFilter, IsFoundByAReaderThatTheWriterHasOvertaken) {
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

TEST(SlidingWindowFilterOfIntegers, ForgetsAcrossTheEndOfTheStampsNumbers) {
  std::uint64_t now = (std::uint64_t{1} << 32) - 4;
  // Generations of a millisecond.
  filter_of_integers<layouts::sliding> filter(
      {.window = window_of_milliseconds(7), .capacity = 100, .clock = [&] { return now; }});

  for (std::uint64_t key = 0; key < 12; ++key, ++now) filter.insert(key);

  --now;
  for (std::uint64_t key = 0; key < 12; ++key) EXPECT_EQ(filter.may_contain(key), key >= 4) << key;
}

// ---- the newest generation ------------------------------------------------------------------------------------------

TYPED_TEST(SlidingWindowFilter, RemembersAKeyWhoseCellsOlderGenerationsHadSet) {
  std::uint64_t now = some_day / 7000 * 7000;
  filter_of_integers<TypeParam> filter(
      {.window = window_of_milliseconds(7000), .capacity = 20, .fpr = 0.3, .clock = [&] { return now; }});
  for (std::uint64_t other = 1000; other < 1200; ++other) filter.insert(other);
  std::uint64_t key = 0;
  while (!filter.may_contain(key)) ++key;  // never inserted, but all its cells are set

  now += 3000;
  EXPECT_FALSE(filter.insert(key));

  now += 5000;  // the other generations have expired
  EXPECT_EQ(filter.facts().keys_held(), 1u);
  EXPECT_TRUE(filter.may_contain(key));
  now += 2999;
  EXPECT_TRUE(filter.may_contain(key));
  now += 1;
  EXPECT_FALSE(filter.may_contain(key));
}

TEST(SlidingWindowFilterOfIntegers, OfOneKeyRemembersTheLastOne) {
  filter_of_integers<layouts::sliding> filter({.window = window_of_keys(1), .fpr = 1e-6});

  for (std::uint64_t key = 0; key < 1000; ++key) {
    EXPECT_TRUE(filter.insert(key));
    EXPECT_TRUE(filter.may_contain(key));
    if (key >= 8) {
      EXPECT_FALSE(filter.may_contain(key - 8));
    }
  }
}

TEST(SlidingWindowFilterOfIntegers, IsEmptyAfterALeapOfTheClock) {
  std::uint64_t now = some_day;
  filter_of_integers<layouts::sliding> filter(
      {.window = window_of_time(std::chrono::hours(7)), .capacity = 1000, .clock = [&] { return now; }});
  for (std::uint64_t key = 0; key < 100; ++key) filter.insert(key);

  now = std::numeric_limits<std::uint64_t>::max();  // a permanently broken clock

  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_FALSE(filter.may_contain(key));
  EXPECT_TRUE(filter.insert(5));
  EXPECT_TRUE(filter.may_contain(5));
  EXPECT_EQ(filter.facts().keys_held(), 1u);
}

// ---- batches --------------------------------------------------------------------------------------------------------

TYPED_TEST(SlidingWindowFilter, TakesManyKeysAsOneAfterAnother) {
  // Large enough that blocks are fetched ahead; generations end within batches.
  filter_of_integers<TypeParam> one({.window = window_of_keys(70'011), .capacity = 800'000}),
      many({.window = window_of_keys(70'011), .capacity = 800'000});
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> keys(150'000);
  for (std::uint64_t& key : keys) key = random() % 100'000;
  std::vector<std::uint8_t> is_new(keys.size());

  many.insert(keys, is_new);

  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(one.insert(keys[i]), is_new[i] != 0) << i;
  EXPECT_TRUE(std::ranges::equal(one.bytes(), many.bytes()));
  EXPECT_EQ(one.insert_count(), many.insert_count());
  std::vector<std::uint64_t> answers((keys.size() + 63) / 64);
  many.may_contain(keys, answers);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(one.may_contain(keys[i]), (answers[i / 64] >> i % 64 & 1) != 0) << i;
  }
}

TYPED_TEST(SlidingWindowFilter, HasTheBytesOfAnAnyFilter) {
  std::uint64_t now = some_day;
  const auto clock = [&] { return now; };
  sliding_window_filter<std::string_view, TypeParam> typed(
      {.window = window_of_time(std::chrono::hours(24)), .capacity = 5000, .clock = clock});
  any_filter any(complete({.layout = std::string(TypeParam::name),
                           .capacity = 5000,
                           .target_fpr = 0.01,
                           .extra = window_of_time(std::chrono::hours(24))}));
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

TEST(SlidingWindowInsertions, EndBeforeTheyAreMoreThanAFileMaySay) {
  const scratch_folder folder;
  const std::uint64_t most = std::uint64_t{1} << 62;
  filter_of_integers<layouts::sliding> filter(
      {.window = window_of_milliseconds(7000), .capacity = 700, .clock = [] { return some_day; }});
  filter.insert(1);
  filter.save(folder / "seen.bloom");
  bytes file = read_file(folder / "seen.bloom");
  window_state state = window_state::of(filter.bytes().data());
  state.insertions = most - 10;
  std::memcpy(file.data() + 4096, &state, sizeof state);
  write_file(folder / "seen.bloom", file);
  {
    any_filter full =
        any_filter::open(folder / "seen.bloom", {.mode = access::read_write, .check = file_check::header});
    for (std::uint64_t key = 0; key < 10; ++key) full.insert(key);
    const bytes before(full.bytes().begin(), full.bytes().end());

    EXPECT_ERROR(full.insert(std::uint64_t{10}), errc::too_large, "maximum number of insertions");
    EXPECT_TRUE(std::ranges::equal(full.bytes(), before));
    EXPECT_ERROR(full.merge(any_filter::open(folder / "seen.bloom")), errc::too_large, "maximum number of insertions");
    EXPECT_TRUE(std::ranges::equal(full.bytes(), before));
    full.close();
  }
  EXPECT_EQ(any_filter::open(folder / "seen.bloom").window()->insertions, most);
}

TEST(SlidingWindowInsertions, OfHash64sAreRefused) {
  any_filter filter(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(700)}));
  const std::vector<std::uint64_t> hash64s{1, 2, 3};

  EXPECT_FALSE(filter.uses_hash64());
  EXPECT_ERROR(filter.insert(key_span::of_hash64s(hash64s)), errc::incompatible, "does not accept hash64s");
}

// ---- parameters -----------------------------------------------------------------------------------------------------

TEST(SlidingWindowParameters, LengthIsKeysOrTimeInSevenSlices) {
  EXPECT_EQ(window_of_time(std::chrono::seconds(7)), window_of_milliseconds(7000));
  EXPECT_NE(window_of_keys(7000), window_of_milliseconds(7000));
  EXPECT_EQ(window_of_keys(700).slice_length(), 100u);
  EXPECT_EQ(window_of_milliseconds(701).slice_length(), 101u);
  EXPECT_EQ(window_of_keys(1).slice_length(), 1u);
  EXPECT_EQ(window_of_keys(7 * (std::uint64_t{1} << 59) + 6).slice_length(), (std::uint64_t{1} << 59) + 1);
}

TEST(SlidingWindowParameters, StayWithoutALog) {
  const params window{.layout = "sliding", .extra = window_of_keys(700)};
  EXPECT_EQ(window.without_log(), window);
  EXPECT_EQ(window.log_id(), 0u);
  const params logged{.layout = "blocked", .extra = key_log_id{5}};
  EXPECT_EQ(logged.log_id(), 5u);
  EXPECT_FALSE(logged.has_window());
  EXPECT_EQ(logged.without_log(), params{.layout = "blocked"});
}

TEST(SlidingWindowParameters, ThatContradictThemselvesAreRefused) {
  params p{.layout = "sliding", .capacity = 100, .target_fpr = 0.01};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window has no length");
  p.extra = window_of_time({});
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window has no length");
  p.extra = key_log_id{5};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window has no length");
  p = {.layout = "split_block512", .capacity = 100, .target_fpr = 0.01, .extra = window_of_keys(5)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "only sliding-window filters have a window");
  p = {.scheme = "guava", .capacity = 100, .target_fpr = 0.01, .extra = window_of_keys(5)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "only sliding-window filters have a window");
  p = {.layout = "sliding", .geometry = {4096 + 4096 + 8, 3}, .extra = window_of_keys(5)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "number of bits for a sliding filter");
  p = {.layout = "sliding64", .geometry = {4096, 3}, .extra = window_of_keys(5)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "number of bits for a sliding64 filter");
  p = {.layout = "sliding", .geometry = {8192, 256}, .extra = window_of_keys(5)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "invalid number of probes for a sliding filter");
  p = {.layout = "sliding", .capacity = 5, .target_fpr = 0.1, .extra = window_of_keys(std::uint64_t{1} << 63)};
  EXPECT_ERROR(complete(p), errc::invalid_argument, "the window is too long");
  EXPECT_ERROR(filter_of_integers<layouts::sliding>({.capacity = 5, .fpr = 0.1}), errc::invalid_argument,
               "the window has no length");
}

}  // namespace
}  // namespace bloomery
