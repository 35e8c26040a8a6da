// filter<> and any_filter: the same bytes from both and from files, and the contract of each call.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter.hpp>

#include "support/combinations.hpp"
#include "support/test.hpp"

#include <stdexcept>
#include <thread>
#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::size_t key_count = 997;  // no multiple of a batch

template <class Key>
std::vector<Key> repeated_keys() {
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

template <class Filter>
std::vector<std::uint64_t> answers_of(const Filter& f, std::span<const typename Filter::key_type> keys) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  f.may_contain(keys, bitmap);
  return bitmap;
}

// ---- one filter, several ways to create it --------------------------------------------------------------------------

// What a filter answers when keys are inserted and looked up, and what it is afterwards.
struct outcome {
  std::vector<std::uint8_t> is_new = std::vector<std::uint8_t>(key_count / 2, 7);
  std::vector<std::uint64_t> found = std::vector<std::uint64_t>((key_count + 63) / 64, ~std::uint64_t{0});
  bytes content;
  std::uint64_t count = 0;
};

// Inserts half of the keys in one call, and looks up all of them in another.
template <class Filter, class Key>
outcome in_batches(Filter& f, std::span<const Key> keys) {
  outcome seen;
  f.insert(keys.first(seen.is_new.size()), seen.is_new);
  f.may_contain(keys, seen.found);
  seen.content = copy_of(f.bytes());
  seen.count = f.insert_count();
  return seen;
}

template <class Filter, class Key>
outcome one_by_one(Filter& f, std::span<const Key> keys) {
  outcome seen;
  for (std::size_t i = 0; i < seen.is_new.size(); ++i) seen.is_new[i] = f.insert(keys[i]) ? 1 : 0;
  std::fill(seen.found.begin(), seen.found.end(), 0);
  for (std::size_t i = 0; i < keys.size(); ++i) seen.found[i / 64] |= std::uint64_t{f.may_contain(keys[i])} << i % 64;
  seen.content = copy_of(f.bytes());
  seen.count = f.insert_count();
  return seen;
}

void expect_same(const outcome& found, const outcome& expected, const char* what) {
  EXPECT_EQ(found.is_new, expected.is_new) << what;
  EXPECT_EQ(found.found, expected.found) << what;
  EXPECT_EQ(found.content, expected.content) << what;
  EXPECT_EQ(found.count, expected.count) << what;
}

template <class C>
class EveryFilter : public testing::Test {};
TYPED_TEST_SUITE(EveryFilter, combinations, combination_names);

// With more keys than the capacity, so that false positives must agree, too.
TYPED_TEST(EveryFilter, IsTheAnyFilterOfItsParametersInBatchesAndOneByOne) {
  using Key = typename TypeParam::key;
  using heap_filter = filter<Key, typename TypeParam::layout, typename TypeParam::hash>;
  const std::vector<Key> list = repeated_keys<Key>();
  const std::span<const Key> keys(list);
  for (const std::uint64_t seed : {0u, 42u}) {
    const auto hash = seeded<typename TypeParam::hash>(seed);
    const params p = complete(seeded({.layout = std::string(TypeParam::layout::name),
                                      .hash = std::string(TypeParam::hash::name),
                                      .keys = std::is_same_v<Key, std::uint64_t> ? key_kind::u64le : key_kind::bytes,
                                      .capacity = 300,
                                      .target_fpr = 0.05},
                                     seed));
    heap_filter single(300, 0.05, hash), batch(300, 0.05, hash);
    any_filter any_single(p), any_batch(p), of_hashes(p);
    std::vector<key_hash> hashes(key_count);
    ASSERT_TRUE(of_hashes.uses_hashes());
    of_hashes.hash(keys, hashes);

    const outcome expected = one_by_one(single, keys);

    EXPECT_EQ(single.parameters(), p);
    EXPECT_EQ(hashes[0], hash(keys[0]));
    for (std::size_t i = 3; i < expected.is_new.size(); i += 10) EXPECT_EQ(expected.is_new[i], 0) << i;  // repetitions
    EXPECT_EQ(expected.count, static_cast<std::uint64_t>(std::ranges::count(expected.is_new, 1)));
    EXPECT_GT(expected.count, 400u);
    expect_same(in_batches(batch, keys), expected, "in batches");
    expect_same(one_by_one(any_single, keys), expected, "any_filter");
    expect_same(in_batches(any_batch, keys), expected, "any_filter, in batches");
    expect_same(in_batches(of_hashes, std::span<const key_hash>(hashes)), expected, "as hashes");
    EXPECT_EQ(any_batch.to_bytes(), single.to_bytes());
    EXPECT_EQ(heap_filter::from_bytes(any_batch.to_bytes(), hash), single);
  }
}

template <class Key, class Layout, class Hash>
void expect_the_same_in_every_storage() {
  using heap_filter = filter<Key, Layout, Hash>;
  using mapped_filter = filter<Key, Layout, Hash, mapped_storage>;
  const std::vector<Key> list = repeated_keys<Key>();
  const std::span<const Key> keys(list);
  const scratch_folder folder;
  const Hash hash{42};
  heap_filter heap(1000, 0.005, hash);
  const params& p = heap.parameters();
  const outcome expected = in_batches(heap, keys);
  mapped_filter mapped = mapped_filter::create(folder / "mapped", p.geometry, 1000, {}, hash);
  any_filter any_mapped = any_filter::create(folder / "any", p);
  bytes arena(bytes_for(p.geometry.bits));
  filter<Key, Layout, Hash, span_storage> in_arena(p.geometry, span_storage(arena), 1000, hash);

  expect_same(in_batches(mapped, keys), expected, "mapped");
  expect_same(in_batches(any_mapped, keys), expected, "any_filter, mapped");
  expect_same(in_batches(in_arena, keys), expected, "in memory of the caller");
  EXPECT_EQ(arena, expected.content);

  any_mapped.close();
  heap.save(folder / "saved");
  EXPECT_EQ(heap_filter::load(folder / "any", hash), heap);
  EXPECT_EQ(mapped_filter::open(folder / "any", {.check = file_check::payload}, hash), heap);
  EXPECT_EQ(copy_of(any_filter::open(folder / "saved").bytes()), expected.content);
  EXPECT_EQ(any_filter::load(folder / "saved").parameters(), p);
}

TEST(Filter, HasTheSameBytesInEveryStorage) {
  expect_the_same_in_every_storage<std::string_view, layouts::split_block, xxh3_64>();
  expect_the_same_in_every_storage<std::uint64_t, layouts::classic, murmur3>();
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
  const auto keys = repeated_keys<std::string_view>();
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
  for (std::uint64_t key = 0; key < 600; ++key) {
    if (key < 400) left.insert(key);
    if (key >= 200) right.insert(key);
    both.insert(key);
  }

  ASSERT_TRUE(left.compatible_with(right));
  left.merge(right);

  EXPECT_EQ(left, both);
  EXPECT_NEAR(static_cast<double>(left.insert_count()), 600, 15);
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
    EXPECT_ERROR(left.merge(right), errc::incompatible, c.text);
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

// ---- sizes beyond memory --------------------------------------------------------------------------------------------

template <class Layout>
std::optional<errc> code_of_making(const geometry& g) {
  return code_of([&] { filter<std::uint64_t, Layout> f(g); });
}

TEST(Filter, BeyondThisMachinesMemoryIsRefusedNotTried) {
  EXPECT_EQ(code_of_making<layouts::classic>({std::uint64_t{1} << 63, 7}), errc::too_large);
  EXPECT_EQ(code_of_making<layouts::split_block512>({std::uint64_t{512} << 40, 8}), errc::too_large);
  EXPECT_EQ(code_of_making<layouts::blocked>({std::uint64_t{512} << 40, 7}), errc::too_large);
  EXPECT_EQ(code_of_making<layouts::blocked_page>({std::uint64_t{32'768} << 32, 7}), errc::too_large);
  EXPECT_EQ(code_of([] { filter<std::uint64_t, layouts::classic> f(std::uint64_t{1} << 55, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([] { filter<> f(std::numeric_limits<std::uint64_t>::max(), 0.5); }), errc::too_large);
  EXPECT_EQ(code_of([] { heap_storage s(std::numeric_limits<std::uint64_t>::max()); }), errc::too_large);
  EXPECT_ERROR(heap_storage(1ull << 60), errc::too_large, "1099511627776 MiB of memory needed, ");
  const params p = complete({.layout = "classic", .geometry = {1ull << 50, 7}});
  EXPECT_EQ(code_of([&] { any_filter f(p); }), errc::too_large);
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
