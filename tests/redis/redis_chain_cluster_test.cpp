// The chain in a cluster, where each of its bitmaps has a slot of its own.
#include "redis/batch.hpp"
#include "redis/chain_model.hpp"
#include "redis/cluster.hpp"
#include "redis/fixtures.hpp"
#include "redis/servers.hpp"
#include "support/errors.hpp"

#include <bloomery/redis_chain.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::redis_chain;
using bloomery::redis::slot_of;

constexpr bloomery::redis_chain_params small = {300, 0.01};

class RedisChainCluster : public on_a_cluster<RedisChainCluster> {
 public:
  static cluster_options options() { return {.replicas = 0}; }

 protected:
  void SetUp() override {
    on_a_cluster::SetUp();
    if (cluster == nullptr) return;
    for (std::size_t i = 0; i < cluster->size(); ++i) cluster->node(i).command({"FLUSHALL"});
  }

  static test_server& owner_of(const std::string& key) { return cluster->node(cluster->owner(slot_of(key))); }

  static texts bitmaps(const std::string& name) {
    texts all;
    const int last = std::stoi(owner_of(name + "-cursor").command({"GET", name + "-cursor"}).text());
    for (int i = 0; i <= last; ++i) {
      const std::string key = name + "-" + std::to_string(i);
      all.push_back(owner_of(key).command({"GET", key}).text());
    }
    return all;
  }

  static std::int64_t keys_in_all() {
    std::int64_t keys = 0;
    for (std::size_t i = 0; i < cluster->size(); ++i) keys += cluster->node(i).command({"DBSIZE"}).integer();
    return keys;
  }
};

TEST_F(RedisChainCluster, HasTheBytesOfTheModelOnSeveralNodes) {
  const texts keys = md5_keys(2500);
  const auto all = views(keys);
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);

  redis_chain chain = redis_chain::create(cluster->address("seen"), small);
  for (std::size_t i = 0; i < 400; ++i) EXPECT_TRUE(chain.insert(keys[i]));
  chain.insert(std::span(all).subspan(400));

  EXPECT_EQ(bitmaps("seen"), expected.bitmaps());
  std::set<std::size_t> nodes;
  for (std::uint64_t i = 0; i <= chain.growths(); ++i)
    nodes.insert(cluster->owner(slot_of("seen-" + std::to_string(i))));
  EXPECT_EQ(nodes.size(), 3u);
  std::vector<std::uint64_t> found(keys.size() / 64 + 1);
  redis_chain::open(cluster->address("seen", 1)).may_contain(all, found);
  EXPECT_EQ(count_of(found), keys.size());
}

TEST_F(RedisChainCluster, GoesOnWhileItsSlotsMove) {
  const texts keys = md5_keys(900);
  const auto all = views(keys);
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
  redis_chain chain = redis_chain::create(cluster->address("moved"), small);
  std::size_t at = 0;
  const auto insert_some = [&] {
    const std::size_t n = std::min<std::size_t>(40, keys.size() - at);
    chain.insert(std::span(all).subspan(at, n));
    at += n;
    for (std::size_t i = 0; i < at; i += 17) EXPECT_TRUE(chain.may_contain(keys[i]));
  };
  while (chain.growths() == 0) insert_some();

  for (const char* key : {"moved-0", "moved-1", "moved-cursor", "moved-bloomery"}) {
    const std::uint16_t slot = slot_of(key);
    cluster->move_slot(slot, (cluster->owner(slot) + 1) % 3, insert_some);
    insert_some();
  }
  while (at < keys.size()) insert_some();

  EXPECT_EQ(bitmaps("moved"), expected.bitmaps());
}

TEST_F(RedisChainCluster, IsEmptiedEndedAndDroppedOnAllNodes) {
  redis_chain chain = redis_chain::create(cluster->address("gone"), small);
  chain.insert(views(md5_keys(1500)));
  ASSERT_GE(chain.growths(), 4u);
  chain.expire(std::chrono::hours(1));
  for (std::uint64_t i = 0; i <= chain.growths(); ++i) {
    const std::string key = "gone-" + std::to_string(i);
    EXPECT_GT(owner_of(key).command({"PTTL", key}).integer(), 3'500'000) << key;
  }
  EXPECT_EQ(chain.info().ones.size(), chain.growths() + 1);

  chain.reset();
  EXPECT_EQ(keys_in_all(), 3);
  EXPECT_EQ(chain.growths(), 0u);

  chain.insert(views(md5_keys(1500)));
  chain.drop();
  EXPECT_EQ(keys_in_all(), 0);
}

}  // namespace
}  // namespace bloomery_tests
