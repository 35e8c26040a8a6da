// Probe sequences of special hashes: 0 and odd * 2^t, whose power of two a multiplicative generator with an even state
// keeps in all probes. The number of distinct cells of a key is compared with the exact distribution for independent
// probes, the classical occupancy distribution. Special integer keys go through every hash, filter<> and any_filter.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/probe_sequence.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "support/combinations.hpp"
#include "support/test.hpp"

#include <concepts>
#include <set>

namespace bloomery {
namespace {

using namespace bloomery_tests;

template <class Layout>
class ProbesOf : public testing::Test {};
using layouts_of_sequences =
    testing::Types<layouts::blocked, layouts::blocked_page, layouts::counting, layouts::sliding, layouts::sliding64>;
TYPED_TEST_SUITE(ProbesOf, layouts_of_sequences, names_of_layouts);

template <class Layout>
constexpr std::uint64_t cells_in_block = Layout::block_bits;
template <>
constexpr std::uint64_t cells_in_block<layouts::counting> = layouts::counting::cells_of_block;
template <>
constexpr std::uint64_t cells_in_block<layouts::sliding> = layouts::sliding::cells_of_block;
template <>
constexpr std::uint64_t cells_in_block<layouts::sliding64> = layouts::sliding64::cells_of_block;

template <class Layout>
geometry of_blocks(std::uint64_t blocks, std::uint32_t probes) {
  if constexpr (sliding_window_layout<Layout>)
    return Layout::of_blocks(blocks, probes);
  else
    return {blocks * Layout::block_bits, probes};
}

template <class Layout>
std::size_t distinct_cells(const geometry& g, std::uint64_t hash64) {
  typename Layout::cells cells(g, {hash64, 0});
  std::set<std::uint64_t> different;
  for (std::uint32_t i = 0; i < cells.count(); ++i) different.insert(cells.next());
  return different.size();
}

// 0 and odd * 2^t: `odds` random odd numbers, 1 and -1 for each t from 0 to `most_zeros`.
std::vector<std::uint64_t> hashes_with_zeros(unsigned most_zeros, std::size_t odds) {
  std::mt19937_64 random(20'240'601);
  std::vector<std::uint64_t> hashes = {0};
  for (unsigned t = 0; t <= most_zeros; ++t) {
    hashes.push_back(std::uint64_t{1} << t);
    hashes.push_back(~std::uint64_t{0} << t);
    for (std::size_t i = 0; i < odds; ++i) hashes.push_back((random() | 1) << t);
  }
  return hashes;
}

// P(k independent probes of c cells fall on d different ones), d = 0 .. k.
std::vector<double> occupancy_distribution(std::uint64_t c, std::uint32_t k) {
  std::vector<double> p(k + 1, 0.0);
  p[0] = 1;
  const auto cells = static_cast<double>(c);
  for (std::uint32_t probe = 0; probe < k; ++probe) {
    for (std::uint32_t d = k; d >= 1; --d) p[d] = p[d] * d / cells + p[d - 1] * (1 - (d - 1) / cells);
    p[0] = 0;
  }
  return p;
}

// A lower bound on the number of distinct cells, violated with probability at most `tail`.
std::size_t fewest_cells(std::uint64_t c, std::uint32_t k, double tail) {
  const std::vector<double> p = occupancy_distribution(c, k);
  double below = 0;
  std::size_t d = 0;
  while (below + p[d] <= tail) below += p[d++];
  return d;
}

TEST(OccupancyDistribution, IsTheShareOfAllWaysToProbe) {
  const std::vector<double> p = occupancy_distribution(4, 3);  // of 64 ways 4 hit one cell, 24 three

  EXPECT_DOUBLE_EQ(p[1], 4.0 / 64);
  EXPECT_DOUBLE_EQ(p[2], 36.0 / 64);
  EXPECT_DOUBLE_EQ(p[3], 24.0 / 64);
  EXPECT_EQ(fewest_cells(4, 3, 0.1), 2u);
}

// About 3,000 hashes per k. Independent probes would violate a bound of 1e-7 with probability below 0.02 over all
// layouts and k together. A single cell violates it for every k here: at most 60^-5 = 1.3e-9.
TYPED_TEST(ProbesOf, SpecialHashesFallOnAsManyCellsAsRandomOnes) {
  for (const std::uint32_t probes : {6u, 7u, 8u, 10u, 16u, 17u, 32u, 64u, 255u}) {
    const std::size_t fewest = fewest_cells(cells_in_block<TypeParam>, probes, 1e-7);
    for (const std::uint64_t blocks : {std::uint64_t{1}, std::uint64_t{1000}, TypeParam::max_blocks}) {
      const geometry g = of_blocks<TypeParam>(blocks, probes);
      for (const std::uint64_t hash64 : hashes_with_zeros(63, blocks == 1000 ? 38 : 2)) {
        ASSERT_GE(distinct_cells<TypeParam>(g, hash64), fewest)
            << std::hex << hash64 << std::dec << ", " << probes << " probes";
      }
    }
  }
}

// Mean and standard deviation of the number of distinct cells. Beyond 40 zeros the hashes are too few to count as
// independent samples; the test above has those.
TYPED_TEST(ProbesOf, HashesWithTrailingZerosHaveTheMeanAndSpreadOfRandomOnes) {
  constexpr std::size_t samples = 4000;
  for (const std::uint32_t probes : {2u, 6u, 8u, 16u, 40u}) {
    const std::vector<double> p = occupancy_distribution(cells_in_block<TypeParam>, probes);
    double mean = 0, square = 0;
    for (std::size_t d = 0; d < p.size(); ++d) {
      mean += p[d] * static_cast<double>(d);
      square += p[d] * static_cast<double>(d * d);
    }
    const double sigma = std::sqrt(square - mean * mean);
    std::mt19937_64 random(probes);
    for (const unsigned zeros : {0u, 1u, 8u, 16u, 24u, 32u, 40u}) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < samples; ++i) {
        const auto d =
            static_cast<double>(distinct_cells<TypeParam>(of_blocks<TypeParam>(1000, probes), (random() | 1) << zeros));
        sum += d;
        squares += d * d;
      }

      const double found = sum / samples;
      EXPECT_NEAR(found, mean, 5 * sigma / std::sqrt(samples)) << zeros << " zeros, " << probes << " probes";
      // With fewer than 100 hashes whose probes meet, the spread itself is uncertain.
      if (samples * (1 - p[probes]) > 100) {
        EXPECT_NEAR(std::sqrt(squares / samples - found * found) / sigma, 1, 0.35) << zeros << ", " << probes;
      }
    }
  }
}

// Filters of random keys with a rate of about 1%, asked for 577 special hashes. The measured rate may differ from the
// exact one by half, as the 577 sequences are always the same. With even states, whose probes share a few cells, it is
// more than twice as high.
template <class Layout>
void expect_the_rate_of_special_hashes(std::uint64_t keys_in_filter, std::size_t filters) {
  const std::vector<std::uint64_t> special = hashes_with_zeros(63, 7);
  const geometry g = of_blocks<Layout>(4, 6);
  params p = {.layout = std::string(Layout::name), .geometry = g, .capacity = keys_in_filter};
  double expected = 0;
  if constexpr (sliding_window_layout<Layout>) {
    p.extra = window_of_keys(100 * keys_in_filter);  // all keys are in one generation
    const std::uint64_t keys[] = {keys_in_filter};
    expected = Layout::rate_of(g, keys);
  } else {
    expected = Layout::expected_fpr(g, keys_in_filter);
  }
  ASSERT_GT(expected, 0.005);
  ASSERT_LT(expected, 0.02);
  p = complete(p);
  std::mt19937_64 random(1);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < filters; ++i) {
    std::vector<key_hash> keys(keys_in_filter);
    for (key_hash& key : keys) key = {random(), random()};
    any_filter f(p);
    f.insert(keys);
    for (const std::uint64_t hash64 : special) {
      std::uint64_t bitmap = 0;
      const key_hash hash[] = {{hash64, 0}};
      f.may_contain(hash, {&bitmap, 1});
      found += bitmap;
    }
  }

  const double measured = static_cast<double>(found) / static_cast<double>(filters * special.size());
  EXPECT_NEAR(measured / expected, 1, 0.5);
}

TEST(RateOfSpecialHashes, IsThatOfAllHashesInBlocked) { expect_the_rate_of_special_hashes<layouts::blocked>(208, 400); }
TEST(RateOfSpecialHashes, IsThatOfAllHashesInBlockedPage) {
  expect_the_rate_of_special_hashes<layouts::blocked_page>(13'500, 100);
}
TEST(RateOfSpecialHashes, IsThatOfAllHashesInCounting) {
  expect_the_rate_of_special_hashes<layouts::counting>(50, 400);
}
TEST(RateOfSpecialHashes, IsThatOfAllHashesInSliding) { expect_the_rate_of_special_hashes<layouts::sliding>(208, 400); }
TEST(RateOfSpecialHashes, IsThatOfAllHashesInSliding64) {
  expect_the_rate_of_special_hashes<layouts::sliding64>(23, 400);
}

// ---- integer keys ---------------------------------------------------------------------------------------------------

constexpr std::uint64_t special_keys[] = {0, 1, std::uint64_t{1} << 63, ~std::uint64_t{0}};

std::uint64_t ordinary_key(std::uint64_t filter, std::uint64_t i) { return mix64((filter << 32) + i + 1); }

// As many distinct cells as independent probes have, but for 1 key in 10,000.
template <class Layout, class Hash>
void expect_distinct_cells(const any_filter& f, Hash hash) {
  const geometry g = f.parameters().geometry;
  const std::size_t fewest = fewest_cells(cells_in_block<Layout>, g.probes, 1e-4);
  for (const std::uint64_t key : special_keys) {
    const std::vector<std::uint64_t> cells = f.cells(key);
    const std::set<std::uint64_t> different(cells.begin(), cells.end());

    EXPECT_GE(different.size(), fewest) << key;
    EXPECT_EQ(different.size(), distinct_cells<Layout>(g, hash(key).hash64)) << key;
  }
}

// Each key is new to an empty filter and present after its insertion. Filters of ordinary keys report it with a
// probability of about 1%. The bound of 8% of 300 filters allows for a sequence in which probes meet twice, which is
// found four times as often, and for four sigmas.
template <class Make>
void expect_ordinary_answers(Make make, std::uint64_t capacity) {
  constexpr std::uint64_t filters = 300;
  for (const std::uint64_t key : special_keys) {
    auto f = make();
    EXPECT_FALSE(f.may_contain(key)) << key;
    EXPECT_TRUE(f.insert(key)) << key;
    EXPECT_TRUE(f.may_contain(key)) << key;
    EXPECT_FALSE(f.insert(key)) << key;
  }
  std::uint64_t found[std::size(special_keys)] = {};
  for (std::uint64_t number = 0; number < filters; ++number) {
    auto f = make();
    for (std::uint64_t i = 0; i < capacity; ++i) f.insert(ordinary_key(number, i));
    for (std::size_t i = 0; i < std::size(special_keys); ++i) found[i] += f.may_contain(special_keys[i]) ? 1 : 0;
  }
  for (std::size_t i = 0; i < std::size(special_keys); ++i) {
    EXPECT_LT(found[i], filters * 8 / 100) << "key " << special_keys[i] << " of " << filters << " filters";
  }
}

template <class Filter>
void expect_that_removal_leaves_nothing(Filter f) {
  for (const std::uint64_t key : special_keys) {
    f.insert(key);
    f.insert(key);
    EXPECT_EQ(f.remove(key), removal::removed);
    EXPECT_TRUE(f.may_contain(key)) << key;
    EXPECT_EQ(f.remove(key), removal::removed);
    EXPECT_FALSE(f.may_contain(key)) << key;
    EXPECT_EQ(f.remove(key), removal::not_found);
  }
  EXPECT_TRUE(std::ranges::all_of(f.bytes(), [](std::uint8_t byte) { return byte == 0; }));
}

template <class Layout, class Hash>
void expect_integer_keys_to_behave(Hash hash) {
  SCOPED_TRACE(Hash::name);
  constexpr std::uint64_t capacity = std::same_as<Layout, layouts::blocked_page> ? 3400 : 60;
  params wanted = {.layout = std::string(Layout::name),
                   .hash = std::string(Hash::name),
                   .keys = key_kind::u64le,
                   .capacity = capacity,
                   .target_fpr = 0.01};
  if (sliding_window_layout<Layout>) wanted.extra = window_of_keys(capacity);
  const params chosen = complete(seeded(wanted));
  const auto any = [&] { return any_filter(chosen); };
  const auto typed = [&] {
    if constexpr (sliding_window_layout<Layout>)
      return sliding_window_filter<std::uint64_t, Layout, Hash>({.window = window_of_keys(capacity)}, hash);
    else
      return filter<std::uint64_t, Layout, Hash>(capacity, 0.01, hash);
  };
  ASSERT_EQ(typed().parameters().geometry, chosen.geometry);

  expect_distinct_cells<Layout>(any(), hash);
  expect_ordinary_answers(typed, capacity);
  expect_ordinary_answers(any, capacity);
  if constexpr (std::same_as<Layout, layouts::counting>) {
    expect_that_removal_leaves_nothing(typed());
    expect_that_removal_leaves_nothing(any());
  }
}

TYPED_TEST(ProbesOf, SpecialIntegerKeysBehaveAsOthersWithEveryHash) {
  expect_integer_keys_to_behave<TypeParam>(seeded<mix>());
  expect_integer_keys_to_behave<TypeParam>(seeded<xxh3>());
  expect_integer_keys_to_behave<TypeParam>(seeded<murmur3>());
  expect_integer_keys_to_behave<TypeParam>(seeded<siphash>());
}

// ---- what is lost ---------------------------------------------------------------------------------------------------

// The state ignores the top bit of hash64, but hashes that differ in it are in different blocks if there are two.
TYPED_TEST(ProbesOf, HashesThatShareTheSequenceAreInDifferentBlocks) {
  EXPECT_EQ(probe_sequence::first(5), probe_sequence::first(5 + (std::uint64_t{1} << 63)));
  std::mt19937_64 random(3);
  for (const std::uint64_t blocks : {std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{1001}, TypeParam::max_blocks}) {
    const geometry g = of_blocks<TypeParam>(blocks, 1);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t hash64 = random();
      const std::uint64_t first = typename TypeParam::cells(g, {hash64, 0}).next();
      const std::uint64_t other = typename TypeParam::cells(g, {hash64 ^ std::uint64_t{1} << 63, 0}).next();

      ASSERT_GE(first < other ? other - first : first - other, cells_in_block<TypeParam>) << blocks << " blocks";
    }
  }
}

// All values of the lowest nine bits and the nine below the top bit.
TEST(ProbeSequence, DependsOnEveryBitOfTheHashButTheTop) {
  std::set<std::uint64_t> states;
  for (std::uint64_t i = 0; i < 1u << 18; ++i) {
    states.insert(probe_sequence::first((i & 0x1FF) | (i >> 9) << 54));
  }

  EXPECT_EQ(states.size(), 1u << 18);
  EXPECT_TRUE(std::ranges::all_of(states, [](std::uint64_t x) { return x % 2 == 1; }));
}

}  // namespace
}  // namespace bloomery
