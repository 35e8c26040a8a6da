// The chain in a cluster, where each bitmap has its own slot.
#include <bloomery/redis/chain.hpp>

#include "redis/chain/chain_model.hpp"
#include "redis/fixtures.hpp"
#include "redis/net/batch.hpp"

namespace bloomery_tests {
namespace {

using bloomery::redis_chain;
using bloomery::redis::slot_of;

constexpr bloomery::redis_chain_params cluster_params = {300, 0.01};

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

  template <class IsRight>
  static std::string name_where(IsRight is_right) {
    for (int i = 0;; ++i) {
      if (const std::string tried = "name" + std::to_string(i); is_right(tried)) return tried;
    }
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
  const chain_model expected(cluster_params, keys);

  redis_chain chain = redis_chain::create(cluster->address("seen"), cluster_params);
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
  const chain_model expected(cluster_params, keys);
  redis_chain chain = redis_chain::create(cluster->address("moved"), cluster_params);
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

TEST_F(RedisChainCluster, IsDamagedWhenTheNodeOfTheCursorComesBackEmpty) {
  const std::string name = name_where([](const std::string& tried) {
    const auto elsewhere = [&](const char* what) { return &owner_of(tried + what) != &owner_of(tried + "-cursor"); };
    return elsewhere("-0") && elsewhere("-1") && elsewhere("-bloomery");
  });
  const texts keys = md5_keys(1500);
  redis_chain chain = redis_chain::create(cluster->address(name), cluster_params);
  chain.insert(views(keys));
  ASSERT_GE(chain.growths(), 4u);
  owner_of(name + "-cursor").command({"FLUSHALL"});

  EXPECT_EQ(code_of([&] { chain.may_contain(keys[0]); }), bloomery::errc::damaged);
  EXPECT_EQ(code_of([&] { redis_chain::open(cluster->address(name)); }), bloomery::errc::damaged);
}

// Also if all initial keys of a chain are on that node.
TEST_F(RedisChainCluster, IsNotMadeWhereItsAddressIsThatOfOneServer) {
  const std::string name = name_where([](const std::string& tried) {
    const auto here = [&](const char* what) { return &owner_of(tried + what) == &cluster->node(0); };
    return here("-0") && here("-cursor") && here("-bloomery");
  });
  bloomery::redis_address single = cluster->address(name, 1);
  single.cluster = false;

  const auto thrown = error_of([&] { redis_chain::create(single, cluster_params); });

  ASSERT_TRUE(thrown.has_value());
  EXPECT_EQ(thrown->code(), bloomery::errc::invalid_argument);
  EXPECT_NE(thrown->text().hint.words().find("redis+cluster://"), std::string::npos);
  EXPECT_EQ(keys_in_all(), 0);
}

TEST_F(RedisChainCluster, IsEmptiedEndedAndDroppedOnAllNodes) {
  redis_chain chain = redis_chain::create(cluster->address("gone"), cluster_params);
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
