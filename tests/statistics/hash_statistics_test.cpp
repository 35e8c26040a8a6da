// Statistics of hashes, schemes and estimates: keys that are hard for a hash, collisions, the rates of schemes, and the
// errors of estimated counts.
//
// n keys, m bits, k probes.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/scheme.hpp>

#include "statistics/patterned_keys.hpp"
#include "support/combinations.hpp"
#include "support/rate_variance.hpp"
#include "support/test.hpp"

#include <bit>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- keys and hashes that tempt a hash to fail ----------------------------------------------------------------------

// All integers with at most four bits set, in random order.
std::vector<std::uint64_t> sparse_integers() {
  std::vector<std::uint64_t> keys{0};
  for (int bits = 0; bits < 4; ++bits) {
    const std::vector<std::uint64_t> fewer = keys;
    for (const std::uint64_t key : fewer) {
      if (std::popcount(key) != bits) continue;
      for (int bit = 64 - std::countl_zero(key); bit < 64; ++bit) keys.push_back(key | std::uint64_t{1} << bit);
    }
  }
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(4));
  return keys;
}

template <class Layout, class Hash>
void expect_the_rate_of(std::span<const std::uint64_t> keys) {
  SCOPED_TRACE(testing::Message() << Layout::name << ", " << Hash::name);
  constexpr std::uint64_t n = 100'000;
  filter<std::uint64_t, Layout, Hash> seen(n, 0.01, seeded<Hash>());
  any_filter erased(complete(seeded({.layout = std::string(Layout::name),
                                     .hash = std::string(Hash::name),
                                     .keys = key_kind::u64le,
                                     .capacity = n,
                                     .target_fpr = 0.01})));
  const std::span<const std::uint64_t> absent = keys.subspan(n);
  std::vector<std::uint64_t> answers((absent.size() + 63) / 64);

  seen.insert(keys.first(n));
  erased.insert(keys.first(n));
  seen.may_contain(absent, answers);
  EXPECT_TRUE(std::ranges::equal(seen.bytes(), erased.bytes()));

  double wrong = 0;
  for (const std::uint64_t word : answers) wrong += std::popcount(word);
  expect_within(wrong, static_cast<double>(absent.size()), seen.expected_fpr(n),
                variance_of_rate<Layout>(seen.parameters().geometry, n), "");
}

TEST(StatisticOfSparseIntegers, IsThatOfAllOthers) {
  const std::vector<std::uint64_t> keys = sparse_integers();
  ASSERT_EQ(keys.size(), 1u + 64 + 2016 + 41'664 + 635'376);  // C(64, 0) + ... + C(64, 4)
  const auto with_layouts = [&]<class Hash>(Hash) {
    expect_the_rate_of<layouts::split_block, Hash>(keys);
    expect_the_rate_of<layouts::split_block512, Hash>(keys);
    expect_the_rate_of<layouts::blocked, Hash>(keys);
    expect_the_rate_of<layouts::blocked_page, Hash>(keys);
    expect_the_rate_of<layouts::classic, Hash>(keys);
  };

  with_layouts(mix{});
  with_layouts(xxh3{});
  with_layouts(xxh3_64{});
  with_layouts(murmur3{});
  expect_the_rate_of<layouts::split_block512, siphash>(keys);
}

TEST(StatisticOfIdentity, IsThatOfRandomKeysAndFarFromItForSequentialOnes) {
  std::vector<std::uint64_t> random(500'000);
  std::mt19937_64 generator(7);
  for (std::uint64_t& key : random) key = generator();

  expect_the_rate_of<layouts::split_block, identity>(random);
  expect_the_rate_of<layouts::split_block512, identity>(random);
  expect_the_rate_of<layouts::blocked, identity>(random);
  expect_the_rate_of<layouts::blocked_page, identity>(random);
  expect_the_rate_of<layouts::classic, identity>(random);

  filter<std::uint64_t, layouts::split_block, identity> sequential(100'000, 0.01);
  for (std::uint64_t key = 0; key < 100'000; ++key) sequential.insert(key);
  EXPECT_TRUE(sequential.may_contain(100'001) && sequential.may_contain(200'000));
}

// Pairs of equal values among n random ones of 2^32: n (n-1) / 2^33, as in the birthday paradox; a Poisson variable.
template <class Hash, class Keys>
void expect_the_collisions_of_chance(const Keys& keys) {
  std::vector<std::uint64_t> hash64s;
  std::vector<std::uint32_t> words[4];
  for (const auto& key : keys.views()) {
    const key_hash hash = seeded<Hash>()(key);
    hash64s.push_back(hash.hash64);
    words[0].push_back(static_cast<std::uint32_t>(hash.hash64));
    words[1].push_back(static_cast<std::uint32_t>(hash.hash64 >> 32));
    words[2].push_back(static_cast<std::uint32_t>(hash.high64));
    words[3].push_back(static_cast<std::uint32_t>(hash.high64 >> 32));
  }
  const auto n = static_cast<double>(hash64s.size());
  std::sort(hash64s.begin(), hash64s.end());
  EXPECT_EQ(std::adjacent_find(hash64s.begin(), hash64s.end()), hash64s.end()) << "two keys share lo";
  const double expected = n * (n - 1) * 0x1p-33;
  for (auto& word : words) {
    std::sort(word.begin(), word.end());
    double pairs = 0;
    for (std::size_t i = 1, same = 0; i < word.size(); ++i) {
      same = word[i] == word[i - 1] ? same + 1 : 0;
      pairs += static_cast<double>(same);
    }
    EXPECT_NEAR(pairs, expected, sigmas * std::sqrt(expected)) << "word " << &word - words;
  }
}

TEST(StatisticOfHashes, IsThatOfChanceInEachOfFourWords) {
  constexpr std::uint64_t n = std::uint64_t{1} << 19;
  for (const pattern kind : all_patterns) {
    SCOPED_TRACE(pattern_names[static_cast<int>(kind)]);
    const integer_keys integers(kind, 0, n);
    const text_keys texts(kind, 0, n);

    expect_the_collisions_of_chance<mix>(integers);
    expect_the_collisions_of_chance<xxh3>(integers);
    expect_the_collisions_of_chance<murmur3>(integers);
    expect_the_collisions_of_chance<xxh3>(texts);
    expect_the_collisions_of_chance<xxh3_64>(integers);
    expect_the_collisions_of_chance<xxh3_64>(texts);
    expect_the_collisions_of_chance<murmur3>(texts);
    expect_the_collisions_of_chance<siphash>(integers);
    expect_the_collisions_of_chance<siphash>(texts);
  }
}

// ---- schemes --------------------------------------------------------------------------------------------------------

// The hashing of Guava, Python and Perl keeps the rate at 10^5 keys; schemes_test.cpp shows the defect of pharo.
TEST(StatisticOfSchemes, IsWithinABinomialBoundOfTheirFormula) {
  struct {
    const char* scheme;
    double p;
    std::uint64_t queries;
  } const cases[] = {{"guava", 0.01, 500'000},   {"guava", 0.001, 500'000}, {"python", 0.01, 500'000},
                     {"python", 0.001, 500'000}, {"perl", 0.01, 200'000},   {"perl", 0.001, 200'000}};
  constexpr std::uint64_t n = 100'000;
  for (const auto& c : cases) {
    const pattern kind = c.p == 0.01 ? pattern::texts : pattern::sequential;
    any_filter seen(complete({.scheme = c.scheme, .capacity = n, .target_fpr = c.p}));
    const text_keys keys(kind, 0, n);
    const text_keys absent(kind, n, c.queries);
    std::vector<std::uint64_t> answers((c.queries + 63) / 64);

    seen.insert(keys.views());
    seen.may_contain(absent.views(), answers);

    std::uint64_t wrong = 0, missed = 0;
    for (const std::uint64_t word : answers) wrong += static_cast<std::uint64_t>(std::popcount(word));
    for (std::size_t i = 0; i < n; i += 7) missed += seen.may_contain(keys.views()[i]) ? 0 : 1;
    EXPECT_EQ(missed, 0u) << c.scheme;
    expect_within(static_cast<double>(wrong), static_cast<double>(c.queries), seen.expected_fpr(n),
                  fill_variance(seen.parameters().geometry, n), c.scheme);
  }
}

// ---- estimates ------------------------------------------------------------------------------------------------------

// sigma = sqrt(m (e^r - 1 - r)) / k, r = kn/m; in split blocks up to 15% more.
template <class Layout>
void expect_estimates(double wider) {
  const geometry g{std::uint64_t{1} << 18, 8};
  const auto m = static_cast<double>(g.bits);
  double sum_of_squares = 0;
  int count = 0;
  for (const double load : {0.01, 0.1, 0.5, 1.0, 2.0}) {
    const auto n = static_cast<std::uint64_t>(load * m / g.probes);
    const integer_keys keys(pattern::sequential, 0, n);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      filter<std::uint64_t, Layout, mix> seen(g, n, mix{seed});
      seen.insert(keys.views());

      const double error = seen.approximate_size() - static_cast<double>(n);

      const double sigma = wider * std::sqrt(m * (std::exp(load) - 1 - load)) / g.probes;
      EXPECT_LT(std::abs(error), 4 * sigma + 0.5) << n << " keys, seed " << seed;
      if (load >= 0.1) {
        sum_of_squares += error * error / (sigma * sigma);
        ++count;
      }
    }
  }
  // Neither too large nor suspiciously small: the mean of 80 squares of normal variables is 1 +- 0.16.
  EXPECT_NEAR(sum_of_squares / count, 1, 0.65);
}

TEST(StatisticOfEstimates, IsLinearCountingsForClassic) { expect_estimates<layouts::classic>(1); }
TEST(StatisticOfEstimates, IsAFewPercentWiderForSplitBlock) { expect_estimates<layouts::split_block>(1.15); }
TEST(StatisticOfEstimates, IsAFewPercentWiderForSplitBlock512) { expect_estimates<layouts::split_block512>(1.1); }
TEST(StatisticOfEstimates, IsAFewPercentWiderForBlocked) { expect_estimates<layouts::blocked>(1.1); }
TEST(StatisticOfEstimates, IsLinearCountingsForBlockedPage) { expect_estimates<layouts::blocked_page>(1); }

}  // namespace
}  // namespace bloomery
