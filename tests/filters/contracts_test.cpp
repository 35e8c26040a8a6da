// Contracts that every filter class keeps in every build: the sizes of output spans, and writing to a filter that was
// opened for reading only.
#include <bloomery/any_filter.hpp>
#include <bloomery/concurrent_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/scalable_filter.hpp>
#include <bloomery/sliding_window_filter.hpp>
#include <bloomery/static_filter.hpp>

#include "support/fenced.hpp"
#include "support/test.hpp"

#include <chrono>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::size_t key_count = 130;  // three words of a bitmap

std::vector<std::uint64_t> some_integers() {
  std::vector<std::uint64_t> keys(key_count);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = 1000 + i;
  return keys;
}

std::vector<std::string_view> some_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < key_count; ++i) all.push_back("key " + std::to_string(i));
    return all;
  }();
  return {texts.begin(), texts.end()};
}

template <class Keys>
using key_of = typename Keys::value_type;

// ---- sizes of outputs -----------------------------------------------------------------------------------------------

void expect_refused(const std::optional<error>& thrown, const std::string& call, const std::string& expected,
                    std::size_t found) {
  ASSERT_TRUE(thrown.has_value()) << call << " took an output of " << found;
  EXPECT_EQ(thrown->code(), errc::invalid_argument) << thrown->what();
  EXPECT_EQ(thrown->text().where, call);
  EXPECT_EQ(thrown->text().expected, expected);
  EXPECT_EQ(thrown->text().found, std::to_string(found));
}

// The output stands against a page that cannot be written: one element too many ends the process.
// `look_up(keys, bitmap)` is the call under test; it gives the same answers as `look_up_one(key)`.
template <class Keys, class LookUp, class LookUpOne>
void expect_bitmaps_checked(const Keys& keys, const std::string& call, LookUp look_up, LookUpOne look_up_one) {
  const std::span<const key_of<Keys>> all(keys);
  for (const std::size_t words : {0u, 1u, 2u}) {
    const fenced<std::uint64_t> bitmap(words);
    std::fill_n(bitmap.data(), words, 0xAAAA);
    expect_refused(error_of([&] { look_up(all, bitmap.all()); }), call, "at least 3", words);
    for (std::size_t i = 0; i < words; ++i) EXPECT_EQ(bitmap[i], 0xAAAA) << "a refused call writes nothing";
  }
  expect_refused(error_of([&] { look_up(all.first(64), {}); }), call, "at least 1", 0);
  look_up(all.first(0), {});

  const fenced<std::uint64_t> exact(3);
  std::vector<std::uint64_t> larger(4, 0xAAAA);
  look_up(all, exact.all());
  look_up(all, larger);
  for (std::size_t i = 0; i < 3 * 64; ++i) {
    EXPECT_EQ(exact[i / 64] >> i % 64 & 1, i < key_count && look_up_one(all[i]) ? 1u : 0u) << i;
  }
  EXPECT_TRUE(std::equal(larger.begin(), larger.begin() + 3, exact.data()));
  EXPECT_EQ(larger[3], 0xAAAA) << "words behind the answers are left as they are";
}

// `write(keys, answers)` is the call under test; `state()` what it must not change when it is refused.
template <class Answer, class Keys, class Write, class State>
void expect_answers_checked(const Keys& keys, const std::string& call, Write write, State state) {
  const std::span<const key_of<Keys>> all(keys);
  const auto before = state();
  for (const std::size_t count : {1u, 64u, 129u, 131u, 260u}) {
    const fenced<Answer> answers(count);
    expect_refused(error_of([&] { write(all, answers.all()); }), call, "130", count);
    EXPECT_EQ(state(), before) << "a refused call changes nothing";
  }
  Answer one{};
  expect_refused(error_of([&] { write(all.first(0), std::span(&one, 1)); }), call, "0", 1);

  const fenced<Answer> exact(key_count);
  write(all, exact.all());
  EXPECT_EQ(std::count(exact.data(), exact.data() + key_count, Answer{1}), std::ptrdiff_t{key_count});
  EXPECT_NE(state(), before);
  write(all, {});
}

// insert() and may_contain() of a filter class that takes these keys.
template <class Filter, class Keys>
void expect_outputs_checked(Filter& f, const Keys& keys, const std::string& name) {
  using span_of_keys = std::span<const key_of<Keys>>;
  expect_answers_checked<std::uint8_t>(
      keys, name + "::insert", [&](span_of_keys some, std::span<std::uint8_t> is_new) { f.insert(some, is_new); },
      [&] { return f.insert_count(); });
  expect_bitmaps_checked(
      keys, name + "::may_contain",
      [&](span_of_keys some, std::span<std::uint64_t> bitmap) { f.may_contain(some, bitmap); },
      [&](const key_of<Keys>& key) { return f.may_contain(key); });
}

// One layout with two types of key: the check precedes the layout, and any_filter below has every layout.
TEST(OutputSizes, OfEveryClassOfFilterAreChecked) {
  filter<std::uint64_t, layouts::split_block512> integers(1'000'000, 1e-9);
  expect_outputs_checked(integers, some_integers(), "filter");
  filter<> texts(1'000'000, 1e-9);
  expect_outputs_checked(texts, some_texts(), "filter");
  concurrent_filter<std::uint64_t> concurrent_integers(1'000'000, 1e-9);
  expect_outputs_checked(concurrent_integers, some_integers(), "concurrent_filter");
  concurrent_filter<> concurrent_texts(1'000'000, 1e-9);
  expect_outputs_checked(concurrent_texts, some_texts(), "concurrent_filter");
  scalable_filter<std::uint64_t> scalable_integers(1e-9);
  expect_outputs_checked(scalable_integers, some_integers(), "scalable_filter");
  scalable_filter<> scalable_texts(1e-9);
  expect_outputs_checked(scalable_texts, some_texts(), "scalable_filter");
  sliding_window_filter<std::uint64_t> window_of_integers({.window = window_of_keys(1'000'000), .fpr = 1e-9});
  expect_outputs_checked(window_of_integers, some_integers(), "sliding_window_filter");
  sliding_window_filter<std::string_view, layouts::sliding64> window_of_texts(
      {.window = window_of_keys(1'000'000), .fpr = 1e-9});
  expect_outputs_checked(window_of_texts, some_texts(), "sliding_window_filter");
}

TEST(OutputSizes, OfFilterRemoveAreChecked) {
  filter<std::uint64_t, layouts::counting> f(1'000'000, 1e-9);
  const auto keys = some_integers();
  f.insert(std::span(keys));
  f.insert(std::span(keys));

  expect_answers_checked<removal>(
      keys, "filter::remove",
      [&](std::span<const std::uint64_t> some, std::span<removal> results) { f.remove(some, results); },
      [&] { return f.insert_count(); });
}

TEST(OutputSizes, OfStaticFilterAreChecked) {
  const auto keys = some_texts();
  const auto sealed = static_filter<>::build(keys);

  expect_bitmaps_checked(
      keys, "static_filter::may_contain",
      [&](std::span<const std::string_view> some, std::span<std::uint64_t> bitmap) {
        sealed.may_contain(some, bitmap);
      },
      [&](std::string_view key) { return sealed.may_contain(key); });
}

TEST(OutputSizes, OfAnyFilterAreCheckedInEveryFamily) {
  for (const char* layout :
       {"split_block", "split_block512", "blocked", "blocked_page", "classic", "counting", "sliding"}) {
    SCOPED_TRACE(layout);
    params p{.layout = layout, .capacity = 1'000'000, .target_fpr = 1e-9};
    if (p.layout == "sliding") p.extra = window_of_keys(1'000'000);
    any_filter texts(complete(p));
    expect_outputs_checked(texts, some_texts(), "any_filter");
    p.keys = key_kind::u64le;
    any_filter integers(complete(p));
    expect_outputs_checked(integers, some_integers(), "any_filter");
  }
  any_filter by_scheme(complete({.scheme = "guava", .capacity = 1'000'000, .target_fpr = 1e-9}));
  expect_outputs_checked(by_scheme, some_texts(), "any_filter");
}

TEST(OutputSizes, OfAnyFilterRemoveAndHashesAreChecked) {
  any_filter f(complete({.layout = "counting", .capacity = 1'000'000, .target_fpr = 1e-9}));
  const auto texts = some_texts();
  using span_of_keys = std::span<const std::string_view>;
  using hash_span = std::span<const key_hash>;
  f.insert(std::span(texts));
  f.insert(std::span(texts));
  expect_answers_checked<removal>(
      texts, "any_filter::remove", [&](span_of_keys some, std::span<removal> results) { f.remove(some, results); },
      [&] { return f.insert_count(); });

  const fenced<key_hash> too_short(key_count - 1);
  expect_refused(error_of([&] { f.hash(texts, too_short.all()); }), "any_filter::hash", "at least 130", 129);
  std::vector<key_hash> hashes(key_count);
  f.hash(texts, hashes);
  expect_answers_checked<std::uint8_t>(
      hashes, "any_filter::insert",
      [&](hash_span some, std::span<std::uint8_t> is_new) {
        if (is_new.size() == some.size()) f.clear();  // so that all keys are new
        f.insert(some, is_new);
      },
      [&] { return f.insert_count(); });
  expect_bitmaps_checked(
      hashes, "any_filter::may_contain",
      [&](hash_span some, std::span<std::uint64_t> bitmap) { f.may_contain(some, bitmap); },
      [&](key_hash hash) {
        std::uint64_t word = 0;
        f.may_contain(std::span(&hash, 1), {&word, 1});
        return word != 0;
      });
  expect_answers_checked<removal>(
      hashes, "any_filter::remove", [&](hash_span some, std::span<removal> results) { f.remove(some, results); },
      [&] { return f.insert_count(); });
}

TEST(OutputSizes, OfRebuildingFilterAreChecked) {
  const scratch_folder folder;
  rebuilding_filter f = rebuilding_filter::create(folder / "f", {.capacity = 1'000'000, .target_fpr = 1e-6});
  const auto texts = some_texts();
  expect_answers_checked<std::uint8_t>(
      texts, "rebuilding_filter::insert",
      [&](std::span<const std::string_view> some, std::span<std::uint8_t> is_new) { f.insert(some, is_new); },
      [&] { return f.insert_count(); });
  const std::string looks_up = "any_filter::may_contain";
  expect_bitmaps_checked(
      texts, looks_up,
      [&](std::span<const std::string_view> some, std::span<std::uint64_t> bitmap) { f.may_contain(some, bitmap); },
      [&](std::string_view key) { return f.may_contain(key); });

  std::vector<key_hash> hashes(key_count);
  f.view().hash(texts, hashes);
  for (key_hash& hash : hashes) hash.hash64 = mix64(hash.hash64);
  expect_answers_checked<std::uint8_t>(
      hashes, "rebuilding_filter::insert",
      [&](std::span<const key_hash> some, std::span<std::uint8_t> is_new) { f.insert(some, is_new); },
      [&] { return std::pair(f.insert_count(), f.log().bytes()); });
}

TEST(OutputSizes, OfCallsOnBitsAreChecked) {
  std::vector<std::uint8_t> some(128, 0x0F);
  const fenced<std::uint8_t> shorter(127);
  std::vector<std::uint64_t> ones(3);

  expect_refused(error_of([&] { unite_bits(some, shorter.all()); }), "unite_bits", "128", 127);
  expect_refused(error_of([&] { intersect_bits(some, shorter.all()); }), "intersect_bits", "128", 127);
  expect_refused(error_of([&] { count_ones_of_lines(some, ones); }), "count_ones_of_lines", "192", 128);
  EXPECT_EQ(some, std::vector<std::uint8_t>(128, 0x0F));
}

TEST(AnyFilter, OfASchemeRefusesHashes) {
  any_filter f(complete({.scheme = "guava", .capacity = 1000, .target_fpr = 0.01}));
  const std::string_view key = "a";
  key_hash hash{1, 2};
  std::uint64_t word = 0;

  const auto refused = [](auto&& call) { return bloomery_tests::code_of(call) == errc::incompatible; };
  EXPECT_TRUE(refused([&] { f.hash(std::span(&key, 1), {&hash, 1}); }));
  EXPECT_TRUE(refused([&] { f.insert(std::span(&hash, 1)); }));
  EXPECT_TRUE(refused([&] { f.insert_all(std::span(&hash, 1)); }));
  EXPECT_TRUE(refused([&] { f.remove(std::span(&hash, 1)); }));
  EXPECT_TRUE(refused([&] { f.may_contain(std::span(&hash, 1), {&word, 1}); }));
  EXPECT_TRUE(refused([&] { static_cast<void>(f.cells(hash)); }));
}

// ---- filters opened for reading only --------------------------------------------------------------------------------

template <class Action>
void expect_read_only(const char* call, Action action) {
  const std::optional<error> thrown = error_of(action);
  ASSERT_TRUE(thrown.has_value()) << call << " wrote to a filter that was opened for reading only";
  EXPECT_EQ(thrown->code(), errc::not_permitted) << call << ": " << thrown->what();
  EXPECT_EQ(thrown->text().what, "the filter was opened for reading only") << call;
  EXPECT_EQ(thrown->text().hint.code, hint::open_read_write) << call;
}

template <class Layout>
void expect_mapped_filter_is_read_only() {
  using mapped = filter<std::uint64_t, Layout, mix, mapped_storage>;
  const scratch_folder folder;
  const auto keys = some_integers();
  filter<std::uint64_t, Layout> others(1000, 0.01);
  others.insert(7);
  {
    mapped made = mapped::create(folder / "f", others.parameters().geometry, 1000);
    made.insert(std::span(keys).first(10));
    made.close();
  }
  const bytes before = read_file(folder / "f");
  mapped f = mapped::open(folder / "f");

  expect_read_only("insert", [&] { f.insert(7); });
  expect_read_only("insert of a key that is in", [&] { f.insert(keys[0]); });
  expect_read_only("insert of many", [&] { f.insert(std::span(keys)); });
  expect_read_only("insert of none", [&] { f.insert(std::span(keys).first(0)); });
  expect_read_only("insert_all", [&] { f.insert_all(keys); });
  expect_read_only("merge", [&] { f.merge(others); });
  expect_read_only("clear", [&] { f.clear(); });
  if constexpr (layout_with_removal<Layout>) {
    expect_read_only("remove", [&] { f.remove(keys[0]); });
    expect_read_only("remove of many", [&] { f.remove(std::span(keys)); });
  } else {
    expect_read_only("intersect", [&] { f.intersect(others); });
  }

  EXPECT_TRUE(f.may_contain(keys[9]));
  EXPECT_EQ(f.insert_count(), 10u);
  f.close();
  EXPECT_EQ(read_file(folder / "f"), before);
}

TEST(ReadOnly, FilterRefusesEveryChange) {
  expect_mapped_filter_is_read_only<layouts::classic>();
  expect_mapped_filter_is_read_only<layouts::counting>();
}

TEST(ReadOnly, SlidingWindowFilterRefusesEveryChange) {
  using mapped = sliding_window_filter<std::uint64_t, layouts::sliding, mix, mapped_storage>;
  const scratch_folder folder;
  const auto keys = some_integers();
  const window_length day = window_of_time(std::chrono::hours(24));
  mapped::create(folder / "f", {.window = day, .capacity = 1000}).insert(keys[0]);
  const sliding_window_filter<std::uint64_t> others({.window = day, .capacity = 1000});
  const bytes before = read_file(folder / "f");
  mapped f = mapped::open(folder / "f");

  expect_read_only("insert", [&] { f.insert(7); });
  expect_read_only("insert of many", [&] { f.insert(std::span(keys)); });
  expect_read_only("merge", [&] { f.merge(others); });
  expect_read_only("clear", [&] { f.clear(); });

  EXPECT_EQ(f.insert_count(), 1u);
  f.close();
  EXPECT_EQ(read_file(folder / "f"), before);
}

TEST(ReadOnly, AnyFilterRefusesEveryChange) {
  const scratch_folder folder;
  const auto keys = some_integers();
  for (const char* layout : {"split_block512", "counting"}) {
    const params p = complete({.layout = layout, .keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01});
    any_filter::create(folder / "f", p).insert(keys[0]);
    const any_filter others(p);
    const bytes before = read_file(folder / "f");
    any_filter f = any_filter::open(folder / "f");

    expect_read_only("insert", [&] { f.insert(7); });
    expect_read_only("insert of many", [&] { f.insert(std::span(keys)); });
    expect_read_only("insert_all", [&] { f.insert_all(std::span(keys)); });
    expect_read_only("remove", [&] { f.remove(keys[0]); });
    expect_read_only("merge", [&] { f.merge(others); });
    expect_read_only("clear", [&] { f.clear(); });
    if (p.layout == "split_block512") expect_read_only("intersect", [&] { f.intersect(others); });

    f.close();
    EXPECT_EQ(read_file(folder / "f"), before);
  }
}

TEST(ReadOnly, RebuildingFilterRefusesEveryChange) {
  const scratch_folder folder;
  const auto texts = some_texts();
  rebuilding_filter::create(folder / "f", {.target_fpr = 0.01}).insert("a");
  rebuilding_filter f = rebuilding_filter::open(folder / "f");

  expect_read_only("insert", [&] { f.insert("b"); });
  expect_read_only("insert of many", [&] { f.insert(texts); });
  expect_read_only("rebuild", [&] { f.rebuild(); });
}

// On the heap nothing can fail, and the type says so; a mapped file may be one for reading only.
TEST(ReadOnly, IsNoConcernOfFiltersOnTheHeap) {
  using on_heap = filter<std::uint64_t, layouts::counting>;
  using mapped = filter<std::uint64_t, layouts::counting, mix, mapped_storage>;
  on_heap f(10, 0.01);

  static_assert(noexcept(f.insert(1))&& noexcept(f.remove(1))&& noexcept(f.clear()));
  static_assert(!noexcept(std::declval<mapped&>().insert(1)) && !noexcept(std::declval<mapped&>().clear()));
  EXPECT_TRUE(f.insert(1));
}

}  // namespace
}  // namespace bloomery
