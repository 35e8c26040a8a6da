// The choice of a layout: the rule, recomputed from the sizes of all layouts, and the shortcut of complete(), which
// must agree.
#include <bloomery/advice.hpp>

#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/sizing.hpp>

#include "app/advice_text.hpp"
#include "support/test.hpp"

#include <chrono>
#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using app::reason_text;
using ::testing::StartsWith;

const std::vector<std::uint64_t> capacities = {1, 1000, 20'000, 1'000'000, 1'000'000'000'000};
const std::vector<double> rates = {0.5, 0.2, 0.1, 0.01, 5e-4, 1e-4, 1e-5, 1e-6};

struct size {
  std::string layout;
  geometry g;  // none: it cannot
};

template <class Layout>
size size_of(std::uint64_t n, double p) {
  try {
    return {std::string(Layout::name), Layout::geometry_for(n, p)};
  } catch (const error&) {
    return {std::string(Layout::name), {}};
  }
}

// In the order of time, as measured.
std::vector<size> sizes(std::uint64_t n, double p) {
  return {size_of<layouts::split_block>(n, p), size_of<layouts::split_block512>(n, p), size_of<layouts::blocked>(n, p),
          size_of<layouts::blocked_page>(n, p), size_of<layouts::classic>(n, p)};
}

// The rule in plain words and floating point.
std::string by_the_rule(const std::vector<size>& all, double share) {
  double best = std::numeric_limits<double>::infinity();
  for (const size& s : all) {
    if (s.g.bits != 0) best = std::min(best, static_cast<double>(s.g.bits));
  }
  for (const size& s : all) {
    const auto bits = static_cast<double>(s.g.bits);
    if (s.g.bits != 0 && (bits <= best * (1 + share) || bits <= best + 4096 * 8)) return s.layout;
  }
  return "";
}

TEST(Choice, IsTheFastestLayoutWithinTheAllowanceForEveryTarget) {
  for (const std::uint64_t n : capacities) {
    for (const double p : rates) {
      SCOPED_TRACE(std::to_string(n) + " keys at " + std::to_string(p));
      const std::vector<size> all = sizes(n, p);

      for (const auto& [prefer, share] :
           std::map<preference, double>{{preference::speed, 0.25}, {preference::memory, 0.03}}) {
        const params chosen = complete({.capacity = n, .target_fpr = p}, prefer);
        const std::vector<candidate> candidates = layout_candidates(n, p, prefer);

        EXPECT_EQ(chosen.layout, by_the_rule(all, share)) << name_of(prefer);
        EXPECT_EQ(complete(chosen), chosen);
        ASSERT_EQ(candidates.size(), all.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
          EXPECT_EQ(candidates[i].layout, all[i].layout);
          EXPECT_EQ(candidates[i].geometry, all[i].g);
          EXPECT_EQ(candidates[i].chosen, all[i].layout == chosen.layout);
          EXPECT_EQ(candidates[i].problem.has_value(), !candidates[i].possible());
          EXPECT_LE(candidates[i].rate, p);
          if (candidates[i].chosen) {
            EXPECT_EQ(candidates[i].geometry, chosen.geometry);
          }
        }
      }
    }
  }
}

// What the short cut rests on.
TEST(Choice, NoLayoutNeedsLessThanTheTextbook) {
  for (const std::uint64_t n : {1ull, 2ull, 3ull, 10ull, 333ull, 20'000ull, 10'000'000ull}) {
    for (double p = 0.99; p > 1e-7; p *= 0.6) {
      for (const size& s : sizes(n, p)) {
        if (s.g.bits == 0) continue;
        EXPECT_GE(static_cast<double>(s.g.bits), 0.999 * (static_cast<double>(textbook_bits(n, p)) - 1))
            << s.layout << ' ' << n << ' ' << p;
      }
    }
  }
}

TEST(Choice, AllowsAShareOrAPageWhicheverIsMore) {
  for (const std::uint64_t fewest : {1ull, 100ull, 131'071ull, 131'072ull, 1'000'000ull, 1'092'267ull, 1ull << 40}) {
    const auto exact = static_cast<double>(fewest);
    EXPECT_NEAR(static_cast<double>(most_bits(fewest, preference::speed)), exact + std::max(exact / 4, 32768.0), 1);
    EXPECT_NEAR(static_cast<double>(most_bits(fewest, preference::memory)), exact + std::max(exact * 0.03, 32768.0), 1);
  }
  EXPECT_EQ(most_bits(std::numeric_limits<std::uint64_t>::max(), preference::memory),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Choice, GivesAReasonForEveryLayout) {
  const std::vector<candidate> all = layout_candidates(1'000'000, 1e-3);

  EXPECT_EQ(all[0].why.ground, layout_ground::quickest);
  EXPECT_EQ(all[0].why.within, all.size());
  EXPECT_EQ(all[0].why.allowed_percent, 25u);
  EXPECT_EQ(all[0].why.than, "classic");
  EXPECT_NEAR(all[0].why.than_bits_per_key, 14.38, 0.005);
  const std::string layouts = std::to_string(all.size());
  EXPECT_EQ(reason_text(all[0]),
            "the fastest of " + layouts + " within 25% of the least memory (classic, 14.38 bits per key)");
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].why.ground, layout_ground::slower);
    EXPECT_EQ(reason_text(all[i]), "slower than split_block");
  }
  const std::vector<candidate> small = layout_candidates(1'000'000, 1e-6, preference::memory);
  EXPECT_EQ(small[0].why.ground, layout_ground::needs_more);
  EXPECT_DOUBLE_EQ(small[0].why.more, small[0].bits_per_key / small.back().bits_per_key - 1);
  EXPECT_EQ(reason_text(small[0]), "needs 125% more memory than classic");
  EXPECT_EQ(reason_text(small[3]), "the fastest of 2 within 3% of the least memory (classic, 28.76 bits per key)");
  EXPECT_EQ(reason_text(small.back()), "slower than blocked_page");
  const candidate tiny = layout_candidates(10, 0.01)[0];
  EXPECT_EQ(tiny.why.allowed_percent, 0u);
  EXPECT_THAT(reason_text(tiny), HasSubstr("the fastest of " + layouts + " within 4096 bytes of the least"));
}

TEST(Choice, LeavesOutLayoutsThatCannotKeepTheTarget) {
  const std::vector<candidate> all = layout_candidates(1'000'000'000'000, 1e-9);

  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_FALSE(all[i].possible() || all[i].within || all[i].chosen) << all[i].layout;
    EXPECT_EQ(all[i].why.ground, layout_ground::impossible);
    ASSERT_TRUE(all[i].problem);
    EXPECT_EQ(all[i].problem->code(), errc::too_large);
    EXPECT_THAT(reason_text(all[i]), HasSubstr(all[i].layout));
  }
  EXPECT_TRUE(all.back().chosen);
  EXPECT_EQ(all.back().why.ground, layout_ground::only_one);
  EXPECT_THAT(reason_text(all.back()), StartsWith("the only layout within 25% of the least memory (its own size)"));
  EXPECT_EQ(complete({.capacity = 1'000'000'000'000, .target_fpr = 1e-9}).layout, "classic");
}

TEST(Choice, OfNothingOrOfNoLayoutIsRefused) {
  const auto code = [](std::uint64_t n, double p) {
    try {
      complete({.capacity = n, .target_fpr = p});
    } catch (const error& e) {
      return e.code();
    }
    return errc::io;
  };
  EXPECT_EQ(code(0, 0.1), errc::invalid_argument);
  EXPECT_EQ(code(10, 0), errc::invalid_argument);
  EXPECT_EQ(code(10, 1), errc::invalid_argument);
  EXPECT_EQ(code(10, std::numeric_limits<double>::quiet_NaN()), errc::invalid_argument);
  EXPECT_EQ(code(1'000'000'000'000'000'000, 0.01), errc::too_large);
  EXPECT_THROW(layout_candidates(0, 0.1), error);
  for (const candidate& c : layout_candidates(1'000'000'000'000'000'000, 0.01)) {
    EXPECT_FALSE(c.chosen || c.possible()) << c.layout;
  }
}

TEST(Choice, OfAGeometryWithoutALayoutIsClassic) {
  const params p = complete({.geometry = {1001, 3}, .capacity = 100}, preference::speed);

  EXPECT_EQ(p.layout, "classic");
  EXPECT_EQ(p.geometry, (geometry{1001, 3}));
}

TEST(Choice, TakesWellUnderASecond) {
  const auto before = std::chrono::steady_clock::now();

  complete({.capacity = 1'000'000'000, .target_fpr = 1e-6});

  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
}

}  // namespace
}  // namespace bloomery
