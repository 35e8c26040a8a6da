// Failures of replicated servers: masters with replicas, nodes of a cluster, a master that a sentinel watches.
#include "faults/redis/cases.hpp"

#include "redis/cluster.hpp"
#include "redis/filters.hpp"
#include "redis/net/batch.hpp"
#include "redis/servers.hpp"

#include <algorithm>

namespace bloomery_tests {
namespace {

using bloomery::redis_filter;
using std::chrono::milliseconds;

// One for all rounds: it takes seconds to start.
test_cluster& shared_cluster() {
  static test_cluster cluster;
  return cluster;
}

crowds in_cluster(fault_round& round, unsigned wait_replicas) {
  const std::string suffix = std::to_string(round.random());
  return {round, all_kinds, [&](filter_kind kind) {
            crowd_options o;
            o.addresses = {shared_cluster().address(name_of(kind) + suffix)};
            o.params = params_of(kind, 3 + round.random() % 4);
            o.redis.wait_replicas = wait_replicas;
            return o;
          }};
}

std::uint16_t slot_of_some_shard(fault_round& round, const crowd& c) {
  test_cluster& cluster = shared_cluster();
  const std::string& name = c.options().addresses.front().name;
  const std::uint64_t shard = round.random() % c.options().params.shards;
  const std::size_t home = cluster.owner(bloomery::redis::slot_of("{" + name + "}:m"));
  return bloomery::redis::slot_of(cluster.node(home).shard(name, shard));
}

const crowd& some_of(fault_round& round, const crowds& all) { return *all.all[round.random() % all.all.size()]; }

void judge_and_drop(crowds& all) {
  all.judge();
  for (const auto& c : all.all) insist([&] { redis_filter::drop(c->options().addresses.front()); });
}

}  // namespace

void fail_over_in_a_cluster(fault_round& round) {
  test_cluster& cluster = shared_cluster();
  crowds all = in_cluster(round, 1);
  all.wait_for_keys(100);
  round.wait(50, 300);
  const std::uint16_t slot = slot_of_some_shard(round, some_of(round, all));
  const std::size_t master = cluster.owner(slot);
  all.wait_for_a_long_call();
  cluster.kill(master);
  cluster.wait_for_failover(slot, master);
  round.wait(0, 200);
  cluster.revive(master);
  all.wait_for_keys(50);
  judge_and_drop(all);
}

// The master has one replica, which takes over, and is then a replica of it.
void fail_over_by_a_sentinel(fault_round& round) {
  const std::vector<std::string> config = {"repl-diskless-sync yes", "repl-diskless-sync-delay 0"};
  test_server first({.tcp = true, .config = config});
  test_server second({.tcp = true, .config = config});
  const std::string port = std::to_string(first.port());
  second.command({"REPLICAOF", "127.0.0.1", port});
  test_server sentinel(
      {.tcp = true,
       .sentinel = true,
       .config = {"sentinel monitor main 127.0.0.1 " + port + " 1", "sentinel down-after-milliseconds main 500",
                  "sentinel failover-timeout main 3000"}});
  wait_until("the sentinel knows the replica", [&] {
    const auto replicas = sentinel.command({"SENTINEL", "REPLICAS", "main"});
    return replicas.reply().size() == 1 &&
           second.command({"INFO", "replication"}).text().find("master_link_status:up") != std::string::npos;
  });
  crowds all(round, all_kinds, [&](filter_kind kind) {
    crowd_options o;
    o.addresses = {sentinel.tcp_address(name_of(kind))};
    o.addresses.front().master = "main";
    o.params = params_of(kind, 1 + round.random() % 6);
    o.redis.wait_replicas = 1;
    return o;
  });
  all.wait_for_keys(100);
  round.wait(50, 300);
  all.wait_for_a_long_call();
  first.kill_hard();
  wait_until("the replica takes over", [&] {
    return second.command({"INFO", "replication"}).text().find("role:master") != std::string::npos;
  });
  first.config().push_back("replicaof 127.0.0.1 " + std::to_string(second.port()));
  first.restart();
  all.wait_for_keys(50);
  all.judge();
}

// To another node, key by key, and back.
void move_slots(fault_round& round) {
  test_cluster& cluster = shared_cluster();
  crowds all = in_cluster(round, 0);
  all.wait_for_keys(50);
  for (int i = 0; i < 4; ++i) {
    const std::uint16_t slot = slot_of_some_shard(round, some_of(round, all));
    const std::size_t home = cluster.owner(slot);
    std::vector<std::size_t> masters;
    for (const std::uint16_t some : std::initializer_list<std::uint16_t>{100, 5600, 11'000}) {
      const std::size_t node = cluster.owner(some);
      if (node != home) masters.push_back(node);
    }
    const auto linger = [&] { round.wait(1, 40); };
    cluster.move_slot(slot, masters[round.random() % masters.size()], linger);
    cluster.move_slot(slot, home, linger);
  }
  all.wait_for_keys(50);
  judge_and_drop(all);
}

}  // namespace bloomery_tests
