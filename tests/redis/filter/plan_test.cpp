// Plans of shared filters for all sizes, target FPRs and numbers of shards: each plan keeps its target by the exact
// formula, or is refused.
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/redis/plan.hpp>
#include <bloomery/sizing.hpp>

#include "redis/fixtures.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <cmath>
#include <limits>

namespace bloomery {
namespace {

constexpr std::uint64_t capacities[] = {1, 2, 99, 10'000, 3'000'000, 1'000'000'000, 1'000'000'000'000};
constexpr double rates_of_plans[] = {0.9, 0.5, 0.03, 0.01, 1e-6, 1e-9};

std::string text_of(const redis_params& p) {
  return p.filter.layout + " n=" + std::to_string(p.filter.capacity) + " p=" + std::to_string(p.filter.target_fpr) +
         " S=" + std::to_string(p.shards) + " maximum=" + std::to_string(p.maximum) +
         " growth=" + std::to_string(static_cast<int>(p.growth));
}

// The plan, if it is not refused for its size or rate.
std::optional<redis_plan> plan_of(const redis_params& wanted) {
  try {
    return plan_redis(wanted);
  } catch (const error& e) {
    EXPECT_TRUE(e.code() == errc::too_large || e.code() == errc::invalid_argument) << e.what();
    return std::nullopt;
  }
}

void expect_sound(const redis_plan& plan) {
  EXPECT_GE(plan.shards, 1u);
  EXPECT_LE(plan.shards, std::uint64_t{1} << 24);
  EXPECT_GE(plan.first.lines, 1u);
  EXPECT_GE(plan.first.probes, 1u);
  EXPECT_LE(plan.first.string_bytes(), std::uint64_t{512} << 20);
  EXPECT_EQ(plan.parameters.filter.geometry, plan.first.whole(plan.shards));
  EXPECT_GE(plan.memory_bytes, plan.shards * plan.first.string_bytes());
  EXPECT_GE(plan.full_memory_bytes, plan.memory_bytes);
}

TEST(RedisPlans, KeepTheirTargetForFixedSizes) {
  std::uint64_t made = 0;
  for (const char* layout : {"split_block512", "blocked", "counting"}) {
    for (const std::uint64_t capacity : capacities) {
      for (const double rate : rates_of_plans) {
        for (const std::uint64_t shards :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 24}) {
          redis_params wanted{.filter = {.layout = layout, .capacity = capacity, .target_fpr = rate}, .shards = shards};
          SCOPED_TRACE(text_of(wanted));
          const auto plan = plan_of(wanted);
          if (!plan) continue;

          ++made;
          expect_sound(*plan);
          EXPECT_LE(find_layout(layout)->expected_fpr(plan->parameters.filter.geometry, capacity), rate);
          if (capacity <= 1'000'000'000 && shards == 0) {
            EXPECT_EQ(plan_redis(plan->parameters).first.lines, plan->first.lines) << "planned again it is another";
          }
        }
      }
    }
  }
  EXPECT_GT(made, 250u);
}

TEST(RedisPlans, KeepTheirTargetOverAllLayers) {
  std::uint64_t made = 0;
  for (const char* layout : {"split_block512", "blocked"}) {
    const layout_row& row = *find_layout(layout);
    for (const std::uint64_t capacity : capacities) {
      for (const double rate : {0.5, 0.01, 1e-9}) {
        for (const std::uint64_t times : {0u, 1u, 1000u}) {
          for (const std::uint64_t shards : {0u, 1u, 64u}) {
            redis_params wanted{.filter = {.layout = layout, .capacity = capacity, .target_fpr = rate},
                                .shards = shards};
            wanted.growth = times == 0 ? redis_growth::unlimited : redis_growth::to_maximum;
            wanted.maximum = times * capacity;
            SCOPED_TRACE(text_of(wanted));
            const auto plan = plan_of(wanted);
            if (!plan) continue;
            ++made;
            expect_sound(*plan);
            std::vector<redis_layer> layers = {plan->first};
            double spent = 0;
            double keys = 0;
            std::optional<errc> end;
            while (!end && layers.size() < 100) {
              const redis_layer& newest = layers.back();
              ASSERT_GE(newest.capacity, 1u);
              ASSERT_LE(newest.string_bytes(), std::uint64_t{512} << 20);
              const geometry g{512 * newest.lines, newest.probes};
              const auto rate_at = [&](std::uint64_t n) { return row.expected_fpr(g, n); };
              spent += rate_at(estimate_distinct(newest.capacity, rate_at));
              keys += static_cast<double>(newest.capacity);
              end = bloomery_tests::code_of([&] { layers.push_back(next_layer(plan->parameters, layers)); });
            }

            EXPECT_EQ(end, errc::too_large);
            EXPECT_LE(spent, rate);
            if (times != 0) {
              EXPECT_EQ(layers.size(), plan->layers);
              // What is counted is what is certainly new: all keys but those that pass for others.
              EXPECT_GE(keys * static_cast<double>(plan->shards), static_cast<double>(wanted.maximum) * (1 - rate));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(made, 60u);
}

TEST(RedisPlans, HaveRoomForAllKeysInEachOfTwoGenerations) {
  for (const std::uint64_t capacity : capacities) {
    for (const double rate : rates_of_plans) {
      redis_params wanted{.filter = {.capacity = capacity, .target_fpr = rate}};
      SCOPED_TRACE(text_of(wanted));
      wanted.filter.extra = window_of_milliseconds(1);
      const auto plan = plan_of(wanted);
      if (!plan) continue;
      const auto rate_of = [&](std::uint64_t keys) {
        return find_layout("blocked")->expected_fpr(plan->parameters.filter.geometry, keys);
      };
      expect_sound(*plan);
      EXPECT_EQ(plan->layers, 8u);
      EXPECT_LE(2 * rate_of(capacity), rate);
      if (capacity >= 10'000) {
        EXPECT_GT(2 * rate_of(2 * capacity), rate) << "twice as large as needed";
      }
      // However the keys of two windows are spread over the generations.
      if (capacity >= 99) {
        EXPECT_LE(1 - std::pow(1 - rate_of((capacity + 3) / 4), 8), rate) << "evenly";
      }
    }
  }
}

TEST(RedisPlans, AreRefusedForInvalidParameters) {
  const auto refused = [](const redis_params& p) {
    const auto code = bloomery_tests::code_of([&] { plan_redis(p); });
    return code == errc::invalid_argument || code == errc::too_large;
  };
  redis_params good{.filter = {.capacity = 1000, .target_fpr = 0.01}};
  EXPECT_FALSE(refused(good));
  for (const window_length length : {window_of_keys(1000), window_of_milliseconds(0), window_of_milliseconds(~0ull)}) {
    redis_params bad = good;
    bad.filter.extra = length;
    EXPECT_TRUE(refused(bad)) << length.text();
  }
  for (const double rate : {0.0, -1.0, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), 1e-300}) {
    redis_params bad = good;
    bad.filter.target_fpr = rate;
    EXPECT_TRUE(refused(bad)) << rate;
  }
  for (const std::uint64_t capacity : {std::uint64_t{0}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    redis_params bad = good;
    bad.filter.capacity = capacity;
    EXPECT_TRUE(refused(bad)) << capacity;
    bad.growth = redis_growth::unlimited;
    EXPECT_TRUE(refused(bad)) << capacity;
  }
  redis_params bad = good;
  bad.growth = redis_growth::to_maximum;
  for (const std::uint64_t maximum :
       {std::uint64_t{0}, std::uint64_t{999}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    bad.maximum = maximum;
    EXPECT_TRUE(refused(bad)) << maximum;
  }
  bad = good;
  bad.shards = ~std::uint64_t{0};
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.filter.layout = "fuse8";
  EXPECT_TRUE(refused(bad));
}

TEST(RedisPlans, PredictTheLogBytesPerNewKey) {
  for (const char* layout : {"blocked", "split_block512", "counting"}) {
    SCOPED_TRACE(layout);
    bloomery_tests::test_server server({.config = {"appendonly yes", "appendfsync no"}});
    if (!server.is_there()) GTEST_SKIP() << bloomery_tests::test_server::how_to_get_one;
    redis_params wanted{.filter = {.layout = layout, .keys = key_kind::u64le, .capacity = 100'000, .target_fpr = 1e-4}};
    const redis_plan plan = plan_redis(wanted);
    redis_filter f = redis_filter::create(server.address("x"), wanted);
    const auto log_bytes = [&] {
      const std::string text(server.command({"INFO", "persistence"}).text());
      return std::stod(text.substr(text.find("aof_current_size:") + 17));
    };
    const double before = log_bytes();
    constexpr std::uint64_t keys = 50'000;
    bloomery_tests::insert_all(f, bloomery_tests::keys_from(0, keys));

    const double of_a_key = (log_bytes() - before) / keys;
    EXPECT_NEAR(of_a_key / plan.log_bytes_per_key, 1, 0.05) << of_a_key;  // names of strings, equal cells
  }
}

}  // namespace
}  // namespace bloomery
