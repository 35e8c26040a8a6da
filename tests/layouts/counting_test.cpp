// Counting filters against an array of counters and a multiset of keys, kept by hand.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/measure.hpp>

#include "layouts/counting_filters.hpp"
#include "support/operations.hpp"
#include "support/test.hpp"

#include <ostream>
#include <set>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using testing::AllOf;

// ---- the model ------------------------------------------------------------------------------------------------------

// As docs/format.md defines them.
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

// The counters one by one.
struct model {
  explicit model(const geometry& wanted) : g(wanted), counters(wanted.bits / 4) {}

  bool insert(std::uint64_t key) {
    bool is_new = false;
    for (const std::uint64_t cell : cells_by_the_book(mix{}(key), g)) {
      is_new |= counters[cell] == 0;
      if (counters[cell] < 15) ++counters[cell];
    }
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
  if (filter.insert_count() != truth.size) return "size " + std::to_string(filter.insert_count());
  if (filter.counts().refused_removals != truth.refused) return "other refusals";
  if (filter.tainted() != (truth.refused > 0)) return "other taint";
  return {};
}

// Applies the operation to a filter and to the model; returns how they differ, or nothing.
template <class Filter>
std::string differs_after(Filter& filter, model& truth, const operation& o) {
  const auto keys = keys_from(o.key);
  switch (o.what) {
    case operation::kind::insert:
      if (filter.insert(o.key) != truth.insert(o.key)) return "another answer to an insertion";
      break;
    case operation::kind::remove:
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

constexpr geometry two_lines{1024, 5};

TEST(Counting, KeepsTheCountersOfAModelForAnyInsertsAndRemovals) {
  const auto fails = [](const std::vector<operation>& operations) {
    counting_filter<std::uint64_t> filter(two_lines);
    model truth(two_lines);
    std::string reason;
    for (const operation& o : operations) {
      if (reason = differs_after(filter, truth, o); !reason.empty()) break;
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
      if (reason = differs_after(filter, truth, o); !reason.empty()) break;
    }
    return reason;
  };

  EXPECT_TRUE(bloomery_tests::holds_for_all(runs(40), 250, drawn, fails));
}

// ---- single calls ---------------------------------------------------------------------------------------------------

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
    EXPECT_EQ(here.insert_count(), 1u);
    EXPECT_FALSE(here.tainted());
  }
}

TEST(Counting, CountsNoFewerThanNothing) {
  filter<std::string_view, layouts::counting> here(1000, 0.01);
  for (int i = 0; i < 20; ++i) here.insert("Madrid");

  for (int i = 0; i < 30; ++i) here.remove("Madrid");

  EXPECT_EQ(here.insert_count(), 0u);
}

TEST(Counting, RefusesAnAbsentKeyAndStaysTainted) {
  const scratch_folder folder;
  any_filter here(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01}));
  here.insert("Madrid");
  const std::vector<std::uint8_t> before(here.bytes().begin(), here.bytes().end());

  EXPECT_EQ(here.remove("Berlin"), removal::not_found);
  EXPECT_EQ(here.remove("Berlin"), removal::not_found);

  EXPECT_TRUE(std::ranges::equal(here.bytes(), before));
  EXPECT_EQ(here.insert_count(), 1u);
  EXPECT_EQ(here.counts().refused_removals, 2u);
  here.save(folder / "f");
  EXPECT_TRUE(any_filter::load(folder / "f").tainted());
  {
    any_filter again = any_filter::open(folder / "f", {.mode = access::read_write});
    EXPECT_EQ(again.counts().refused_removals, 2u);
    again.remove("Berlin");
    again.close();
  }
  auto typed = filter<std::string_view, layouts::counting, xxh3_64, mapped_storage>::open(folder / "f",
                                                                                          {.mode = access::read_write});
  EXPECT_EQ(typed.refused_removals(), 3u);
  typed.clear();
  EXPECT_FALSE(typed.tainted());
  typed.close();
  EXPECT_FALSE(any_filter::open(folder / "f").tainted());
}

TEST(Counting, EstimatesTheUnnoticedRemovalsOfAbsentKeys) {
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
  EXPECT_EQ(a.insert_count(), of_both.size);
  EXPECT_EQ(any_a.insert_count(), of_both.size);
  EXPECT_FALSE(a.count_is_estimate());
  EXPECT_EQ(a.refused_removals(), 1u);
  EXPECT_TRUE(any_a.tainted());
}

TEST(Counting, InsertsAllAtOnceInOrderAndReportsNewKeys) {
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
  EXPECT_EQ(at_once.insert_count(), 300'000u);
  EXPECT_EQ(any.insert_count(), 300'000u);
}

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST(CountingRefusal, OfAnotherKindOfFilterGivesTheReason) {
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

}  // namespace
}  // namespace bloomery
