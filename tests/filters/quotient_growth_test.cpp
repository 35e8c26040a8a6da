// Quotient filters that grow: they double when a key has no room, and report the same keys as before.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/partial_error.hpp>

#include "layouts/quotient.hpp"
#include "layouts/quotient_filters.hpp"
#include "registry/tables.hpp"
#include "support/test.hpp"

#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;

params small(std::uint64_t capacity, double rate = 0.01) {
  return complete({.layout = "quotient_growing", .keys = key_kind::u64le, .capacity = capacity, .target_fpr = rate});
}

// The last size of the same filter.
params large(params p) {
  while (find_layout(p.layout)->slots->keys_for(p.geometry) < p.capacity) {
    p.layout = quotient_layout(find_layout(p.layout)->fingerprint_bits - 1);
    p.geometry.bits *= 2;
  }
  return p;
}

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<std::uint64_t> answers(const any_filter& filter, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> bitmap((count + 63) / 64);
  filter.may_contain(numbers(first, count), bitmap);
  return bitmap;
}

// A filter of the last size from the start is another structure of the same fingerprints, so both report the same keys.
TEST(QuotientGrowth, ReportsWhatALargeFilterReports) {
  for (const double rate : {0.1, 0.01, 1e-4}) {
    const params p = bloomery::small(30'000, rate);
    any_filter small(p), large(bloomery::large(p));
    const std::uint64_t first_size = small.byte_size();
    std::uint64_t size = first_size;
    int doublings = 0;
    for (std::uint64_t key = 0; key < 30'000; key += 100) {
      const std::uint64_t before = small.byte_size();
      small.insert(numbers(key, 100));
      large.insert(numbers(key, 100));
      if (small.byte_size() == before) continue;
      ++doublings;
      size = small.byte_size();
      ASSERT_EQ(answers(small, 0, 200'000), answers(large, 0, 200'000)) << key;
      ASSERT_LE(small.current_fpr(), rate);
      ASSERT_DOUBLE_EQ(small.expected_fpr(), large.expected_fpr());
    }
    EXPECT_GE(doublings, 2);
    EXPECT_EQ(size, first_size << doublings);
    EXPECT_EQ(size, large.byte_size());
    EXPECT_EQ(answers(small, 0, 2'000'000), answers(large, 0, 2'000'000));
    EXPECT_EQ(small.current_fpr(), large.current_fpr());
    EXPECT_EQ(small.parameters().layout, large.parameters().layout);
    const params fixed =
        complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = 30'000, .target_fpr = rate});
    EXPECT_EQ(small.parameters().layout, fixed.layout);
    EXPECT_LE(64 * small.byte_size(), 65 * bytes_for(fixed.geometry.bits));
  }
}

// Eight doublings: the last size has 580 times as much room as the first one.
TEST(QuotientGrowth, KeepsItsRateAtAnySize) {
  any_filter filter(small(1'000'000));
  const std::uint64_t first = filter.byte_size();
  EXPECT_EQ(first, 64u * 80);
  std::uint64_t next = 0;
  for (const std::uint64_t size : {1'000u, 3'000u, 10'000u, 40'000u, 150'000u, 600'000u, 1'000'000u}) {
    filter.insert(numbers(next, size - next));
    next = size;
    const double exact = filter.current_fpr(), expected = filter.expected_fpr();
    EXPECT_LE(exact, 0.01);
    const layout_row& row = *find_layout(filter.parameters().layout);
    EXPECT_NEAR(exact / expected, 1, 4.5 * std::sqrt(row.slots->relative_variance(filter.parameters().geometry, size)));
    constexpr std::uint64_t queries = 2'000'000;
    std::uint64_t found = 0;
    for (const std::uint64_t word : answers(filter, std::uint64_t{1} << 40, queries))
      found += static_cast<std::uint64_t>(std::popcount(word));
    EXPECT_NEAR(static_cast<double>(found), exact * queries, 4.5 * std::sqrt(exact * queries) + 1);
    // It never has more than twice as many slots as needed, apart from the spare ones.
    EXPECT_LE(filter.fill_ratio(), 1);
    EXPECT_GE(filter.fill_ratio(), 0.4);
    for (const std::uint64_t word : answers(filter, 0, size / 64 * 64)) ASSERT_EQ(word, ~std::uint64_t{0});
  }
  EXPECT_EQ(filter.parameters().layout, "quotient7");
  EXPECT_EQ(filter.byte_size(), first << 8);
}

TEST(QuotientGrowth, KeysCanBeRemovedAfterwards) {
  any_filter filter(small(50'000));
  std::mt19937_64 random(1);
  std::map<std::uint64_t, int> copies;
  for (int i = 0; i < 45'000; ++i) {
    const std::uint64_t key = random() % 30'000;
    if (copies[key] == 3) continue;
    ++copies[key];
    filter.insert(key);
  }
  EXPECT_EQ(filter.parameters().layout, "quotient7");
  for (const auto& [key, count] : copies) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(filter.may_contain(key));
      ASSERT_EQ(filter.remove(key), removal::removed);
    }
  }
  EXPECT_EQ(measure_fill(filter.parameters(), filter.bytes()).ones, 0u);
  EXPECT_EQ(filter.insert_count(), 0u);
  EXPECT_FALSE(filter.tainted());
}

// A key of fifteen copies, and others, in any order of doublings.
TEST(QuotientGrowth, KeepsCopies) {
  any_filter filter(small(20'000));
  for (int i = 0; i < 20; ++i) filter.insert(17);
  for (int i = 0; i < 3; ++i) filter.insert(18);
  filter.insert(numbers(1000, 15'000));
  EXPECT_EQ(measure_fill(filter.parameters(), filter.bytes()).ones, 15'018u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(filter.remove(18), removal::removed);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(filter.remove(17), removal::removed);
  EXPECT_TRUE(filter.may_contain(17));
}

TEST(QuotientGrowth, StopsAtItsCapacity) {
  any_filter filter(small(10'000));
  const std::uint64_t last = bytes_for(large(small(10'000)).geometry.bits);
  filter.insert(numbers(0, 10'000));
  EXPECT_EQ(filter.byte_size(), last);
  std::uint64_t done = 0;
  try {
    filter.insert(numbers(10'000, 5'000));
    FAIL() << "15,000 keys in a filter for 10,000";
  } catch (const partial_error& e) {
    EXPECT_EQ(e.code(), errc::full);
    done = 10'000 + e.done().keys;
  }
  EXPECT_EQ(filter.byte_size(), last);
  EXPECT_EQ(filter.insert_count(), done);
  for (std::uint64_t key = 0; key < done; ++key) ASSERT_TRUE(filter.may_contain(key));
}

// With the narrow blocks of the first sizes, some keys with many copies have no room after a doubling, but after two.
TEST(QuotientGrowth, KeysWithManyCopiesDoNotEndIt) {
  std::uint64_t key = 0;
  for (int i = 0; i < 200; ++i) {
    any_filter filter(small(10'000'000, 1e-4));
    const std::uint64_t first = key;
    for (; key < first + 200; ++key) {
      for (int copy = 0; copy < 15; ++copy) ASSERT_NO_THROW(filter.insert(key)) << i << ' ' << key - first;
    }
    for (std::uint64_t k = first; k < key; ++k) ASSERT_TRUE(filter.may_contain(k));
    EXPECT_EQ(measure_fill(filter.parameters(), filter.bytes()).ones, 3000u);
    EXPECT_LT(filter.byte_size(), std::uint64_t{1} << 20);
  }
}

TEST(QuotientGrowth, IsMergedAtAnySizes) {
  const auto filter_of = [](std::uint64_t first, std::uint64_t count) {
    any_filter filter(small(40'000));
    filter.insert(numbers(first, count));
    return filter;
  };
  for (const auto& [of_a, of_b] : {std::pair{100u, 20'000u}, {20'000u, 100u}, {15'000u, 15'000u}, {0u, 5'000u}}) {
    any_filter a = filter_of(0, of_a);
    const any_filter b = filter_of(100'000, of_b);
    const std::uint64_t size_of_b = b.byte_size();
    a.merge(b);
    EXPECT_EQ(b.byte_size(), size_of_b);
    EXPECT_EQ(a.insert_count(), of_a + of_b);
    any_filter both = filter_of(0, of_a);
    both.insert(numbers(100'000, of_b));
    EXPECT_EQ(answers(a, 0, 300'000), answers(both, 0, 300'000));
    EXPECT_EQ(a.byte_size(), both.byte_size());
  }
  any_filter a = filter_of(0, 30'000);
  const any_filter b = filter_of(100'000, 30'000);
  const std::uint64_t size = a.byte_size();
  EXPECT_ERROR(a.merge(b), errc::full, "the filter is full");
  EXPECT_EQ(a.insert_count(), 30'000u);
  EXPECT_EQ(a.byte_size(), size);
  EXPECT_TRUE(a.compatible_with(b) && filter_of(0, 1).compatible_with(a));
  EXPECT_EQ(answers(a, 0, 300'000), answers(filter_of(0, 30'000), 0, 300'000));
  any_filter twice = filter_of(0, 10'000);
  twice.merge(twice);
  EXPECT_EQ(twice.insert_count(), 20'000u);
  for (int i = 0; i < 2; ++i) {
    for (std::uint64_t key = 0; key < 10'000; ++key) ASSERT_EQ(twice.remove(key), removal::removed);
  }
  EXPECT_EQ(measure_fill(twice.parameters(), twice.bytes()).ones, 0u);
  any_filter other(small(80'000));
  EXPECT_ERROR(a.merge(other), errc::incompatible, "layout: ");
}

TEST(QuotientGrowth, GrowsInFilesAndCopies) {
  const any_filter made(complete({.layout = "quotient_growing", .capacity = 100'000, .target_fpr = 0.001}));
  made.save("grows.bloom");
  std::vector<std::string> keys;
  keys.reserve(30'000);
  for (int i = 0; i < 30'000; ++i) keys.push_back("key " + std::to_string(i));
  {
    const auto handle = open_filter("grows.bloom", {.mode = access::read_write});
    handle->insert(keys);
    handle->commit();
  }
  const any_filter opened = any_filter::open("grows.bloom");
  EXPECT_GT(opened.byte_size(), 8 * made.byte_size());
  EXPECT_EQ(opened.insert_count(), 30'000u);
  EXPECT_EQ(opened.capacity(), 100'000u);
  for (const std::string& key : keys) ASSERT_TRUE(opened.may_contain(key));
  any_filter copy = opened.clone();
  for (int i = 30'000; i < 90'000; ++i) copy.insert("key " + std::to_string(i));
  EXPECT_GT(copy.byte_size(), opened.byte_size());
  EXPECT_TRUE(copy.may_contain("key 89999"));
  EXPECT_EQ(any_filter::from_bytes(copy.to_bytes()), copy);
}

TEST(QuotientGrowth, FactsTellTheSizeToCome) {
  const auto handle = make_handle(any_filter(small(50'000)));
  handle->insert(numbers(0, 2'000));
  const filter_facts facts = handle->info(info_depth::bits);
  EXPECT_LT(facts.quotient->keys_for, 50'000u);
  EXPECT_EQ(facts.quotient->grows_to, 50'000u);
  EXPECT_EQ(*facts.keys_left, 48'000u);
  EXPECT_FALSE(facts.consistency->alarm);
}

TEST(QuotientGrowth, StartsAsSmallAsPossible) {
  for (const std::uint64_t capacity : {100u, 5'000u, 40'000u, 1'000'000u, 4'000'000'000u}) {
    for (const double rate : {0.1, 0.01, 1e-3, 1e-6}) {
      const params first = small(capacity, rate), last = large(first);
      EXPECT_LE(expected_fpr(last, capacity), rate);
      EXPECT_DOUBLE_EQ(expected_fpr(first, capacity), expected_fpr(last, capacity));
      const std::uint64_t blocks = first.geometry.bits / 512;
      EXPECT_TRUE(blocks < 128 || find_layout(first.layout)->fingerprint_bits == quotient::most_width);
      const params fixed = complete({.layout = "quotient", .capacity = capacity, .target_fpr = rate});
      EXPECT_LE(64 * last.geometry.bits, 65 * fixed.geometry.bits);
    }
  }
  EXPECT_EQ(small(1'000'000).layout, "quotient15");
  EXPECT_EQ(small(1'000'000).geometry.bits, 512u * 80);
}

}  // namespace
}  // namespace bloomery
