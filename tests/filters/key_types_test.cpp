// filter<> for every type of key, ranges of keys, and filters as values: bytes, copies, comparison, union,
// intersection.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/static_filter.hpp>

#include "file/format.hpp"
#include "support/test.hpp"

#include <deque>
#include <forward_list>
#include <list>
#include <set>
#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr double tiny_rate = 1e-6;  // so that no answer is a false positive

// ---- types of keys --------------------------------------------------------------------------------------------------

// The 64-bit numbers that integers stand for, written out: sign-extension, modulo 2^64.
template <class Integer, class Layout = layouts::split_block, class Hash = mix>
void expect_the_filter_of(const std::vector<std::pair<Integer, std::uint64_t>>& keys) {
  filter<Integer, Layout, Hash> one_by_one(1000, tiny_rate);
  filter<Integer, Layout, Hash> in_a_batch(1000, tiny_rate);
  filter<std::uint64_t, Layout, Hash> expected(1000, tiny_rate);
  std::vector<Integer> batch;

  for (const auto& [key, number] : keys) {
    one_by_one.insert(key);
    expected.insert(number);
    batch.push_back(key);
  }
  in_a_batch.insert(batch);

  EXPECT_EQ(copy_of(one_by_one.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(copy_of(in_a_batch.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(one_by_one.parameters(), expected.parameters());
  for (const auto& [key, number] : keys) EXPECT_TRUE(one_by_one.may_contain(key)) << number;
  EXPECT_FALSE(one_by_one.may_contain(Integer{101}));
}

TEST(IntegerKeys, AreSignExtendedTo64Bits) {
  expect_the_filter_of<int>({{0, 0},
                             {7, 7},
                             {-1, 0xFFFF'FFFF'FFFF'FFFF},
                             {-2, 0xFFFF'FFFF'FFFF'FFFE},
                             {2'147'483'647, 0x7FFF'FFFF},
                             {-2'147'483'647 - 1, 0xFFFF'FFFF'8000'0000}});
  expect_the_filter_of<std::int8_t>({{-1, 0xFFFF'FFFF'FFFF'FFFF}, {-128, 0xFFFF'FFFF'FFFF'FF80}, {127, 127}});
  expect_the_filter_of<std::int64_t>({{std::numeric_limits<std::int64_t>::min(), 0x8000'0000'0000'0000}, {-1, ~0ull}});
  expect_the_filter_of<std::uint32_t>({{0xFFFF'FFFF, 0xFFFF'FFFF}, {0, 0}});
  expect_the_filter_of<std::uint8_t>({{255, 255}});
  expect_the_filter_of<unsigned long long>({{~0ull, ~0ull}});
  expect_the_filter_of<int, layouts::classic, xxh3>({{-1, 0xFFFF'FFFF'FFFF'FFFF}, {5, 5}});
  expect_the_filter_of<int, layouts::counting, murmur3>({{-1, 0xFFFF'FFFF'FFFF'FFFF}, {5, 5}});
}

// 997 keys are several batches, the last one not full.
TEST(IntegerKeys, OfManyBatchesAreThoseOfTheFilterOf64Bits) {
  std::mt19937 random(1);
  std::vector<int> keys(997);
  std::vector<std::uint64_t> numbers(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int>(random());
    numbers[i] = keys[i] < 0 ? ~std::uint64_t{0} - (static_cast<std::uint64_t>(-(std::int64_t{keys[i]} + 1)))
                             : static_cast<std::uint64_t>(keys[i]);
  }
  filter<int> f(1000, tiny_rate);
  filter<std::uint64_t> expected(1000, tiny_rate);
  std::vector<std::uint8_t> is_new(keys.size()), expected_new(keys.size());

  f.insert(keys, is_new);
  expected.insert(std::span<const std::uint64_t>(numbers), expected_new);

  EXPECT_EQ(f.bytes().size(), expected.bytes().size());
  EXPECT_EQ(copy_of(f.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(is_new, expected_new);
  filter<int> in_bulk(1000, tiny_rate);
  EXPECT_EQ(in_bulk.insert_all(keys, 2), expected.insert_count());
  EXPECT_EQ(copy_of(in_bulk.bytes()), copy_of(expected.bytes()));
}

TEST(TextKeys, OfEveryTypeMakeTheSameFilter) {
  const std::vector<std::string> names{"", "Ada", std::string("\0x\xFF", 3), std::string(300, 'y')};
  filter<> expected(1000, tiny_rate);
  for (const std::string& name : names) expected.insert(std::string_view(name));
  filter<std::string> one_by_one(1000, tiny_rate), in_a_batch(1000, tiny_rate), in_bulk(1000, tiny_rate);

  for (const std::string& name : names) one_by_one.insert(name);
  in_a_batch.insert(names);
  EXPECT_EQ(in_bulk.insert_all(names), names.size());

  EXPECT_EQ(copy_of(one_by_one.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(copy_of(in_a_batch.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(copy_of(in_bulk.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(one_by_one.parameters(), expected.parameters());
  EXPECT_TRUE(one_by_one.may_contain("Ada"));
  EXPECT_FALSE(one_by_one.may_contain("Grace"));
  static_assert(noexcept(one_by_one.insert(std::string_view())), "a literal is no reason to make a std::string");
}

TEST(TextKeys, AreOpenedAndRemovedAsStringsToo) {
  const scratch_folder folder;
  filter<std::string, layouts::counting> here(1000, tiny_rate);
  here.insert("Ada");
  here.save(folder / "f");

  auto loaded = filter<std::string_view, layouts::counting>::load(folder / "f");

  EXPECT_TRUE(loaded.may_contain("Ada"));
  EXPECT_EQ(here.remove("Ada"), removal::removed);
  EXPECT_FALSE(here.may_contain("Ada"));
}

TEST(KeyTypes, OfFiltersAreTextAndIntegers) {
  static_assert(integer_key<signed char> && integer_key<unsigned long long> && integer_key<std::int16_t>);
  static_assert(!integer_key<bool> && !integer_key<char> && !integer_key<wchar_t> && !integer_key<double>);
  static_assert(text_key<std::string> && text_key<std::string_view> && text_key<const char*>);
  static_assert(!text_key<int> && !text_key<std::vector<char>>);
  static_assert(std::is_same_v<default_hash<short>::type, mix> &&
                std::is_same_v<default_hash<std::string>::type, xxh3> &&
                std::is_same_v<default_hash<std::string, 64>::type, xxh3_64>);
}

// ---- ranges ---------------------------------------------------------------------------------------------------------

const std::vector<std::string>& many_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 997; ++i) all.push_back("a name that is longer than fifteen bytes " + std::to_string(i));
    return all;
  }();
  return names;
}

template <class Range>
void expect_inserted(Range&& range, const filter<>& expected) {
  filter<> f(1000, tiny_rate);
  f.insert(range);
  EXPECT_EQ(copy_of(f.bytes()), copy_of(expected.bytes()));
  EXPECT_EQ(f.insert_count(), expected.insert_count());
}

// A view whose elements are made when they are looked at, and gone after.
struct made_names {
  struct iterator {
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;
    std::size_t at = 0;
    std::string operator*() const { return many_names()[at]; }
    iterator& operator++() { return ++at, *this; }
    iterator operator++(int) { return {at++}; }
    friend bool operator==(const iterator&, const iterator&) = default;
  };
  iterator begin() const { return {}; }
  iterator end() const { return {many_names().size()}; }
};

TEST(Ranges, OfTextAreInserted) {
  const std::vector<std::string>& names = many_names();
  filter<> expected(1000, tiny_rate);
  for (const std::string& name : names) expected.insert(name);

  expect_inserted(names, expected);
  expect_inserted(std::span(names), expected);
  expect_inserted(std::list<std::string>(names.begin(), names.end()), expected);
  expect_inserted(std::forward_list<std::string>(names.begin(), names.end()), expected);
  expect_inserted(std::deque<std::string_view>(names.begin(), names.end()), expected);
  expect_inserted(std::vector<std::string_view>(names.begin(), names.end()), expected);
  expect_inserted(std::set<std::string>(names.begin(), names.end()), expected);
  expect_inserted(made_names{}, expected);
  const char* const texts[] = {"Ada", "Grace"};
  filter<> f(1000, tiny_rate);
  f.insert(texts);
  EXPECT_TRUE(f.may_contain("Ada") && f.may_contain("Grace"));
  EXPECT_EQ(f.insert_count(), 2u);
}

TEST(Ranges, OfIntegersAreInserted) {
  filter<int> f(1000, tiny_rate);

  f.insert(std::array{1, 2});
  f.insert(std::list<int>{3});
  f.insert(std::vector<short>{4, -5});
  const int raw[] = {6};
  f.insert(raw);
  f.insert(std::vector<int>{});

  for (const int key : {1, 2, 3, 4, -5, 6}) EXPECT_TRUE(f.may_contain(key)) << key;
  EXPECT_EQ(f.insert_count(), 6u);
  EXPECT_FALSE(f.may_contain(5));
}

// A std::string is a range, too, of characters; it is one key.
TEST(Ranges, AreNoTexts) {
  filter<> f(1000, tiny_rate);

  EXPECT_TRUE(f.insert(std::string("Ada")));

  EXPECT_FALSE(f.may_contain("A"));
  EXPECT_TRUE(f.may_contain(std::string("Ada")));
}

TEST(Ranges, AreLookedUpInEveryForm) {
  const std::vector<std::string>& names = many_names();
  filter<> f(1000, tiny_rate);
  for (std::size_t i = 0; i < names.size(); i += 3) f.insert(names[i]);
  const std::list<std::string> list(names.begin(), names.end());

  std::vector<std::uint64_t> bitmap((names.size() + 63) / 64), of_list(bitmap.size());
  f.may_contain(names, bitmap);
  f.may_contain(list, of_list);
  const auto found = std::make_unique<bool[]>(names.size());
  f.may_contain(names, std::span(found.get(), names.size()));
  std::vector<std::size_t> order;
  std::vector<bool> answers;
  f.may_contain(list, [&](std::size_t i, bool there) {
    order.push_back(i);
    answers.push_back(there);
  });

  EXPECT_EQ(of_list, bitmap);
  ASSERT_EQ(order.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(bitmap[i / 64] >> i % 64 & 1, i % 3 == 0 ? 1u : 0u) << i;
    EXPECT_EQ(found[i], i % 3 == 0) << i;
    EXPECT_EQ(answers[i], i % 3 == 0) << i;
    EXPECT_EQ(order[i], i);
  }
}

// Integers reach the kernels all at once: more of them than a bitmap on the stack has bits.
TEST(Ranges, OfTenThousandIntegersAreAnsweredInOrder) {
  std::vector<std::uint64_t> keys(10'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = 5 * i;
  filter<std::uint64_t> f(10'000, tiny_rate);
  for (std::size_t i = 0; i < keys.size(); i += 7) f.insert(keys[i]);

  std::size_t next = 0;
  std::size_t wrong = 0;
  f.may_contain(keys, [&](std::size_t i, bool there) { wrong += i == next++ && there == (i % 7 == 0) ? 0 : 1; });

  EXPECT_EQ(next, keys.size());
  EXPECT_EQ(wrong, 0u);
}

TEST(Ranges, HaveOutputsOfTheirSize) {
  filter<> f(1000, tiny_rate);
  const std::list<std::string> names{"Ada", "Grace"};
  std::array<std::uint8_t, 3> is_new;
  std::array<bool, 1> found;

  EXPECT_EQ(code_of([&] { f.insert(names, is_new); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { f.may_contain(names, found); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { f.may_contain(names, std::span<std::uint64_t>()); }), errc::invalid_argument);
  EXPECT_EQ(f.insert_count(), 0u);
}

// ---- making ---------------------------------------------------------------------------------------------------------

TEST(FilterOptions, NameWhatAFilterIsMadeFor) {
  const filter<> named({.capacity = 5000, .fpr = 0.001});
  const filter<> in_short(5000, 0.001);
  const filter deduced({.capacity = 5000});

  EXPECT_EQ(named.parameters(), in_short.parameters());
  EXPECT_EQ(deduced.parameters().target_fpr, 0.01);
  EXPECT_EQ(code_of([] { filter<>({.fpr = 0.1}); }), errc::invalid_argument);
  EXPECT_EQ((filter<std::string, layouts::split_block512>({.capacity = 10, .fpr = 0.1}, xxh3_64{7}).parameters().seed),
            7u);
}

TEST(FilterOptions, CannotBeSwapped) {
  static_assert(std::is_constructible_v<filter<>, int, double>);
  static_assert(!std::is_constructible_v<filter<>, double, int>);
  static_assert(!std::is_constructible_v<filter<>, double, double>);
  static_assert(!std::is_constructible_v<filter<>, float, int, xxh3_64>);
}

// ---- filters as values ----------------------------------------------------------------------------------------------

template <class Layout>
void expect_bytes_of_a_file() {
  const scratch_folder folder;
  filter<int, Layout> f(1000, 0.01);
  f.insert(std::vector<int>{1, -2, 3});
  f.save(folder / "f", "some metadata");

  const std::vector<std::uint8_t> file = f.to_bytes("some metadata");
  EXPECT_EQ(file, read_file(folder / "f"));
  const auto back = filter<int, Layout>::from_bytes(file);
  EXPECT_EQ(back, f);
  EXPECT_EQ(back.parameters(), f.parameters());
  EXPECT_EQ(back.counts(), f.counts());
  EXPECT_EQ(any_filter::from_bytes(file).to_bytes("some metadata"), file);
}

TEST(Bytes, OfAFilterAreThoseOfItsFile) {
  expect_bytes_of_a_file<layouts::split_block>();
  expect_bytes_of_a_file<layouts::classic>();
  expect_bytes_of_a_file<layouts::counting>();
}

TEST(Bytes, OfEveryFamilyMakeTheSameAnyFilter) {
  std::vector<params> all;
  for (const char* layout : {"split_block", "split_block512", "blocked", "blocked_page", "classic", "counting"}) {
    all.push_back(complete({.layout = layout, .capacity = 1000, .target_fpr = 0.01}));
  }
  all.push_back(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(7000)}));
  all.push_back(complete({.scheme = "guava", .capacity = 1000, .target_fpr = 0.01}));
  for (const params& p : all) {
    SCOPED_TRACE(p.layout + p.scheme);
    any_filter f(p);
    f.insert("Madrid");

    any_filter back = any_filter::from_bytes(f.to_bytes());
    any_filter copy = f.clone();

    EXPECT_EQ(back.parameters(), p);
    EXPECT_TRUE(back == f && copy == f && back.may_contain("Madrid") && copy.may_contain("Madrid"));
    EXPECT_EQ(back.counts(), f.counts());
    EXPECT_EQ(copy.counts(), f.counts());
    copy.insert("Berlin");
    EXPECT_FALSE(copy == f);
    EXPECT_FALSE(f.may_contain("Berlin"));
  }
}

TEST(Bytes, OfAStaticFilterAreReadAsItsFileIs) {
  const std::vector<std::string_view> keys{"Madrid", "Barcelona"};
  const scratch_folder folder;
  static_filter<>::build(keys).save(folder / "f");

  const any_filter back = any_filter::from_bytes(read_file(folder / "f"));

  EXPECT_TRUE(back.may_contain("Madrid") && back == back.clone());
  EXPECT_EQ(back.to_bytes(), read_file(folder / "f"));
}

TEST(Bytes, OfAKeyedFilterNeedItsSecret) {
  const secret_key key = random_secret();
  any_filter keyed(complete({.capacity = 1000, .target_fpr = 0.01, .secret = key}));
  keyed.insert("Madrid");

  EXPECT_TRUE(any_filter::from_bytes(keyed.to_bytes(), {.secret = key}).may_contain("Madrid"));
  EXPECT_EQ(code_of([&] { any_filter::from_bytes(keyed.to_bytes()); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { any_filter::from_bytes(keyed.to_bytes(), {.secret = random_secret()}); }),
            errc::incompatible);
}

// Whatever a file is refused for, its bytes are refused for, with the same code.
TEST(Bytes, ThatAreHostileAreRefusedAsTheFileIs) {
  const scratch_folder folder;
  filter<int, layouts::split_block512> f(2000, 0.01);
  f.insert(std::vector<int>{1, -2, 3});
  const bytes good = f.to_bytes("about");
  const auto expect_as_the_file = [&](const bytes& some, const std::string& what) {
    bloomery_tests::write_file(folder / "f", some);
    const auto of_file = error_of([&] { filter<int, layouts::split_block512>::load(folder / "f"); });
    const auto of_bytes = error_of([&] { filter<int, layouts::split_block512>::from_bytes(some); });
    ASSERT_EQ(of_bytes.has_value(), of_file.has_value()) << what;
    if (!of_file) return;
    EXPECT_EQ(of_bytes->code(), of_file->code()) << what << ": " << of_bytes->what();
    EXPECT_EQ(of_bytes->text().what, of_file->text().what) << what;
    EXPECT_EQ(code_of([&] { any_filter::from_bytes(some); }), of_file->code()) << what;
  };

  for (std::size_t size = 0; size < good.size(); size += size < 4200 ? 61 : 997) {
    expect_as_the_file(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)),
                       "cut to " + std::to_string(size));
    EXPECT_TRUE(code_of([&] { any_filter::from_bytes(std::span(good).first(size)); }).has_value()) << size;
  }
  for (std::size_t at = 0; at < good.size(); at += at < 1100 ? 1 : 101) {
    bytes changed = good;
    changed[at] ^= 0x41;
    expect_as_the_file(changed, "changed at " + std::to_string(at));
  }
  bytes longer = good;
  longer.push_back(0);
  expect_as_the_file(longer, "longer");
}

// Sizes are checked against the bytes before memory is taken: this header, whose checksums are right, says 2^60 bits.
TEST(Bytes, ThatClaimToBeHugeTakeNoMemory) {
  params p = complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01});
  p.geometry.bits = std::uint64_t{1} << 60;
  const format::page header = format::encode(p, {1, true, {}}, "");

  const auto refused = error_of([&] { any_filter::from_bytes(header); });

  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), errc::damaged) << refused->what();
  EXPECT_EQ(code_of([] { load_bytes({}); }), errc::not_a_filter);
}

TEST(Bytes, OfAnotherKindOfFilterAreRefused) {
  filter<int, layouts::split_block512> f(1000, 0.01);

  EXPECT_EQ(code_of([&] { filter<int, layouts::classic>::from_bytes(f.to_bytes()); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { filter<std::string, layouts::split_block512>::from_bytes(f.to_bytes()); }),
            errc::incompatible);
  EXPECT_EQ(code_of([&] { f.to_bytes(std::string(2'000'000, 'x')); }), errc::invalid_argument);
}

TEST(Values, AreClonedFromAnyStorage) {
  const scratch_folder folder;
  using mapped = filter<int, layouts::split_block512, mix, mapped_storage>;
  mapped f = mapped::create(folder / "f", layouts::split_block512::geometry_for(1000, 0.01), 1000);
  f.insert(7);

  filter<int, layouts::split_block512> copy = f.clone();
  copy.insert(8);

  EXPECT_TRUE(copy.may_contain(7) && !f.may_contain(8));
  EXPECT_EQ(copy.insert_count(), 2u);
  EXPECT_EQ(f.insert_count(), 1u);
}

TEST(Values, AreEqualIfTheyGiveTheSameAnswers) {
  filter<int> a(1000, 0.01), b(1000, 0.01);
  EXPECT_EQ(a, b);
  a.insert(1);
  EXPECT_NE(a, b);
  b.insert(1);
  EXPECT_EQ(a, b);
  b.insert(1);
  EXPECT_EQ(a, b);

  EXPECT_NE(filter<int>(1000, 0.01), filter<int>(100'000, 0.01)) << "other geometry";
  EXPECT_NE(filter<int>(1000, 0.01, mix{1}), filter<int>(1000, 0.01, mix{2})) << "other seed";
  const scratch_folder folder;
  a.save(folder / "f");
  EXPECT_EQ(a, (filter<int, layouts::split_block, mix, mapped_storage>::open(folder / "f")));
}

TEST(Values, AreUnitedAndIntersectedByOperators) {
  filter<int> odd(1000, tiny_rate), even(1000, tiny_rate);
  odd.insert(std::array{1, 3, 5});
  even.insert(std::array{2, 4, 5});
  filter<int> merged = odd.clone(), common = odd.clone();
  merged.merge(even);
  common.intersect(even);

  filter<int> either = odd.clone(), both = odd.clone();
  EXPECT_EQ(&(either |= even), &either);
  EXPECT_EQ(&(both &= even), &both);

  EXPECT_EQ(either, merged);
  EXPECT_EQ(either.insert_count(), merged.insert_count());
  EXPECT_TRUE(either.may_contain(1) && either.may_contain(2));
  EXPECT_EQ(both, common);
  EXPECT_TRUE(both.may_contain(5) && !both.may_contain(1));
  const filter<int> larger(100'000, tiny_rate);
  EXPECT_EQ(error_of([&] { either |= larger; })->what(), std::string(error_of([&] { either.merge(larger); })->what()));
  EXPECT_EQ(code_of([&] { either &= larger; }), errc::incompatible);
}

TEST(Values, OfAnyFilterHaveTheSameOperators) {
  const params p = complete({.capacity = 1000, .target_fpr = tiny_rate});
  any_filter a(p), b(p);
  a.insert("Ada");
  b.insert("Grace");
  any_filter either = a.clone(), both = a.clone();

  either |= b;
  both &= b;

  EXPECT_TRUE(either.may_contain("Ada") && either.may_contain("Grace"));
  EXPECT_FALSE(both.may_contain("Ada"));
  EXPECT_FALSE(a == b);
  EXPECT_EQ(code_of([&] { a |= any_filter(complete({.capacity = 9999, .target_fpr = tiny_rate})); }),
            errc::incompatible);
  any_filter counters(complete({.layout = "counting", .capacity = 1000, .target_fpr = tiny_rate}));
  EXPECT_EQ(code_of([&] { counters &= counters.clone(); }), errc::incompatible);
}

}  // namespace
}  // namespace bloomery
