// Likely causes of measured rates that were computed by other formulas for known faults.
//
// n keys, m bits, k probes.
#include "app/fpr_cause.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace bloomery::app {
namespace {

constexpr std::uint64_t n = 100'000;

// Bloom's formula, which is exact to a thousandth for 100,000 keys.
double bloom(double bits, double probes, double keys) { return std::pow(-std::expm1(-probes * keys / bits), probes); }

// What 10^8 lookups per level of a filter with these FPRs measure on average.
std::vector<fill_level> levels_of(const std::function<double(double)>& fpr) {
  std::vector<fill_level> levels;
  for (const std::uint64_t keys : {n / 4, n / 2, 3 * n / 4, n}) {
    const double hits = std::round(1e8 * fpr(static_cast<double>(keys)));
    levels.push_back({keys, {100'000'000, static_cast<std::uint64_t>(hits)}});
  }
  return levels;
}

filter_claim claim(double target, geometry size = {}) {
  params p;
  p.layout = "classic";
  p.capacity = n;
  p.target_fpr = target;
  p.geometry = size;
  return {complete(p), size.bits != 0, size.probes != 0};
}

std::string likeliest(const filter_claim& c, const std::function<double(double)>& fpr) {
  const std::vector<fpr_cause> causes = likely_causes(c, levels_of(fpr));
  return causes.empty() ? "none" : causes.front().code;
}

TEST(FprCause, NamesTheFaultWhoseFormulaGivesTheRates) {
  const double m = -static_cast<double>(n) * std::log(0.01) / std::pow(std::log(2.0), 2);  // textbook

  EXPECT_EQ(likeliest(claim(0.01), [&](double keys) { return bloom(m / 2, 7, keys); }), "half");
  EXPECT_EQ(likeliest(claim(0.01), [&](double keys) { return bloom(9.0 * n, 6, keys); }), "rounding");
  EXPECT_EQ(likeliest(claim(0.01), [&](double keys) { return bloom(0.8 * m, 7, keys); }), "fewer_bits");
  // Blocks in a size for filters without blocks have nearly this FPR at capacity, but a higher one before.
  EXPECT_EQ(likeliest(claim(0.01), [&](double keys) { return bloom(0.91 * m, 7, keys); }), "fewer_bits");
  EXPECT_EQ(likeliest(claim(0.01), [](double) { return 0.012; }), "layers");
  EXPECT_EQ(likeliest(claim(0.01), [](double keys) { return 0.03 * keys / n; }), "equal_layers");
  EXPECT_EQ(likeliest(claim(0.01), [](double) { return 1.0; }), "full");
}

TEST(FprCause, NamesHashesThatAreTooShort) {
  const double m = -static_cast<double>(n) * std::log(1e-6) / std::pow(std::log(2.0), 2);
  const auto short_hash = [&](double keys) { return bloom(m, 20, keys) + keys / 0x1p32; };

  EXPECT_EQ(likeliest(claim(1e-6), short_hash), "hash32");
}

TEST(FprCause, NamesGivenSizesThatAreTooSmallOrOnlyPartlyUsed) {
  const auto of = [](double bits, double probes) { return [=](double keys) { return bloom(bits, probes, keys); }; };

  EXPECT_EQ(likeliest(claim(0.01, {800'000, 6}), of(800'000, 6)), "size");
  EXPECT_EQ(likeliest(claim(1e-5, {std::uint64_t{1} << 33, 1}), of(0x1p31, 1)), "reach31");
  EXPECT_EQ(likeliest(claim(1e-5, {std::uint64_t{1} << 35, 1}), of(0x1p32, 1)), "reach32");
}

TEST(FprCause, NamesNothingForAFewFalsePositives) {
  const std::vector<fill_level> levels = {{n / 2, {1000, 0}}, {n, {1000, 49}}};

  EXPECT_TRUE(likely_causes(claim(0.01), levels).empty());
}

TEST(FprCause, NamesNothingThatDisagreesWithALevel) {
  // At capacity a filter with half of its bits, but not before.
  const auto jump = [](double keys) { return keys < n ? 0.05 : 0.157; };

  EXPECT_EQ(likeliest(claim(0.01), jump), "none");
}

}  // namespace
}  // namespace bloomery::app
