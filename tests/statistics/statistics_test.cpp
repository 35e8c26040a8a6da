// Filters against an exact set: no false negatives, and the number of false positives that the formulas predict.
//
// n keys, m bits, k probes, B blocks. The expected number of false positives is queries * rate; the variance is
// that of the queries (binomial) plus that of the filter's fill (given with each layout below).
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter.hpp>

#include "statistics/patterned_keys.hpp"
#include "support/combinations.hpp"
#include "support/long_tests.hpp"
#include "support/rate_variance.hpp"
#include "support/test.hpp"

#include <bit>
#include <type_traits>
#include <unordered_set>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- layouts with hashes --------------------------------------------------------------------------------------------

// Every hash with split_block, which selects blocks by 32 bits, and with classic, which reads both halves of the hash;
// the other layouts with a hash per kind of key. StatisticOfSparseIntegers has every layout with every hash.
using all_combinations = testing::Types<
    combination<std::string_view, layouts::split_block, xxh3_64>,
    combination<std::string_view, layouts::split_block, murmur3>,
    combination<std::string_view, layouts::split_block, siphash>, combination<std::uint64_t, layouts::split_block, mix>,
    combination<std::uint64_t, layouts::split_block, xxh3>, combination<std::uint64_t, layouts::split_block, murmur3>,
    combination<std::string_view, layouts::classic, xxh3>, combination<std::string_view, layouts::classic, murmur3>,
    combination<std::uint64_t, layouts::classic, mix>, combination<std::uint64_t, layouts::classic, xxh3>,
    combination<std::uint64_t, layouts::classic, murmur3>, combination<std::uint64_t, layouts::classic, siphash>,
    combination<std::string_view, layouts::split_block512, xxh3_64>,
    combination<std::uint64_t, layouts::split_block512, mix>, combination<std::string_view, layouts::blocked, xxh3_64>,
    combination<std::uint64_t, layouts::blocked, mix>, combination<std::string_view, layouts::blocked_page, xxh3_64>,
    combination<std::uint64_t, layouts::blocked_page, mix>>;

template <class C>
class StatisticOfFilter : public testing::Test {};
TYPED_TEST_SUITE(StatisticOfFilter, all_combinations, combination_names);

TYPED_TEST(StatisticOfFilter, HasNoFalseNegativesAndTheFprOfTheFormula) {
  using Key = typename TypeParam::key;
  using Layout = typename TypeParam::layout;
  constexpr std::uint64_t n = 100'000;
  constexpr std::uint64_t queries = 500'000;
  for (const pattern kind : all_patterns) {
    SCOPED_TRACE(pattern_names[static_cast<int>(kind)]);
    filter<Key, Layout, typename TypeParam::hash> seen(n, 0.01, seeded<typename TypeParam::hash>());
    const keys_of<Key> keys(kind, 0, n);
    const keys_of<Key> asked(kind, n / 2, queries + n / 2);  // the second half of the keys, and absent keys
    const std::unordered_set<Key> truth(keys.views().begin(), keys.views().end());
    ASSERT_EQ(truth.size(), n);
    std::vector<std::uint64_t> answers((asked.views().size() + 63) / 64);

    seen.insert(keys.views());
    seen.may_contain(asked.views(), answers);

    std::uint64_t missed = 0, wrong = 0, absent = 0;
    for (const Key& key : keys.views()) missed += seen.may_contain(key) ? 0 : 1;
    for (std::size_t i = 0; i < asked.views().size(); ++i) {
      const bool answer = (answers[i / 64] >> i % 64 & 1) != 0;
      if (truth.contains(asked.views()[i])) {
        missed += answer ? 0 : 1;
      } else {
        ++absent;
        wrong += answer ? 1 : 0;
      }
    }
    EXPECT_EQ(missed, 0u);
    ASSERT_EQ(absent, queries);
    const geometry g = seen.parameters().geometry;
    expect_within(static_cast<double>(wrong), queries, seen.expected_fpr(n), variance_of_rate<Layout>(g, n), "");
  }
}

// The loop of a deduplication: each key is looked up while it is inserted.
TYPED_TEST(StatisticOfFilter, TakesForSeenOnlyWhatWasSeenAndTheExpectedFew) {
  using Key = typename TypeParam::key;
  using Layout = typename TypeParam::layout;
  constexpr std::uint64_t n = 100'000;
  const keys_of<Key> keys(pattern::sequential, 0, n);
  filter<Key, Layout, typename TypeParam::hash> seen(n, 0.02, seeded<typename TypeParam::hash>());
  std::unordered_set<Key> truth;
  std::uint64_t lost = 0;
  double expected = 0;

  for (std::uint64_t i = 0; i < n; ++i) {
    const Key key = keys.views()[i];
    if (i % 3 == 2) {
      ASSERT_FALSE(seen.insert(keys.views()[i / 3])) << "a repetition is never new";
    }
    const bool is_new = seen.insert(key);
    truth.insert(key);
    if (!is_new) ++lost;
  }
  for (std::uint64_t i = 0; i < n; i += 100) expected += 100 * seen.expected_fpr(i + 50);

  EXPECT_EQ(seen.insert_count() + lost, truth.size());
  EXPECT_NEAR(static_cast<double>(lost), expected, sigmas * std::sqrt(expected));
}

// ---- small filters: where double hashing fails ----------------------------------------------------------------------

// Cells in arithmetic progression, which classic must not have. It shows that the test below can fail.
struct double_hashing {
  static constexpr std::string_view name = "double_hashing";
  class cells {
   public:
    cells(const geometry& g, key_hash hash)
        : bits_(g.bits), at_(hash.hash64 % g.bits), step_(hash.high64 % g.bits), count_(g.probes) {}
    std::uint32_t count() const { return count_; }
    std::uint64_t next() {
      const std::uint64_t cell = at_;
      at_ = (at_ + step_) % bits_;
      return cell;
    }

   private:
    std::uint64_t bits_, at_, step_;
    std::uint32_t count_;
  };
  static geometry geometry_for(std::uint64_t n, double p) { return layouts::classic::geometry_for(n, p); }
  static void check(const geometry&) {}
  static double expected_fpr(const geometry& g, std::uint64_t n) { return layouts::classic::expected_fpr(g, n); }
  static double keys_from_zeros(const geometry& g, std::uint64_t z) { return layouts::classic::keys_from_zeros(g, z); }
};

struct small_filters {
  double measured, queries, rate, relative_variance;
};

// Many filters of few keys, each with its own seed.
template <class Key, class Layout, class Hash>
small_filters measure_small_filters(const geometry& g, std::uint64_t n, std::uint64_t filters, pattern kind,
                                    std::uint64_t queries = 50'000) {
  const keys_of<Key> keys(kind, 0, n + queries);
  std::vector<std::uint64_t> answers((queries + 63) / 64);
  std::uint64_t wrong = 0;
  for (std::uint64_t seed = 0; seed < filters; ++seed) {
    filter<Key, Layout, Hash> seen(g, n, seeded<Hash>(seed));
    seen.insert(keys.views().first(n));
    seen.may_contain(keys.views().subspan(n), answers);
    for (const std::uint64_t word : answers) wrong += static_cast<std::uint64_t>(std::popcount(word));
  }
  return {static_cast<double>(wrong), static_cast<double>(filters * queries), Layout::expected_fpr(g, n),
          fill_variance(g, static_cast<double>(n)) / static_cast<double>(filters)};
}

TEST(StatisticOfSmallClassicFilters, IsThatOfIndependentProbes) {
  constexpr geometry g{1021, 14};
  const auto expect_independent = [](const small_filters& m, const char* what) {
    expect_within(m.measured, m.queries, m.rate, m.relative_variance, what);
    EXPECT_NEAR(m.rate, 6.8e-5, 0.1e-5);
  };
  expect_independent(measure_small_filters<std::uint64_t, layouts::classic, mix>(g, 51, 300, pattern::sequential),
                     "mix");
  expect_independent(measure_small_filters<std::uint64_t, layouts::classic, xxh3>(g, 51, 300, pattern::random),
                     "xxh3, u64");
  expect_independent(measure_small_filters<std::string_view, layouts::classic, xxh3>(g, 51, 300, pattern::texts),
                     "xxh3");
  expect_independent(measure_small_filters<std::string_view, layouts::classic, murmur3>(g, 51, 300, pattern::texts),
                     "murmur3");
  expect_independent(measure_small_filters<std::uint64_t, layouts::classic, siphash>(g, 51, 300, pattern::sequential),
                     "siphash");
}

TEST(StatisticOfSmallClassicFilters, WouldNoticeDoubleHashing) {
  const auto m = measure_small_filters<std::uint64_t, double_hashing, mix>({1021, 14}, 51, 40, pattern::sequential);

  EXPECT_GT(m.measured / m.queries, 3 * m.rate);
}

TEST(StatisticOfSmallClassicFilters, HoldsFromAFewBitsUp) {
  for (const geometry& g : {geometry{1, 1}, {2, 1}, {7, 3}, {32, 3}, {96, 7}, {257, 5}}) {
    const std::uint64_t n = std::max<std::uint64_t>(1, g.bits / 10);

    const auto m = measure_small_filters<std::uint64_t, layouts::classic, mix>(g, n, 1000, pattern::sequential, 5000);

    // The fill ratio of such small filters is not normally distributed: use its spread as measured over the filters, at
    // most the rate itself.
    const double spread = m.rate * (1 - m.rate) / 1000;
    EXPECT_NEAR(m.measured / m.queries, m.rate, sigmas * std::sqrt(spread + m.rate / m.queries)) << g.bits << " bits";
  }
}

TEST(StatisticOfSmallSplitBlockFilters, IsThatOfTheFormula) {
  for (const std::uint64_t blocks : {1u, 2u, 5u}) {
    const geometry g{256 * blocks, 8};
    const std::uint64_t n = 15 * blocks;

    const auto m = measure_small_filters<std::uint64_t, layouts::split_block, mix>(g, n, 400, pattern::sequential);

    const double spread = 1.0 / 400;  // within a block, fill ratios vary by less than 100% between filters
    expect_within(m.measured, m.queries, m.rate, spread, std::to_string(blocks) + " blocks");
  }
}

// ---- one to a million blocks, to the last percent -------------------------------------------------------------------

using block_layouts =
    testing::Types<layouts::split_block, layouts::split_block512, layouts::blocked, layouts::blocked_page>;
template <class Layout>
class StatisticOfBlocks : public testing::Test {};
TYPED_TEST_SUITE(StatisticOfBlocks, block_layouts, names_of_layouts);

// Ten times as many queries: a third of the error.
std::uint64_t longer() { return bloomery_tests::is_long() ? 10 : 1; }

// Keys for a rate near 1e-3, and k for blocked and blocked_page.
template <class Layout>
std::uint64_t keys_for(std::uint64_t blocks) {
  const std::uint64_t bits = Layout::block_bits * blocks;
  return std::is_same_v<Layout, layouts::blocked_page> ? bits * 10 / 144 : bits / 16;
}
template <class Layout>
std::uint32_t probes_of() {
  return std::is_same_v<Layout, layouts::blocked_page> ? 10 : 8;
}

// Many filters, each with its own seed: their rates vary by queries and by fill ratio, and their spread gives the error
// of the mean.
TYPED_TEST(StatisticOfBlocks, HoldsWhereBlocksAreFew) {
  using Layout = TypeParam;
  for (const std::uint64_t blocks : {1u, 2u, 5u, 64u}) {
    SCOPED_TRACE(blocks);
    const geometry g{Layout::block_bits * blocks, probes_of<Layout>()};
    const std::uint64_t n = keys_for<Layout>(blocks);
    const std::uint64_t queries = std::max<std::uint64_t>(2048, 4 * n);
    const std::uint64_t filters = longer() * 20'000'000 / queries;
    const integer_keys keys(pattern::sequential, 0, n + queries);
    std::vector<std::uint64_t> answers((queries + 63) / 64);
    double sum = 0, squares = 0;
    for (std::uint64_t seed = 1; seed <= filters; ++seed) {
      filter<std::uint64_t, Layout, mix> seen(g, n, mix{seed});

      seen.insert(keys.views().first(n));
      seen.may_contain(keys.views().subspan(n), answers);

      double wrong = 0;
      for (const std::uint64_t word : answers) wrong += std::popcount(word);
      sum += wrong;
      squares += wrong * wrong;
    }
    const auto count = static_cast<double>(filters);
    const double mean = sum / count;
    const double deviation = std::sqrt((squares / count - mean * mean) / count);
    const double expected = static_cast<double>(queries) * Layout::expected_fpr(g, n);
    ASSERT_LT(deviation, 0.02 * expected) << "too few to say anything";
    EXPECT_NEAR(mean, expected, sigmas * deviation);
  }
}

TYPED_TEST(StatisticOfBlocks, HoldsWhereBlocksAreMany) {
  using Layout = TypeParam;
  const std::uint64_t blocks = std::is_same_v<Layout, layouts::blocked_page> ? 3001 : (std::uint64_t{1} << 20) + 1;
  const geometry g{Layout::block_bits * blocks, probes_of<Layout>()};
  const std::uint64_t n = keys_for<Layout>(blocks);
  const std::uint64_t queries = longer() * 40'000'000;
  constexpr std::uint64_t some = 1 << 20;
  std::vector<std::uint64_t> answers(some / 64);
  for (const pattern kind : {pattern::sequential, pattern::texts}) {
    SCOPED_TRACE(pattern_names[static_cast<int>(kind)]);
    filter<std::uint64_t, Layout, mix> seen(g, n);
    double wrong = 0;
    double asked = 0;

    for (std::uint64_t i = 0; i < n; i += some) seen.insert(integer_keys(kind, i, std::min(some, n - i)).views());
    for (std::uint64_t i = n; asked < static_cast<double>(queries); i += some, asked += some) {
      seen.may_contain(integer_keys(kind, i, some).views(), answers);
      for (const std::uint64_t word : answers) wrong += std::popcount(word);
    }

    const double rate = Layout::expected_fpr(g, n);
    expect_within(wrong, asked, rate, variance_of_rate<Layout>(g, static_cast<double>(n)), "");
    EXPECT_NEAR(wrong / asked / rate, 1, 0.04);  // the value of the bound above
  }
}

// A filter of 2^40 blocks, of which 2^16 (or 512 pages) are used: all keys have their upper 40 bits in common.
TYPED_TEST(StatisticOfBlocks, HoldsWhereOnlyALargeMachineHasThem) {
  using Layout = TypeParam;
  if (Layout::max_blocks < std::uint64_t{1} << 40) GTEST_SKIP() << "split_block has 2^32 at most";
  const std::uint64_t watched = std::is_same_v<Layout, layouts::blocked_page> ? 512 : std::uint64_t{1} << 16;
  for (const std::uint64_t blocks : {std::uint64_t{1} << 40, std::uint64_t{999'999'999'989}}) {
    SCOPED_TRACE(blocks);
    const geometry g{Layout::block_bits * blocks, probes_of<Layout>()};
    const std::uint64_t first = blocks / 3;
    const std::uint64_t n = keys_for<Layout>(watched);
    std::vector<std::uint8_t> bytes(Layout::block_bits / 8 * watched);
    std::mt19937_64 random(blocks);
    // The cells of a random key of the watched blocks.
    const auto next_key = [&] {
      for (;;) {
        __extension__ using wide = unsigned __int128;
        const auto begin = static_cast<std::uint64_t>((static_cast<wide>(first) << 64) / blocks);
        const auto width = static_cast<std::uint64_t>((static_cast<wide>(watched) << 64) / blocks);
        const std::uint64_t hash64 = begin + multiply_high(random(), width);
        if (Layout::block_of(hash64, blocks) - first < watched) return typename Layout::cells(g, {hash64, 0});
      }
    };
    const std::uint64_t origin = first * Layout::block_bits;
    const std::uint64_t queries = longer() * 10'000'000;
    double wrong = 0;

    for (std::uint64_t i = 0; i < n; ++i) {
      auto cells = next_key();
      for (std::uint32_t c = 0; c < cells.count(); ++c) set_bit(bytes.data(), cells.next() - origin);
    }
    for (std::uint64_t i = 0; i < queries; ++i) {
      auto cells = next_key();
      bool all = true;
      for (std::uint32_t c = 0; all && c < cells.count(); ++c) all = test_bit(bytes.data(), cells.next() - origin);
      wrong += all ? 1 : 0;
    }

    const double n_of_all = static_cast<double>(n) / static_cast<double>(watched) * static_cast<double>(blocks);
    const double rate = Layout::expected_fpr(g, static_cast<std::uint64_t>(n_of_all));
    const geometry part{Layout::block_bits * watched, g.probes};
    expect_within(wrong, static_cast<double>(queries), rate, variance_of_rate<Layout>(part, static_cast<double>(n)),
                  "");
  }
}

// Bits of a block, or of its words if each takes one bit.
template <class Layout>
constexpr std::uint64_t bits_to_choose_from() {
  if constexpr (requires { Layout::lane_bits; }) return Layout::lane_bits;
  return Layout::block_bits;
}

// Chi-square of 64 parts of the filter, and of 64 residues of the block's number, against 32 parts of a block.
TYPED_TEST(StatisticOfBlocks, IsThatOfBitsThatAreIndependentOfTheirBlock) {
  using Layout = TypeParam;
  constexpr std::uint64_t groups = 64, parts = 32, probes = 8;
  constexpr std::uint64_t keys = 2'000'000;
  constexpr std::uint64_t bits = bits_to_choose_from<Layout>();
  for (const std::uint64_t blocks : {std::uint64_t{64}, std::uint64_t{6400}, Layout::max_blocks}) {
    const geometry g{Layout::block_bits * blocks, probes};
    std::vector<double> by_group(probes * groups * parts), by_residue(probes * groups * parts);
    std::mt19937_64 random(blocks);
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::uint64_t hash64 = random();
      const std::uint64_t block = Layout::block_of(hash64, blocks);
      typename Layout::cells cells(g, {hash64, 0});
      for (std::uint64_t probe = 0; probe < probes; ++probe) {
        const std::uint64_t part = cells.next() % bits / (bits / parts);
        ++by_group[(probe * groups + block / (blocks / groups)) * parts + part];
        ++by_residue[(probe * groups + block % groups) * parts + part];
      }
    }
    for (std::size_t probe = 0; probe < probes; ++probe) {
      for (const auto& table : {by_group, by_residue}) {
        double chi_square = 0;
        constexpr double expected = static_cast<double>(keys) / (groups * parts);
        for (std::size_t i = probe * groups * parts; i < (probe + 1) * groups * parts; ++i) {
          chi_square += (table[i] - expected) * (table[i] - expected) / expected;
        }
        constexpr double freedom = groups * parts - 1;
        EXPECT_NEAR(chi_square, freedom, sigmas * std::sqrt(2 * freedom)) << blocks << " blocks, probe " << probe;
      }
    }
  }
}

}  // namespace
}  // namespace bloomery
