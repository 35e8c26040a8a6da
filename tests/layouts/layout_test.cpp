// Layouts, compared with their definitions written out, and their batches, compared with single keys, bit for bit. The
// kernels behind the batches have their own tests: kernels_test.cpp.
#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "support/test.hpp"

#include <set>
#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::vector<key_hash> random_hashes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<key_hash> hashes(count);
  for (key_hash& hash : hashes) {
    hash.hash64 = random();
    hash.high64 = random();
  }
  return hashes;
}

// Corners of the arithmetic.
const std::vector<key_hash> extreme_hashes = {{0, 0},
                                              {0, ~0ull},
                                              {~0ull, 0},
                                              {~0ull, ~0ull},
                                              {1, 1},
                                              {0xFFFFFFFF, 0},
                                              {0xFFFFFFFF00000000, 0},
                                              {1ull << 63, 1ull << 63}};

// The upper half of a product, put together from four 32-bit products.
std::uint64_t upper_half(std::uint64_t x, std::uint64_t y) {
  const std::uint64_t x0 = x & 0xFFFFFFFF, x1 = x >> 32, y0 = y & 0xFFFFFFFF, y1 = y >> 32;
  const std::uint64_t middle = x1 * y0 + (x0 * y0 >> 32);
  const std::uint64_t other = x0 * y1 + (middle & 0xFFFFFFFF);
  return x1 * y1 + (middle >> 32) + (other >> 32);
}

template <class Layout>
std::vector<std::uint64_t> cells_of(const geometry& g, key_hash hash) {
  typename Layout::cells cells(g, hash);
  std::vector<std::uint64_t> all;
  for (std::uint32_t i = 0; i < cells.count(); ++i) all.push_back(cells.next());
  return all;
}

// ---- split_block ----------------------------------------------------------------------------------------------------

// Parquet's specification, in its own words of 32 bits. [BloomFilter.md of apache/parquet-format]
void parquet_insert(std::vector<std::uint32_t>& words, std::uint64_t hash) {
  const std::uint32_t salt[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
  const std::uint64_t z = words.size() / 8;
  const std::uint64_t i = ((hash >> 32) * z) >> 32;
  const auto x = static_cast<std::uint32_t>(hash);
  for (std::size_t j = 0; j < 8; ++j) words[i * 8 + j] |= 1u << ((x * salt[j]) >> 27);
}

bytes little_endian(const std::vector<std::uint32_t>& words) {
  bytes result;
  for (const std::uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) result.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  return result;
}

TEST(SplitBlock, SetsTheBitsOfParquetsSpecification) {
  for (const std::uint64_t blocks : {1u, 2u, 3u, 64u, 1000u}) {
    const geometry g{256 * blocks, 8};
    auto hashes = random_hashes(300, blocks);
    hashes.insert(hashes.end(), extreme_hashes.begin(), extreme_hashes.end());
    std::vector<std::uint32_t> expected(8 * blocks);
    bytes actual(bytes_for(g.bits));

    for (const key_hash hash : hashes) {
      parquet_insert(expected, hash.hash64);
      insert_cells<layouts::split_block>(actual.data(), g, hash);
    }

    EXPECT_EQ(actual, little_endian(expected)) << blocks << " blocks";
  }
}

// The hash of the specification's own "hello": XXH64 26c7827d889f6da3, in the 64 blocks of 2048 bytes.
TEST(SplitBlock, PutsHelloWhereParquetDoes) {
  const std::uint64_t hello = 0x26c7827d889f6da3;
  const geometry g{64 * 256, 8};

  const auto cells = cells_of<layouts::split_block>(g, {hello, 0});

  ASSERT_EQ(cells.size(), 8u);
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_EQ(cells[j] / 256, 9u);  // 0x26c7827d / 2^32 * 64 = 9.69
    EXPECT_EQ(cells[j] % 256 / 32, j);
  }
  EXPECT_EQ(cells[0] % 32, ((0x889f6da3ull * 0x47b6137b) & 0xFFFFFFFF) >> 27);
  EXPECT_EQ(cells[7] % 32, ((0x889f6da3ull * 0x5c6bfb31) & 0xFFFFFFFF) >> 27);
}

TEST(SplitBlock, ReachesTheFirstAndTheLastOfAllBlocks) {
  EXPECT_EQ(layouts::split_block::block_of(0, layouts::split_block::max_blocks), 0u);
  EXPECT_EQ(layouts::split_block::block_of(~std::uint64_t{0}, layouts::split_block::max_blocks),
            layouts::split_block::max_blocks - 1);
  EXPECT_EQ(layouts::split_block::block_of(std::uint64_t{5} << 32, layouts::split_block::max_blocks), 5u);
  EXPECT_EQ(layouts::split_block::block_of(~std::uint64_t{0}, 1), 0u);
  const auto cells = cells_of<layouts::split_block>({std::uint64_t{1} << 40, 8}, {~std::uint64_t{0}, 0});
  EXPECT_TRUE(std::all_of(cells.begin(), cells.end(), [](auto cell) { return cell >> 8 == 0xFFFFFFFF; }));
}

TEST(SplitBlock, ReadsTheLowHalfOfTheHashOnly) {
  const geometry g{25'600, 8};

  EXPECT_EQ(cells_of<layouts::split_block>(g, {42, 1}), cells_of<layouts::split_block>(g, {42, 2}));
}

// ---- split_block512, blocked, blocked_page --------------------------------------------------------------------------

std::vector<key_hash> random_and_extreme_hashes(std::uint64_t seed) {
  auto hashes = random_hashes(100, seed);
  hashes.insert(hashes.end(), extreme_hashes.begin(), extreme_hashes.end());
  return hashes;
}

TEST(SplitBlock512, FollowsItsDefinition) {
  for (const std::uint64_t lines : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1000},
                                    (std::uint64_t{1} << 32) + 3, layouts::split_block512::max_blocks}) {
    for (const key_hash hash : random_and_extreme_hashes(lines)) {
      std::vector<std::uint64_t> expected;
      const std::uint64_t p = hash.hash64 * 0x9E3779B97F4A7C15;
      for (std::uint64_t j = 0; j < 8; ++j) {
        expected.push_back(upper_half(hash.hash64, lines) * 512 + 64 * j + ((p >> (16 + 6 * j)) & 63));
      }

      ASSERT_EQ(cells_of<layouts::split_block512>({512 * lines, 8}, hash), expected) << lines << " lines";
    }
  }
}

// `bit_shift`: 64 less log2 of a block's bits.
template <class Layout>
void expect_probes_anywhere_in_a_block(std::uint64_t block_bits, unsigned bit_shift) {
  for (const std::uint64_t blocks : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1000},
                                     (std::uint64_t{1} << 32) + 3, Layout::max_blocks}) {
    for (const std::uint32_t probes : {1u, 7u, 8u, 9u, 16u, 17u, 40u, 255u}) {
      for (const key_hash hash : random_and_extreme_hashes(blocks + probes)) {
        std::vector<std::uint64_t> expected;
        std::uint64_t x = (2 * hash.hash64 + 1) * 0x9E3779B97F4A7C15;
        for (std::uint32_t i = 0; i < probes; ++i, x *= 0xD1342543DE82EF95) {
          expected.push_back(upper_half(hash.hash64, blocks) * block_bits + (x >> bit_shift));
        }

        ASSERT_EQ(cells_of<Layout>({block_bits * blocks, probes}, hash), expected)
            << blocks << " blocks, " << probes << " probes";
      }
    }
  }
}

TEST(Blocked, FollowsItsDefinition) { expect_probes_anywhere_in_a_block<layouts::blocked>(512, 55); }

TEST(BlockedPage, FollowsItsDefinition) { expect_probes_anywhere_in_a_block<layouts::blocked_page>(32'768, 49); }

TEST(LayoutsOfBlocks, ReadTheLowHalfOfTheHashOnly) {
  EXPECT_EQ(cells_of<layouts::split_block512>({51'200, 8}, {42, 1}),
            cells_of<layouts::split_block512>({51'200, 8}, {42, 2}));
  EXPECT_EQ(cells_of<layouts::blocked>({51'200, 9}, {42, 1}), cells_of<layouts::blocked>({51'200, 9}, {42, 2}));
  EXPECT_EQ(cells_of<layouts::blocked_page>({65'536, 9}, {42, 1}),
            cells_of<layouts::blocked_page>({65'536, 9}, {42, 2}));
}

// ---- classic --------------------------------------------------------------------------------------------------------

TEST(Classic, FollowsItsDefinition) {
  for (const geometry& g :
       {geometry{1, 3}, {2, 1}, {1021, 14}, {std::uint64_t{1} << 36, 255}, {(1ull << 63) - 1, 64}}) {
    auto hashes = random_hashes(100, g.bits);
    hashes.insert(hashes.end(), extreme_hashes.begin(), extreme_hashes.end());
    for (const key_hash hash : hashes) {
      std::vector<std::uint64_t> expected;
      std::uint64_t x = hash.hash64;
      for (std::uint32_t i = 0; i < g.probes; ++i) {
        expected.push_back(upper_half(x, g.bits));
        x = x * 0xD1342543DE82EF95 + hash.high64;
      }

      const auto actual = cells_of<layouts::classic>(g, hash);

      ASSERT_EQ(actual, expected) << g.bits << " bits";
      ASSERT_TRUE(std::all_of(actual.begin(), actual.end(), [&](auto cell) { return cell < g.bits; }));
    }
  }
}

// Double hashing would give every pair of keys with equal first two cells the same cells.
TEST(Classic, MixesBothHalvesIntoEveryProbeButTheFirst) {
  const geometry g{1'000'003, 8};
  const auto base = cells_of<layouts::classic>(g, {0x123456789ABCDEF0, 0x0FEDCBA987654321});

  const auto other = cells_of<layouts::classic>(g, {0x123456789ABCDEF0, 0x0FEDCBA987654321 ^ 1ull << 60});

  EXPECT_EQ(other[0], base[0]);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_NE(other[i], base[i]) << i;
  std::set<std::uint64_t> steps;
  for (std::size_t i = 1; i < 8; ++i) steps.insert((base[i] + g.bits - base[i - 1]) % g.bits);
  EXPECT_EQ(steps.size(), 7u);
}

// ---- batches --------------------------------------------------------------------------------------------------------

// The others are served by the loops of layout.hpp, as a user's own layout is.
static_assert(layout_with_kernels<layouts::split_block> && layout_with_kernels<layouts::split_block512> &&
              layout_with_kernels<layouts::blocked>);
static_assert(layout<layouts::classic> && !layout_with_kernels<layouts::classic> && layout<layouts::blocked_page> &&
              !layout_with_kernels<layouts::blocked_page>);

template <class Layout>
std::vector<geometry> geometries() {
  if constexpr (std::is_same_v<Layout, layouts::classic>) {
    return {
        {1, 1}, {7, 3}, {63, 2}, {64, 1}, {96, 7}, {1021, 14}, {65'537, 255}, {1 << 20, 20}, {2 * near_bits + 3, 7}};
  } else if constexpr (std::is_same_v<Layout, layouts::split_block>) {
    return {{256, 8}, {512, 8}, {768, 8}, {64 * 256, 8}, {1000 * 256, 8}};
  } else if constexpr (std::is_same_v<Layout, layouts::split_block512>) {
    return {{512, 8}, {1024, 8}, {1536, 8}, {64 * 512, 8}, {1000 * 512, 8}};
  } else {
    std::vector<geometry> all;
    for (const std::uint32_t probes : {1u, 7u, 8u, 9u, 16u, 17u, 40u}) {
      for (const std::uint64_t blocks : {1u, 2u, 3u, 100u}) {
        if (std::is_same_v<Layout, layouts::blocked> || blocks < 100)
          all.push_back({Layout::block_bits * blocks, probes});
      }
    }
    if (std::is_same_v<Layout, layouts::blocked_page>) all.push_back({4 * near_bits, 9});
    return all;
  }
}

constexpr std::size_t counts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 997};

template <class Layout>
class LayoutBatch : public testing::Test {};

std::string trace_of(const geometry& g, std::size_t count) {
  return std::to_string(g.bits) + " bits, " + std::to_string(g.probes) + " probes, " + std::to_string(count) + " keys";
}

using all_layouts = testing::Types<layouts::split_block, layouts::split_block512, layouts::blocked,
                                   layouts::blocked_page, layouts::classic>;
TYPED_TEST_SUITE(LayoutBatch, all_layouts, names_of_layouts);

TYPED_TEST(LayoutBatch, InsertsTheSameBitsAndReportsTheSameNewKeysAsOneByOne) {
  for (const geometry& g : geometries<TypeParam>()) {
    for (const std::size_t count : counts) {
      SCOPED_TRACE(trace_of(g, count));
      auto hashes = random_hashes(count, g.bits + count);
      for (std::size_t i = 5; i < count; i += 7) hashes[i] = hashes[i - 3];  // a key that is not new
      bytes expected(bytes_for(g.bits)), actual(expected), silent(expected);
      std::vector<std::uint8_t> expected_new(count), actual_new(count, 0xAA);

      for (std::size_t i = 0; i < count; ++i) expected_new[i] = insert_cells<TypeParam>(expected.data(), g, hashes[i]);
      const auto all_new = insert_batch<TypeParam>(actual.data(), g, hash_span::hashes(hashes), actual_new.data());
      const auto silently_new = insert_batch<TypeParam>(silent.data(), g, hash_span::hashes(hashes), nullptr);

      ASSERT_EQ(actual, expected);
      ASSERT_EQ(silent, expected);
      ASSERT_EQ(actual_new, expected_new);
      ASSERT_EQ(all_new, static_cast<std::uint64_t>(std::count(expected_new.begin(), expected_new.end(), 1)));
      ASSERT_EQ(silently_new, all_new);

      const auto more = random_hashes(count, 1);
      for (const key_hash hash : more) insert_cells<TypeParam>(expected.data(), g, hash);
      insert_batch<TypeParam>(actual.data(), g, hash_span::hashes(more), nullptr);
      ASSERT_EQ(actual, expected) << "added to what is there";
    }
  }
}

TYPED_TEST(LayoutBatch, AnswersAsOneByOneAndLeavesUnusedBitsOfTheBitmapZero) {
  for (const geometry& g : geometries<TypeParam>()) {
    bytes filter(bytes_for(g.bits));
    const auto present = random_hashes(g.bits / (2 * g.probes) + 1, g.bits);
    insert_batch<TypeParam>(filter.data(), g, hash_span::hashes(present), nullptr);
    for (const std::size_t count : counts) {
      SCOPED_TRACE(trace_of(g, count));
      auto hashes = random_hashes(count, 77 + count);
      for (std::size_t i = 0; i < count; i += 3) hashes[i] = present[i % present.size()];
      const std::uint64_t untouched = 0xAAAAAAAAAAAAAAAA;
      std::vector<std::uint64_t> expected((count + 63) / 64 + 1), actual(expected.size(), untouched);

      for (std::size_t i = 0; i < count; ++i) {
        expected[i / 64] |= std::uint64_t{has_cells<TypeParam>(filter.data(), g, hashes[i])} << i % 64;
      }
      expected.back() = untouched;
      has_batch<TypeParam>(filter.data(), g, hash_span::hashes(hashes), actual.data());

      ASSERT_EQ(actual, expected);
    }
  }
}

// Integers that a batch hashes itself, and the first halves of hashes, which all layouts but classic are content with.
TYPED_TEST(LayoutBatch, TakesKeysInEveryForm) {
  const mix hash(7);
  for (const geometry& g : geometries<TypeParam>()) {
    for (const std::size_t count : {1u, 16u, 65u, 300u}) {
      SCOPED_TRACE(trace_of(g, count));
      std::vector<std::uint64_t> keys, hash64s;
      std::vector<key_hash> hashes;
      std::mt19937_64 random(g.bits + count);
      for (std::size_t i = 0; i < count; ++i) {
        keys.push_back(random());
        hashes.push_back(hash(keys.back()));
        hash64s.push_back(hashes.back().hash64);
      }
      bytes expected(bytes_for(g.bits)), actual(expected);
      std::vector<std::uint64_t> found((count + 63) / 64), found_in_halves(found);

      for (const key_hash each : hashes) insert_cells<TypeParam>(expected.data(), g, each);
      insert_batch<TypeParam>(actual.data(), g, hash_span::mixed(keys, hash), nullptr);
      has_batch<TypeParam>(actual.data(), g, hash_span::mixed(keys, hash), found.data());

      ASSERT_EQ(actual, expected);
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(test_bit(reinterpret_cast<std::uint8_t*>(found.data()), i));
      if constexpr (!std::is_same_v<TypeParam, layouts::classic>) {
        bytes from_halves(expected.size());
        insert_batch<TypeParam>(from_halves.data(), g, hash_span::hash64s(hash64s), nullptr);
        has_batch<TypeParam>(actual.data(), g, hash_span::hash64s(hash64s), found_in_halves.data());
        ASSERT_EQ(from_halves, expected);
        ASSERT_EQ(found_in_halves, found);
      }
    }
  }
}

TYPED_TEST(LayoutBatch, DoesToOneKeyWhatItsCellsSay) {
  for (const geometry& g : geometries<TypeParam>()) {
    auto hashes = random_and_extreme_hashes(g.bits);
    bytes expected(bytes_for(g.bits)), actual(expected);
    for (const key_hash hash : hashes) {
      SCOPED_TRACE(trace_of(g, 1));
      ASSERT_EQ(has_one<TypeParam>(actual.data(), g, hash), has_cells<TypeParam>(expected.data(), g, hash));
      ASSERT_EQ(insert_one<TypeParam>(actual.data(), g, hash), insert_cells<TypeParam>(expected.data(), g, hash));
      ASSERT_TRUE(has_one<TypeParam>(actual.data(), g, hash));
    }

    ASSERT_EQ(actual, expected) << g.bits;
  }
}

// ---- bits -----------------------------------------------------------------------------------------------------------

TEST(Bits, AreCountedAtEveryLength) {
  std::mt19937_64 random(1);
  bytes all(100);
  for (auto& byte : all) byte = static_cast<std::uint8_t>(random());
  for (std::size_t length = 0; length <= all.size(); ++length) {
    std::uint64_t expected = 0;
    for (std::uint64_t bit = 0; bit < 8 * length; ++bit) expected += (all[bit / 8] & 1 << bit % 8) != 0;

    EXPECT_EQ(count_ones(std::span(all).first(length)), expected) << length;
  }
}

TEST(Bits, AreSetOnceAndLeaveTheirNeighboursAlone) {
  bytes filter(3);

  EXPECT_TRUE(set_bit(filter.data(), 10));
  EXPECT_FALSE(set_bit(filter.data(), 10));

  EXPECT_EQ(filter, (bytes{0, 4, 0}));
  EXPECT_TRUE(test_bit(filter.data(), 10));
  EXPECT_FALSE(test_bit(filter.data(), 9));
}

}  // namespace
}  // namespace bloomery
