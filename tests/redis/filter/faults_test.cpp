// What can go wrong with a shared filter on one server: keys that are evicted, clients that die, servers that refuse.
// The model is what was acknowledged: a key of that is never absent; an error may be.
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class RedisFaults : public on_a_server<RedisFaults> {
 protected:
  static std::vector<std::string> names(const std::string& pattern) {
    std::vector<std::string> found;
    const auto all = server->command({"KEYS", pattern});
    for (std::size_t i = 0; i < all.reply().size(); ++i) found.emplace_back(all.reply()[i].text());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Nothing, or an error that says so; but never that a key is absent.
  static void expect_never_absent(redis_filter& f, const std::vector<std::uint64_t>& keys) {
    std::uint64_t there = keys.size();
    const auto code = code_of([&] { there = count_found(f, keys); });
    if (code) {
      EXPECT_TRUE(code == errc::damaged || code == errc::not_found) << static_cast<int>(*code);
    }
    EXPECT_EQ(there, keys.size());
  }
};

// ---- keys that go ---------------------------------------------------------------------------------------------------

TEST_F(RedisFaults, EverySingleKeyMayGoAndNoneIsAbsent) {
  const auto keys = keys_from(0, 600);
  redis_params counting = integers(1000, 0.01);
  counting.filter.layout = "counting";
  for (redis_params wanted : {integers(1000, 0.01), growing(10), counting}) {
    wanted.shards = 2;
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i) {
      server->command({"FLUSHALL"});
      redis_filter f = redis_filter::create(at("x"), wanted);
      insert_all(f, keys);
      const auto all = names("*");
      count = all.size();
      ASSERT_LT(i, count);
      SCOPED_TRACE(all[i]);

      server->command({"DEL", all[i]});

      expect_never_absent(f, keys);
      const auto inserted = code_of([&] { insert_all(f, keys_from(0, 2000)); });
      EXPECT_TRUE(!inserted || inserted == errc::damaged) << static_cast<int>(*inserted);
      expect_never_absent(f, keys);
      redis_filter other = redis_filter::open(at("x"));
      expect_never_absent(other, keys);
      f.drop();
      EXPECT_EQ(names("*").size(), 0u) << names("*").front() << ": nobody could make the filter again";
    }
    EXPECT_GE(count, 5u);
  }
}

TEST_F(RedisFaults, EverySingleGenerationMayGoAndNoKeyOfTheWindowIsAbsent) {
  redis_params wanted = integers(1000, 0.01);
  wanted.filter.window_milliseconds = 2800;
  std::vector<redis_filter> filters;
  for (int i = 0; i < 8; ++i) filters.push_back(redis_filter::create(at("w" + std::to_string(i)), wanted));
  const auto begin = steady_clock::now();
  std::uint64_t key = 0;
  const auto parts_of = [&](std::size_t i) { return names(server->shard("w" + std::to_string(i), 0) + ":*"); };
  wait_until("three generations of each", [&] {
    for (redis_filter& f : filters) f.insert(key);
    ++key;
    return parts_of(0).size() >= 4 && parts_of(7).size() >= 4;
  });

  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<std::string> parts = parts_of(i);  // each has turned at a moment of its own
    ASSERT_EQ(server->command({"DEL", parts[i]}).integer(), 1);
    SCOPED_TRACE(parts[i]);
    expect_never_absent(filters[i], keys_from(0, key));
    const bool is_header = parts[i].ends_with("h");
    if (!is_header) {
      EXPECT_EQ(code_of([&] { count_found(filters[i], keys_from(0, key)); }), errc::damaged);
      EXPECT_EQ(code_of([&] { filters[i].insert(std::uint64_t{1'000'000}); }), errc::damaged);
    }
    redis_filter other = redis_filter::open(at("w" + std::to_string(i)));
    expect_never_absent(other, keys_from(0, key));
  }
  // Bits that somebody wrote there do not make it whole when it is the next one's turn.
  const std::vector<std::string> parts = parts_of(7);
  const std::string newest = *std::max_element(parts.begin(), parts.end() - 1);
  server->command({"DEL", newest});
  server->command({"SETBIT", newest, "4000", "1"});
  while (steady_clock::now() - begin < milliseconds(2500)) {
    code_of([&] { filters[7].insert(std::uint64_t{2'000'000}); });
    expect_never_absent(filters[7], keys_from(key - 1, 1));
    if (HasFailure()) break;
  }
}

TEST_F(RedisFaults, WhatIsWrittenIntoAnEvictedLayerDoesNotPassForOne) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 3;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 1000));
  const std::string lost = server->shard("x", 1) + ":0";
  server->command({"DEL", lost});
  server->command({"SETBIT", lost, "2000", "1"});  // as who dies before it reads the stamp

  // Marks all shards, and takes the marks away.
  EXPECT_EQ(code_of([&] { f.replace(wanted, [](redis_filter&) {
                            throw error(errc::io, {"x", "", "", "", ""});
                          }); }),
            errc::io);

  expect_never_absent(f, keys_from(0, 1000));
  EXPECT_EQ(code_of([&] { count_found(f, keys_from(0, 1000)); }), errc::damaged);
  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 1000)); }), errc::damaged);
  EXPECT_EQ(server->command({"EXISTS", lost}).integer(), 0) << "what was written there stays";
  f.replace(wanted, [](redis_filter& fresh) { insert_all(fresh, keys_from(0, 1000)); });
  EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u) << "the way out";
}

TEST_F(RedisFaults, WhatIsWrittenIntoAnEvictedOlderLayerDoesNotPassForOne) {
  redis_params wanted = growing(200);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 3000));
  ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text().substr(0, 3), "0,1");
  const std::int64_t bytes = server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer();
  server->command({"DEL", server->shard("x", 0) + ":0"});
  // As one who thought it the newest, and died: in the last line, so that all lines are there.
  server->command({"SETBIT", server->shard("x", 0) + ":0", std::to_string(8 * (bytes - 16) - 1), "1"});

  for (std::uint64_t key = 0; key < 150; ++key) {
    EXPECT_EQ(code_of([&] { EXPECT_TRUE(f.may_contain(key)) << key; }), errc::damaged) << key;
  }
  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 150)); }), errc::damaged);
  EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
}

TEST_F(RedisFaults, AnOlderGenerationThatIsNotWholeMakesNoKeyNew) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 1;
  wanted.filter.window_milliseconds = 7 * std::uint64_t{86'400'000};
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 100));
  // A day goes by: what is the newest generation becomes the one before.
  const generation_aside aside(*server, "x");
  EXPECT_EQ(count_found(f, keys_from(0, 100)), 100u);
  EXPECT_FALSE(f.insert(std::uint64_t{0}));
  server->command({"DEL", aside.older});
  server->command({"SETBIT", aside.older, std::to_string(8 * (aside.bytes - 16) - 1), "1"});

  for (std::uint64_t key = 1; key < 50; ++key) {
    EXPECT_EQ(code_of([&] { EXPECT_FALSE(f.insert(key)) << key; }), errc::damaged) << key;
    EXPECT_EQ(code_of([&] { f.may_contain(key); }), errc::damaged) << key;
  }
  EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
}

TEST_F(RedisFaults, AFilterThatLostAHeaderIsReplacedLikeAnyOther) {
  redis_params wanted = growing(100);
  wanted.shards = 3;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 1000));
  const std::string before = server->shard("x", 0);
  server->command({"DEL", server->shard("x", 1) + ":h"});

  f.replace(wanted, [](redis_filter& fresh) { insert_all(fresh, keys_from(0, 1000)); });

  EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u);
  EXPECT_EQ(names("{x~*").size(), 6u);
  EXPECT_NE(server->shard("x", 0), before);
}

// ---- made anew, and by whom ----------------------------------------------------------------------------------------

TEST_F(RedisFaults, WhoHasAnOldHandleFindsWhatIsInTheNewFilterOfAnotherHash) {
  redis_filter f = redis_filter::create(at("x"), integers(1000, 0.01));
  insert_all(f, keys_from(0, 100));
  redis_params other = growing(300);
  other.filter.seed = 42;
  other.shards = 3;
  redis_filter::open(at("x")).drop();
  redis_filter g = redis_filter::create(at("x"), other);
  insert_all(g, keys_from(5000, 500));

  EXPECT_EQ(count_found(f, keys_from(5000, 500)), 500u);
  insert_all(f, keys_from(9000, 500));
  EXPECT_EQ(count_found(g, keys_from(9000, 500)), 500u);

  redis_filter h = redis_filter::open(at("x"));
  g.drop();
  redis_filter::create(at("x"), integers(1000, 0.01));
  insert_all(h, keys_from(0, 500));
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u);
  other.filter.seed = 7;
  EXPECT_EQ(code_of([&] { f.replace(other, [](redis_filter&) {}); }), errc::incompatible)
      << "who inserts into both would need both hashes";
}

TEST_F(RedisFaults, ACopyIsNotAskedWhetherToInsert) {
  redis_filter::create(at("x"), growing(1000));
  redis_options with_copy;
  with_copy.local_copy = true;
  redis_filter f = redis_filter::open(at("x"), with_copy);
  redis_filter g = redis_filter::open(at("x"));
  f.insert(std::uint64_t{1});
  EXPECT_TRUE(f.may_contain(std::uint64_t{1}));

  g.clear();
  f.insert(std::uint64_t{1});

  EXPECT_TRUE(g.may_contain(std::uint64_t{1}));
}

TEST_F(RedisFaults, AGrowingFilterIsReplacedWithoutAMomentOfWrongAnswers) {
  redis_params small = growing(100);
  small.shards = 2;
  redis_filter f = redis_filter::create(at("x"), small);
  constexpr std::uint64_t writers = 3;
  constexpr std::uint64_t apart = 1'000'000;
  std::vector<std::atomic<std::uint64_t>> begun(writers), written(writers);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (std::uint64_t w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      redis_filter g = redis_filter::open(at("x"));
      for (std::uint64_t i = 0; !done; ++i) {
        begun[w] = i + 1;
        g.insert((w + 1) * apart + i);
        written[w] = i + 1;
      }
    });
  }
  std::vector<std::uint64_t> before(writers);
  std::uint64_t missing = 0;
  const int rounds = is_long() ? 300 : 25;
  const auto all_have_written = [&] {
    return std::all_of(written.begin(), written.end(), [](const auto& keys) { return keys > 20; });
  };
  for (int round = 0; round < rounds || !all_have_written(); ++round) {
    f.replace(small, [&](redis_filter& fresh) {
      for (std::uint64_t w = 0; w < writers; ++w) before[w] = begun[w];
      for (std::uint64_t w = 0; w < writers; ++w) insert_all(fresh, keys_from((w + 1) * apart, before[w]));
    });
    for (std::uint64_t w = 0; w < writers; ++w) {
      const std::uint64_t count = written[w];
      missing += count - count_found(f, keys_from((w + 1) * apart, count));
    }
  }
  done = true;
  for (auto& t : threads) t.join();

  EXPECT_EQ(missing, 0u);
}

TEST_F(RedisFaults, ABatchOfWhichAPartWasThereGoesIntoTheFilterThatIsThereNow) {
  redis_params wanted = growing(1000);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  f.insert(std::uint64_t{1});
  const std::string header_of_old = server->shard("x", 0) + ":h";
  redis_filter g = redis_filter::open(at("x"));
  code_of([&] {
    g.replace(wanted, [&](redis_filter&) {
      f.insert(std::uint64_t{2});  // so it knows the mark of the old one
      server->command({"ACL", "SETUSER", "default", "-unlink"});
    });
  });
  server->command({"ACL", "SETUSER", "default", "+unlink"});
  ASSERT_EQ(server->command({"EXISTS", header_of_old}).integer(), 1) << "the old one is to be there still";

  insert_all(f, {1, 3});

  EXPECT_EQ(count_found(f, {1, 3}), 2u);
  redis_filter h = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(h, {1, 3}), 2u);
}

TEST_F(RedisFaults, AKeyThatIsThereIsNotNewWhileAGrowingFilterIsReplaced) {
  redis_params wanted = growing(100);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 2000));
  ASSERT_GT(f.info().layers, 2u);
  redis_filter g = redis_filter::open(at("x"));
  const auto keys = keys_from(0, 100);
  std::vector<std::uint8_t> is_new(keys.size());

  g.replace(wanted, [&](redis_filter& fresh) {
    count_found(f, keys_from(1'000'000, 100));  // so it knows the mark
    f.insert(std::span(keys), is_new);
    insert_all(fresh, keys_from(100, 1900));
  });

  EXPECT_EQ(std::count(is_new.begin(), is_new.end(), 1), 0);
  EXPECT_EQ(count_found(g, keys_from(0, 2000)), 2000u);
}

TEST_F(RedisFaults, OneClientSetsTheExpiryAndAnotherTakesItBack) {
  redis_params wanted = integers(1000, 0.01);
  wanted.filter.window_milliseconds = 600'000'000;
  redis_filter f = redis_filter::create(at("x"), wanted);
  redis_filter g = redis_filter::open(at("x"));
  f.insert(std::uint64_t{1});
  const std::string bits = names(server->shard("x", 0) + ":*").front();
  const std::int64_t own = server->command({"PTTL", bits}).integer();

  f.expire(milliseconds(60'000));
  EXPECT_LE(server->command({"PTTL", bits}).integer(), 70'000);  // its own would be four days and more
  g.persist();

  EXPECT_EQ(server->command({"PTTL", "{x}:m"}).integer(), -1);
  EXPECT_EQ(server->command({"PTTL", server->shard("x", 0) + ":h"}).integer(), -1);
  EXPECT_NEAR(static_cast<double>(server->command({"PTTL", bits}).integer()), static_cast<double>(own), 10'000)
      << "a generation would go before its time";
  f.clear();
  g.clear();
  EXPECT_TRUE(g.insert(std::uint64_t{1}));
  EXPECT_TRUE(f.may_contain(std::uint64_t{1}));
}

// ---- the count, and lost connections
// ---------------------------------------------------------------------------------

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
  f.insert(std::uint64_t{3});  // with marks, the stamp is another
  f = redis_filter::open(at("x"));
  EXPECT_EQ(counted(*server, "x", 1), 3u) << "when the filter was marked and is not any more";

  {
    std::vector<redis_filter> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(redis_filter::open(at("x")));
    g.replace(wanted, [&](redis_filter&) {
      for (std::uint64_t i = 0; i < 10; ++i) clients[static_cast<std::size_t>(i)].insert(i);
      clients.pop_back();
    });
    for (redis_filter& c : clients) c.may_contain(std::uint64_t{1} << 40);  // so it turns to the new one
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
    g = redis_filter::open(at("x"));  // its own is given back
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

// ---- processes that die
// ----------------------------------------------------------------------------------------------

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
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 60'000));  // the random moment of its death
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
        const std::uint64_t some = std::min<std::uint64_t>(count, 500);  // the latest
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

// ---- servers that refuse
// ---------------------------------------------------------------------------------------------

TEST_F(RedisFaults, ScriptsMayBeForgottenByTheServer) {
  redis_params wanted = growing(10);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  for (std::uint64_t i = 0; i < 20; ++i) {
    server->command({"SCRIPT", "FLUSH"});
    insert_all(f, keys_from(100 * i, 100));
  }
  EXPECT_EQ(count_found(f, keys_from(0, 2000)), 2000u);
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
  // Who may only read, reads; also when shards have changed.
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
  slow.config().push_back("key-load-delay 20000");  // microseconds a key
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

// ---- windows
// ---------------------------------------------------------------------------------------------------------

TEST_F(RedisFaults, AWindowKeepsItsRateAndAnInsertRenewsAKey) {
  redis_params wanted = integers(7'000, 0.01);
  wanted.filter.window_milliseconds = 1400;
  redis_filter f = redis_filter::create(at("x"), wanted);
  const auto begin = steady_clock::now();
  const auto since = [&] { return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin).count(); };
  std::uint64_t next = 10;
  double asked = 0;
  double hits = 0;
  milliseconds::rep renewed = 0;
  milliseconds::rep filled = -100;
  f.insert(std::uint64_t{1});
  while (since() < 3'500) {
    // At most 1,000 in a generation of 200 ms. What a busy machine was late with is not made up for: that would be
    // more.
    if (since() - filled >= 45) {
      insert_all(f, keys_from(next, 200));
      next += 200;
      filled = since();
    }
    const auto now = since();
    if (now - renewed > 600 && now < 2'000) {
      f.insert(std::uint64_t{1});
      renewed = now;
    }
    if (now < renewed + 1'300) {
      const bool there = f.may_contain(std::uint64_t{1});
      ASSERT_TRUE(there || since() - renewed >= 1'400) << now;
    }
    hits +=
        static_cast<double>(count_found(f, keys_from(std::uint64_t{1} << 40 | static_cast<std::uint64_t>(asked), 500)));
    asked += 500;
  }

  EXPECT_GT(renewed, 1'400) << "or the key was not older than a window";
  EXPECT_LE(hits, most_hits(0.01, asked));
}

}  // namespace
}  // namespace bloomery
