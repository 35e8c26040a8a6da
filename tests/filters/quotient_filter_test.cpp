// Quotient filters as any_filter and filter_handle offer them: room, copies, merging, files and facts.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/partial_error.hpp>

#include "layouts/quotient.hpp"
#include "layouts/quotient_filters.hpp"
#include "support/test.hpp"

#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- room -----------------------------------------------------------------------------------------------------------

TEST(QuotientFilter, TakesTheKeysThatItIsMadeFor) {
  std::uint64_t key = 0;
  for (const double rate : {0.1, 0.01, 1e-4, 1e-6}) {
    for (std::uint64_t keys = 1; keys < 3000; keys += 1 + keys / 16) {
      any_filter filter(
          complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = keys, .target_fpr = rate}));
      for (std::uint64_t k = 0; k < keys; ++k) ASSERT_NO_THROW(filter.insert(++key)) << keys << ' ' << rate;
      EXPECT_EQ(filter.insert_count(), keys);
    }
  }
}

// Keys are removed and inserted in turn, many times the capacity.
TEST(QuotientFilter, KeepsRoomWhileKeysChange) {
  for (const std::uint64_t keys : {40u, 1000u, 20'000u}) {
    any_filter filter(complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = keys, .target_fpr = 0.01}));
    std::vector<std::uint64_t> present(keys);
    std::iota(present.begin(), present.end(), std::uint64_t{0});
    filter.insert(present);
    std::mt19937_64 random(keys);
    for (std::uint64_t next = keys; next < keys + 100'000; ++next) {
      std::uint64_t& one = present[random() % keys];
      ASSERT_EQ(filter.remove(one), removal::removed);
      one = next;
      ASSERT_NO_THROW(filter.insert(one));
    }
    EXPECT_EQ(filter.insert_count(), keys);
    EXPECT_EQ(measure_fill(filter.parameters(), filter.bytes()).ones, keys);
    for (const std::uint64_t key : present) ASSERT_TRUE(filter.may_contain(key));
    EXPECT_FALSE(filter.tainted());
  }
}

TEST(QuotientFilter, ReportsTheKeysInsertedBeforeItIsFull) {
  any_filter filter = quotient_filter(8, 3);
  std::vector<std::uint64_t> keys(500);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  std::vector<std::uint8_t> is_new(keys.size(), 9);
  std::uint64_t done = 0;
  try {
    filter.insert(keys, is_new);
    FAIL() << "500 keys in 147 slots";
  } catch (const partial_error& e) {
    EXPECT_EQ(e.code(), errc::full);
    EXPECT_EQ(e.undecided(), 0u);
    done = e.done().keys;
    EXPECT_EQ(e.done().changed, static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.end(), 1)));
  }
  EXPECT_EQ(filter.insert_count(), done);
  EXPECT_GT(done, 130u);
  EXPECT_LT(done, 148u);
  for (std::uint64_t key = 0; key < done; ++key) ASSERT_TRUE(filter.may_contain(key));
  EXPECT_EQ(is_new[done], 9);
  EXPECT_ERROR(filter.insert(keys[done]), errc::full, "the filter is full");
  // A handle counts the keys of the calls before.
  const auto handle = make_handle(quotient_filter(8, 3));
  try {
    handle->insert(keys);
    FAIL();
  } catch (const partial_error& e) {
    EXPECT_EQ(e.done().keys, done);
  }
}

// ---- copies and merging ---------------------------------------------------------------------------------------------

TEST(QuotientFilter, CountsFifteenCopiesOfAKey) {
  any_filter filter = quotient_filter(8, 3);
  EXPECT_TRUE(filter.insert(17));
  for (int i = 1; i < 14; ++i) EXPECT_FALSE(filter.insert(17));
  for (int i = 14; i > 0; --i) {
    EXPECT_TRUE(filter.may_contain(17));
    EXPECT_EQ(filter.remove(17), removal::removed);
  }
  EXPECT_FALSE(filter.may_contain(17));
  EXPECT_EQ(filter.remove(17), removal::not_found);
  for (int i = 0; i < 40; ++i) filter.insert(17);
  EXPECT_EQ(measure_fill(filter.parameters(), filter.bytes()).ones, 15u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(filter.remove(17), removal::removed);
  EXPECT_TRUE(filter.may_contain(17));  // its copies are no longer counted
}

// Two copies of each key do not fill blocks unevenly; four do, and the error says so.
TEST(QuotientFilter, HasRoomForTwoCopiesOfEachKey) {
  any_filter filter(complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = 50'000, .target_fpr = 0.01}));
  for (std::uint64_t i = 0; i < 50'000; ++i) ASSERT_NO_THROW(filter.insert(i / 2));
  filter.clear();
  EXPECT_ERROR(for (std::uint64_t i = 0; i < 50'000; ++i) filter.insert(i / 15), errc::full, "many copies");
}

TEST(QuotientFilter, AMergedFilterHasTheCopiesOfBoth) {
  for (const unsigned width : {4u, 7u, 13u, 24u}) {
    const params p =
        complete({.layout = quotient_layout(width), .keys = key_kind::u64le, .capacity = 4000, .target_fpr = 0.2});
    any_filter a(p), b(p);
    std::map<std::uint64_t, int> copies;
    std::mt19937_64 random(width);
    for (int i = 0; i < 1900; ++i) {
      const std::uint64_t of_a = random() % 1500, of_b = 1000 + random() % 1500;
      a.insert(of_a), b.insert(of_b);
      ++copies[of_a], ++copies[of_b];
    }
    a.merge(b);
    EXPECT_EQ(a.insert_count(), 3800u);
    EXPECT_EQ(measure_fill(p, a.bytes()).ones, 3800u);
    for (const auto& [key, count] : copies) {
      for (int i = 0; i < count; ++i) {
        ASSERT_TRUE(a.may_contain(key)) << width;
        ASSERT_EQ(a.remove(key), removal::removed);
      }
    }
    EXPECT_EQ(measure_fill(p, a.bytes()).ones, 0u);
  }
}

// The keys of the other filter are not inserted in random order.
TEST(QuotientFilter, AMergedFilterMayBeAsFullAsItsCapacity) {
  for (const std::uint64_t keys : {1'000u, 10'000u, 100'000u}) {
    const params p = complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = keys, .target_fpr = 0.01});
    for (std::uint64_t of_a : {std::uint64_t{0}, keys / 2, keys - keys / 10}) {
      for (std::uint64_t i = 0; i < 200'000 / keys; ++i) {
        any_filter a(p), b(p);
        for (std::uint64_t key = 0; key < keys; ++key) (key < of_a ? a : b).insert(i << 32 | key);
        ASSERT_NO_THROW(a.merge(b)) << keys << " keys, of which " << of_a << " were in the first filter";
        EXPECT_EQ(a.insert_count(), keys);
      }
    }
  }
}

TEST(QuotientFilter, AMergeWithoutRoomChangesNothing) {
  any_filter a = quotient_filter(8, 5), b = quotient_filter(8, 5);
  for (std::uint64_t key = 0; key < 200; ++key) a.insert(key), b.insert(1000 + key);
  const std::vector<std::uint8_t> before(a.bytes().begin(), a.bytes().end());
  EXPECT_ERROR(a.merge(b), errc::full, "the filter is full");
  EXPECT_TRUE(std::equal(before.begin(), before.end(), a.bytes().begin()));
  EXPECT_EQ(a.insert_count(), 200u);
}

// ---- files ----------------------------------------------------------------------------------------------------------

// With damaged blocks, further insertions could remove keys.
TEST(QuotientFilter, FilesWithDamagedBlocksAreNotLoaded) {
  any_filter filter(complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01}));
  for (std::uint64_t key = 0; key < 700; ++key) filter.insert(key);
  std::mt19937_64 random(3);
  const unsigned buckets = quotient::shape_of(7).buckets;
  ASSERT_EQ(filter.parameters().layout, "quotient7");
  for (int i = 0; i < 40; ++i) {
    heap_storage bytes(filter.byte_size());
    std::copy(filter.bytes().begin(), filter.bytes().end(), bytes.data());
    bytes.data()[64 * (random() % (filter.byte_size() / 64)) + random() % (buckets / 8)] ^=
        static_cast<std::uint8_t>(1 << random() % 8);
    const std::vector<std::uint8_t> file = file_bytes(filter.parameters(), {bytes.data(), bytes.size()}, {}, "");
    EXPECT_ERROR(any_filter::from_bytes(file), errc::damaged, "the blocks contradict themselves");
  }
  EXPECT_EQ(any_filter::from_bytes(filter.to_bytes()).insert_count(), 700u);
}

// A block changes in several steps, which readers and killed writers must not see.
TEST(QuotientFilter, FilesAreChangedAsAWhole) {
  const params p = complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = 100, .target_fpr = 0.01});
  any_filter filter(p);
  filter.insert(1);
  filter.save("whole.bloom");
  EXPECT_ERROR(any_filter::create("mapped.bloom", p), errc::incompatible, "in a mapped file");
  EXPECT_ERROR(any_filter::open("whole.bloom", {.mode = access::read_write}), errc::incompatible, "in a mapped file");
  EXPECT_FALSE(std::filesystem::exists("mapped.bloom"));
  {
    const auto handle = open_filter("whole.bloom", {.mode = access::read_write});
    EXPECT_TRUE(handle->capabilities().commits_whole);
    handle->insert(std::uint64_t{2});
    EXPECT_FALSE(any_filter::open("whole.bloom").may_contain(2));
    handle->commit();
  }
  EXPECT_TRUE(any_filter::open("whole.bloom").may_contain(1) && any_filter::open("whole.bloom").may_contain(2));
  EXPECT_EQ(any_filter::open("whole.bloom").insert_count(), 2u);
}

// ---- facts ----------------------------------------------------------------------------------------------------------

TEST(QuotientFilter, FactsTellTheRoom) {
  const auto handle = make_handle(
      any_filter(complete({.layout = "quotient", .keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01})));
  for (std::uint64_t key = 0; key < 600; ++key) handle->insert(key);
  for (int i = 0; i < 20; ++i) handle->insert(std::uint64_t{7});
  EXPECT_EQ(handle->remove(std::vector<std::uint64_t>{5, 1'000'000'000'000}).changed, 1u);
  const filter_facts facts = handle->info(info_depth::bits);
  ASSERT_TRUE(facts.quotient && facts.removals && facts.fill && !facts.counting);
  EXPECT_EQ(facts.fill->cells, facts.quotient->slots);
  EXPECT_EQ(facts.fill->cells_set, 613u);  // 599 keys and 14 more copies of one
  EXPECT_EQ(facts.quotient->full, 1u);
  EXPECT_GE(facts.quotient->keys_for, 1000u);
  EXPECT_EQ(*facts.keys_left, std::min(facts.quotient->keys_for, keys_within(facts.parameters, 0.01)) - 613);
  EXPECT_EQ(facts.removals->refused, 1u);
  EXPECT_FALSE(facts.consistency->alarm);
}

}  // namespace
}  // namespace bloomery
