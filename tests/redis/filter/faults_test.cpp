// Lost connections, killed clients and refusing servers: a shared filter on one server keeps every acknowledged key.
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/faults.hpp"
#include "redis/filters.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"
#include "support/long_tests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// ---- counts and lost connections ------------------------------------------------------------------------------------

std::uint64_t counted(test_server& server, const std::string& name, std::uint64_t shards) {
  std::uint64_t sum = 0;
  for (std::uint64_t s = 0; s < shards; ++s) {
    sum += std::stoull(server.command({"HGET", server.shard(name, s) + ":h", "count"}).text());
  }
  return sum;
}

TEST_F(RedisFaults, ALayerIsNotOverfilledWhenAnswersAreLost) {
  redis_params wanted = growing(1000);
  wanted.shards = 2;
  redis_filter::create(at("x"), wanted);
  proxy net(server->socket());
  redis_address through = at("x");
  through.socket.clear();
  through.endpoints = {{"127.0.0.1", net.port()}};
  std::mt19937_64 random(1);
  std::uint64_t count = 0;
  {
    redis_filter f = redis_filter::open(through);
    for (int i = 0; i < 40; ++i) {
      net.cut_after_answers(static_cast<std::int64_t>(random() % 12'000));
      insist([&] { insert_all(f, keys_from(count, 100)); });
      count += 100;
      net.cut_after_answers(-1);
      ASSERT_EQ(count_found(f, keys_from(0, count)), count);
    }
  }

  EXPECT_GE(static_cast<double>(counted(*server, "x", 2)), static_cast<double>(count) * 0.98);
  redis_filter f = redis_filter::open(at("x"));
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_GT(net.connections(), 10u);
}

TEST_F(RedisFaults, RoomThatWasReservedIsGivenBackByWhoGoes) {
  redis_params wanted = growing(100'000);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  f.insert(std::uint64_t{1});
  EXPECT_GT(counted(*server, "x", 1), 1u) << "room is reserved for more than one key, or this tests nothing";
  EXPECT_EQ(f.card().value, 1.0);

  f = redis_filter::open(at("x"));
  EXPECT_EQ(counted(*server, "x", 1), 1u) << "when another takes its place";

  f.insert(std::uint64_t{2});
  redis_filter g = redis_filter::open(at("x"));
  EXPECT_EQ(code_of([&] { g.replace(wanted, [](redis_filter&) {
                            throw error(errc::io, {"x", "", "", "", ""});
                          }); }),
            errc::io);
  f.insert(std::uint64_t{3});  // the marks change the shard version
  f = redis_filter::open(at("x"));
  EXPECT_EQ(counted(*server, "x", 1), 3u) << "when the filter was marked and is not any more";

  {
    std::vector<redis_filter> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(redis_filter::open(at("x")));
    g.replace(wanted, [&](redis_filter&) {
      for (std::uint64_t i = 0; i < 10; ++i) clients[static_cast<std::size_t>(i)].insert(i);
      clients.pop_back();
    });
    for (redis_filter& c : clients) c.may_contain(std::uint64_t{1} << 40);  // so it switches to the new layer
  }
  EXPECT_EQ(g.info().inserted, 10u) << "when it was reserved in a filter that was still to come";
}

TEST_F(RedisFaults, RoomInALayerThatOthersHaveClosedIsNotGivenBack) {
  redis_params wanted = growing(10'000);
  wanted.shards = 1;
  std::uint64_t before = 0;
  {
    redis_filter f = redis_filter::create(at("x"), wanted);
    f.insert(std::uint64_t{1});
    redis_filter::create(at("x"), wanted).insert(std::uint64_t{2});
    ASSERT_GT(counted(*server, "x", 1), 2u);
    redis_filter g = redis_filter::open(at("x"));
    insert_all(g, keys_from(100, 11'000));
    ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text(), "0,1");
    g = redis_filter::open(at("x"));  // the reservation of the old handle is released
    before = counted(*server, "x", 1);
  }

  EXPECT_EQ(counted(*server, "x", 1), before) << "the newest layer would be overfilled";
}

TEST_F(RedisFaults, AFilterThatGoesWaitsForNoServerThatStandsStill) {
  auto f = std::make_unique<redis_filter>(redis_filter::create(at("x"), growing(1'000'000)));
  f->insert(std::uint64_t{1});
  server->freeze();
  const auto begin = steady_clock::now();

  f.reset();

  const auto took = steady_clock::now() - begin;
  server->thaw();
  EXPECT_LT(took, redis_connection_options{}.time / 2) << "that of a call, which it is not to wait for";
}

TEST_F(RedisFaults, OnlyInAsManyReplicasAsWantedIsAKeyAcknowledgedThatWasThereAlready) {
  test_server replica;
  test_server master({.tcp = true, .config = {"repl-diskless-sync-delay 0"}});
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  wait_until("the replica follows", [&] {
    return replica.command({"INFO", "replication"}).text().find("master_link_status:up") != std::string::npos;
  });
  redis_filter f = redis_filter::create(master.address("x"), growing(1000));
  replica.freeze();
  f.insert(std::uint64_t{1});
  redis_options safe;
  safe.wait_replicas = 1;
  safe.connection.time = milliseconds(400);
  redis_filter g = redis_filter::open(master.address("x"), safe);

  const auto code = code_of([&] { g.insert(std::uint64_t{1}); });
  replica.thaw();

  EXPECT_EQ(code, errc::unavailable) << "it is on the master alone";
  insist([&] { g.insert(std::uint64_t{1}); });
  redis_options quick;
  quick.connection.time = milliseconds(300);
  redis_filter of_replica = redis_filter::open(replica.address("x"), quick);
  EXPECT_TRUE(of_replica.may_contain(std::uint64_t{1}));
  EXPECT_EQ(code_of([&] { of_replica.insert(std::uint64_t{2}); }), errc::unavailable) << "a replica takes no writes";
  redis_options too_many;
  too_many.wait_replicas = 2;
  too_many.connection.time = milliseconds(800);
  redis_filter h = redis_filter::open(master.address("x"), too_many);
  const auto few = error_of([&] { h.insert(std::uint64_t{3}); });
  ASSERT_TRUE(few.has_value());
  EXPECT_EQ(few->code(), errc::unavailable);
  EXPECT_EQ(few->text().expected, "2");
  EXPECT_EQ(few->text().found, "1");
}

// ---- processes that die ---------------------------------------------------------------------------------------------

TEST_F(RedisFaults, AServerWithALogLosesNothingAcknowledgedWhenKilled) {
  test_server safe({.append_only = true});
  redis_params wanted = growing(200);
  wanted.shards = 2;
  redis_filter::create(safe.address("x"), wanted);
  std::atomic<std::uint64_t> acknowledged = 0;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    redis_filter f = redis_filter::open(safe.address("x"));
    for (std::uint64_t i = 0; !done; i += 50) {
      insist([&] { insert_all(f, keys_from(i, 50)); });
      acknowledged = i + 50;
    }
  });
  for (int round = 0; round < (is_long() ? 30 : 3); ++round) {
    const std::uint64_t before = acknowledged;
    wait_until("some inserts", [&] { return acknowledged >= before + 300; });
    safe.kill_hard();
    safe.restart();
    redis_filter f = redis_filter::open(safe.address("x"));
    const std::uint64_t count = acknowledged;
    EXPECT_EQ(count_found(f, keys_from(0, count)), count);
  }
  done = true;
  writer.join();
  redis_filter f = redis_filter::open(safe.address("x"));
  EXPECT_EQ(count_found(f, keys_from(0, acknowledged)), acknowledged);
  EXPECT_LE(f.info().rate_now, 0.01);
}

TEST_F(RedisFaults, ClientsMayBeKilledAtAnyMoment) {
  redis_params wanted = growing(50);
  wanted.shards = 2;
  redis_filter::create(at("x"), wanted);
  auto* const acknowledged = static_cast<std::atomic<std::uint64_t>*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(acknowledged), MAP_FAILED);
  std::mt19937_64 random(5);
  constexpr std::uint64_t apart = 1'000'000;
  std::vector<std::uint64_t> counts;
  const int rounds = is_long() ? 100 : 10;
  for (int round = 0; round < rounds; ++round) {
    *acknowledged = 0;
    const auto first = static_cast<std::uint64_t>(round) * apart;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        redis_filter f = redis_filter::open(at("x"));
        for (std::uint64_t i = 0; i < apart; i += 20) {
          insert_all(f, keys_from(first + i, 20));
          *acknowledged = i + 20;
        }
      } catch (...) {
      }
      ::_exit(1);
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(2000 + random() % 60'000));  // it is killed at a random moment
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    counts.push_back(*acknowledged);
  }
  ::munmap(acknowledged, 4096);

  redis_filter f = redis_filter::open(at("x"));
  std::uint64_t sum = 0;
  for (std::size_t round = 0; round < counts.size(); ++round) {
    EXPECT_EQ(count_found(f, keys_from(round * apart, counts[round])), counts[round]) << round;
    sum += counts[round];
  }
  EXPECT_GT(sum, 500u);
  EXPECT_GE(static_cast<double>(counted(*server, "x", 2)), static_cast<double>(sum) * 0.98);
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_LE(static_cast<double>(count_found(f, keys_from(std::uint64_t{1} << 40, 50'000))), most_hits(0.01, 50'000));
}

TEST_F(RedisFaults, EightWritersAndFourReadersAndNotALayerTooMany) {
  const std::uint64_t all = is_long() ? 1'000'000 : 100'000;
  redis_params wanted = growing(100);
  wanted.shards = 4;
  redis_filter alone = redis_filter::create(at("alone"), wanted);
  insert_all(alone, keys_from(0, all));
  redis_filter::create(at("x"), wanted);
  constexpr std::uint64_t writers = 8;
  const std::uint64_t each = all / writers;
  std::vector<std::atomic<std::uint64_t>> acknowledged(writers);
  std::atomic<std::uint64_t> missing = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (std::uint64_t w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      redis_filter f = redis_filter::open(at("x"));
      std::mt19937_64 random(w);
      for (std::uint64_t i = 0; i < each;) {
        const std::uint64_t count = std::min<std::uint64_t>(1 + random() % 1000, each - i);
        insert_all(f, keys_from(w * each + i, count));
        i += count;
        acknowledged[w] = i;
      }
    });
  }
  std::vector<std::thread> readers;
  for (int r = 0; r < 4; ++r) {
    readers.emplace_back([&, r] {
      redis_filter f = redis_filter::open(at("x"));
      std::mt19937_64 random(static_cast<std::uint64_t>(r));
      while (!done) {
        const std::uint64_t w = random() % writers;
        const std::uint64_t count = acknowledged[w];
        const std::uint64_t some = std::min<std::uint64_t>(count, 500);  // the last ones
        missing += some - count_found(f, keys_from(w * each + count - some, some));
      }
    });
  }
  for (auto& t : threads) t.join();
  done = true;
  for (auto& t : readers) t.join();

  EXPECT_EQ(missing, 0u);
  redis_filter f = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(f, keys_from(0, all)), all);
  EXPECT_LE(f.info().layers, alone.info().layers + 1);
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_LE(static_cast<double>(count_found(f, keys_from(std::uint64_t{1} << 40, 50'000))), most_hits(0.01, 50'000));
}

TEST_F(RedisFaults, AFilterTakesAsManyKeysAsWereDeclared) {
  for (const std::uint64_t maximum : {1000u, 3000u}) {
    for (const double rate : {0.1, 0.01, 1e-6}) {
      for (std::uint64_t attempt = 0; attempt < 6; ++attempt) {
        redis_params wanted = integers(1, rate);
        wanted.growth = redis_growth::to_maximum;
        wanted.maximum = maximum;
        wanted.filter.seed = attempt;
        wanted.shards = 1;
        redis_filter f = redis_filter::create(at(std::to_string(rate) + std::to_string(maximum + attempt)), wanted);
        const auto keys = keys_from(attempt << 32, maximum);
        EXPECT_EQ(code_of([&] { insert_all(f, keys); }), std::nullopt) << maximum << " at " << rate;
        EXPECT_EQ(count_found(f, keys), maximum);
        EXPECT_LE(f.info().rate_now, 1.1 * rate) << "as estimated from the bits";
      }
    }
  }
}

// ---- servers that refuse --------------------------------------------------------------------------------------------

TEST_F(RedisFaults, ScriptsMayBeForgottenByTheServer) {
  redis_params wanted = growing(10);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  for (std::uint64_t i = 0; i < 20; ++i) {
    server->command({"SCRIPT", "FLUSH"});
    insert_all(f, keys_from(500 * i, 500));
  }
  EXPECT_EQ(count_found(f, keys_from(0, 10'000)), 10'000u);
  EXPECT_GT(f.info().layers, 2u);
}

TEST_F(RedisFaults, AServerWithoutMemorySaysSoAndKeepsWhatItHas) {
  test_server small({.config = {"maxmemory-policy noeviction"}});
  redis_filter f = redis_filter::create(small.address("x"), growing(100));
  insert_all(f, keys_from(0, 500));
  small.command({"CONFIG", "SET", "maxmemory", "1"});

  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(1000, 5000)); }), errc::too_large);
  EXPECT_EQ(code_of([&] { redis_filter::create(small.address("y"), growing(100)); }), errc::too_large);
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u);
  small.command({"CONFIG", "SET", "maxmemory", "0"});
  insert_all(f, keys_from(1000, 5000));

  EXPECT_EQ(count_found(f, keys_from(1000, 5000)), 5000u);
  EXPECT_LE(f.info().rate_now, 0.01);
  redis_filter y = redis_filter::create(small.address("y"), growing(100));
  EXPECT_TRUE(y.insert(std::uint64_t{1}));
}

TEST_F(RedisFaults, ACommandThatIsNotPermittedIsNamed) {
  redis_filter::create(at("fixed"), integers(1000, 0.01));
  redis_filter::create(at("grows"), growing(1000));
  const auto refused = [&](const std::string& without, const std::string& name) {
    server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@all", "-" + without});
    redis_address a = at(name);
    a.user = "limited";
    a.password = "any";
    redis_filter f = redis_filter::open(a);
    return error_of([&] { f.insert(std::uint64_t{1}); });
  };
  for (const auto& [command, name] : {std::pair("bitfield", "fixed"), std::pair("evalsha", "grows")}) {
    const auto e = refused(command, name);
    ASSERT_TRUE(e.has_value()) << command;
    EXPECT_EQ(e->code(), errc::not_permitted);
    EXPECT_THAT(e->what(), testing::HasSubstr(command));
  }
  // A user who may only read can read, even after shards changed.
  server->command(
      {"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@connection", "+get", "+getrange", "+hgetall"});
  redis_address a = at("grows");
  a.user = "limited";
  a.password = "any";
  redis_filter reader = redis_filter::open(a);
  redis_filter writer = redis_filter::open(at("grows"));
  EXPECT_FALSE(reader.may_contain(std::uint64_t{1}));
  insert_all(writer, keys_from(0, 5000));
  EXPECT_EQ(count_found(reader, keys_from(0, 5000)), 5000u);
}

TEST_F(RedisFaults, KeysOfAnotherTypeAreAnError) {
  for (const char* part : {"m", "h", "0"}) {
    SCOPED_TRACE(part);
    server->command({"FLUSHALL"});
    redis_params wanted = growing(1000);
    wanted.shards = 1;
    redis_filter::create(at("x"), wanted).insert(std::uint64_t{1});
    const std::string taken = *part == 'm' ? "{x}:m" : server->shard("x", 0) + ":" + part;
    server->command({"DEL", taken});
    server->command({"RPUSH", taken, "mine"});

    const auto code = code_of([&] {
      redis_filter g = redis_filter::open(at("x"));
      g.insert(std::uint64_t{2});
    });

    EXPECT_EQ(code, errc::incompatible);
    EXPECT_EQ(server->command({"LRANGE", taken, "0", "-1"}).reply().size(), 1u);
  }
}

TEST_F(RedisFaults, HostileHeadersAreDamagedAndNothingWorse) {
  const std::vector<std::pair<std::string, std::string>> lies = {{"layer0", "18446744073709551615 8 1"},
                                                                 {"layer0", "1 0 1"},
                                                                 {"layer0", "1 255 1"},
                                                                 {"layer0", "15 3 100"},
                                                                 {"layer0", ""},
                                                                 {"layer0", "1 1"},
                                                                 {"layers", ""},
                                                                 {"layers", "0,0"},
                                                                 {"layers", "1"},
                                                                 {"layers", "0,1,"},
                                                                 {"layers", "-1"},
                                                                 {"stamp", "short"},
                                                                 {"layers", "0,99999999999999999999"},
                                                                 {"epoch", "1"},
                                                                 {"next", "victim~0123456789abcdef"}};
  for (const char* layout : {"split_block512", "blocked"}) {
    for (const auto& [field, value] : lies) {
      SCOPED_TRACE(std::string(layout) + " " + field + "=" + value);
      server->command({"FLUSHALL"});
      redis_params wanted = growing(1000);
      wanted.filter.layout = layout;
      redis_filter::create(at("x"), wanted).insert(std::uint64_t{1});
      for (std::uint64_t s = 0; s < 16; ++s) {
        const std::string shard = server->shard("x", s);
        server->command({"HSET", shard + ":h", field, value});
        server->command({"SETRANGE", shard + ":0", "0", "x"});
        server->command({"SETRANGE", shard + ":0",
                         std::to_string(server->command({"STRLEN", shard + ":0"}).integer() - 16), "another stamp..."});
      }
      redis_filter f = redis_filter::open(at("x"));

      const auto code = code_of([&] { f.may_contain(std::uint64_t{1}); });

      EXPECT_TRUE(code.has_value());
      EXPECT_TRUE(code_of([&] { f.insert(std::uint64_t{2}); }).has_value());
    }
  }
}

TEST_F(RedisFaults, ALayerThatBecomesLargerIsDamagedAndReadNowhereElse) {
  redis_params wanted = growing(1000);
  wanted.shards = 1;
  redis_options with_copy;
  with_copy.local_copy = true;
  for (const char* layer : {"layer0", "layer1"}) {
    SCOPED_TRACE(layer);
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), wanted, with_copy);
    insert_all(f, keys_from(0, 2000));
    EXPECT_EQ(count_found(f, keys_from(0, 2000)), 2000u);
    const auto stamped =
        static_cast<std::uint64_t>(server->command({"STRLEN", server->shard("x", 0) + ":1"}).integer()) - 16;
    ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text(), "0,1");

    server->command({"HSET", server->shard("x", 0) + ":h", layer, "8388608 8 100000", "stamp", "another stamp..."});
    server->command({"SETRANGE", server->shard("x", 0) + ":1", std::to_string(stamped), "another stamp..."});

    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(code_of([&] { count_found(f, keys_from(1'000'000, 100)); }), errc::damaged);
    }
  }
}

TEST_F(RedisFaults, WaitsForAServerThatIsLoading) {
  test_server slow({.append_only = true});
  redis_filter f = redis_filter::create(slow.address("x"), integers(10'000, 0.01));
  insert_all(f, keys_from(0, 5000));
  slow.config().push_back("key-load-delay 20000");  // microseconds per key
  slow.config().push_back("loading-process-events-interval-bytes 1024");
  slow.kill_hard();
  slow.restart(false);

  EXPECT_EQ(count_found(f, keys_from(0, 5000)), 5000u);
}

TEST_F(RedisFaults, ASlowNetworkThatIsCutLosesNothing) {
  redis_filter::create(at("x"), growing(100));
  proxy net(server->socket());
  redis_address through = at("x");
  through.socket.clear();
  through.endpoints = {{"127.0.0.1", net.port()}};
  redis_filter f = redis_filter::open(through);
  net.slow(milliseconds(1), 700);
  std::mt19937_64 random(3);
  std::uint64_t count = 0;
  for (int i = 0; i < 12; ++i) {
    net.cut_after_questions(static_cast<std::int64_t>(random() % 20'000));
    insist([&] { insert_all(f, keys_from(count, 20)); });
    count += 20;
    net.cut_after_questions(-1);
    ASSERT_EQ(count_found(f, keys_from(0, count)), count);
  }
  insert_all(f, {});
  EXPECT_EQ(count_found(f, {}), 0u);
}

}  // namespace
}  // namespace bloomery
