// Scheme datasketches, compared with sizes of the real builder, and its FPR, compared with counted false positives.
#include <bloomery/scheme.hpp>

#include "formats/recorded.hpp"
#include "schemes/scheme_filter.hpp"
#include "schemes/schemes.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

// tests/golden/foreign/record.sh: N, P, bits and hashes of the real builder.
TEST(DataSketches, HasTheSizesOfItsBuilder) {
  std::ifstream table(recorded("datasketches.sizes"));
  std::uint64_t n = 0, bits = 0;
  double p = 0;
  std::uint32_t probes = 0;
  int rows = 0;
  for (; table >> n >> p >> bits >> probes; ++rows)
    EXPECT_EQ(find_scheme("datasketches")->geometry_for(n, p), (geometry{bits, probes})) << n << " keys at " << p;

  EXPECT_EQ(rows, 144);
}

TEST(DataSketches, HasOtherPositionsForEverySeed) {
  const scheme& rule = *find_scheme("datasketches");
  const geometry size{9600, 7};
  std::vector<std::uint64_t> plain(7), seeded(7);

  rule.positions("key", size, {}, plain.data());
  rule.positions("key", size, {.seed = std::uint64_t{1} << 63}, seeded.data());

  EXPECT_NE(seeded, plain);
}

TEST(DataSketches, RefusesSizesThatTheLibraryDoesNotReadBack) {
  const scheme& rule = *find_scheme("datasketches");
  const std::uint64_t most = (std::uint64_t{1} << 32) - 64;

  EXPECT_NO_THROW(rule.check({most, 7}));
  EXPECT_EQ(code_of([&] { rule.check({most + 64, 7}); }), errc::too_large);
  EXPECT_EQ(code_of([&] { rule.check({100, 7}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { rule.geometry_for(1'000'000'000, 0.01); }), errc::too_large);
  EXPECT_EQ(code_of([&] { rule.geometry_for(~std::uint64_t{0}, 1e-70); }), errc::too_large);
}

// Powers of two, and their multiples by 3, 5, 15 and 45: the odd part decides how often sums beyond 2^64 separate bits.
TEST(SchemeRates, OfDataSketchesCountDependentProbes) {
  const struct {
    geometry size;
    int keys, filters, queries;
    double times;  // the rate of independent probes, at least
    double bound;  // relative
  } cases[] = {{{128, 7}, 10, 2000, 500, 2, 0.05},        {{192, 13}, 10, 2000, 1000, 10, 0.15},
               {{320, 7}, 30, 1000, 500, 1.05, 0.05},     {{960, 7}, 100, 400, 2000, 1.02, 0.05},
               {{1024, 7}, 100, 400, 2000, 1.06, 0.05},   {{3072, 13}, 160, 20, 100'000, 1.8, 0.15},
               {{4096, 20}, 142, 20, 100'000, 100, 0.25}, {{2880, 13}, 150, 20, 100'000, 1.5, 0.2}};
  const scheme& rule = *find_scheme("datasketches");
  for (const auto& [size, keys, filters, queries, times, bound] : cases) {
    const double in_theory = rule.expected_fpr(size, static_cast<std::uint64_t>(keys));

    const double measured = measured_rate_of_small_filters("datasketches", size, keys, filters, queries);

    EXPECT_NEAR(measured / in_theory, 1, bound) << size.bits << " bits";
    EXPECT_GT(in_theory, times * independent_rate(size, static_cast<std::uint64_t>(keys))) << size.bits << " bits";
  }
}

TEST(SchemeRates, OfTheBitsOfDataSketchesCountDependentProbes) {
  const scheme& rule = *find_scheme("datasketches");
  for (const geometry& size : {geometry{960, 7}, geometry{1024, 7}}) {
    double rates = 0;
    double found = 0;
    constexpr int filters = 200;
    constexpr int queries = 5000;
    for (int round = 0; round < filters; ++round) {
      scheme_filter filter("datasketches", size);
      for (int i = 0; i < 100; ++i) filter.insert("in-" + std::to_string(round) + '-' + std::to_string(i));
      rates += rule.current_fpr(size, {filter.ones()}) / filters;
      for (int i = 0; i < queries; ++i)
        found += filter.may_contain("out-" + std::to_string(round) + '-' + std::to_string(i)) ? 1 : 0;
    }
    const double measured = found / (1.0 * filters * queries);

    EXPECT_NEAR(rates, measured, 5 * std::sqrt(measured / (1.0 * filters * queries)) + 0.01 * measured) << size.bits;
  }
}

}  // namespace
}  // namespace bloomery
