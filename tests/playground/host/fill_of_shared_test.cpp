// Fill ratios of shared filters of every kind, read while other clients fill or replace them: correct filters are never
// reported as uneven.
#include "playground/host/fill_of_shared.hpp"

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"

#include <bloomery/redis.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::redis_filter;
using bloomery::redis_growth;
using bloomery::redis_info;
using bloomery::redis_params;
using bloomery::redis_shard;
using namespace bloomery::playground;

class FillOfShared : public on_a_server<FillOfShared> {
 protected:
  struct told {
    explicit told(redis_filter& f) { info = f.info(&shards); }

    std::vector<redis_shard> shards;
    redis_info info;
  };

  static std::optional<fill_seen> read(redis_filter& f, const told& before) {
    return fill_of(f, before.info, before.shards, [](double) {});
  }
  static fill_seen read(redis_filter& f) { return read(f, told(f)).value(); }

  static redis_params of_shards(redis_params wanted, std::uint64_t shards) {
    wanted.shards = shards;
    return wanted;
  }

  // Nothing that was read is left out of what is expected, and the other way round.
  static void expect_all(const fill_seen& seen) {
    const auto& h = seen.by_blocks;
    ASSERT_FALSE(h.expected.empty());
    const auto blocks = static_cast<double>(std::accumulate(h.blocks.begin(), h.blocks.end(), std::uint64_t{0}));
    EXPECT_NEAR(std::accumulate(h.expected.begin(), h.expected.end(), 0.0), blocks, 1e-6 * blocks);
  }

  static void expect_even(const std::optional<fill_seen>& seen) {
    ASSERT_TRUE(seen);
    expect_all(*seen);
    EXPECT_GT(evenness(seen->by_blocks).value_or(0), least_chance);
  }
};

TEST_F(FillOfShared, OfManySmallShardsThatGrowIsEven) {
  for (const std::uint64_t of_shard : {50, 150, 1000}) {
    SCOPED_TRACE(of_shard);
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), of_shards(growing(1024 * of_shard), 1024));
    insert_all(f, keys_from(0, 300'000));

    expect_even(read(f));
  }
}

TEST_F(FillOfShared, IsExpectedFromWhatIsReadNotFromEarlierFacts) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(100'000), 4));
  insert_all(f, keys_from(0, 50'000));
  const told before(f);
  insert_all(f, keys_from(50'000, 25'000));

  expect_even(read(f, before));
}

TEST_F(FillOfShared, LeavesOutLayersThatCameMeanwhile) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(4000), 4));
  insert_all(f, keys_from(0, 3000));
  const told before(f);
  insert_all(f, keys_from(3000, 20'000));
  ASSERT_GT(f.info().layers, before.info.layers);

  const std::optional<fill_seen> seen = read(f, before);

  ASSERT_TRUE(seen);
  EXPECT_EQ(std::accumulate(seen->read.begin(), seen->read.end(), std::uint64_t{0}), before.info.bits);
}

TEST_F(FillOfShared, IsNotReadAfterTheFilterWasReplaced) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(4000), 4));
  insert_all(f, keys_from(0, 3000));
  const told before(f);
  f.replace(of_shards(growing(9000, 0.1), 2), [](redis_filter& fresh) { insert_all(fresh, keys_from(0, 6000)); });

  EXPECT_FALSE(read(f, before));
  expect_all(read(f));
}

TEST_F(FillOfShared, OfAGenerationThatHasBegunInSomeShardsIsEven) {
  redis_params wanted = of_shards(integers(1'400'000, 0.01), 512);
  const std::chrono::milliseconds part(1500);
  wanted.filter.extra = bloomery::window_of_time(7 * part);
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 100'000));
  std::this_thread::sleep_for(part);
  insert_all(f, keys_from(200'000, 300));
  const told now(f);
  const auto begun = [](const redis_shard& shard) { return shard.layers.size(); };
  const auto [fewest, most] = std::ranges::minmax(now.shards, {}, begun);
  ASSERT_LT(begun(fewest), begun(most));

  expect_even(read(f, now));
}

TEST_F(FillOfShared, HasNoExpectationForAFullLayer) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(4000), 2));
  insert_all(f, keys_from(0, 100));
  const std::string layer = server->shard("x", 1) + ":0";
  const auto bytes = static_cast<std::size_t>(server->command({"STRLEN", layer}).integer());
  server->command({"SETRANGE", layer, "0", std::string(bytes - 16, '\xff')});

  const fill_seen seen = read(f);

  EXPECT_TRUE(seen.by_blocks.expected.empty());
  EXPECT_EQ(evenness(seen.by_blocks), std::nullopt);
}

TEST_F(FillOfShared, OfAnEmptyOneIsCertain) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(40'000), 4));

  const fill_seen seen = read(f);

  expect_all(seen);
  EXPECT_EQ(evenness(seen.by_blocks), 1);
}

TEST_F(FillOfShared, FindsOneLineThatAnotherClientFilled) {
  redis_filter f = redis_filter::create(at("x"), of_shards(growing(1024 * 400), 1024));
  insert_all(f, keys_from(0, 200'000));
  server->command({"SETRANGE", server->shard("x", 700) + ":0", "128", std::string(64, '\xff')});

  EXPECT_LT(evenness(read(f).by_blocks).value_or(1), least_chance);
}

}  // namespace
}  // namespace bloomery_tests
