// check_layout() accepts the layouts of the library, and finds layouts that state a wrong FPR or leave their bits; the
// formulas for user-defined layouts agree with sums by definition.
#include <bloomery/block_mixture.hpp>
#include <bloomery/check_layout.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "support/errors.hpp"
#include "support/test.hpp"

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace bloomery {
namespace {

template <layout L>
std::set<std::string> faults(std::uint64_t seed) {
  std::set<std::string> found;
  for (const layout_check& one : check_layout<L>(200'000, seed)) {
    if (!one.fault.empty()) found.insert(one.fault);
  }
  return found;
}

// Layout classic, except for what derived types replace.
class copied {
 public:
  using cells = layouts::classic::cells;
  static constexpr std::string_view name = "test.copied/1";
  static geometry geometry_for(std::uint64_t n, double p) { return layouts::classic::geometry_for(n, p); }
  static void check(const geometry& g) { layouts::classic::check(g); }
  static double expected_fpr(const geometry& g, std::uint64_t n) { return layouts::classic::expected_fpr(g, n); }
  static double keys_from_zeros(const geometry& g, std::uint64_t z) { return layouts::classic::keys_from_zeros(g, z); }
};

class optimistic : public copied {
 public:
  static double expected_fpr(const geometry& g, std::uint64_t n) { return 0.9 * copied::expected_fpr(g, n); }
};

// Cells of consecutive numbers, as of a hash that is too short.
class clustered : public copied {
 public:
  class cells {
   public:
    cells(const geometry& g, key_hash hash) : g_(g), cell_(multiply_high(hash.hash64, g.bits)) {}
    std::uint32_t count() const { return g_.probes; }
    std::uint64_t next() { return cell_ = (cell_ + 1) % g_.bits; }

   private:
    geometry g_;
    std::uint64_t cell_;
  };
};

class one_too_far : public copied {
 public:
  class cells : public copied::cells {
   public:
    using copied::cells::cells;
    std::uint64_t next() { return copied::cells::next() + 1; }
  };
};

class too_small : public copied {
 public:
  static geometry geometry_for(std::uint64_t n, double p) { return copied::geometry_for(n, p * 2); }
};

TEST(CheckLayout, AcceptsTheLayoutsOfTheLibrary) {
  EXPECT_EQ(faults<layouts::split_block>(1), std::set<std::string>());
  EXPECT_EQ(faults<layouts::split_block512>(2), std::set<std::string>());
  EXPECT_EQ(faults<layouts::blocked>(3), std::set<std::string>());
  EXPECT_EQ(faults<layouts::blocked_page>(4), std::set<std::string>());
  EXPECT_EQ(faults<layouts::classic>(5), std::set<std::string>());
  EXPECT_EQ(faults<layouts::counting>(6), std::set<std::string>());
  EXPECT_EQ(faults<copied>(7), std::set<std::string>());
}

TEST(CheckLayout, FindsAWrongStatement) {
  const std::set<std::string> wrong = {"the measured FPR contradicts the stated FPR"};
  EXPECT_EQ(faults<optimistic>(1), wrong);
  EXPECT_EQ(faults<clustered>(2), wrong);
  EXPECT_EQ(faults<too_small>(3), std::set<std::string>{"the stated FPR is not at most the target FPR"});
}

TEST(CheckLayout, StopsAtACellOutsideTheFilter) {
  EXPECT_EQ(faults<one_too_far>(1), std::set<std::string>{"a cell is outside the filter"});
}

TEST(CheckLayout, NamesItsCases) {
  const std::vector<layout_check> all = check_layout<layouts::classic>(64);
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all[4].keys, 100u);
  EXPECT_EQ(all[4].target_fpr, 0.01);
  EXPECT_EQ(all[4].geometry, layouts::classic::geometry_for(100, 0.01));
  EXPECT_EQ(all[4].stated_fpr, layouts::classic::expected_fpr(all[4].geometry, 100));
}

// By enumeration of all sequences of n * k probes into m bits.
double enumerated_fpr(std::uint64_t m, std::uint32_t k, std::uint64_t n) {
  const auto probes = static_cast<std::uint32_t>(n * k);
  std::uint64_t sequences = 1;
  for (std::uint32_t i = 0; i < probes; ++i) sequences *= m;
  double sum = 0;
  for (std::uint64_t s = 0; s < sequences; ++s) {
    std::uint64_t rest = s;
    std::set<std::uint64_t> set;
    for (std::uint32_t i = 0; i < probes; ++i, rest /= m) set.insert(rest % m);
    sum += std::pow(static_cast<double>(set.size()) / static_cast<double>(m), k);
  }
  return sum / static_cast<double>(sequences);
}

TEST(BlockMixture, StandardFprIsTheMeanOverAllSequencesOfProbes) {
  EXPECT_NEAR(standard_fpr(3, 2, 1), 1.0 / 3, 1e-12);
  for (const std::uint64_t m : {1u, 2u, 5u}) {
    for (const std::uint32_t k : {1u, 2u, 3u}) {
      for (const std::uint64_t n : {0u, 1u, 2u}) EXPECT_NEAR(standard_fpr(m, k, n), enumerated_fpr(m, k, n), 1e-12);
    }
  }
}

TEST(BlockMixture, IsTheSumOverTheBinomialDistribution) {
  const auto rate = [](double keys) { return 1 - std::exp(-keys / 50); };
  for (const auto& [keys, blocks] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 7}, {1, 1}, {40, 3}, {5000, 100}}) {
    double sum = 0;
    const double n = static_cast<double>(keys), share = 1 / static_cast<double>(blocks);
    for (double i = 0; i <= n; ++i) {
      const double others = blocks == 1 ? (i == n ? 0 : -HUGE_VAL) : (n - i) * std::log1p(-share);
      sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) + i * std::log(share) + others) *
             rate(i);
    }
    EXPECT_NEAR(block_mixture_fpr(keys, blocks, rate), sum, 1e-9 * (sum + 1e-3))
        << keys << " keys, " << blocks << " blocks";
  }
}

TEST(BlockMixture, AgreesWithTheLayoutOfBlocks) {
  const geometry g{64 * 512, 6};
  const double expected = layouts::blocked::expected_fpr(g, 3000);
  EXPECT_GT(expected, 0);
  EXPECT_NEAR(
      block_mixture_fpr(3000, 64, [](double keys) { return standard_fpr(512, 6, static_cast<std::uint64_t>(keys)); }),
      expected, 1e-9 * expected);
}

TEST(BlockMixture, RefusesNumbersOutsideTheirRange) {
  EXPECT_EQ(bloomery_tests::code_of([] { standard_fpr(0, 1, 1); }), errc::invalid_argument);
  EXPECT_EQ(bloomery_tests::code_of([] { standard_fpr(64, 0, 1); }), errc::invalid_argument);
  EXPECT_EQ(bloomery_tests::code_of([] { standard_fpr(64, 256, 1); }), errc::invalid_argument);
  EXPECT_EQ(bloomery_tests::code_of([] { block_mixture_fpr(1, 0, [](double) { return 0.0; }); }),
            errc::invalid_argument);
}

}  // namespace
}  // namespace bloomery
