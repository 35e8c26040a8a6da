// insert_by_two, compared with inserting keys one by one: the same bytes, and no block that both threads change.
#include "filters/insert_by_two.hpp"

#include <bloomery/detail/storage.hpp>
#include <bloomery/filter.hpp>

#include "support/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::bytes;

std::vector<std::uint64_t> random_words(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t& word : words) word = random();
  return words;
}

auto handing_out(const std::vector<std::uint64_t>& hash64s) {
  return [&hash64s](std::size_t first, std::size_t count, std::uint64_t* out) {
    std::copy_n(hash64s.begin() + static_cast<std::ptrdiff_t>(first), count, out);
  };
}

template <class L>
class InsertByTwoThreads : public testing::Test {
 protected:
  static geometry of_blocks(std::uint64_t blocks) { return {blocks * L::block_bits, 8}; }

  static void expect_the_bytes_of_one_by_one(const geometry& g, const std::vector<std::uint64_t>& hash64s) {
    SCOPED_TRACE(std::to_string(g.bits / L::block_bits) + " blocks, " + std::to_string(hash64s.size()) + " keys");
    bytes expected(bytes_for(g.bits));
    std::uint64_t expected_new = 0;
    for (const std::uint64_t hash64 : hash64s) expected_new += insert_cells<L>(expected.data(), g, {hash64, 0}) ? 1 : 0;
    heap_storage actual(g.bits / 8);

    const auto all_new = insert_by_two(bulk_target_of<L>(actual.data(), g), hash64s.size(), handing_out(hash64s));

    ASSERT_TRUE(all_new.has_value());
    // Another order of the keys may find another key to be a false positive.
    EXPECT_NEAR(static_cast<double>(*all_new), static_cast<double>(expected_new),
                static_cast<double>(expected_new) / 100 + 1);
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size()), 0);
  }
};

struct layout_names {
  template <class L>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    return std::string(L::name);
  }
};

using layouts_by_hash64 =
    testing::Types<layouts::split_block, layouts::split_block512, layouts::blocked, layouts::blocked_page>;
TYPED_TEST_SUITE(InsertByTwoThreads, layouts_by_hash64, layout_names);

TYPED_TEST(InsertByTwoThreads, GivesTheBytesOfOneByOneForAnyNumberOfBlocksAndKeys) {
  for (const std::uint64_t blocks : {1u, 2u, 3u, 7u, 100u}) {
    for (const std::size_t count : {0u, 1u, 2u, 1023u, 1024u, 2049u, 5000u}) {
      TestFixture::expect_the_bytes_of_one_by_one(TestFixture::of_blocks(blocks), random_words(count));
    }
  }
}

// More keys than the queues hold, so the threads take several rounds.
TYPED_TEST(InsertByTwoThreads, GivesTheBytesOfOneByOneInManyRounds) {
  TestFixture::expect_the_bytes_of_one_by_one(TestFixture::of_blocks(3001), random_words(400'000));
}

TYPED_TEST(InsertByTwoThreads, TakesKeysOfOneHalfOnly) {
  auto hash64s = random_words(300'000);
  for (const std::uint64_t upper : {std::uint64_t{0}, std::uint64_t{1} << 63}) {
    for (std::uint64_t& hash64 : hash64s) hash64 = hash64 << 1 >> 1 | upper;
    TestFixture::expect_the_bytes_of_one_by_one(TestFixture::of_blocks(2000), hash64s);
  }
}

// The blocks of each thread, by a layout that only watches, so that even the largest filter takes no memory.
struct watched_blocks {
  std::thread::id thread;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
};
std::mutex watch_lock;
std::vector<watched_blocks> watched;

template <class L>
std::uint64_t watch(std::uint8_t*, const geometry& g, const hash_span& keys, std::uint8_t*) {
  const std::scoped_lock lock(watch_lock);
  auto mine = std::find_if(watched.begin(), watched.end(),
                           [](const watched_blocks& w) { return w.thread == std::this_thread::get_id(); });
  if (mine == watched.end()) mine = watched.insert(watched.end(), {std::this_thread::get_id()});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t block = L::block_of(keys.hash(i).hash64, g.bits / L::block_bits);
    mine->first = std::min(mine->first, block);
    mine->last = std::max(mine->last, block);
  }
  return keys.size();
}

// The keys are the smallest and the largest hash64 of the blocks around the middle, where a wrong boundary shows.
TYPED_TEST(InsertByTwoThreads, GivesEachBlockToOneThreadUpToTheLargestFilter) {
  for (const std::uint64_t blocks :
       {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1000}, (std::uint64_t{1} << 31) + 1,
        (std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 32}) {
    SCOPED_TRACE(blocks);
    const geometry g = TestFixture::of_blocks(blocks);
    std::vector<std::uint64_t> hash64s = random_words(1000);
    std::uint64_t low = 0, high = ~std::uint64_t{0};  // the last hash64 below the middle, and the first one not below
    while (high - low > 1) {
      const std::uint64_t between = low + (high - low) / 2;
      (TypeParam::block_of(between, blocks) < blocks / 2 ? low : high) = between;
    }
    for (std::uint64_t i = 0; i < 10; ++i) hash64s.insert(hash64s.end(), {low - i, high + i});
    watched.clear();
    bulk_target target{nullptr, g, TypeParam::block_bits, TypeParam::blocks_by, watch<TypeParam>};

    EXPECT_EQ(insert_by_two(target, hash64s.size(), handing_out(hash64s)), hash64s.size());

    ASSERT_EQ(watched.size(), 2u);
    const auto [lower, upper] = std::minmax(
        watched[0], watched[1], [](const watched_blocks& a, const watched_blocks& b) { return a.first < b.first; });
    EXPECT_EQ(lower.last, blocks / 2 - 1);
    EXPECT_EQ(upper.first, blocks / 2);
  }
}

}  // namespace
}  // namespace bloomery
