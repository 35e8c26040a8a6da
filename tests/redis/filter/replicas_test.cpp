// A shared filter on a cluster whose replicas lag behind their masters. In tests/faults/redis, masters are killed and
// slots move.
#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

class RedisReplicasInACluster : public on_a_cluster<RedisReplicasInACluster> {
 protected:
  static std::uint16_t slot_of_shard(const std::string& name) {
    const std::string key = "{" + name + "}:m";
    return redis::slot_of(cluster->node(cluster->owner(redis::slot_of(key))).shard(name, 0));
  }
};

const redis_options of_replicas = {.connection = {.read_from_replicas = true}};

// Separates the replica of a slot from its master until the object is destroyed.
class replica_alone {
 public:
  replica_alone(test_cluster& cluster, std::uint16_t slot)
      : cluster_(cluster), replica_(cluster.node(cluster.replica_of(cluster.owner(slot)))) {
    sign_in("nobody", "wrong");
    cluster.node(cluster.owner(slot)).command({"CLIENT", "KILL", "TYPE", "replica"});
    wait_until("the replica is alone", [&] {
      return replica_.command({"INFO", "replication"}).text().find("master_link_status:down") != std::string::npos;
    });
  }
  ~replica_alone() {
    sign_in("", "");
    cluster_.wait_until_well();
  }

 private:
  void sign_in(const char* user, const char* password) {
    replica_.command({"CONFIG", "SET", "masteruser", user});
    replica_.command({"CONFIG", "SET", "masterauth", password});
  }

  test_cluster& cluster_;
  test_server& replica_;
};

TEST_F(RedisReplicasInACluster, AReplicaThatIsBehindIsNotDamage) {
  redis_params wanted = sharded(growing(100), 1);
  redis_filter f = redis_filter::create(cluster->address("behind"), wanted);
  insert_all(f, keys_from(0, 50));
  redis_filter g = redis_filter::open(cluster->address("behind"), of_replicas);
  EXPECT_LE(count_found(g, keys_from(0, 50)), 50u);
  wait_until("the replica has them", [&] { return count_found(g, keys_from(0, 50)) == 50; });
  const replica_alone guard(*cluster, slot_of_shard("behind"));

  insert_all(f, keys_from(0, 20'000));  // new layers, new stamps
  EXPECT_EQ(count_found(f, keys_from(0, 20'000)), 20'000u);
  EXPECT_EQ(code_of([&] { count_found(g, keys_from(0, 20'000)); }), std::nullopt);
  insert_all(g, keys_from(50'000, 5'000));  // this reads the new shard versions, which the replica lacks

  EXPECT_EQ(count_found(g, keys_from(0, 20'000)), 20'000u) << "then it asks the master";
  EXPECT_EQ(count_found(f, keys_from(50'000, 5'000)), 5'000u);
  redis_filter h = redis_filter::open(cluster->address("behind"), of_replicas);
  EXPECT_EQ(code_of([&] { count_found(h, keys_from(0, 50)); }), std::nullopt);
}

TEST_F(RedisReplicasInACluster, MergesAndCountsReadFromTheMaster) {
  redis_params wanted = sharded(integers(1000, 0.01), 1);
  redis_filter f = redis_filter::create(cluster->address("from"), wanted);
  redis_filter to = redis_filter::create(cluster->address("to"), wanted);
  redis_filter g = redis_filter::open(cluster->address("from"), of_replicas);
  insert_all(f, keys_from(0, 1));
  wait_until("the replica has it", [&] { return count_found(g, keys_from(0, 1)) == 1; });
  const replica_alone guard(*cluster, slot_of_shard("from"));
  insert_all(f, keys_from(1, 99));

  to.merge(g);

  EXPECT_EQ(count_found(to, keys_from(0, 100)), 100u);
  EXPECT_EQ(g.info().ones, f.info().ones);
}

TEST_F(RedisReplicasInACluster, KeysInsertedIntoBothAreOnReplicasOfBoth) {
  redis_params wanted = sharded(integers(1000, 0.01), 1);
  redis_options safe = {.connection = within(milliseconds(500)), .wait_replicas = 1};
  cluster->wait_until_well();
  redis_filter f = redis_filter::create(cluster->address("both"), wanted);
  redis_filter g = redis_filter::open(cluster->address("both"), safe);
  const std::size_t home = cluster->owner(slot_of_shard("both"));
  bool tried = false;
  // Its shards' names are random: until the new one has its own on a node that has nothing else of the filter.
  const std::size_t describing = cluster->owner(redis::slot_of("{both}:m"));
  for (int i = 0; i < 40 && !tried; ++i) {
    EXPECT_THROW(f.replace(wanted,
                           [&](redis_filter&) {
                             const std::string coming = test_server::shard_of(
                                 cluster->node(describing).command({"GET", "{both}:n"}).text(), 0);
                             const std::size_t there = cluster->owner(redis::slot_of(coming));
                             if (there != home && there != describing) {
                               tried = true;
                               insist([&] { g.insert(std::uint64_t{1}); });
                               test_server& replica = cluster->node(cluster->replica_of(there));
                               replica.freeze();
                               EXPECT_EQ(code_of([&] { g.insert(std::uint64_t{2}); }), errc::unavailable);
                               replica.thaw();
                             }
                             throw std::runtime_error("no database");
                           }),
                 std::runtime_error);
  }
  EXPECT_TRUE(tried);
  cluster->wait_until_well();
  insist([&] { g.insert(std::uint64_t{2}); });
}

}  // namespace
}  // namespace bloomery
