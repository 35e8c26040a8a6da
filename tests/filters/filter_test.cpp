// filter<> and any_filter: the same bytes from both and from files, and the contract of each call.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter.hpp>

#include "support/combinations.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::bytes;
using bloomery_tests::code_of;
using bloomery_tests::combination_names;
using bloomery_tests::combinations;
using bloomery_tests::error_of;
using bloomery_tests::read_file;
using bloomery_tests::scratch_folder;
using bloomery_tests::seeded;
using testing::HasSubstr;

constexpr std::size_t key_count = 997;  // no multiple of a batch

template <class Key>
std::vector<Key> keys_of_kind() {
  if constexpr (std::is_same_v<Key, std::uint64_t>) {
    std::mt19937_64 random(1);
    std::vector<Key> keys(key_count);
    for (Key& key : keys) key = random();
    for (std::size_t i = 3; i < keys.size(); i += 10) keys[i] = keys[i / 2];
    return keys;
  } else {
    static const std::vector<std::string> texts = [] {
      std::vector<std::string> all;
      for (std::size_t i = 0; i < key_count; ++i) {
        all.push_back(i % 10 == 3 ? all[i / 2] : std::string(i % 300, 'x') + std::to_string(i));
      }
      all[0].clear();
      all[2] = std::string("\0a\xFF", 3);
      return all;
    }();
    return {texts.begin(), texts.end()};
  }
}

bytes copy_of(std::span<const std::uint8_t> view) { return {view.begin(), view.end()}; }

template <class Filter>
std::vector<std::uint64_t> answers_of(const Filter& f, std::span<const typename Filter::key_type> keys) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  f.may_contain(keys, bitmap);
  return bitmap;
}

template <class C>
class EveryFilter : public testing::Test {
 public:
  using heap_filter = filter<typename C::key, typename C::layout, typename C::hash>;
  using mapped_filter = filter<typename C::key, typename C::layout, typename C::hash, mapped_storage>;

  static params description(std::uint64_t seed = 0) {
    return complete(seeded({.layout = std::string(C::layout::name),
                            .hash = std::string(C::hash::name),
                            .keys = std::is_same_v<typename C::key, std::uint64_t> ? key_kind::u64le : key_kind::bytes,
                            .capacity = 1000,
                            .target_fpr = 0.005},
                           seed));
  }
};
TYPED_TEST_SUITE(EveryFilter, combinations, combination_names);

// ---- one filter, several ways to create it --------------------------------------------------------------------------

TYPED_TEST(EveryFilter, HasTheSameBytesAsTemplateAnyAndFile) {
  using Key = typename TypeParam::key;
  const auto keys = keys_of_kind<Key>();
  const scratch_folder folder;
  for (const std::uint64_t seed : {0u, 42u}) {
    const auto hash = seeded<typename TypeParam::hash>(seed);
    const params p = TestFixture::description(seed);

    typename TestFixture::heap_filter fixed(1000, 0.005, hash);
    any_filter any(p);
    auto mapped = TestFixture::mapped_filter::create(folder / "fixed", p.geometry, 1000, {}, hash);
    any_filter any_mapped = any_filter::create(folder / "any", p);
    bytes arena(bytes_for(p.geometry.bits));
    filter<Key, typename TypeParam::layout, typename TypeParam::hash, span_storage> in_arena(
        p.geometry, span_storage(arena), 1000, hash);
    fixed.insert(std::span<const Key>(keys));
    any.insert(std::span<const Key>(keys));
    mapped.insert(std::span<const Key>(keys));
    any_mapped.insert(std::span<const Key>(keys));
    in_arena.insert(std::span<const Key>(keys));

    const bytes expected = copy_of(fixed.bytes());
    EXPECT_EQ(fixed.parameters(), p);
    EXPECT_EQ(copy_of(any.bytes()), expected);
    EXPECT_EQ(copy_of(mapped.bytes()), expected);
    EXPECT_EQ(copy_of(any_mapped.bytes()), expected);
    EXPECT_EQ(arena, expected);
    for (const std::uint64_t size :
         {any.insert_count(), mapped.insert_count(), any_mapped.insert_count(), in_arena.insert_count()}) {
      EXPECT_EQ(size, fixed.insert_count());
    }

    fixed.save(folder / "saved");
    any.save(folder / "any saved");
    any_mapped.close();
    EXPECT_EQ(read_file(folder / "saved"), read_file(folder / "any saved"));
    EXPECT_EQ(copy_of(TestFixture::heap_filter::load(folder / "any saved", hash).bytes()), expected);
    EXPECT_EQ(copy_of(TestFixture::mapped_filter::open(folder / "any", {.check = file_check::payload}, hash).bytes()),
              expected);
    EXPECT_EQ(copy_of(any_filter::open(folder / "saved", {.secret = p.secret}).bytes()), expected);
    EXPECT_EQ(copy_of(any_filter::load(folder / "saved", {.secret = p.secret}).bytes()), expected);
    EXPECT_EQ(any_filter::load(folder / "saved", {.secret = p.secret}).parameters(), p);
  }
}

TYPED_TEST(EveryFilter, ReportsNewKeysInBatchesAsOneByOne) {
  using Key = typename TypeParam::key;
  const auto keys = keys_of_kind<Key>();
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::heap_filter single(1000, 0.005, hash), batch(1000, 0.005, hash);
  any_filter any_single(TestFixture::description()), any_batch(TestFixture::description());
  std::vector<std::uint8_t> expected, from_any, from_batch(keys.size(), 7), from_any_batch(keys.size(), 7);

  for (const Key& key : keys) {
    expected.push_back(single.insert(key) ? 1 : 0);
    from_any.push_back(any_single.insert(key) ? 1 : 0);
  }
  batch.insert(keys, from_batch);
  any_batch.insert(std::span<const Key>(keys), from_any_batch);

  EXPECT_EQ(from_any, expected);
  EXPECT_EQ(from_batch, expected);
  EXPECT_EQ(from_any_batch, expected);
  for (std::size_t i = 3; i < keys.size(); i += 10) EXPECT_EQ(expected[i], 0) << i;  // repetitions
  const auto fresh = static_cast<std::uint64_t>(std::count(expected.begin(), expected.end(), 1));
  EXPECT_GT(fresh, 880u);
  EXPECT_EQ(single.insert_count(), fresh);
  EXPECT_EQ(batch.insert_count(), fresh);
  EXPECT_EQ(any_batch.insert_count(), fresh);
}

TYPED_TEST(EveryFilter, AnswersInBatchesAsOneByOne) {
  using Key = typename TypeParam::key;
  const auto keys = keys_of_kind<Key>();
  typename TestFixture::heap_filter seen(300, 0.05, seeded<typename TypeParam::hash>());
  any_filter any(seen.parameters());
  const auto some = std::span<const Key>(keys).first(400);  // above capacity: false positives must be the same in all
  seen.insert(some);
  any.insert(some);
  std::vector<std::uint64_t> expected((keys.size() + 63) / 64), from_any(expected.size(), ~std::uint64_t{0});

  for (std::size_t i = 0; i < keys.size(); ++i) {
    expected[i / 64] |= std::uint64_t{seen.may_contain(keys[i])} << i % 64;
    EXPECT_EQ(any.may_contain(keys[i]), seen.may_contain(keys[i]));
  }
  any.may_contain(std::span<const Key>(keys), from_any);

  EXPECT_EQ(answers_of(seen, keys), expected);
  EXPECT_EQ(from_any, expected);
}

TYPED_TEST(EveryFilter, TakesHashesInsteadOfKeys) {
  using Key = typename TypeParam::key;
  const auto keys = keys_of_kind<Key>();
  any_filter by_key(TestFixture::description()), by_hash(TestFixture::description());
  std::vector<key_hash> hashes(keys.size());
  std::vector<std::uint8_t> new_by_key(keys.size()), new_by_hash(keys.size());
  std::vector<std::uint64_t> found(16), found_by_hash(16);

  ASSERT_TRUE(by_hash.uses_hashes());
  by_hash.hash(std::span<const Key>(keys), hashes);
  by_key.insert(std::span<const Key>(keys), new_by_key);
  by_hash.insert(hashes, new_by_hash);
  by_key.may_contain(std::span<const Key>(keys), found);
  by_hash.may_contain(hashes, found_by_hash);

  EXPECT_EQ(copy_of(by_hash.bytes()), copy_of(by_key.bytes()));
  EXPECT_EQ(new_by_hash, new_by_key);
  EXPECT_EQ(found_by_hash, found);
  EXPECT_EQ(by_hash.insert_count(), by_key.insert_count());
  EXPECT_EQ(hashes[0], seeded<typename TypeParam::hash>()(keys[0]));
}

TYPED_TEST(EveryFilter, DependsOnItsSeed) {
  using Key = typename TypeParam::key;
  const auto keys = keys_of_kind<Key>();
  any_filter one(TestFixture::description(1)), two(TestFixture::description(2));

  one.insert(std::span<const Key>(keys));
  two.insert(std::span<const Key>(keys));

  EXPECT_NE(copy_of(one.bytes()), copy_of(two.bytes()));
}

// ---- sizes, rates and estimates -------------------------------------------------------------------------------------

TEST(Filter, ReportsItsSizesAndRates) {
  const filter<> seen(1'000'000, 0.01);
  const geometry g = layouts::split_block::geometry_for(1'000'000, 0.01);

  EXPECT_EQ(seen.capacity(), 1'000'000u);
  EXPECT_EQ(seen.bit_size(), g.bits);
  EXPECT_EQ(seen.byte_size(), g.bits / 8);
  EXPECT_EQ(seen.insert_count(), 0u);
  EXPECT_EQ(seen.fill_ratio(), 0);
  EXPECT_EQ(seen.approximate_size(), 0);
  EXPECT_EQ(seen.expected_fpr(), 0);
  EXPECT_EQ(seen.expected_fpr(1'000'000), layouts::split_block::expected_fpr(g, 1'000'000));
  EXPECT_EQ(seen.parameters().target_fpr, 0.01);
}

TEST(Filter, CountsItsFillBitByBit) {
  filter<std::uint64_t, layouts::classic> seen(geometry{1021, 5}, 100);
  any_filter any(seen.parameters());
  for (std::uint64_t key = 0; key < 100; ++key) {
    seen.insert(key);
    any.insert(key);
  }
  std::uint64_t ones = 0;

  for (std::uint64_t bit = 0; bit < 1021; ++bit) ones += test_bit(seen.bytes().data(), bit);

  EXPECT_EQ(seen.fill_ratio(), static_cast<double>(ones) / 1021);
  EXPECT_EQ(any.fill_ratio(), seen.fill_ratio());
  EXPECT_EQ(seen.approximate_size(), layouts::classic::keys_from_zeros({1021, 5}, 1021 - ones));
  EXPECT_EQ(any.approximate_size(), seen.approximate_size());
  EXPECT_NEAR(seen.approximate_size(), 100, 10);
  EXPECT_EQ(seen.expected_fpr(), layouts::classic::expected_fpr({1021, 5}, seen.insert_count()));
  EXPECT_EQ(any.expected_fpr(), seen.expected_fpr());
}

TEST(Filter, EstimatesInfinitelyManyKeysWhenFull) {
  filter<std::uint64_t, layouts::classic> seen(geometry{64, 8}, 5);
  for (std::uint64_t key = 0; key < 1000; ++key) seen.insert(key);

  EXPECT_EQ(seen.fill_ratio(), 1);
  EXPECT_EQ(seen.approximate_size(), std::numeric_limits<double>::infinity());
}

TEST(Filter, OfAGivenGeometryTakesItsRateAtCapacityAsTheTarget) {
  const filter<std::uint64_t, layouts::classic> sized(geometry{1000, 7}, 100);
  const filter<std::uint64_t, layouts::classic> unsized(geometry{1000, 7});

  EXPECT_EQ(sized.parameters().target_fpr, layouts::classic::expected_fpr({1000, 7}, 100));
  EXPECT_EQ(unsized.parameters().target_fpr, 0);
  EXPECT_EQ(unsized.capacity(), 0u);
}

TEST(Filter, ForgetsAllKeysWhenCleared) {
  filter<> seen(1000, 0.01);
  any_filter any(complete({.capacity = 1000, .target_fpr = 0.01}));
  seen.insert("key");
  any.insert("key");

  seen.clear();
  any.clear();

  EXPECT_FALSE(seen.may_contain("key"));
  EXPECT_FALSE(any.may_contain("key"));
  EXPECT_EQ(seen.insert_count() + any.insert_count(), 0u);
  EXPECT_EQ(seen.fill_ratio() + any.fill_ratio(), 0);
  EXPECT_TRUE(seen.insert("key"));
}

// ---- storages -------------------------------------------------------------------------------------------------------

TEST(Filter, OnTheHeapIsCopiedAndMoved) {
  for (const std::uint64_t n : {100u, 3'000'000u}) {  // from the C++ heap; whole huge pages
    SCOPED_TRACE(n);
    filter<std::uint64_t> original(n, 0.01);
    original.insert(1);

    filter<std::uint64_t> copy = original;
    copy.insert(2);
    EXPECT_TRUE(copy.may_contain(1));
    EXPECT_EQ(copy.insert_count(), 2u);
    EXPECT_FALSE(original.may_contain(2));
    EXPECT_EQ(original.insert_count(), 1u);

    filter<std::uint64_t> moved = std::move(copy);
    EXPECT_TRUE(moved.may_contain(2));
    original = std::move(moved);
    EXPECT_TRUE(original.may_contain(2));
    moved = original;  // a moved-from filter may be assigned to
    EXPECT_TRUE(moved.may_contain(2));
    filter<std::uint64_t>& itself = moved;
    moved = itself;
    EXPECT_TRUE(moved.may_contain(2));
  }
}

TEST(Filter, IsAlignedToACacheLineAndZeroed) {
  for (const std::uint64_t size : {1u, 63u, 4096u, (2u << 20) - 1, 2u << 20, (2u << 20) + 1, 5'000'000u}) {
    const heap_storage storage(size);

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.data()) % 64, 0u) << size;
    EXPECT_EQ(count_ones({storage.data(), storage.size()}), 0u) << size;
    EXPECT_EQ(storage.size(), size);
  }
}

TEST(Filter, WorksInBytesOfTheCallersAndFindsWhatIsThere) {
  bytes arena(64);
  using arena_filter = filter<std::uint64_t, layouts::split_block, mix, span_storage>;
  arena_filter first({512, 8}, span_storage(arena), 10);

  first.insert(42);
  const arena_filter second({512, 8}, span_storage(arena), 10);

  EXPECT_TRUE(second.may_contain(42));
  EXPECT_FALSE(second.may_contain(43));
  EXPECT_EQ(code_of([&] { arena_filter({256, 8}, span_storage(arena)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { arena_filter({1024, 8}, span_storage(arena)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { arena_filter({511, 8}, span_storage(arena)); }), errc::invalid_argument);
}

// Any number of threads may look up while none inserts.
TEST(FilterConcurrent, LookupsAgree) {
  const auto keys = keys_of_kind<std::string_view>();
  filter<> fixed(1000, 0.01);
  any_filter any(fixed.parameters());
  fixed.insert(std::span(keys).first(500));
  any.insert(std::span(keys).first(500));
  const auto expected = answers_of(fixed, keys);
  std::vector<std::vector<std::uint64_t>> answers(4, std::vector<std::uint64_t>(expected.size()));

  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        if (i % 2 == 0)
          fixed.may_contain(keys, answers[i]);
        else
          any.may_contain(std::span<const std::string_view>(keys), answers[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (const auto& answer : answers) EXPECT_EQ(answer, expected);
}

// ---- merging --------------------------------------------------------------------------------------------------------

TEST(Filter, MergedIsTheUnion) {
  filter<std::uint64_t> left(1000, 0.001), right(1000, 0.001), both(1000, 0.001);
  any_filter any_left(left.parameters()), any_right(left.parameters());
  for (std::uint64_t key = 0; key < 600; ++key) {
    if (key < 400) left.insert(key), any_left.insert(key);
    if (key >= 200) right.insert(key), any_right.insert(key);
    both.insert(key);
  }

  ASSERT_TRUE(left.compatible_with(right));
  ASSERT_TRUE(any_left.compatible_with(any_right));
  left.merge(right);
  any_left.merge(any_right);

  EXPECT_EQ(copy_of(left.bytes()), copy_of(both.bytes()));
  EXPECT_EQ(copy_of(any_left.bytes()), copy_of(both.bytes()));
  EXPECT_NEAR(static_cast<double>(left.insert_count()), 600, 15);
  EXPECT_EQ(any_left.insert_count(), left.insert_count());
}

TEST(Filter, MergesAcrossStorages) {
  const scratch_folder folder;
  filter<std::uint64_t, layouts::classic> heap(geometry{100'000, 7}, 1000);
  heap.insert(1);
  {
    auto mapped =
        filter<std::uint64_t, layouts::classic, mix, mapped_storage>::create(folder / "f", {100'000, 7}, 1000);
    mapped.insert(2);
    mapped.merge(heap);
  }

  const auto reopened =
      filter<std::uint64_t, layouts::classic, mix, mapped_storage>::open(folder / "f", {.check = file_check::payload});
  EXPECT_TRUE(reopened.may_contain(1));
  EXPECT_TRUE(reopened.may_contain(2));
  EXPECT_EQ(reopened.insert_count(), 2u);
}

TEST(Filter, OpensAndCreatesFilesByOptions) {
  const scratch_folder folder;
  using in_file = filter<std::uint64_t, layouts::split_block, mix, mapped_storage>;
  filter<std::uint64_t> heap({.capacity = 1000, .fpr = 0.001});
  heap.insert(7);
  {
    in_file made = in_file::create(folder / "f", {.capacity = 1000, .fpr = 0.001}, {.metadata = "sevens"});
    made.insert(7);
    EXPECT_EQ(code_of([&] { in_file::open(folder / "f", {.mode = access::read_write}); }), errc::locked);
    const auto give_up = [](const std::string& path) { throw std::runtime_error(path); };
    EXPECT_THROW(in_file::open(folder / "f", {.mode = access::read_write, .waiting = give_up}), std::runtime_error);
  }

  EXPECT_EQ(inspect(folder / "f").info.metadata, "sevens");
  EXPECT_EQ(inspect(folder / "f").info.parameters, heap.parameters());
  EXPECT_EQ(in_file::open(folder / "f", {.check = file_check::payload}), heap);
  const auto again = [&] { in_file::create(folder / "f", {.capacity = 9}, {.replace = false}); };
  EXPECT_EQ(code_of(again), errc::already_exists);
}

TEST(Filter, RefusesToMergeAndNamesTheFieldAndBothValues) {
  const params base = complete({.layout = "classic", .hash = "xxh3", .geometry = {1000, 7}, .capacity = 100});
  struct {
    params other;
    const char* text;
  } const cases[] = {
      {{.layout = "split_block", .hash = "xxh3", .geometry = {1024, 8}}, "layout: classic and split_block"},
      {{.layout = "classic", .hash = "murmur3", .geometry = {1000, 7}}, "hash: xxh3 and murmur3"},
      {{.layout = "classic", .hash = "xxh3", .keys = key_kind::u64le, .geometry = {1000, 7}}, "keys: bytes and u64"},
      {{.layout = "classic", .hash = "xxh3", .seed = 9, .geometry = {1000, 7}}, "seed: 0 and 9"},
      {{.layout = "classic", .hash = "xxh3", .geometry = {1001, 7}}, "bits: 1000 and 1001"},
      {{.layout = "classic", .hash = "xxh3", .geometry = {1000, 8}}, "probes: 7 and 8"},
      {{.scheme = "python", .geometry = {1000, 7}}, "scheme: none and python"},
  };
  for (const auto& c : cases) {
    any_filter left(base);
    left.insert("key");
    const bytes before = copy_of(left.bytes());
    const any_filter right(complete(c.other));

    EXPECT_FALSE(left.compatible_with(right));
    const auto thrown = error_of([&] { left.merge(right); });

    ASSERT_TRUE(thrown) << c.text;
    EXPECT_EQ(thrown->code(), errc::incompatible);
    EXPECT_THAT(thrown->what(), HasSubstr(c.text));
    EXPECT_EQ(copy_of(left.bytes()), before);
  }
  filter<> a(1000, 0.01), b(2000, 0.01);
  EXPECT_FALSE(a.compatible_with(b));
  EXPECT_EQ(code_of([&] { a.merge(b); }), errc::incompatible);
}

TEST(Filter, OfAnotherCapacityButTheSameBitsMayBeMerged) {
  any_filter left(complete({.layout = "classic", .geometry = {1000, 7}, .capacity = 100}));
  const any_filter right(complete({.layout = "classic", .geometry = {1000, 7}, .capacity = 50}));

  EXPECT_TRUE(left.compatible_with(right));
  EXPECT_EQ(code_of([&] { left.merge(right); }), std::nullopt);
}

TEST(Filter, IntersectedKeepsTheKeysOfBothAndEstimatesTheirNumber) {
  filter<std::uint64_t> left(1000, 0.001), right(1000, 0.001);
  any_filter any_left(left.parameters()), any_right(left.parameters());
  for (std::uint64_t key = 0; key < 900; ++key) {
    if (key < 600) left.insert(key), any_left.insert(key);
    if (key >= 300) right.insert(key), any_right.insert(key);
  }

  left.intersect(right);
  any_left.intersect(any_right);

  EXPECT_EQ(copy_of(left.bytes()), copy_of(any_left.bytes()));
  for (std::uint64_t key = 300; key < 600; ++key) EXPECT_TRUE(left.may_contain(key));
  EXPECT_NEAR(static_cast<double>(left.insert_count()), 300, 30);
  EXPECT_EQ(any_left.insert_count(), left.insert_count());
  EXPECT_TRUE(left.count_is_estimate() && any_left.count_is_estimate());
}

// The number of keys that full filters share is unknown, but not 0.
TEST(Filter, IntersectedWhenFullHasACountThatIsNotZero) {
  for (const std::uint64_t bits : {1u, 8u, 64u, 100u}) {
    filter<std::uint64_t, layouts::classic> full(geometry{bits, 3}, 10);
    filter<std::uint64_t, layouts::classic> too(geometry{bits, 3}, 10);
    any_filter any_full(full.parameters()), any_too(full.parameters());
    for (std::uint64_t key = 0; key < 1000; ++key) {
      full.insert(key), any_full.insert(key);
      too.insert(key + 1000), any_too.insert(key + 1000);
    }
    ASSERT_EQ(full.fill_ratio(), 1);
    ASSERT_EQ(any_too.fill_ratio(), 1);

    full.intersect(too);
    any_full.intersect(any_too);

    EXPECT_EQ(full.fill_ratio(), 1);
    EXPECT_GT(full.insert_count(), 0u) << bits;
    EXPECT_EQ(any_full.insert_count(), full.insert_count()) << bits;
    EXPECT_TRUE(full.count_is_estimate() && any_full.count_is_estimate());
  }
}

TEST(AnyFilter, OfASchemeReportsNewKeysAndAnswersInBatches) {
  const auto keys = keys_of_kind<std::string_view>();
  for (const char* name : {"guava", "pharo", "python", "perl"}) {
    any_filter single(complete({.scheme = name, .capacity = 1000, .target_fpr = 0.01})), batch(single.parameters());
    std::vector<std::uint8_t> expected, fresh(keys.size());
    std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64, ~std::uint64_t{0});

    for (const auto key : keys) expected.push_back(single.insert(key) ? 1 : 0);
    batch.insert(std::span<const std::string_view>(keys), fresh);
    batch.may_contain(std::span<const std::string_view>(keys), bitmap);

    EXPECT_EQ(fresh, expected) << name;
    EXPECT_EQ(copy_of(batch.bytes()), copy_of(single.bytes())) << name;
    EXPECT_EQ(batch.insert_count(), static_cast<std::uint64_t>(std::count(expected.begin(), expected.end(), 1)));
    for (std::size_t i = 0; i + 1 < bitmap.size(); ++i) EXPECT_EQ(bitmap[i], ~std::uint64_t{0});
    EXPECT_EQ(bitmap.back(), (std::uint64_t{1} << keys.size() % 64) - 1);
  }
}

// ---- sizes beyond memory --------------------------------------------------------------------------------------------

TEST(Filter, BeyondThisMachinesMemoryIsRefusedNotTried) {
  EXPECT_EQ(code_of([] { filter<std::uint64_t, layouts::classic> f(std::uint64_t{1} << 55, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([] {
              filter<std::uint64_t, layouts::classic> f(geometry{std::uint64_t{1} << 63, 7});
            }),
            errc::too_large);
  EXPECT_EQ(code_of([] {
              any_filter f(complete({.layout = "classic", .geometry = {1ull << 50, 7}}));
            }),
            errc::too_large);
  EXPECT_EQ(code_of([] { heap_storage s(std::numeric_limits<std::uint64_t>::max()); }), errc::too_large);
  EXPECT_EQ(code_of([] { filter<> f(std::numeric_limits<std::uint64_t>::max(), 0.5); }), errc::too_large);
  EXPECT_THAT(error_of([] { heap_storage s(1ull << 60); })->what(), HasSubstr("1099511627776 MiB of memory needed, "));
}

TEST(Filter, OfNoKeysOrNoProbabilityIsRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(code_of([] { filter<> f(0, 0.01); }), errc::invalid_argument);
  for (const double p : {0.0, 1.0, -1.0, 2.0, nan}) {
    EXPECT_EQ(code_of([&] { filter<> f(1000, p); }), errc::invalid_argument) << p;
    EXPECT_EQ(code_of([&] { filter<std::uint64_t, layouts::classic> f(1000, p); }), errc::invalid_argument) << p;
  }
}

}  // namespace
}  // namespace bloomery
