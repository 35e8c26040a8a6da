// The router with a cluster: moving slots and failing masters.
#include "redis/fixtures.hpp"
#include "redis/net/router.hpp"

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis::batch;
using bloomery::redis::mode;
using bloomery::redis::reply;
using bloomery::redis::router;
using bloomery::redis::script;
using bloomery::redis::slot_of;

class Cluster : public on_a_cluster<Cluster> {};

std::string key_of(int i) { return "{" + std::to_string(i) + "}:k"; }

TEST_F(Cluster, FindsTheNodesOfAllSlotsFromOneSeed) {
  router r(cluster->address("f", 1), {});
  batch b;
  for (int i = 0; i < 3000; ++i) {
    b.begin(slot_of(key_of(i)), mode::write);
    b.command({"SET", key_of(i), std::to_string(i)});
    b.command({"GET", key_of(i)});
  }
  std::vector<int> told(3000);

  r.run(b, [&](std::size_t g, const reply& first) {
    ++told[g];
    EXPECT_EQ(first.text(), "OK");
    EXPECT_EQ(first.next().text(), std::to_string(g));
  });

  EXPECT_EQ(told, std::vector<int>(3000, 1));
  std::int64_t keys = 0;
  for (const auto& n : r.run_on_nodes({"DBSIZE"})) keys += n.reply().integer();
  EXPECT_GE(keys, 3000);
  EXPECT_EQ(r.run_on_nodes({"PING"}).size(), 3U);
  EXPECT_EQ(r.run_on_nodes({"PING"}, true).size(), 6U);
  EXPECT_EQ(r.wait_for_replicas(1, std::chrono::seconds(5)), 1U);
}

// Some keys of the slot are on the old node, some on the new node; the wrong node would reply that a key is empty.
TEST_F(Cluster, RunsGroupsInOrderWhileTheirSlotMoves) {
  const std::uint16_t slot = slot_of("{order}");
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) keys.push_back("{order}:" + std::to_string(i));
  for (const mode m : {mode::write, mode::once}) {
    router r(cluster->address(), {});
    batch set;
    set.begin(slot, mode::write);
    for (const std::string& k : keys) set.command({"SET", k, "0"});
    r.run(set, [](std::size_t, const reply&) {});
    std::int64_t turn = 0;
    // Each command of a group must find what the one before it left.
    const auto one_turn = [&] {
      batch b;
      b.begin(slot, m);
      for (const std::string& k : keys) b.command({"GET", k});
      for (const std::string& k : keys) b.command({"SET", k, std::to_string(turn + 1)});
      for (const std::string& k : keys) b.command({"GET", k});
      int told = 0;
      r.run(b, [&](std::size_t, const reply& first) {
        ++told;
        reply x = first;
        for (std::size_t i = 0; i < keys.size(); ++i, x = x.next()) {
          EXPECT_TRUE(x.text() == std::to_string(turn) || (m == mode::write && x.text() == std::to_string(turn + 1)))
              << "key " << i << " had " << x.text() << " in turn " << turn;
        }
        for (std::size_t i = 0; i < keys.size(); ++i, x = x.next()) EXPECT_EQ(x.text(), "OK");
        for (std::size_t i = 0; i < keys.size(); ++i, x = x.next()) EXPECT_EQ(x.text(), std::to_string(turn + 1));
      });
      EXPECT_EQ(told, 1);
      ++turn;
    };
    one_turn();

    cluster->move_slot(slot, (cluster->owner(slot) + 1) % 3, one_turn);
    one_turn();

    EXPECT_EQ(turn, 15);
  }
}

TEST_F(Cluster, CountsRightlyWhileSlotsMoveUnderLoad) {
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back("{load}:" + std::to_string(i));
  const std::uint16_t slot = slot_of("{load}");
  std::int64_t turns = 0;
  router r(cluster->address(), {});
  const script add{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};
  // Of both keys, and while one has moved and the other has not, of neither.
  const script both{"redis.call('INCRBY', KEYS[1], 1000000) redis.call('INCRBY', KEYS[2], 1000000)"};
  background writer([&] {
    batch b;
    b.begin(slot, mode::once);
    b.start_script(both, 2, 0);
    b.word(keys[0]);
    b.word(keys[1]);
    for (const std::string& k : keys) {
      b.begin(slot, mode::once);
      b.command({"INCR", k});
      b.begin(slot, mode::once);
      b.start_script(add, 1, 1);
      b.word(k);
      b.word(std::uint64_t{1000});
    }
    int told = 0;
    EXPECT_NO_THROW(r.run(b, [&](std::size_t, const reply& first) {
      EXPECT_FALSE(first.is_error()) << first.text();
      ++told;
    }));
    EXPECT_EQ(told, 17);
    ++turns;
  });

  for (int i = 0; i < 12; ++i) cluster->move_slot(slot, (cluster->owner(slot) + 1) % 3);
  writer.end();

  EXPECT_GT(turns, 0);
  batch b;
  b.begin(slot, mode::read);
  for (const std::string& k : keys) b.command({"GET", k});
  r.run(b, [&](std::size_t, reply x) {
    for (std::size_t i = 0; i < keys.size(); ++i, x = x.next()) {
      EXPECT_EQ(x.text(), std::to_string((i < 2 ? 1001001 : 1001) * turns));
    }
  });
}

TEST_F(Cluster, ReadsFromReplicasIfThatIsWanted) {
  router r(cluster->address(), {.read_from_replicas = true});
  batch set;
  set.begin(slot_of("{rep}"), mode::write);
  set.command({"SET", "{rep}", "there"});
  r.run(set, [](std::size_t, const reply&) {});
  ASSERT_EQ(r.wait_for_replicas(1, std::chrono::seconds(5)), 1U);
  const std::size_t master = cluster->owner(slot_of("{rep}"));
  cluster->node(master).command({"CONFIG", "RESETSTAT"});
  batch get;
  for (int i = 0; i < 50; ++i) {
    get.begin(slot_of("{rep}"), mode::read);
    get.command({"GETRANGE", "{rep}", "0", "-1"});
  }

  r.run(get, [](std::size_t, const reply& first) { EXPECT_EQ(first.text(), "there"); });

  EXPECT_EQ(cluster->node(master).command({"INFO", "commandstats"}).text().find("getrange"), std::string::npos);
}

TEST_F(Cluster, LeavesAMasterThatIsSilentWhenItsReplicaHasTakenOver) {
  const std::uint16_t slot = slot_of("{silent}");
  const std::size_t victim = cluster->owner(slot);
  router r(cluster->address("f", 6), {});
  batch b;
  b.begin(slot, mode::write);
  b.command({"SET", "{silent}", "x"});
  const auto nothing = [](std::size_t, const reply& first) { EXPECT_EQ(first.text(), "OK"); };
  r.run(b, nothing);

  cluster->node(victim).freeze();
  EXPECT_NO_THROW(r.run(b, nothing));
  cluster->node(victim).thaw();

  cluster->wait_for_failover(slot, victim);
  cluster->wait_until_well();
}

TEST_F(Cluster, CountsRightlyWhileMastersAndReplicasChangePlaces) {
  const std::uint16_t slot = slot_of("{places}");
  router r(cluster->address("f", 6), {});
  std::int64_t turns = 0;
  std::atomic<std::int64_t> seen = 0;
  background writer([&] {
    batch b;
    for (int i = 0; i < 50; ++i) {
      b.begin(slot, mode::once);
      b.command({"INCR", "{places}:" + std::to_string(i)});
      b.begin(slot, mode::once);
      b.command({"INCR", "{places}:" + std::to_string(i)});
      b.command({"INCR", "{places}:" + std::to_string(i)});
    }
    EXPECT_NO_THROW(r.run(b, [](std::size_t, const reply& first) { EXPECT_FALSE(first.is_error()) << first.text(); }));
    seen = ++turns;
  });

  for (int change = 0; change < 2; ++change) {
    const std::int64_t then = seen;
    wait_until("some turns", [&] { return seen > then + 3; });
    cluster->fail_over(slot);
    cluster->wait_until_well();
  }
  writer.end();

  batch b;
  b.begin(slot, mode::read);
  for (int i = 0; i < 50; ++i) b.command({"GET", "{places}:" + std::to_string(i)});
  r.run(b, [&](std::size_t, reply x) {
    for (int i = 0; i < 50; ++i, x = x.next()) EXPECT_EQ(x.text(), std::to_string(3 * turns));
  });
}

TEST_F(Cluster, WaitsForSlotsWithoutOwnerUntilTheyReturnOrTheTimeIsOver) {
  const std::uint16_t slot = slot_of("{gone}");
  router hasty(cluster->address("f", 6), within(std::chrono::milliseconds(300)));
  router patient(cluster->address("f", 6), within(std::chrono::seconds(20)));
  batch b;
  b.begin(slot, mode::write);
  b.command({"SET", "{gone}", "x"});
  const auto good = [](std::size_t, const reply& first) { EXPECT_EQ(first.text(), "OK"); };
  hasty.run(b, good);
  patient.run(b, good);
  const std::size_t master = cluster->owner(slot);
  const std::size_t replica = cluster->replica_of(master);

  cluster->kill(replica);
  cluster->kill(master);
  const auto thrown = error_of([&] { hasty.run(b, good); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::unavailable);
  std::atomic<bool> done = false;
  std::thread waiting([&] {
    EXPECT_NO_THROW(patient.run(b, good));
    done = true;
  });
  wait_until("the others notice", [&] {
    const std::size_t other = master == 0 || replica == 0 ? (master == 1 || replica == 1 ? 2 : 1) : 0;
    return cluster->node(other).command({"CLUSTER", "INFO"}).text().find("cluster_state:fail") != std::string::npos;
  });
  EXPECT_FALSE(done);
  cluster->node(replica).restart();
  cluster->node(master).restart();
  waiting.join();
  cluster->wait_until_well();
}

class LonelyCluster : public with_own_servers {};

// All that an address can ask of a cluster's node: TLS, a password, and a map without hosts.
TEST_F(LonelyCluster, SpeaksTlsWithAPasswordAndNamesNoHost) {
  test_server server({.tls = true,
                      .config = {"requirepass pw", "cluster-enabled yes", "tls-cluster yes", "tls-auth-clients no",
                                 "cluster-preferred-endpoint-type unknown-endpoint"}});
  server.sign_in("pw");
  ASSERT_EQ(server.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}).text(), "OK");
  bloomery::redis_address a = server.tcp_address();
  a.cluster = true;
  a.password = "pw";
  a.endpoints[0].host = "localhost";
  const bloomery::redis_connection_options options = {.certificate_authorities = server.file("ca.crt")};
  router r(a, options);
  batch b;
  for (int i = 0; i < 100; ++i) {
    b.begin(slot_of(key_of(i)), mode::write);
    b.command({"SET", key_of(i), "x"});
  }
  int told = 0;

  r.run(b, [&](std::size_t, const reply& first) { told += first.text() == "OK" ? 1 : 0; });

  EXPECT_EQ(told, 100);
  EXPECT_EQ(r.run_on_nodes({"PING"}).front().node, "localhost:" + std::to_string(server.port()));
  a.password = "wrong";
  EXPECT_EQ(code_of([&] { router(a, options).run_on_nodes({"PING"}); }), errc::not_permitted);
  a.password.clear();
  EXPECT_EQ(code_of([&] { router(a, options).run_on_nodes({"PING"}); }), errc::not_permitted);
}

TEST_F(Cluster, ReportsMixUpsOfServersAndClusters) {
  const auto as_one = error_of([&] {
    router r(cluster->node(0).tcp_address(), {});
    batch b;
    for (int i = 0; i < 10; ++i) {
      b.begin(slot_of(key_of(i)), mode::read);
      b.command({"GET", key_of(i)});
    }
    r.run(b, [](std::size_t, const reply&) {});
  });
  test_server lonely({.tcp = true});
  bloomery::redis_address wrong = lonely.tcp_address();
  wrong.cluster = true;
  const auto as_cluster = error_of([&] { router(wrong, {}).run_on_nodes({"PING"}); });

  ASSERT_TRUE(as_one && as_cluster);
  EXPECT_EQ(as_one->code(), errc::invalid_argument);
  EXPECT_NE(as_one->text().hint.words().find("redis+cluster://"), std::string::npos);
  EXPECT_EQ(as_cluster->code(), errc::invalid_argument);
  EXPECT_NE(as_cluster->text().hint.words().find("redis://"), std::string::npos);
}

}  // namespace
}  // namespace bloomery_tests
