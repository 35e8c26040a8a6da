// Counting filters against an array of counters and a multiset of keys, kept by hand.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/file_edit.hpp>
#include <bloomery/fill_check.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>

#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/operations.hpp"
#include "support/processes.hpp"
#include "support/rate_variance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::code_of;
using bloomery_tests::error_of;
using bloomery_tests::read_file;
using bloomery_tests::scratch_folder;
using bloomery_tests::write_file;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Key>
using counting_filter = filter<Key, layouts::counting>;

// ---- the model ------------------------------------------------------------------------------------------------------

// As docs/format.md has it.
std::set<std::uint64_t> cells_by_the_book(key_hash hash, const geometry& g) {
  __extension__ using wide = unsigned __int128;
  const std::uint64_t line = static_cast<std::uint64_t>(static_cast<wide>(hash.hash64) * (g.bits / 512) >> 64);
  std::set<std::uint64_t> cells;
  std::uint64_t x = (2 * hash.hash64 + 1) * 0x9E3779B97F4A7C15;
  for (std::uint32_t i = 0; i < g.probes; ++i) {
    cells.insert(128 * line + (x >> 57));
    x *= 0xD1342543DE82EF95;
  }
  return cells;
}

// Counters one by one, and what was put in and not taken out.
struct model {
  explicit model(const geometry& wanted) : g(wanted), counters(wanted.bits / 4) {}

  bool insert(std::uint64_t key) {
    bool is_new = false;
    for (const std::uint64_t cell : cells_by_the_book(mix{}(key), g)) {
      is_new |= counters[cell] == 0;
      if (counters[cell] < 15) ++counters[cell];
    }
    ++copies[key];
    ++size;
    return is_new;
  }

  removal remove(std::uint64_t key) {
    const auto cells = cells_by_the_book(mix{}(key), g);
    if (std::any_of(cells.begin(), cells.end(), [&](std::uint64_t cell) { return counters[cell] == 0; })) {
      ++refused;
      return removal::not_found;
    }
    for (const std::uint64_t cell : cells) {
      if (counters[cell] < 15) --counters[cell];
    }
    if (copies[key] > 0) --copies[key];
    if (size > 0) --size;
    return removal::removed;
  }

  void clear() { *this = model(g); }

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> result(counters.size() / 2);
    for (std::size_t cell = 0; cell < counters.size(); ++cell) {
      result[cell / 2] = static_cast<std::uint8_t>(result[cell / 2] | counters[cell] << (cell % 2 == 0 ? 0 : 4));
    }
    return result;
  }

  geometry g;
  std::vector<unsigned> counters;
  std::map<std::uint64_t, int> copies;
  std::uint64_t size = 0;
  std::uint64_t refused = 0;
};

struct operation {
  enum class kind { insert, remove, insert_many, remove_many, clear } what;
  std::uint64_t key;

  friend std::ostream& operator<<(std::ostream& out, const operation& o) {
    constexpr const char* names[] = {"insert ", "remove ", "insert from ", "remove from ", "clear "};
    return out << names[static_cast<std::size_t>(o.what)] << o.key;
  }
};

constexpr std::uint64_t keys_in_play = 24;
constexpr std::size_t many = 5;

operation drawn(std::mt19937_64& random) {
  const std::uint64_t chance = random() % 100;
  const auto what = chance < 35   ? operation::kind::insert
                    : chance < 65 ? operation::kind::remove
                    : chance < 82 ? operation::kind::insert_many
                    : chance < 99 ? operation::kind::remove_many
                                  : operation::kind::clear;
  return {what, random() % keys_in_play};
}

std::array<std::uint64_t, many> keys_from(std::uint64_t first) {
  std::array<std::uint64_t, many> keys;
  for (std::size_t i = 0; i < many; ++i) keys[i] = first + i * i;
  return keys;
}

template <class Filter>
std::string difference_to(const Filter& filter, const model& truth) {
  if (!std::ranges::equal(filter.bytes(), truth.bytes())) return "other counters";
  if (filter.size() != truth.size) return "size " + std::to_string(filter.size());
  if (filter.counts().refused_removals != truth.refused) return "other refusals";
  if (filter.tainted() != (truth.refused > 0)) return "other taint";
  return {};
}

// Does the same with a filter and the model. `present_only`: removes nothing that is not there.
template <class Filter>
std::string differs_after(Filter& filter, model& truth, const operation& o, bool present_only) {
  const auto present = [&](std::uint64_t key) { return truth.copies.contains(key) && truth.copies[key] > 0; };
  const auto keys = keys_from(o.key);
  switch (o.what) {
    case operation::kind::insert:
      if (filter.insert(o.key) != truth.insert(o.key)) return "another answer to an insertion";
      break;
    case operation::kind::remove:
      if (present_only && !present(o.key)) break;
      if (filter.remove(o.key) != truth.remove(o.key)) return "another answer to a removal";
      break;
    case operation::kind::insert_many: {
      std::array<std::uint8_t, many> is_new;
      filter.insert(std::span<const std::uint64_t>(keys), is_new);
      for (std::size_t i = 0; i < many; ++i) {
        if ((is_new[i] != 0) != truth.insert(keys[i])) return "another answer to many insertions";
      }
      break;
    }
    case operation::kind::remove_many: {
      if (present_only && !std::all_of(keys.begin(), keys.end(), present)) break;
      std::array<removal, many> results;
      const std::uint64_t removed = filter.remove(std::span<const std::uint64_t>(keys), results);
      for (std::size_t i = 0; i < many; ++i) {
        if (results[i] != truth.remove(keys[i])) return "another answer to many removals";
      }
      if (removed != static_cast<std::uint64_t>(std::count(results.begin(), results.end(), removal::removed))) {
        return "another number of removals";
      }
      break;
    }
    case operation::kind::clear:
      filter.clear();
      truth.clear();
      break;
  }
  return difference_to(filter, truth);
}

params params_of(const geometry& g) {
  return complete({.layout = "counting", .keys = key_kind::u64le, .geometry = g, .capacity = 100});
}

constexpr geometry two_lines{1024, 5};

int runs(int usual) { return std::getenv("BLOOMERY_LONG") != nullptr ? 20 * usual : usual; }

TEST(Counting, KeepsTheCountersOfAModelWhateverIsInsertedAndRemoved) {
  const auto fails = [](const std::vector<operation>& operations) {
    counting_filter<std::uint64_t> filter(two_lines);
    model truth(two_lines);
    std::string reason;
    for (const operation& o : operations) {
      if (reason = differs_after(filter, truth, o, false); !reason.empty()) break;
    }
    return reason;
  };

  EXPECT_TRUE(bloomery_tests::holds_for_all(runs(60), 250, drawn, fails));
}

TEST(Counting, KeepsThemWithAKindThatIsKnownAtRunTimeOnly) {
  const auto fails = [](const std::vector<operation>& operations) {
    any_filter filter(params_of(two_lines));
    model truth(two_lines);
    std::string reason;
    for (const operation& o : operations) {
      if (reason = differs_after(filter, truth, o, false); !reason.empty()) break;
    }
    return reason;
  };

  EXPECT_TRUE(bloomery_tests::holds_for_all(runs(40), 250, drawn, fails));
}

// Twelve pages: what is changed must get its checksum.
TEST(Counting, KeepsThemInAFileWhosePagesMatchTheirChecksums) {
  const geometry g{12 * 8 * 4096, 7};
  const auto fails = [&](const std::vector<operation>& operations) -> std::string {
    const scratch_folder folder;
    model truth(g);
    const auto run = [&](auto filter) -> std::string {
      for (const operation& o : operations) {
        if (std::string reason = differs_after(filter, truth, o, false); !reason.empty()) return reason;
      }
      filter.close();
      if (const inspection found = inspect(folder / "f", file_check::payload); !found.problems.empty()) {
        return found.problems.front();
      }
      return difference_to(any_filter::load(folder / "f"), truth);
    };
    any_filter::create(folder / "f", params_of(g), {}, {.reserve = false}).close();
    if (const std::string reason = run(any_filter::open(folder / "f", access::read_write)); !reason.empty()) {
      return "any_filter: " + reason;
    }
    const std::string reason =
        run(filter<std::uint64_t, layouts::counting, mix, mapped_storage>::open(folder / "f", access::read_write));
    return reason.empty() ? reason : "filter: " + reason;
  };

  EXPECT_TRUE(bloomery_tests::holds_for_all(runs(8), 40, drawn, fails));
}

TEST(Counting, LosesNoKeyWhileOnlyPresentOnesAreRemoved) {
  const auto fails = [](const std::vector<operation>& operations) -> std::string {
    counting_filter<std::uint64_t> filter(two_lines);
    model truth(two_lines);
    for (const operation& o : operations) {
      if (std::string reason = differs_after(filter, truth, o, true); !reason.empty()) return reason;
      for (const auto& [key, copies] : truth.copies) {
        if (copies > 0 && !filter.may_contain(key)) return "lost " + std::to_string(key);
      }
      if (filter.tainted()) return "tainted";
    }
    return {};
  };

  EXPECT_TRUE(bloomery_tests::holds_for_all(runs(60), 250, drawn, fails));
}

// ---- what is promised of single calls -------------------------------------------------------------------------------

static_assert(layout<layouts::counting> && layout_with_kernels<layouts::counting> &&
              layout_with_removal<layouts::counting>);
static_assert(!layout_by_hash64<layouts::counting>);
template <class L>
concept can_remove = requires(filter<std::uint64_t, L> f, std::uint64_t key) {
  f.remove(key);
};
static_assert(can_remove<layouts::counting> && !can_remove<layouts::split_block512> && !can_remove<layouts::classic>);

TEST(Counting, HasTheCellsThatTheFormatGivesAsAnExample) {
  any_filter here(complete({.layout = "counting", .hash = "xxh3", .geometry = {2048, 4}}));
  here.insert("Madrid");

  EXPECT_THAT(here.cells("Madrid"), ElementsAre(130, 189, 190, 213));
  EXPECT_EQ(here.bytes()[65], 0x01);
  EXPECT_EQ(here.bytes()[94], 0x10);
}

TEST(Counting, TakesAKeyInsertedTwiceForTwoCopies) {
  filter<std::string_view, layouts::counting> here(1000, 0.01);
  EXPECT_TRUE(here.insert("Madrid"));
  EXPECT_FALSE(here.insert("Madrid"));
  EXPECT_EQ(here.size(), 2u);

  EXPECT_EQ(here.remove("Madrid"), removal::removed);
  EXPECT_TRUE(here.may_contain("Madrid"));
  EXPECT_EQ(here.remove("Madrid"), removal::removed);

  EXPECT_FALSE(here.may_contain("Madrid"));
  EXPECT_EQ(here.size(), 0u);
  EXPECT_FALSE(here.tainted());
  EXPECT_THAT(here.bytes(), Each(0));
}

TEST(Counting, NeverLowersACounterThatIsFull) {
  for (const int copies : {14, 15, 16, 20}) {
    SCOPED_TRACE(copies);
    filter<std::string_view, layouts::counting> here(1000, 0.01);
    here.insert("Berlin");
    for (int i = 0; i < copies; ++i) here.insert("Madrid");
    EXPECT_EQ(layouts::counting::cells_full(here.bytes()) > 0, copies >= 15);

    for (int i = 0; i < copies; ++i) EXPECT_EQ(here.remove("Madrid"), removal::removed);

    EXPECT_EQ(here.may_contain("Madrid"), copies >= 15);
    EXPECT_TRUE(here.may_contain("Berlin"));
    EXPECT_EQ(here.size(), 1u);
    EXPECT_FALSE(here.tainted());
  }
}

TEST(Counting, CountsNoFewerThanNothing) {
  filter<std::string_view, layouts::counting> here(1000, 0.01);
  for (int i = 0; i < 20; ++i) here.insert("Madrid");

  for (int i = 0; i < 30; ++i) here.remove("Madrid");

  EXPECT_EQ(here.size(), 0u);
}

TEST(Counting, RefusesAStrangerAndIsTaintedForGood) {
  const scratch_folder folder;
  any_filter here(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01}));
  here.insert("Madrid");
  const std::vector<std::uint8_t> before(here.bytes().begin(), here.bytes().end());

  EXPECT_EQ(here.remove("Berlin"), removal::not_found);
  EXPECT_EQ(here.remove("Berlin"), removal::not_found);

  EXPECT_TRUE(std::ranges::equal(here.bytes(), before));
  EXPECT_EQ(here.size(), 1u);
  EXPECT_EQ(here.counts().refused_removals, 2u);
  here.save(folder / "f");
  EXPECT_TRUE(any_filter::load(folder / "f").tainted());
  {
    any_filter again = any_filter::open(folder / "f", access::read_write);
    EXPECT_EQ(again.counts().refused_removals, 2u);
    again.remove("Berlin");
    again.close();
  }
  auto typed =
      filter<std::string_view, layouts::counting, xxh3, mapped_storage>::open(folder / "f", access::read_write);
  EXPECT_EQ(typed.refused_removals(), 3u);
  typed.clear();
  EXPECT_FALSE(typed.tainted());
  typed.close();
  EXPECT_FALSE(any_filter::open(folder / "f").tainted());
}

TEST(Counting, TellsHowManyStrangersWereProbablyRemovedUnnoticed) {
  counting_filter<std::uint64_t> here(100'000, 0.05);
  for (std::uint64_t key = 0; key < 100'000; ++key) here.insert(key);
  const double rate = here.current_fpr();
  std::vector<std::uint64_t> strangers;
  for (std::uint64_t key = 0; key < 4000; ++key) strangers.push_back(1'000'000 + key);

  const std::uint64_t unnoticed = here.remove(strangers);

  const double expected = unnoticed_removals(here.refused_removals(), rate);
  EXPECT_NEAR(static_cast<double>(unnoticed), expected, 6 * std::sqrt(expected));
  EXPECT_EQ(here.refused_removals() + unnoticed, 4000u);
  EXPECT_EQ(unnoticed_removals(0, 1), 0);
  EXPECT_EQ(unnoticed_removals(1, 1), INFINITY);
}

TEST(Counting, MergesCopiesUpToFullAndCountsThem) {
  const geometry g{4 * 512, 5};
  counting_filter<std::uint64_t> a(g), b(g);
  model of_both(g);
  for (std::uint64_t key = 0; key < 40; ++key) {
    for (std::uint64_t copy = 0; copy < key % 19; ++copy) {
      (copy % 2 == 0 ? a : b).insert(key);
      of_both.insert(key);
    }
  }
  any_filter any_a(params_of(g)), any_b(params_of(g));
  for (std::uint64_t key = 0; key < 40; ++key) {
    for (std::uint64_t copy = 0; copy < key % 19; ++copy) (copy % 2 == 0 ? any_a : any_b).insert(key);
  }
  b.remove(1000);
  any_b.remove(1000);
  ASSERT_TRUE(b.tainted());

  a.merge(b);
  any_a.merge(any_b);

  EXPECT_TRUE(std::ranges::equal(a.bytes(), of_both.bytes()));
  EXPECT_TRUE(std::ranges::equal(any_a.bytes(), of_both.bytes()));
  EXPECT_GT(layouts::counting::cells_full(a.bytes()), 0u);
  EXPECT_EQ(a.size(), of_both.size);
  EXPECT_EQ(any_a.size(), of_both.size);
  EXPECT_FALSE(a.count_is_estimate());
  EXPECT_EQ(a.refused_removals(), 1u);
  EXPECT_TRUE(any_a.tainted());
}

TEST(Counting, SetsTheSameCountersInEveryKindOfFilter) {
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back("key-" + std::to_string(i % 700));
  const std::vector<std::string_view> texts(words.begin(), words.end());
  std::vector<std::uint64_t> integers;
  for (std::uint64_t i = 0; i < 1000; ++i) integers.push_back(mix64(i % 700));
  const std::string_view half[] = {texts[0], texts[1], texts[2]};

  const auto compare = [&](auto typed, any_filter any, const auto& keys) {
    for (const auto& key : keys) typed.insert(key);
    any.insert(keys);
    EXPECT_TRUE(std::ranges::equal(typed.bytes(), any.bytes()));
    for (std::size_t i = 0; i < keys.size(); i += 3) typed.remove(keys[i]);
    for (std::size_t i = 0; i < keys.size(); i += 3) any.remove(keys[i]);
    EXPECT_TRUE(std::ranges::equal(typed.bytes(), any.bytes()));
    EXPECT_EQ(typed.size(), any.size());
    EXPECT_EQ(typed.size(), keys.size() - (keys.size() + 2) / 3);
  };
  const geometry g = layouts::counting::geometry_for(1000, 0.01);
  const auto params_with = [&](params p) {
    p.layout = "counting";
    p.geometry = g;
    return p;
  };
  compare(filter<std::string_view, layouts::counting>(g), any_filter(params_with({})), texts);
  compare(filter<std::string_view, layouts::counting, murmur3>(g), any_filter(params_with({.hash = "murmur3"})), texts);
  compare(filter<std::string_view, layouts::counting, siphash>(g, 0, siphash({1, 2})),
          any_filter(params_with({.secret = secret_key{1, 2}})), texts);
  const std::span<const std::uint64_t> numbers(integers);
  compare(filter<std::uint64_t, layouts::counting>(g), any_filter(params_with({.keys = key_kind::u64le})), numbers);
  compare(filter<std::uint64_t, layouts::counting, xxh3>(g),
          any_filter(params_with({.hash = "xxh3", .keys = key_kind::u64le})), numbers);
  EXPECT_EQ(filter<std::string_view>(10, 0.1).insert_all(half), 3u);
}

TEST(Counting, InsertsAllAtOnceInOrderAndTellsWhatWasNew) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 300'000; ++i) keys.push_back(i % 200'000);
  const geometry g = layouts::counting::geometry_for(300'000, 1e-6);
  counting_filter<std::uint64_t> one_by_one(g), at_once(g);
  any_filter any(params_of(g));
  std::uint64_t fresh = 0;

  for (const std::uint64_t key : keys) fresh += one_by_one.insert(key) ? 1 : 0;

  EXPECT_EQ(at_once.insert_all(keys, 2), fresh);
  EXPECT_EQ(any.insert_all(keys, 2), fresh);
  EXPECT_TRUE(std::ranges::equal(at_once.bytes(), one_by_one.bytes()));
  EXPECT_TRUE(std::ranges::equal(any.bytes(), one_by_one.bytes()));
  EXPECT_EQ(at_once.size(), 300'000u);
  EXPECT_EQ(any.size(), 300'000u);
}

// ---- rates and estimates --------------------------------------------------------------------------------------------

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

// Predicted, certified and measured rates after filling, and after half was taken out again.
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

TEST(CountingRate, IsAuditedWithoutTakingCopiesForMissingKeys) {
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

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST(CountingRefusal, OfAnotherKindOfFilterSaysWhy) {
  any_filter bits(complete({.capacity = 1000, .target_fpr = 0.01}));
  any_filter scheme(complete({.scheme = "guava", .capacity = 1000, .target_fpr = 0.01}));
  bits.insert("Madrid");
  const auto why = error_of([&] { bits.remove("Madrid"); });

  ASSERT_TRUE(why);
  EXPECT_EQ(why->code(), errc::incompatible);
  EXPECT_THAT(why->what(), AllOf(HasSubstr("cannot be removed"), HasSubstr("split_block"), HasSubstr("counting")));
  EXPECT_EQ(code_of([&] { scheme.remove("Madrid"); }), errc::incompatible);
  EXPECT_TRUE(bits.may_contain("Madrid"));
  EXPECT_FALSE(bits.tainted());
}

TEST(CountingRefusal, OfWhatCountersDoNotTell) {
  const params p = complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01});
  any_filter a(p), b(p);
  any_filter integers(complete({.layout = "counting", .keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01}));
  const std::string_view text[] = {"text"};

  EXPECT_EQ(code_of([&] { a.intersect(b); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { estimate_overlap(p, count_shared(a.bytes(), b.bytes())); }), errc::incompatible);
  EXPECT_EQ(times_foldable(p), 0u);
  EXPECT_EQ(code_of([&] { fold(p, a.bytes(), 1); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { foldable_geometry(p, 64); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { integers.remove(text); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { a.remove(7); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { a.merge(any_filter(complete({.capacity = 1000, .target_fpr = 0.01}))); }),
            errc::incompatible);
}

TEST(CountingRefusal, OfGeometriesThatItCannotHave) {
  for (const geometry g : {geometry{511, 4}, geometry{128, 4}, geometry{512, 0}, geometry{512, 256}}) {
    EXPECT_EQ(code_of([&] { layouts::counting::check(g); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([] { layouts::counting::check({std::uint64_t{1} << 50, 4}); }), errc::too_large);
  EXPECT_EQ(code_of([] { layouts::counting::geometry_for(0, 0.01); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { layouts::counting::geometry_for(std::uint64_t{1} << 62, 0.01); }), errc::too_large);
}

// ---- files ----------------------------------------------------------------------------------------------------------

any_filter saved(const std::string& path) {
  any_filter f(complete({.layout = "counting", .capacity = 10'000, .target_fpr = 0.01}));
  for (int i = 0; i < 10'000; ++i) f.insert(std::to_string(i));
  f.save(path, "a note");
  return f;
}

TEST(CountingFile, WithAnyDamagedPageIsNotLoaded) {
  const scratch_folder folder;
  saved(folder / "f");
  const bloomery_tests::bytes good = read_file(folder / "f");
  const std::size_t pages = (good.size() - 4096 - 6) / (4096 + 8);
  ASSERT_GT(pages, 10u);

  for (std::size_t page = 0; page < pages; ++page) {
    bloomery_tests::bytes bad = good;
    bad[4096 + 4096 * page + 17 * page % 4096] ^= 0x10;
    write_file(folder / "f", bad);

    EXPECT_EQ(code_of([&] { any_filter::load(folder / "f"); }), errc::damaged) << page;
    EXPECT_EQ(code_of([&] { file_edit(folder / "f"); }), errc::damaged) << page;
  }
}

TEST(CountingFile, SaysTheWidthOfItsCells) {
  const scratch_folder folder;
  saved(folder / "f");

  EXPECT_EQ(read_file(folder / "f")[116], 4);
  EXPECT_EQ(any_filter::open(folder / "f").parameters().layout, "counting");
  EXPECT_EQ(family_of({.layout = "counting"}), family::counting);
  EXPECT_EQ(cell_bits_of({.layout = "counting"}), 4u);
  EXPECT_EQ(block_bits_of({.layout = "counting"}), 512u);
  EXPECT_THAT(layout_names(), testing::Not(HasSubstr("counting")));
}

TEST(CountingFile, KilledWhileItIsWrittenEstimatesItsCopiesFromTheCounters) {
  const scratch_folder folder;
  saved(folder / "f");
  bloomery_tests::message filled;

  const pid_t child = bloomery_tests::start_child([&] {
    any_filter f = any_filter::open(folder / "f", access::read_write);
    for (int i = 0; i < 10'000; ++i) f.insert(std::to_string(i % 5000));
    for (int i = 0; i < 2000; ++i) f.remove(std::to_string(i));
    filled.say();
    ::pause();
    return 0;
  });
  filled.wait();
  ::kill(child, SIGKILL);
  bloomery_tests::wait_for(child);

  any_filter f = any_filter::open(folder / "f", access::read_write);
  EXPECT_TRUE(f.count_is_estimate());
  EXPECT_NEAR(static_cast<double>(f.size()), 18'000, 200);
  const any_filter loaded = any_filter::load(folder / "f");
  EXPECT_NEAR(static_cast<double>(loaded.size()), 18'000, 200);
}

TEST(CountingFile, MayNotSayThatAFilterOfBitsRefusedARemoval) {
  const scratch_folder folder;
  any_filter bits(complete({.capacity = 1000, .target_fpr = 0.01}));
  const params& p = bits.parameters();
  save_file(folder / "f", p, bits.bytes(), {.inserted = 5, .refused_removals = 1});

  EXPECT_EQ(code_of([&] { any_filter::open(folder / "f"); }), errc::damaged);
}

// ---- a file that is changed as a whole ------------------------------------------------------------------------------

TEST(FileEdit, ChangesNothingBeforeItsCommitAndAllWithIt) {
  const scratch_folder folder;
  any_filter truth = saved(folder / "f");
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0640), 0);
  const bloomery_tests::bytes before = read_file(folder / "f");
  for (int i = 0; i < 5000; ++i) truth.remove(std::to_string(i));
  truth.remove("nobody");
  truth.save(folder / "truth", "a note");

  {
    file_edit forgotten(folder / "f");
    forgotten.filter().clear();
    EXPECT_EQ(read_file(folder / "f"), before);
  }
  EXPECT_EQ(read_file(folder / "f"), before);
  file_edit edit(folder / "f");
  for (int i = 0; i < 5000; ++i) edit.filter().remove(std::to_string(i));
  edit.filter().remove("nobody");
  EXPECT_EQ(read_file(folder / "f"), before);
  const any_filter reader = any_filter::open(folder / "f");
  edit.commit();

  EXPECT_EQ(read_file(folder / "f"), read_file(folder / "truth"));
  EXPECT_TRUE(reader.may_contain("1"));  // it keeps the file that it opened
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), std::filesystem::directory_iterator()),
            2);
}

TEST(FileEdit, KeepsOtherWritersOutUntilItIsDone) {
  const scratch_folder folder;
  const any_filter old = saved(folder / "f");
  const auto others_are_locked_out = [&] {
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", access::read_write); }), errc::locked);
    EXPECT_EQ(code_of([&] { file_edit(folder / "f"); }), errc::locked);
    EXPECT_EQ(code_of([&] { old.save(folder / "f"); }), errc::locked);
  };
  {
    file_edit edit(folder / "f");
    others_are_locked_out();
    edit.commit();
  }
  {
    any_filter in_place = any_filter::open(folder / "f", access::read_write);
    others_are_locked_out();
  }

  file_edit(folder / "f").commit();
  any_filter::open(folder / "f", access::read_write).close();
}

TEST(FileEdit, WaitsForAWriterAndThenHasTheFileThatItLeft) {
  const scratch_folder folder;
  saved(folder / "f");
  std::optional<file_edit> first(folder / "f");
  first->filter().insert("new");
  int waited = 0;

  file_edit second(folder / "f", [&](const std::string&) {
    if (++waited == 2) {
      first->commit();
      first.reset();
    }
  });

  EXPECT_EQ(waited, 2);
  EXPECT_TRUE(second.filter().may_contain("new"));
  second.filter().insert("newer");
  second.commit();
  EXPECT_EQ(any_filter::load(folder / "f").size(), 10'002u);
}

TEST(FileEdit, OpensOnlyWhatItCanRead) {
  const scratch_folder folder;
  write_file(folder / "text", std::string("no filter"));
  any_filter(complete({.layout = "counting", .capacity = 10, .target_fpr = 0.01, .secret = secret_key{1, 2}}))
      .save(folder / "keyed");

  EXPECT_EQ(code_of([&] { file_edit(folder / "none"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { file_edit(folder / "text"); }), errc::not_a_filter);
  EXPECT_EQ(code_of([&] { file_edit(folder / "keyed"); }), errc::incompatible);
  file_edit edit(folder / "keyed", {}, secret_key{1, 2});
  edit.filter().insert("Madrid");
  edit.commit();
  EXPECT_EQ(any_filter::load(folder / "keyed", secret_key{1, 2}).size(), 1u);
}

}  // namespace
}  // namespace bloomery
