// The experiment of `analyze`, compared with a plain one that inserts and looks up key by key, and the axes of its
// charts.
#include "app/experiment.hpp"
#include "app/addresses.hpp"
#include "cli/text/axis.hpp"
#include "cli/text/terminal_chart.hpp"

#include <bloomery/any_filter.hpp>

#include "support/test.hpp"

#include <regex>
#include <set>
#include <stdexcept>

namespace bloomery::cli {

using namespace app;

namespace {

using namespace bloomery_tests;
using testing::Le;

experiment small_experiment(params wanted) {
  wanted.capacity = 1000;
  wanted.target_fpr = 0.05;
  experiment e;
  e.filter = complete(wanted);
  e.runs = 4;
  e.queries = 2500;
  return e;
}

std::vector<std::string> words(std::size_t count) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back("word-" + std::to_string(i));
  return all;
}

bool same(const std::vector<measured_point>& a, const std::vector<measured_point>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const measured_point& x, const measured_point& y) {
    return x.keys == y.keys && x.predicted == y.predicted && x.rates == y.rates;
  });
}

TEST(Addresses, LookLikeAddressesAndAreDistinct) {
  const std::regex address("[a-z]+\\.[a-z]+[0-9]+@[a-z]+\\.(com|org|net|example|test)");
  address_batch batch;
  std::set<std::string> seen;

  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5000}, ~std::uint64_t{0} - 4999}) {
    batch.make(/*seed=*/1, first, 5000);
    for (const std::string_view a : batch.addresses()) {
      EXPECT_TRUE(std::regex_match(a.begin(), a.end(), address)) << a;
      EXPECT_TRUE(seen.emplace(a).second) << a;
    }
  }
}

TEST(Experiment, MeasuresAtStepsAndAtQuarters) {
  EXPECT_THAT(points_for(1), ElementsAre(1));
  EXPECT_THAT(points_for(20), ElementsAre(5, 10, 15, 20, 25, 30));
  EXPECT_THAT(points_for(100),
              ElementsAre(10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 100, 110, 120, 125, 130, 140, 150));
  const auto many = points_for(1'000'000);
  EXPECT_EQ(many.size(), 151u);
  EXPECT_THAT((std::vector(many.begin(), many.begin() + 3)), ElementsAre(10, 10'000, 20'000));
  EXPECT_EQ(many.back(), 1'500'000u);
}

// The same addresses, one at a time: run r has the numbers after those of the runs before, the absent ones
// first, from the first number of as many digits as the last one needs.
TEST(Experiment, MeasuresWhatAskingKeyByKeyDoes) {
  for (const params& kind :
       {params{.layout = "split_block"}, params{.layout = "classic", .hash = "murmur3"}, params{.scheme = "guava"}}) {
    SCOPED_TRACE(kind.layout + kind.scheme);
    experiment e = small_experiment(kind);
    e.seed = 7;

    const auto measured = carry_out(e);

    for (std::uint64_t run = 0; run < e.runs; ++run) {
      any_filter filter(e.filter);
      address_batch absent;
      address_batch inserted;
      absent.make(e.seed, 100'000 + run * (2500 + 1500), 2500);
      inserted.make(e.seed, 100'000 + run * (2500 + 1500) + 2500, 1500);
      std::size_t in = 0;
      for (const measured_point& point : measured) {
        while (in < point.keys) filter.insert(inserted.addresses()[in++]);
        const auto alarms = std::count_if(absent.addresses().begin(), absent.addresses().end(),
                                          [&](std::string_view key) { return filter.may_contain(key); });
        ASSERT_DOUBLE_EQ(point.rates[run], static_cast<double>(alarms) / 2500);
      }
    }
  }
}

TEST(Experiment, MeanAndDeviationAreThoseOfTheRuns) {
  const auto points = carry_out(small_experiment({.layout = "split_block512"}));

  for (const measured_point& p : points) {
    ASSERT_EQ(p.rates.size(), 4u);
    const double mean = (p.rates[0] + p.rates[1] + p.rates[2] + p.rates[3]) / 4;
    double squares = 0;
    for (const double rate : p.rates) squares += (rate - mean) * (rate - mean);
    EXPECT_DOUBLE_EQ(p.mean, mean);
    EXPECT_NEAR(p.deviation, std::sqrt(squares / 3), 1e-15);
  }
}

TEST(Experiment, DoesNotDependOnThreadsButOnTheSeed) {
  experiment e = small_experiment({.layout = "classic"});
  const auto alone = carry_out(e);

  e.threads = 3;
  EXPECT_TRUE(same(carry_out(e), alone));
  e.seed = 1;
  EXPECT_FALSE(same(carry_out(e), alone));
}

TEST(Experiment, LinesAreShuffledDifferentlyInEachRun) {
  const std::vector<std::string> text = words(4000);
  const std::vector<std::string_view> lines(text.begin(), text.end());
  for (const params& kind : {params{.layout = "classic"}, params{.scheme = "python"}}) {
    SCOPED_TRACE(kind.layout + kind.scheme);
    experiment e = small_experiment(kind);
    e.lines = lines;

    const auto points = carry_out(e);

    const measured_point& last = points.back();
    EXPECT_GT(std::set<double>(last.rates.begin(), last.rates.end()).size(), 1u);
    // 10,000 queries in all.
    EXPECT_NEAR(last.mean, last.predicted, 6 * std::sqrt(last.predicted / 10'000));
  }
}

TEST(Experiment, TheListenerReceivesAllProgressAndCanCancel) {
  const experiment e = small_experiment({.layout = "split_block512"});
  std::uint64_t done = 0;

  carry_out(e, [&](std::uint64_t keys) { done += keys; });

  EXPECT_EQ(done, work_of(e));
  EXPECT_THROW(carry_out(e, [](std::uint64_t) { throw std::runtime_error("enough"); }), std::runtime_error);
}

TEST(Experiment, EachRunIsSeenWithWhatIsKnownSoFar) {
  experiment e = small_experiment({.layout = "split_block512"});
  e.threads = 3;
  std::vector<std::vector<measured_point>> seen;

  const auto points =
      carry_out(e, {}, [&](std::span<const measured_point> known) { seen.emplace_back(known.begin(), known.end()); });

  ASSERT_EQ(seen.size(), e.runs + 1);
  for (std::uint64_t runs = 0; runs <= e.runs; ++runs) {
    ASSERT_EQ(seen[runs].size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& rates = points[i].rates;
      EXPECT_EQ(seen[runs][i].predicted, points[i].predicted);
      EXPECT_EQ(seen[runs][i].rates,
                std::vector<double>(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(runs)));
    }
  }
  EXPECT_TRUE(same(seen.back(), points));
}

TEST(Experiment, QueriesGiveTheRequestedFalsePositives) {
  EXPECT_EQ(queries_for(0.01, 100), 10'000u);
  EXPECT_EQ(queries_for(0.03, 100), 3'334u);
  EXPECT_EQ(queries_for(1e-300, 100), std::uint64_t{1} << 62);
}

TEST(Axis, HasRoundTicksWithinItsEnds) {
  EXPECT_THAT(linear_axis(150, 8).ticks, ElementsAre(0, 20, 40, 60, 80, 100, 120, 140));
  EXPECT_THAT(linear_axis(1, 4).ticks, ElementsAre(0, 0.5, 1));
  EXPECT_EQ(linear_axis(200, 4).place(50), 0.25);
}

TEST(Axis, OfRatesIsLinearUnlessTheTargetWouldBeInvisible) {
  EXPECT_FALSE(rate_axis(0.06, 0.01, 5).logarithmic);
  EXPECT_FALSE(rate_axis(0.97, 0.01, 5).logarithmic);  // a filter that breaks
  const axis powers = rate_axis(1e-5, 1e-7, 9);
  EXPECT_TRUE(powers.logarithmic);
  EXPECT_EQ(powers.place(0), 0);
  EXPECT_NEAR(powers.place(1e-8) - powers.place(1e-9), powers.place(1e-5) - powers.place(1e-6), 1e-12);
  EXPECT_LT(rate_axis(1e-20, 1e-300, 5).ticks.size(), 10u);
}

TEST(TerminalChart, FitsTheTerminal) {
  const experiment e = small_experiment({.layout = "split_block512"});
  chart c{"title", "subtitle", 1000, 0.05, e.runs, {}, carry_out(e)};
  for (const measured_point& p : c.points) c.theory.push_back({p.keys, p.predicted});

  for (const unsigned columns : {40u, 80u, 100u}) {
    const std::string text = terminal_chart(c, {.columns = columns, .unicode = false});
    std::vector<std::size_t> widths;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) widths.push_back(text.find('\n', at) - at);
    EXPECT_THAT(widths, Each(Le(columns))) << text;
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char ch) { return ch == '\n' || (ch >= ' ' && ch <= '~'); }));
    EXPECT_THAT(text, HasSubstr("n = 1,000"));
  }
  EXPECT_EQ(terminal_chart(c, {.columns = 39}), "");
  EXPECT_THAT(terminal_chart(c, {.columns = 80, .color = true}), HasSubstr("\x1B["));
}

}  // namespace
}  // namespace bloomery::cli
