// Chains with several writers and failing connections: they grow once, at the right keys, and lose no key.
#include <bloomery/redis/chain.hpp>

#include "model/killed_writer.hpp"
#include "redis/chain/chain_fixture.hpp"
#include "redis/chain/chain_model.hpp"
#include "redis/fixtures.hpp"

#include <barrier>

namespace bloomery_tests {
namespace {

using bloomery::redis_chain;
using bloomery::redis_chain_params;

// ---- several writers ------------------------------------------------------------------------------------------------

// All threads begin their batches together: several find the newest bitmap half full before one of them grows the
// chain.
TEST_F(RedisChain, GrowsOnceIfManyThreadsFindItHalfFull) {
  const redis_chain_params tiny = {40, 0.01};
  redis_chain chain = redis_chain::create(at("filter"), tiny);
  constexpr std::uint32_t writers = 6, rounds = 40, batch = 12;
  const texts keys = md5_keys(writers * rounds * batch);
  const auto all_views = views(keys);
  std::barrier together(writers);
  in_threads(writers, [&](std::uint64_t w) {
    redis_chain mine = redis_chain::open(at("filter"));
    for (std::uint32_t round = 0; round < rounds; ++round) {
      together.arrive_and_wait();
      mine.insert(std::span(all_views).subspan((round * writers + w) * batch, batch));
    }
  });

  const texts all = bitmaps("filter", "filter-cursor");
  const std::uint64_t bits = chain.geometry().bits, probes = chain.geometry().probes;
  EXPECT_GT(all.size(), keys.size() / 160);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_GT(2 * ones_of(all[i]), bits) << "bitmap " << i << " was left early: the chain grew twice";
    EXPECT_LE(ones_of(all[i]), bits / 2 + 2 * writers * batch * probes) << "bitmap " << i << " was left late";
  }
  EXPECT_EQ(count_found(chain, keys), keys.size());
}

TEST_F(RedisChain, SharesTheCountOfBitsSoThatManyIdleWritersDoNotOverfill) {
  redis_chain chain = redis_chain::create(at("filter"), small);
  std::vector<redis_chain> writers;
  for (int i = 0; i < 100; ++i) writers.push_back(redis_chain::open(at("filter")));
  chain_model expected(small);

  // Each saw an empty bitmap first, and set a hundredth of the bits.
  const texts keys = md5_keys(700);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    writers[i % writers.size()].insert(keys[i]);
    expected.insert(keys[i]);
  }

  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

TEST_F(RedisChain, GrowsAtTheSameKeysForAnySharedCount) {
  const texts keys = md5_keys(900);
  const auto all = views(keys);
  const chain_model expected(small, keys);
  for (const char* wrong : {"0", "1", "100000", "-5", "9223372036854770000"}) {
    SCOPED_TRACE(wrong);
    server->command({"FLUSHALL"});
    redis_chain::create(at("filter"), small).insert(std::span(all).first(250));
    server->command({"HSET", "filter-bloomery", "ones:0", wrong, "ones:1", wrong});

    redis_chain chain = redis_chain::open(at("filter"));
    chain.insert(std::span(all).subspan(250));

    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  }
}

// ---- connections that fail ------------------------------------------------------------------------------------------

// Answers are lost every few kilobytes, so commands run twice, including those that grow the chain.
TEST_F(RedisChain, GrowsAtTheSameKeysWhenConnectionsAreCutAndCommandsRunTwice) {
  const texts keys = md5_keys(700);
  const chain_model expected(small, keys);
  ASSERT_GE(expected.grew_after().size(), 2u);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(network.address("filter"), small);

  std::mt19937_64 random(1);
  for (const std::string& key : keys) {
    if (random() % 3 == 0) network.cut_after_answers(static_cast<std::int64_t>(random() % 300));
    chain.insert(key);
  }

  EXPECT_GT(network.connections(), 100u);
  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

// A writer is killed anywhere, also between the steps of growth. Every acknowledged key is in, and the chain is
// complete.
TEST_F(RedisChain, KeepsKeysAcknowledgedToKilledWriters) {
  const redis_chain_params tiny = {40, 0.01};
  redis_chain chain = redis_chain::create(at("filter"), tiny);
  const texts keys = md5_keys(100'000);
  const auto all = views(keys);
  std::mt19937_64 random(1);
  std::size_t told = 0;
  for (int run = 0; run < 12; ++run) {
    const auto batches = static_cast<std::uint32_t>(keys.size() - told);
    const auto done = bloomery_model::killed_writer(
        batches, static_cast<std::uint32_t>(20 + random() % 60), false,
        [] { return std::make_unique<redis_chain>(redis_chain::open(at("filter"))); },
        [&](redis_chain& mine, std::uint32_t i) { mine.insert(keys[told + i]); }, [](redis_chain&) {});
    told += done.batches;
  }

  std::vector<std::uint64_t> found(told / 64 + 1);
  chain.may_contain(std::span(all).first(told), found);
  EXPECT_EQ(count_of(found), told);
  EXPECT_TRUE(chain.insert("one more"));
  const texts written = bitmaps("filter", "filter-cursor");
  EXPECT_GT(written.size(), 5u);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (i + 1 < written.size()) {
      EXPECT_GT(2 * ones_of(written[i]), chain.geometry().bits) << i;
    }
    EXPECT_LE(ones_of(written[i]), chain.geometry().bits / 2 + 2 * chain.geometry().probes) << i;
  }
}

}  // namespace
}  // namespace bloomery_tests
