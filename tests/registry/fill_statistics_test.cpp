// Exact FPRs of the present bits, compared with counting: the share of all choices of a block and its bits that find
// only set bits. These tests read bits one by one.
//
// m bits, k probes, B blocks.
#include "registry/fill_statistics.hpp"
#include "registry/tables.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "schemes/schemes.hpp"
#include "support/long_tests.hpp"
#include "support/scheme_sizes.hpp"
#include "support/test.hpp"
#include "support/vast_memory.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using byte_array = std::vector<std::uint8_t>;

constexpr double sigmas = 4.5;

// Bytes for these bits. Each part of 32 bits has its own density; some parts are empty or full.
byte_array random_bytes(std::uint64_t bits, std::mt19937_64& random, double emptiest = 0) {
  byte_array bytes(bytes_for(bits));
  double density = 0.5;
  for (std::uint64_t x = 0; x < bits; ++x) {
    if (x % 32 == 0) density = emptiest + (1 - emptiest) * static_cast<double>(random() % 17) / 16;
    if (std::bernoulli_distribution(density)(random)) set_bit(bytes.data(), x);
  }
  return bytes;
}

std::uint64_t ones_from(const byte_array& bytes, std::uint64_t first, std::uint64_t count) {
  std::uint64_t ones = 0;
  for (std::uint64_t x = first; x < first + count; ++x) ones += test_bit(bytes.data(), x) ? 1 : 0;
  return ones;
}

// The number of the b^k ways to choose k of the b bits from `first` on, with repetition, that find only set bits.
std::uint64_t ways_to_hit(const byte_array& bytes, std::uint64_t first, std::uint64_t b, std::uint32_t k) {
  if (k == 0) return 1;
  std::uint64_t ways = 0;
  for (std::uint64_t x = first; x < first + b; ++x) {
    if (test_bit(bytes.data(), x)) ways += ways_to_hit(bytes, first, b, k - 1);
  }
  return ways;
}

params params_of(std::string_view layout, const geometry& g) {
  return {.layout = std::string(layout), .hash = "xxh3", .geometry = g};
}

// The FPR that collisions among `space` hashes add, for the number of keys estimated from the bits.
double with_collisions(double hit, double keys, double space) {
  const double collision = -std::expm1(std::round(keys) * std::log1p(-1 / space));
  return hit + collision - hit * collision;
}

template <class Layout>
double keys_in(const geometry& g, const fill_statistics& c) {
  return Layout::keys_from_zeros(g, std::max<std::uint64_t>(g.bits - c.ones, 1));
}

// ---- layouts --------------------------------------------------------------------------------------------------------

TEST(FillStatisticsOfClassic, IsTheShareOfAllWaysToChooseBits) {
  std::mt19937_64 random(1);
  for (const std::uint64_t m : {1u, 2u, 3u, 7u, 8u, 10u, 16u, 21u, 70u}) {
    for (const std::uint32_t k : {1u, 2u, 3u}) {
      SCOPED_TRACE(testing::Message() << "m " << m << ", k " << k);
      const byte_array bytes = random_bytes(m, random);

      const fill_statistics c = measure_fill(params_of("classic", {m, k}), bytes);

      const double ways = std::pow(static_cast<double>(m), k);
      EXPECT_EQ(c.ones, ones_from(bytes, 0, m));
      EXPECT_NEAR(c.current_fpr, static_cast<double>(ways_to_hit(bytes, 0, m, k)) / ways, 1e-15);
    }
  }
}

template <class Layout>
void expect_the_share_of_all_ways(std::uint32_t k, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::uint64_t b = Layout::block_bits;
  for (const std::uint64_t B : {1u, 2u, 3u}) {
    SCOPED_TRACE(testing::Message() << Layout::name << ", B " << B << ", k " << k);
    const geometry g{B * b, k};
    const byte_array bytes = random_bytes(g.bits, random);
    double ways = 0;
    for (std::uint64_t block = 0; block < B; ++block)
      ways += static_cast<double>(ways_to_hit(bytes, block * b, b, k)) / std::pow(b, k);

    const fill_statistics c = measure_fill(params_of(Layout::name, g), bytes);

    EXPECT_EQ(c.ones, ones_from(bytes, 0, g.bits));
    const double expected = with_collisions(ways / static_cast<double>(B), keys_in<Layout>(g, c), 0x1p64);
    EXPECT_NEAR(c.current_fpr / expected, 1, 1e-14);
  }
}

TEST(FillStatisticsOfBlocked, IsTheShareOfAllWaysToChooseALineAndBits) {
  expect_the_share_of_all_ways<layouts::blocked>(1, 2);
  expect_the_share_of_all_ways<layouts::blocked>(2, 3);
}

TEST(FillStatisticsOfBlockedPage, IsTheShareOfAllWaysToChooseAPageAndABit) {
  expect_the_share_of_all_ways<layouts::blocked_page>(1, 4);
}

// For blocked and blocked_page with many probes, and for more blocks than one batch takes.
template <class Layout>
void expect_the_mean_of_powers(std::uint64_t B, std::uint32_t k) {
  std::mt19937_64 random(B + k);
  constexpr std::uint64_t b = Layout::block_bits;
  const geometry g{B * b, k};
  const byte_array bytes = random_bytes(g.bits, random);
  double sum = 0;
  for (std::uint64_t block = 0; block < B; ++block)
    sum += std::pow(static_cast<double>(ones_from(bytes, block * b, b)) / b, k);

  const fill_statistics c = measure_fill(params_of(Layout::name, g), bytes);

  const double expected = with_collisions(sum / static_cast<double>(B), keys_in<Layout>(g, c), 0x1p64);
  EXPECT_NEAR(c.current_fpr / expected, 1, 1e-12) << Layout::name << ", B " << B << ", k " << k;
}

TEST(FillStatisticsOfBlocked, IsTheMeanOfTheLinesPowers) {
  for (const std::uint64_t B : {1u, 7u, 511u, 512u, 513u, 1500u}) {
    for (const std::uint32_t k : {3u, 8u, 255u}) expect_the_mean_of_powers<layouts::blocked>(B, k);
  }
}

TEST(FillStatisticsOfBlockedPage, IsTheMeanOfThePagesPowers) {
  for (const std::uint64_t B : {1u, 2u, 5u}) {
    for (const std::uint32_t k : {2u, 7u, 20u, 255u}) expect_the_mean_of_powers<layouts::blocked_page>(B, k);
  }
}

// One bit in each of the eight words of a block: of all w^8 choices, the product of the ones of the words.
template <class Layout>
double share_of_ways(const byte_array& bytes, std::uint64_t block) {
  double share = 1;
  for (std::uint64_t word = 0; word < Layout::lanes; ++word) {
    const std::uint64_t first = block * Layout::block_bits + word * Layout::lane_bits;
    share *= static_cast<double>(ones_from(bytes, first, Layout::lane_bits)) / Layout::lane_bits;
  }
  return share;
}

template <class Layout>
void expect_the_mean_of_products(double bits_of_lo) {
  std::mt19937_64 random(5);
  for (const std::uint64_t B : {1u, 2u, 3u, 511u, 512u, 513u, 1500u}) {
    SCOPED_TRACE(testing::Message() << Layout::name << ", B " << B);
    const geometry g{B * Layout::block_bits, Layout::lanes};
    const byte_array bytes = random_bytes(g.bits, random, 0.3);
    double sum = 0;
    for (std::uint64_t block = 0; block < B; ++block) sum += share_of_ways<Layout>(bytes, block);

    const fill_statistics c = measure_fill(params_of(Layout::name, g), bytes);

    const double blocks = static_cast<double>(B);
    const double space = bits_of_lo == 64 ? 0x1p64 : blocks * 0x1p32;
    EXPECT_EQ(c.ones, ones_from(bytes, 0, g.bits));
    EXPECT_NEAR(c.current_fpr / with_collisions(sum / blocks, keys_in<Layout>(g, c), space), 1, 1e-13);
  }
}

TEST(FillStatisticsOfSplitBlock, IsTheMeanOfTheBlocksProducts) {
  expect_the_mean_of_products<layouts::split_block>(32);
}
TEST(FillStatisticsOfSplitBlock512, IsTheMeanOfTheLinesProducts) {
  expect_the_mean_of_products<layouts::split_block512>(64);
}

template <class Layout>
class FillStatisticsOfLayout : public testing::Test {};
using all_layouts = testing::Types<layouts::split_block, layouts::split_block512, layouts::blocked,
                                   layouts::blocked_page, layouts::classic>;
TYPED_TEST_SUITE(FillStatisticsOfLayout, all_layouts, names_of_layouts);

template <class Layout>
std::vector<geometry> small_geometries() {
  if constexpr (requires { Layout::lanes; }) {
    return {{Layout::block_bits, 8}, {3 * Layout::block_bits, 8}, {1000 * Layout::block_bits, 8}};
  } else if constexpr (requires { Layout::block_bits; }) {
    return {{Layout::block_bits, 1}, {3 * Layout::block_bits, 5}, {7 * Layout::block_bits, 255}};
  } else {
    return {{1, 1}, {1, 255}, {2, 3}, {63, 4}, {64, 4}, {100'001, 9}};
  }
}

TYPED_TEST(FillStatisticsOfLayout, IsNothingForAnEmptyFilterAndExactlyOneForAFullOne) {
  for (const geometry& g : small_geometries<TypeParam>()) {
    SCOPED_TRACE(testing::Message() << g.bits << " bits, k " << g.probes);
    const byte_array empty(bytes_for(g.bits));
    byte_array full = empty;
    for (std::uint64_t x = 0; x < g.bits; ++x) set_bit(full.data(), x);

    EXPECT_EQ(measure_fill(params_of(TypeParam::name, g), empty), (fill_statistics{0, 0}));
    EXPECT_EQ(measure_fill(params_of(TypeParam::name, g), full), (fill_statistics{g.bits, 1}));
  }
}

// By the definition: the cells of random hashes.
TYPED_TEST(FillStatisticsOfLayout, IsHowOftenTheCellsOfRandomHashesAreAllSet) {
  std::mt19937_64 random(6);
  constexpr std::uint64_t queries = 300'000;
  for (const geometry& g : small_geometries<TypeParam>()) {
    if (g.probes > 10) continue;
    SCOPED_TRACE(testing::Message() << g.bits << " bits, k " << g.probes);
    const byte_array bytes = random_bytes(g.bits, random, 0.4);
    double hits = 0;

    for (std::uint64_t i = 0; i < queries; ++i) hits += has_cells<TypeParam>(bytes.data(), g, {random(), random()});
    const double rate = measure_fill(params_of(TypeParam::name, g), bytes).current_fpr;

    EXPECT_NEAR(hits / queries, rate, sigmas * std::sqrt(rate * (1 - rate) / queries) + 1e-9);
  }
}

// Where words are nearly empty, collisions of hashes are the whole rate.
TEST(FillStatisticsOfOneKey, CountsItsTwins) {
  for (const std::uint64_t B : {1u, 2u, 3u, 1000u}) {
    for (const std::uint64_t key : {1u, 2u, 3u}) {
      any_filter split(complete({.layout = "split_block", .keys = key_kind::u64le, .geometry = {256 * B, 8}}));
      any_filter lines(complete({.layout = "split_block512", .keys = key_kind::u64le, .geometry = {512 * B, 8}}));
      split.insert(key);
      lines.insert(key);

      const double of_split = measure_fill(split.parameters(), split.bytes()).current_fpr;
      const double of_lines = measure_fill(lines.parameters(), lines.bytes()).current_fpr;

      EXPECT_NEAR(of_split * static_cast<double>(B) / (0x1p-40 + 0x1p-32), 1, 1e-9) << B;
      EXPECT_NEAR(of_lines / (0x1p-48 / static_cast<double>(B) + 0x1p-64), 1, 1e-9) << B;
    }
  }
}

TEST(FillStatistics, IgnoresUnusedBitsOfHostileFiles) {
  std::mt19937_64 random(7);
  for (const std::uint64_t m : {1u, 3u, 9u, 13u, 15u, 799u}) {
    SCOPED_TRACE(m);
    byte_array bytes = random_bytes(m, random);
    const params p = params_of("classic", {m, 2});
    const fill_statistics clean = measure_fill(p, bytes);

    for (std::uint64_t x = m; x < 8 * bytes.size(); ++x) set_bit(bytes.data(), x);

    EXPECT_EQ(measure_fill(p, bytes), clean);
    EXPECT_EQ(clean.ones, ones_from(bytes, 0, m));
  }
}

// ---- blocks of split_block with a value more than others ------------------------------------------------------------

// The values of the upper half that lead to the blocks below `block`: by search, since block_of rises with them.
std::uint64_t uppers_below(std::uint64_t block, std::uint64_t blocks) {
  std::uint64_t low = 0, high = std::uint64_t{1} << 32;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (layouts::split_block::block_of(middle << 32, blocks) >= block)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

double share_of_hashes(std::uint64_t block, std::uint64_t blocks) {
  return static_cast<double>(uppers_below(block + 1, blocks) - uppers_below(block, blocks)) / 0x1p32;
}

// The exact FPR of split_block with a weight per block, which measure_fill() computes for large filters only.
fill_statistics census_with_weights(const geometry& g, std::span<const std::uint8_t> bytes) {
  const layout_row& row = *find_layout("split_block");
  return fill_statistics_of(row, g, cells_of_split_block(g, {0, bytes}, counters_for(row), /*even_blocks=*/0));
}

TEST(FillStatisticsOfSplitBlock, WeighsEachBlockByTheHashesThatLeadToIt) {
  std::mt19937_64 random(8);
  for (const std::uint64_t B : {1u, 2u, 3u, 5u, 7u, 64u, 511u, 512u, 513u, 1000u, 1537u}) {
    const geometry g{256 * B, 8};
    const byte_array bytes = random_bytes(g.bits, random, 0.5);
    double expected = 0;
    for (std::uint64_t block = 0; block < B; ++block)
      expected += share_of_ways<layouts::split_block>(bytes, block) * share_of_hashes(block, B);

    const fill_statistics c = census_with_weights(g, bytes);

    const double space = static_cast<double>(B) * 0x1p32;
    EXPECT_NEAR(c.current_fpr / with_collisions(expected, keys_in<layouts::split_block>(g, c), space), 1, 1e-13) << B;
    EXPECT_NEAR(c.current_fpr, measure_fill({.layout = "split_block", .geometry = g}, bytes).current_fpr, 1e-6) << B;
  }
}

TEST(FillStatisticsOfSplitBlock, AddsUpOverSlicesWithWeights) {
  std::mt19937_64 random(11);
  const layout_row& row = *find_layout("split_block");
  const geometry g{std::uint64_t{256} * 4099, 8};
  const byte_array bytes = random_bytes(g.bits, random, 0.5);
  cell_scan_result sum;
  for (std::uint64_t first = 0; first < bytes.size(); first += 3 * fill_scan::slice_unit) {
    const auto some = std::span(bytes).subspan(first, std::min(3 * fill_scan::slice_unit, bytes.size() - first));
    const cell_scan_result seen = cells_of_split_block(g, {first, some}, counters_for(row), /*even_blocks=*/0);
    sum = {sum.used + seen.used, sum.hit + seen.hit, seen.hash_values};
  }

  const fill_statistics in_slices = fill_statistics_of(row, g, sum);

  const fill_statistics at_once = census_with_weights(g, bytes);
  EXPECT_EQ(in_slices.ones, at_once.ones);
  EXPECT_NEAR(in_slices.current_fpr / at_once.current_fpr, 1, 1e-15);
}

// One full block among empty ones: its own weight, to the last of 2^32 hashes.
TEST(FillStatisticsOfSplitBlock, GivesOneFullBlockItsOwnWeight) {
  for (const std::uint64_t B : {3u, 5u, 7u, 1000u}) {
    for (std::uint64_t block = 0; block < B; block += 1 + B / 50) {
      byte_array bytes(32 * B);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(32 * block), 32, std::uint8_t{0xFF});

      const fill_statistics c = census_with_weights({256 * B, 8}, bytes);

      const double keys = keys_in<layouts::split_block>({256 * B, 8}, c);
      const double expected = with_collisions(share_of_hashes(block, B), keys, static_cast<double>(B) * 0x1p32);
      EXPECT_NEAR(c.current_fpr * 0x1p32, expected * 0x1p32, 1e-3) << "block " << block << " of " << B;
    }
  }
}

TEST(FillStatisticsOfSplitBlock, OfAFullFilterIsOneWithWeightsToo) {
  for (const std::uint64_t B : {1u, 3u, 1000u, 4099u}) {
    const byte_array full(32 * B, 0xFF);

    EXPECT_EQ(census_with_weights({256 * B, 8}, full).current_fpr, 1) << B;
  }
}

// 2^25 + 1 blocks, of which some are full. 2^32 upper halves lead to 128 hashes for nearly all, 127 for the others.
TEST(HugeFillStatistics, WeighsBlocksWhereItMatters) {
  constexpr std::uint64_t B = (std::uint64_t{1} << 25) + 1;
  constexpr std::uint64_t size = 32 * B;
  const vast_memory bytes(size);
  if (!bytes.granted()) GTEST_SKIP() << "SKIP: the system does not give 1 GiB of addresses";
  double weight = 0;
  std::uint64_t larger = 0;
  for (const std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1}, B / 4, B / 3, B / 2, B - 2, B - 1}) {
    std::fill_n(bytes.data() + 32 * block, 32, std::uint8_t{0xFF});
    weight += share_of_hashes(block, B);
    larger += uppers_below(block + 1, B) - uppers_below(block, B) == 128 ? 1 : 0;
  }

  const fill_statistics c = measure_fill(params_of("split_block", {256 * B, 8}), {bytes.data(), size});

  EXPECT_EQ(c.ones, 7u * 256);
  EXPECT_GT(larger, 0u);
  EXPECT_LT(larger, 7u);
  EXPECT_NEAR(c.current_fpr / weight, 1, 1e-6);
}

// ---- schemes --------------------------------------------------------------------------------------------------------

params params_of_scheme(std::string_view scheme, const geometry& g) {
  return {.scheme = std::string(scheme), .geometry = g};
}

// Bytes with random bits among the m cells of a scheme, and no other bits.
byte_array random_cells(std::uint64_t m, bool from_top, double density, std::mt19937_64& random) {
  byte_array bytes(bytes_for(m));
  for (std::uint64_t bit = 0; bit < m; ++bit) {
    if (std::bernoulli_distribution(density)(random)) set_bit(bytes.data(), from_top ? bit ^ 7 : bit);
  }
  return bytes;
}

TEST(FillStatisticsOfSchemes, IsNothingForAnEmptyFilterAndExactlyOneForAFullOne) {
  for (const scheme& row : schemes()) {
    for (const std::uint64_t m : {512u, 6656u}) {
      const params p = params_of_scheme(row.name, {m, 2});
      const byte_array empty(m / 8), full(m / 8, 0xFF);

      EXPECT_EQ(measure_fill(p, empty), (fill_statistics{0, 0})) << row.name;
      EXPECT_EQ(measure_fill(p, full), (fill_statistics{m, 1})) << row.name;
    }
  }
}

TEST(FillStatisticsOfSchemes, IgnoresUnusedBitsOfHostileFiles) {
  std::mt19937_64 random(9);
  for (const scheme& row : schemes()) {
    if (has_whole_words(row)) continue;
    const std::string name(row.name);
    for (const std::uint64_t m : {1u, 11u, 403u}) {
      SCOPED_TRACE(testing::Message() << name << ", " << m << " bits");
      byte_array bytes = random_cells(m, row.from_top, 0.6, random);
      const params p = params_of_scheme(name, {m, 1});
      const fill_statistics clean = measure_fill(p, bytes);
      const std::uint64_t ones = ones_from(bytes, 0, 8 * bytes.size());

      for (std::uint64_t bit = m; bit < 8 * bytes.size(); ++bit) set_bit(bytes.data(), row.from_top ? bit ^ 7 : bit);

      EXPECT_EQ(clean.ones, ones);
      EXPECT_EQ(measure_fill(p, bytes), clean);
    }
  }
}

// By the scheme itself, with keys of all lengths.
TEST(FillStatisticsOfSchemes, IsHowOftenTheCellsOfRandomKeysAreAllSet) {
  std::mt19937_64 random(10);
  constexpr int queries = under_sanitizer ? 10'000 : 100'000;
  for (const scheme& row : schemes()) {
    for (const geometry& g : {geometry{512, 2}, geometry{1536, 3}, geometry{80'384, 4}}) {
      SCOPED_TRACE(testing::Message() << row.name << ", " << g.bits << " bits");
      const byte_array bytes = random_cells(g.bits, row.from_top, 0.55, random);
      std::uint64_t cells[4];
      double hits = 0;
      for (int i = 0; i < queries; ++i) {
        row.positions(std::to_string(random()), g, {}, cells);
        hits += std::all_of(cells, cells + g.probes, [&](std::uint64_t x) { return test_bit(bytes.data(), x); });
      }

      const double rate = measure_fill(params_of_scheme(row.name, g), bytes).current_fpr;

      // Bits that are set at random are no double hashing: a correction for it does not apply to them.
      const bool corrected = row.name.starts_with("guava") || row.name.starts_with("spark") ||
                             row.name == "redisbloom" || row.name == "datasketches" || row.name == "valkey_bloom";
      const double correction = corrected ? 0.15 / static_cast<double>(g.bits) : 0;
      EXPECT_NEAR(hits / queries, rate, sigmas * std::sqrt(rate * (1 - rate) / queries) + correction);
    }
  }
}

// A toy of a thousand hashes, from any first one on: each taken modulo m.
TEST(FillStatisticsOfRemainders, IsTheShareOfAllHashesThatLeadToASetBit) {
  std::mt19937_64 random(11);
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{-500}, std::int64_t{-1000}, std::int64_t{77}}) {
    for (const std::uint64_t m : {1u, 2u, 7u, 8u, 9u, 16u, 37u, 96u, 333u, 512u, 600u, 999u, 1000u}) {
      for (const bool from_top : {false, true}) {
        SCOPED_TRACE(testing::Message() << "m " << m << ", first " << first << ", from top " << from_top);
        const byte_array bytes = random_cells(m, from_top, 0.5, random);
        const auto bits = static_cast<std::int64_t>(m);
        std::uint64_t met = 0;
        for (std::int64_t hash = first; hash < first + 1000; ++hash) {
          const auto bit = static_cast<std::uint64_t>(((hash % bits) + bits) % bits);
          met += test_bit(bytes.data(), from_top ? bit ^ 7 : bit) ? 1 : 0;
        }

        const byte_slice all{0, bytes};
        const bit_range favoured = remainder_favoured({m, 3}, first, 1000);
        const scheme_bits seen{used_ones(m, all, from_top), ones_in(all, favoured, m, from_top)};
        const double rate = remainder_current_fpr({m, 3}, seen, 1000);

        EXPECT_NEAR(rate, std::pow(static_cast<double>(met) / 1000, 3), 1e-15);
      }
    }
  }
}

// All layouts whose bytes may come in slices, and all schemes: the last byte has unused bits where the size allows it.
TEST(FillStatisticsOfSlices, AreThoseOfAllBytesAtOnce) {
  std::mt19937_64 random(12);
  std::vector<params> all;
  for (const family kind : {family::plain, family::counting}) {
    for (const layout_facts& one : layouts_of(kind)) {
      const std::uint64_t unit = one.block_bits == 0 ? 8011 : one.block_bits;
      all.push_back(params_of(one.name, {(700'000 / unit + 1) * unit, one.fixed_probes != 0 ? one.fixed_probes : 5}));
    }
  }
  for (const scheme& one : schemes()) {
    all.push_back(params_of_scheme(std::string(one.name), {has_whole_words(one) ? 699'904u : 700'013u, 3}));
  }
  for (const params& p : all) {
    SCOPED_TRACE(p.layout + p.scheme);
    const byte_array bytes = random_bytes(p.geometry.bits, random, 0.3);
    const fill_statistics at_once = measure_fill(p, bytes);
    for (const std::uint64_t slice : {fill_scan::slice_unit, 5 * fill_scan::slice_unit}) {
      fill_scan scan(p);
      for (std::uint64_t at = 0; at < bytes.size(); at += slice)
        scan.add(std::span(bytes).subspan(at, std::min(slice, bytes.size() - at)));

      EXPECT_EQ(scan.result().ones, at_once.ones);
      EXPECT_NEAR(scan.result().current_fpr / at_once.current_fpr, 1, 1e-15);
    }
  }
}

TEST(FillStatisticsOfSlices, RefuseOtherNumbersOfBytes) {
  const byte_array bytes(3 * fill_scan::slice_unit);
  fill_scan scan(params_of("classic", {8 * 2 * fill_scan::slice_unit, 5}));
  EXPECT_THROW(scan.add(std::span(bytes).first(100)), error);
  scan.add(std::span(bytes).first(fill_scan::slice_unit));
  EXPECT_THROW(scan.add(bytes), error);
  scan.add(std::span(bytes).first(fill_scan::slice_unit));
  EXPECT_EQ(scan.result().ones, 0u);

  fill_scan window(params_of("sliding64", {8 * (window_state_bytes + 640 * 64), 5}));
  EXPECT_THROW(window.add(std::span(bytes).first(fill_scan::slice_unit)), error);
}

// Of 2^32 signed hashes those from -2^31 on that are left over favor some bits: found by taking each modulo m.
TEST(FillStatisticsOfRemainders, KnowsTheBitsThatPythonFavours) {
  const std::uint64_t m = 3'000'000;
  const auto bits = static_cast<std::int64_t>(m);
  const std::int64_t first = -(std::int64_t{1} << 31);
  const std::uint64_t favoured = (std::uint64_t{1} << 32) % m;
  byte_array bytes(bytes_for(m));
  for (std::uint64_t i = 0; i < favoured; ++i) {
    const std::int64_t hash = first + static_cast<std::int64_t>(i);
    set_bit(bytes.data(), static_cast<std::uint64_t>((hash % bits + bits) % bits) ^ 7);
  }

  const double rate = measure_fill(params_of_scheme("python", {m, 1}), bytes).current_fpr;

  const auto more = static_cast<double>((std::uint64_t{1} << 32) / m + 1);
  EXPECT_NEAR(rate * 0x1p32, static_cast<double>(favoured) * more, 1e-3);
}

// All 2^32 hashes, grouped by their halves modulo m.
double pharo_by_remainders(const byte_array& bytes, const geometry& g) {
  std::vector<double> hash64s(g.bits);  // values of a half that leave this
  for (std::uint64_t h = 0; h < 0x10000; ++h) ++hash64s[h % g.bits];
  double reported = 0;
  for (std::uint64_t h1 = 0; h1 < g.bits; ++h1) {
    for (std::uint64_t h2 = 0; h2 < g.bits; ++h2) {
      bool all = true;
      for (std::uint64_t i = 1; all && i <= g.probes; ++i) all = test_bit(bytes.data(), ((h1 + i * h2) % g.bits) ^ 7);
      reported += all ? hash64s[h1] * hash64s[h2] : 0;
    }
  }
  return reported / 0x1p32;
}

TEST(FillStatisticsOfPharo, IsTheShareOfAllHashes) {
  std::mt19937_64 random(12);
  for (const geometry& g : {geometry{1, 1}, {7, 2}, {48, 4}, {64, 3}, {65, 1}, {1021, 3}}) {
    const byte_array bytes = random_cells(g.bits, true, 0.6, random);

    const double rate = measure_fill(params_of_scheme("pharo", g), bytes).current_fpr;

    EXPECT_NEAR(rate, pharo_by_remainders(bytes, g), 1e-12) << g.bits << " bits, k " << g.probes;
  }
}

// Where a filter is larger than the halves can reach, no key uses the bits beyond.
TEST(FillStatisticsOfPharo, KnowsThatManyBitsAreNobodys) {
  const geometry g{1'000'000, 2};  // reached: 65535 * 3 and those before
  byte_array bytes(bytes_for(g.bits), 0xFF);
  std::mt19937_64 random(13);
  constexpr double queries = 1e6;
  double hits = 0;
  for (std::uint64_t bit = 0; bit < 196'606; ++bit) {
    if (random() % 3 == 0) bytes[(bit ^ 7) / 8] &= static_cast<std::uint8_t>(~(1u << ((bit ^ 7) % 8)));
  }
  for (double i = 0; i < queries; ++i) {
    const std::uint64_t h1 = random() % 0x10000, h2 = random() % 0x10000;
    hits += test_bit(bytes.data(), (h1 + h2) ^ 7) && test_bit(bytes.data(), (h1 + 2 * h2) ^ 7) ? 1 : 0;
  }

  const double rate = measure_fill(params_of_scheme("pharo", g), bytes).current_fpr;

  EXPECT_NEAR(rate, hits / queries, sigmas * std::sqrt(rate * (1 - rate) / queries));
  EXPECT_NEAR(rate, 4.0 / 9, 0.01);
}

// ---- refusals -------------------------------------------------------------------------------------------------------

TEST(FillStatistics, RefusesInvalidFilters) {
  const byte_array bytes(32);

  EXPECT_EQ(code_of([&] { measure_fill(params_of("nonesuch", {256, 8}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of_scheme("nonesuch", {256, 8}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill({}, bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of("split_block", {512, 8}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of("classic", {248, 8}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of("split_block", {256, 7}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of("classic", {256, 0}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of_scheme("guava", {250, 3}), bytes); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { measure_fill(params_of("split_block", {256, 8}), bytes); }), std::nullopt);
}

}  // namespace
}  // namespace bloomery
