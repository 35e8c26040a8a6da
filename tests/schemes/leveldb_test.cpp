// Scheme leveldb, compared with bits of LevelDB, and its FPR, compared with counted false positives.
// tests/formats/formats_test.cpp has more bits.
#include <bloomery/scheme.hpp>

#include "schemes/scheme_filter.hpp"
#include "support/random_keys.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

TEST(Leveldb, SetsTheBitsOfItsFilterOfOneKey) {
  scheme_filter filter("leveldb", {64, 6});

  filter.insert("hello");

  EXPECT_EQ(filter.hex(), "0140000104104000");
}

// 10 bits per key are LevelDB's usual size, with 6 probes.
TEST(Leveldb, ChoosesTheLeastBitsPerKeyThatMeetTheTarget) {
  const scheme& leveldb = *find_scheme("leveldb");
  for (const auto& [keys, target] : {std::pair<std::uint64_t, double>{1000, 0.01}, {300, 0.02}, {5000, 1e-3}}) {
    const geometry chosen = leveldb.geometry_for(keys, target);

    const auto bits_per_key = static_cast<double>(chosen.bits) / static_cast<double>(keys);
    EXPECT_LE(leveldb.expected_fpr(chosen, keys), target) << keys;
    const std::uint64_t fewer = static_cast<std::uint64_t>(bits_per_key) - 1;
    const geometry less{(keys * fewer + 7) / 8 * 8, static_cast<std::uint32_t>(static_cast<double>(fewer) * 0.69)};
    EXPECT_GT(leveldb.expected_fpr(less, keys), target) << keys;
  }
  EXPECT_EQ(leveldb.geometry_for(1000, 0.01), (geometry{10'000, 6}));
  EXPECT_EQ(leveldb.geometry_for(1, 0.01).bits, 64u);
}

// The false positives among `queries` random keys, in each of some filters of n keys. Calls work(filter) for each.
template <class Work>
double measured_rate_of_leveldb(const geometry& size, int n, int filters, int queries, Work work) {
  random_keys key;
  std::uint64_t reported = 0;
  for (int round = 0; round < filters; ++round) {
    scheme_filter filter("leveldb", size);
    for (int i = 0; i < n; ++i) filter.insert(key());
    for (int i = 0; i < queries; ++i) reported += filter.may_contain(key()) ? 1 : 0;
    work(filter);
  }
  return static_cast<double>(reported) / (static_cast<double>(filters) * queries);
}

// 10 bits per key make 6 probes, 15 make 10. LevelDB's tables have filters of 100 to 3000 bits. 72, 240 and 960 have
// divisors of 2^32 - 1, and 1024 is a power of 2.
TEST(SchemeRates, OfLeveldbCountItsRotation) {
  const struct {
    geometry size;
    int keys;
    double bound;  // relative
  } cases[] = {{{72, 2}, 25, 0.06},    {{160, 6}, 16, 0.1},    {{240, 6}, 24, 0.1},    {{960, 2}, 333, 0.04},
               {{960, 6}, 96, 0.06},   {{1000, 6}, 100, 0.06}, {{1024, 6}, 102, 0.06}, {{1000, 10}, 67, 0.15},
               {{1024, 10}, 68, 0.15}, {{2000, 6}, 200, 0.06}, {{4000, 10}, 267, 0.15}};
  const scheme& leveldb = *find_scheme("leveldb");
  for (const auto& [size, keys, bound] : cases) {
    const double in_theory = leveldb.expected_fpr(size, static_cast<std::uint64_t>(keys));

    const double measured = measured_rate_of_leveldb(size, keys, 400, 5000, [](const scheme_filter&) {});

    EXPECT_NEAR(in_theory / measured, 1, bound) << size.bits << " bits, " << size.probes << " probes";
  }
  const double even = std::pow(-std::expm1(-2.0 * 333 / 960), 2);
  EXPECT_GT(leveldb.expected_fpr({960, 2}, 333), 1.1 * even);
}

// The hash of a key has 32 bits: other keys with the same hash are found, whatever the number of bits.
TEST(SchemeRates, OfLeveldbCountEqualHashes) {
  const int n = 1'000'000;
  const geometry size{40 * n, 27};
  const int queries = 2'000'000;  // about 466 of them

  const double in_theory = find_scheme("leveldb")->expected_fpr(size, n);
  const double measured = measured_rate_of_leveldb(size, n, 1, queries, [](const scheme_filter&) {});

  EXPECT_NEAR(in_theory, n / 0x1p32, 1e-5);
  EXPECT_NEAR(measured, in_theory, 5 * std::sqrt(in_theory / queries));
}

TEST(SchemeRates, OfTheBitsOfLeveldbFollowTheMeasure) {
  const scheme& leveldb = *find_scheme("leveldb");
  for (const auto& [g, keys] : {std::pair<geometry, int>{{1000, 6}, 100}, {{240, 6}, 24}, {{2000, 10}, 133}}) {
    const geometry size = g;
    constexpr int filters = 100;
    constexpr int queries = 10'000;
    double rates = 0;  // without the bits
    double rates_of_bits = 0;

    const double measured = measured_rate_of_leveldb(size, keys, filters, queries, [&](const scheme_filter& filter) {
      rates += leveldb.current_fpr(size, {filter.ones(), 0, {}}) / filters;
      rates_of_bits += leveldb.current_fpr(size, {filter.ones(), 0, filter.bytes}) / filters;
    });

    EXPECT_NEAR(rates, measured, 5 * std::sqrt(measured / (1.0 * filters * queries)) + 0.06 * measured) << size.bits;
    EXPECT_NEAR(rates_of_bits, measured, 5 * std::sqrt(measured / (1.0 * filters * queries)) + 0.01 * measured);
  }
}

}  // namespace
}  // namespace bloomery
