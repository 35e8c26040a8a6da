// Demo sessions, compared with recomputed results: an exact set, and the cells of all keys.
#include "playground/visitor.hpp"

#include "support/errors.hpp"
#include "support/files.hpp"

#include "playground/json/json.hpp"
#include "playground/session/demo_session.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/static_filter.hpp>

#include <cmath>
#include <random>
#include <set>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;
using bloomery::errc;
using texts = std::vector<std::string>;

demo_session made(const json& text) {
  fields body(text.dump());
  return demo_session(wanted_from(body));
}

texts keys_of(const std::string& prefix, int count) {
  texts keys;
  for (int i = 0; i < count; ++i) keys.push_back(prefix + std::to_string(i));
  return keys;
}

std::string file_of(const auto& filter) {
  scratch_folder folder;
  filter.save(folder / "a.bloom");
  const bytes file = read_file(folder / "a.bloom");
  return {file.begin(), file.end()};
}

std::set<std::uint64_t> cells_of(const demo_session& e, const std::string& key) {
  std::set<std::uint64_t> cells;
  for (const place& at : e.filter().places_of(key)) cells.insert(at.cell);
  return cells;
}

std::vector<std::uint8_t> bytes_of(const demo_session& e) { return e.filter().values(0, e.filter().cells()); }

class DemoSessionOfAKind : public testing::TestWithParam<json> {};

TEST_P(DemoSessionOfAKind, NamesTheOwnersOfEveryCell) {
  demo_session e = made(GetParam());
  const texts in = keys_of("key ", 40);
  e.add(in);

  for (std::uint64_t cell = 0; cell < e.filter().cells(); ++cell) {
    std::set<std::string> expected;
    for (const std::string& key : in) {
      if (cells_of(e, key).contains(cell)) expected.insert(key);
    }
    const owners_of_cell owners = e.owners(cell, 1000);
    if (e.filter().has_layers()) {
      // Only one layer accepted the key: every owner has the cell, but not every key with the cell is an owner.
      for (const std::string& key : owners.named) EXPECT_TRUE(expected.contains(key));
      EXPECT_EQ(owners.count > 0, owners.value != 0) << cell;
    } else {
      EXPECT_EQ(std::set<std::string>(owners.named.begin(), owners.named.end()), expected) << cell;
      EXPECT_EQ(owners.count, expected.size());
      EXPECT_EQ(owners.value != 0, !expected.empty()) << cell;
    }
  }
}

TEST_P(DemoSessionOfAKind, CountsTheFalsePositivesOfAnExactSet) {
  demo_session e = made(GetParam());
  const texts in = keys_of("key ", 60);
  const texts asked = keys_of("key ", 2000);
  const std::set<std::string> exact(in.begin(), in.end());
  e.add(in);

  const answers a = e.ask(asked);

  std::uint64_t yes = 0, wrong = 0;
  for (const std::string& key : asked) {
    const bool maybe = e.filter().may_contain(key);
    EXPECT_TRUE(maybe || !exact.contains(key)) << key;
    yes += maybe ? 1 : 0;
    wrong += maybe && !exact.contains(key) ? 1 : 0;
  }
  EXPECT_EQ(a.yes, yes);
  EXPECT_EQ(a.false_positives, wrong);
  EXPECT_EQ(a.count, 2000u);
  for (std::size_t i = 0; i < a.keys.size(); ++i) {
    EXPECT_EQ(a.keys[i].key, asked[i]);
    EXPECT_EQ(a.keys[i].actual, exact.contains(asked[i]) ? membership::added : membership::never);
  }
}

TEST_P(DemoSessionOfAKind, UndoRestoresEveryByteStepByStep) {
  demo_session e = made(GetParam());
  struct moment {
    std::vector<std::uint8_t> bytes;
    std::uint64_t counted;
    std::uint64_t keys;
  };
  const auto now = [&] { return moment{bytes_of(e), *e.facts().insert_count, e.distinct()}; };
  std::vector<moment> before;
  std::mt19937_64 chance(1);
  for (int i = 0; i < 12; ++i) {
    before.push_back(now());
    const std::string key = "key " + std::to_string(chance() % 40);
    if (i % 4 == 3 && e.filter().parameters().window().by_time()) {
      e.tick(chance() % 5000);
    } else if (i % 4 == 3 && e.filter().capabilities().can_remove) {
      e.remove(key, false);
    } else if (i % 4 == 3 && !e.filter().has_layers() && !e.filter().has_window()) {
      e.remove(key, true);
    } else if (i % 2 == 0) {
      e.add(address_range{3, chance() % 100, 1 + chance() % 20});
    } else {
      e.add(texts{key, key, "key " + std::to_string(chance() % 40)});
    }
  }

  while (!before.empty()) {
    ASSERT_TRUE(e.can_undo());
    e.undo();
    const moment m = now();
    EXPECT_EQ(m.bytes, before.back().bytes);
    EXPECT_EQ(m.counted, before.back().counted);
    EXPECT_EQ(m.keys, before.back().keys);
    before.pop_back();
  }

  EXPECT_FALSE(e.can_undo());
  EXPECT_EQ(code_of([&] { e.undo(); }), errc::incompatible);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DemoSessionOfAKind, testing::ValuesIn(all_kinds(60)), name_of_kind);

TEST(DemoSession, RemovingByForceLosesExactlyTheKeysThatShareABit) {
  for (const json& kind : {json{{"layout", "classic"}, {"bits", 500}, {"capacity", 50}},
                           json{{"layout", "split_block512"}, {"bits", 512}, {"capacity", 50}},
                           json{{"scheme", "pharo"}, {"capacity", 50}, {"rate", 0.1}}}) {
    SCOPED_TRACE(kind.dump());
    demo_session e = made(kind);
    texts in = keys_of("key ", 50);
    e.add(in);
    for (int round = 0; round < 4; ++round) {
      const std::string gone = in[static_cast<std::size_t>(round) * 7];
      const bool there = e.filter().may_contain(gone);
      std::vector<std::uint8_t> cleared = bytes_of(e);
      if (there) {
        for (const std::uint64_t cell : cells_of(e, gone)) cleared[cell] = 0;
      }
      std::set<std::string> expected;
      for (const std::string& key : in) {
        const std::set<std::uint64_t> cells = cells_of(e, key);
        const bool has_all = std::all_of(cells.begin(), cells.end(), [&](std::uint64_t c) { return cleared[c] != 0; });
        if (key != gone && !has_all) expected.insert(key);
      }

      const removal_view removed = e.remove(gone, true);

      in.erase(std::find(in.begin(), in.end(), gone));
      EXPECT_EQ(removed.found, there);
      EXPECT_EQ(bytes_of(e), cleared);
      EXPECT_EQ(std::set<std::string>(removed.lost.begin(), removed.lost.end()), expected);
      EXPECT_EQ(removed.lost_count, expected.size());
      EXPECT_EQ(e.distinct(), in.size());
      EXPECT_TRUE(e.facts().count_is_estimate);
    }
  }
}

TEST(DemoSession, AnAbsentKeyIsNotRemovedByForce) {
  demo_session e = made({{"layout", "classic"}, {"bits", 500}, {"capacity", 50}});
  e.add(texts{"Madrid"});
  const std::vector<std::uint8_t> before = bytes_of(e);

  const removal_view removed = e.remove("Berlin", true);

  EXPECT_FALSE(removed.found);
  EXPECT_EQ(bytes_of(e), before);
  EXPECT_EQ(removed.lost_count, 0u);
}

TEST(DemoSession, ACountingFilterRemovesOneCopyAndLosesNothing) {
  demo_session e = made({{"layout", "counting"}, {"bits", 2048}, {"capacity", 30}, {"probes", 4}});
  e.add(keys_of("key ", 30));
  e.add(texts{"key 3"});

  EXPECT_TRUE(e.remove("key 3", false).found);
  EXPECT_TRUE(e.filter().may_contain("key 3"));
  EXPECT_EQ(e.ask(texts{"key 3"}).keys[0].actual, membership::added);
  const removal_view removed = e.remove("key 3", false);

  EXPECT_TRUE(removed.found);
  EXPECT_EQ(removed.lost_count, 0u);
  EXPECT_EQ(e.distinct(), 29u);
  EXPECT_EQ(e.ask(texts{"key 3"}).keys[0].actual, membership::removed);
}

TEST(DemoSession, KeysOfAWindowExpireWithTheirGeneration) {
  for (const char* layout : {"sliding", "sliding64"}) {
    SCOPED_TRACE(layout);
    demo_session e = made({{"layout", layout}, {"window_milliseconds", 7000}, {"capacity", 500}, {"rate", 0.001}});
    std::map<std::string, std::uint64_t> came;  // last insertion, as the number of its one-second generation
    std::uint64_t now = 0;
    std::mt19937_64 chance(2);
    for (int i = 0; i < 200; ++i) {
      const std::string key = "key " + std::to_string(chance() % 60);
      e.add(texts{key});
      came[key] = now / 1000;
      const std::uint64_t passed = 1 + chance() % 900;
      e.tick(passed);
      now += passed;

      std::uint64_t in = 0;
      std::uint64_t wrong = 0;
      for (const auto& [name, generation] : came) {
        const bool remembered = generation + bloomery::window_slices >= now / 1000;
        in += remembered ? 1 : 0;
        const key_view view = e.ask(texts{name}).keys.front();
        EXPECT_EQ(view.actual, remembered ? membership::added : membership::expired) << name;
        EXPECT_TRUE(view.maybe || !remembered) << name;
        wrong += view.maybe && !remembered ? 1 : 0;
      }
      ASSERT_EQ(e.distinct(), in);
      ASSERT_LE(wrong, 1u);
    }
  }
}

TEST(DemoSession, AnOpenedFileKnowsItsKeysOnlyAfterAReset) {
  demo_session first = made({{"capacity", 100}, {"rate", 0.01}});
  first.add(keys_of("key ", 100));
  demo_session e(first.filter().file());
  const std::vector<std::uint8_t> before = bytes_of(e);

  const answers a = e.ask(texts{"key 1", "nobody"});
  EXPECT_EQ(a.keys[0].actual, membership::unknown);
  EXPECT_TRUE(a.keys[0].maybe);
  EXPECT_FALSE(e.knows_keys());
  e.add(texts{"nobody"});
  EXPECT_EQ(e.ask(texts{"nobody"}).keys[0].actual, membership::added);
  e.undo();
  EXPECT_EQ(bytes_of(e), before);
  e.reset();
  EXPECT_TRUE(e.knows_keys());
  EXPECT_EQ(e.facts().fill->cells_set, 0u);
  EXPECT_EQ(e.ask(texts{"key 1"}).keys[0].actual, membership::never);

  // Steps after the reset can be undone, but not the reset.
  e.add(texts{"Madrid"});
  e.add(texts{"Berlin"});
  e.undo();
  EXPECT_TRUE(e.knows_keys());
  EXPECT_EQ(e.ask(texts{"Madrid"}).keys[0].actual, membership::added);
  EXPECT_EQ(e.ask(texts{"Berlin"}).keys[0].actual, membership::never);
  e.undo();
  EXPECT_EQ(e.facts().fill->cells_set, 0u);
}

TEST(DemoSession, AStaticFilterIsNotEmptied) {
  const std::vector<std::string_view> in{"Madrid", "Barcelona"};
  demo_session e(file_of(bloomery::static_filter<>::build(in)));
  const std::vector<std::uint8_t> before = bytes_of(e);

  EXPECT_EQ(code_of([&] { e.reset(); }), errc::incompatible);

  EXPECT_EQ(bytes_of(e), before);
  const key_view madrid = e.ask(texts{"Madrid"}).keys[0];
  EXPECT_TRUE(madrid.maybe);
  EXPECT_EQ(madrid.actual, membership::unknown);
  EXPECT_EQ(demo_session(e.filter().file()).filter().parameters().layout, "fuse8");
}

TEST(DemoSession, AFilterWhoseCellsAreBlocksIsRefused) {
  const std::string file =
      file_of(bloomery::any_filter(bloomery::complete({.layout = "quotient7", .capacity = 100, .target_fpr = 0.01})));

  const auto refused = error_of([&] { demo_session e(file); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::incompatible);
  EXPECT_EQ(refused->text().found, "quotient7, with cells of 512 bits");
  EXPECT_EQ(refused->text().hint.words(), "open it in the view Inspect");
}

TEST(DemoSession, ANumberIsOneKeyHoweverItIsWritten) {
  demo_session e(file_of(bloomery::any_filter(
      bloomery::complete({.keys = bloomery::key_kind::u64le, .capacity = 100, .target_fpr = 0.001}))));
  e.reset();
  EXPECT_EQ(code_of([&] { e.add(texts{"8", "x"}); }), errc::invalid_argument);
  e.add(texts{"7", "0012"});

  const answers a = e.ask(texts{"07", "12", "8"});

  EXPECT_EQ(a.keys[0].key, "7");
  EXPECT_EQ(a.keys[0].actual, membership::added);
  EXPECT_EQ(a.keys[1].actual, membership::added);
  EXPECT_EQ(a.keys[2].actual, membership::never);
  EXPECT_EQ(a.false_positives, 0u);
  EXPECT_EQ(e.distinct(), 2u);
  EXPECT_EQ(e.search(1000, 1).measured.queries, 1000u);
  EXPECT_NE(e.search(1000, 1).found.size(), 1000u);
}

TEST(DemoSession, AddingNoKeyIsNoStep) {
  demo_session e = made({{"capacity", 100}});

  e.add(texts{});

  EXPECT_EQ(e.step_count(), 0u);
  EXPECT_FALSE(e.can_undo());
}

TEST(DemoSession, ADownloadedWindowRemembersToday) {
  demo_session e =
      made({{"layout", "sliding"}, {"window_milliseconds", 86'400'000}, {"capacity", 100}, {"rate", 0.001}});
  e.add(texts{"Madrid"});
  const auto first = e.facts().window->epoch;
  e.tick(86'400'000);
  e.undo();
  scratch_folder folder;
  write_file(folder / "a.bloom", e.filter().file());

  const auto downloaded = bloomery::any_filter::load(folder / "a.bloom");  // by the system's clock

  EXPECT_TRUE(downloaded.may_contain(std::string_view("Madrid")));
  e.reset();
  e.add(texts{"Berlin"});
  EXPECT_EQ(e.facts().window->epoch, first);
  demo_session again(e.filter().file());
  EXPECT_EQ(again.facts().window->epoch, first);
  again.reset();
  again.add(texts{"Roma"});
  EXPECT_GE(again.facts().window->epoch, first);
}

TEST(DemoSession, TheSearchFindsFalsePositives) {
  demo_session e = made({{"layout", "classic"}, {"bits", 4000}, {"capacity", 500}});
  e.add(keys_of("key ", 500));

  const search_result s = e.search(20'000, 7);

  EXPECT_EQ(s.measured.queries, 20'000u);
  EXPECT_NEAR(s.measured.rate(), e.facts().fill->current_fpr, 6 * std::sqrt(e.facts().fill->current_fpr / 20'000));
  ASSERT_FALSE(s.found.empty());
  EXPECT_LE(s.found.size(), 20u);
  for (const std::string& key : s.found) EXPECT_TRUE(e.filter().may_contain(key));
}

TEST(ReferenceSet, CountsKeysByTheirLastGeneration) {
  reference_set set;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> twin;  // copies, part
  std::mt19937_64 chance(3);
  for (int i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(chance() % 50);
    const std::uint64_t part = static_cast<std::uint64_t>(i) / 300;
    if (chance() % 3 != 0) {
      set.add(key, part);
      twin[key] = {twin[key].first + 1, part};
    } else if (chance() % 4 == 0) {
      set.remove_all(key);
      if (twin.contains(key)) twin[key].first = 0;
    } else {
      set.remove(key);
      if (twin.contains(key) && twin[key].first > 0) --twin[key].first;
    }
    for (const std::uint64_t since : {std::uint64_t{0}, part, part + 1}) {
      const auto expected = std::count_if(
          twin.begin(), twin.end(), [&](const auto& e) { return e.second.first > 0 && e.second.second >= since; });
      ASSERT_EQ(set.distinct_since(since), static_cast<std::uint64_t>(expected));
    }
    ASSERT_EQ(set.distinct(), set.distinct_since(0));
  }
}

}  // namespace
}  // namespace bloomery_tests
