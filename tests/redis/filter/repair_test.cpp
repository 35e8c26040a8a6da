// Repair of shared filters that have lost shards: no acknowledged key is reported absent before, during or after it.
// The reference is the list of acknowledged keys.
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/redis.hpp>

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/proxy.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t shards = 16;
constexpr std::uint64_t lost = 5;
constexpr std::uint64_t n = 8000;

std::uint64_t shard_of(std::uint64_t key) { return multiply_high(mix{}(key).hash64, shards); }

redis_params with_shards(redis_params p) {
  p.shards = shards;
  return p;
}

redis_params windowed() {
  redis_params p = with_shards(integers(2 * n, 0.01));
  p.filter.extra = window_of_milliseconds(24 * 3600 * 1000);
  return p;
}

// Of the lost shard, or of the others.
std::vector<std::uint64_t> keys_in(const std::vector<std::uint64_t>& keys, bool in_lost) {
  std::vector<std::uint64_t> some;
  for (const std::uint64_t key : keys) {
    if ((shard_of(key) == lost) == in_lost) some.push_back(key);
  }
  return some;
}

void expect_damaged(redis_filter& f, std::uint64_t key) {
  try {
    EXPECT_TRUE(f.may_contain(key)) << "absent: " << key;
    ADD_FAILURE() << "a key of the lost shard was looked up";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::damaged) << e.what();
  }
}

class RedisRepair : public on_a_server<RedisRepair> {
 protected:
  static std::string shard() { return server->shard("x", lost); }
  static std::string newest() {
    const std::string layers = server->command({"HGET", shard() + ":h", "layers"}).text();
    return shard() + ":" + layers.substr(layers.rfind(',') + 1);
  }

  // All keys of the server with what they hold; of a header, what a repair of its shard changes.
  static std::map<std::string, std::string> everything() {
    std::map<std::string, std::string> all;
    const auto keys = server->command({"KEYS", "*"});
    for (std::size_t i = 0; i < keys.reply().size(); ++i) {
      const std::string key(keys.reply()[i].text());
      std::string& held = all[key];
      if (!key.ends_with(":h")) {
        held = server->command({"GET", key}).text();
      } else {
        for (const char* field : {"stamp", "layers", "count"})
          held += server->command({"HGET", key, field}).text() + " ";
      }
    }
    return all;
  }

  static redis_address through(const proxy& between) {
    redis_address a = at("x");
    a.socket.clear();
    a.endpoints = {{"127.0.0.1", between.port()}};
    return a;
  }

  static void interrupt_repair(redis_filter& f, std::uint64_t keys) {
    const auto fill = [&](redis_filter& fresh) {
      insert_all(fresh, keys_from(0, keys));
      throw std::runtime_error("the source ends");
    };
    EXPECT_THROW(f.repair(fill), std::runtime_error);
  }

  // While `part` is missing and refilled, a reader and a writer run. @param loses_more  a damage beside that one
  static void lose_and_repair(const redis_params& p, const std::string& part) {
    SCOPED_TRACE(part);
    redis_filter f = redis_filter::create(at("x"), p);
    const std::vector<std::uint64_t> old = keys_from(0, n);
    insert_all(f, old);
    redis_filter knows = redis_filter::open(at("x"));  // its copies and shard cache are from before the loss
    ASSERT_EQ(count_found(knows, old), n);
    ASSERT_EQ(count_found(knows, old), n);
    ASSERT_EQ(server->command({"DEL", part}).integer(), 1);

    std::mutex lock;
    std::vector<std::uint64_t> acknowledged;
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> absent = 0, refused = 0, answered = 0, into_lost = 0;
    std::thread reader([&] {
      redis_filter mine = redis_filter::open(at("x"));
      for (std::uint64_t i = 0; !stop; ++i) {
        std::uint64_t key = old[i * 7919 % n];
        if (i % 3 == 0) {
          const std::lock_guard held(lock);
          if (!acknowledged.empty()) key = acknowledged[i * 31 % acknowledged.size()];
        }
        try {
          if (!mine.may_contain(key)) ++absent;
          ++answered;
        } catch (const error& e) {
          if (e.code() != errc::damaged || shard_of(key) != lost) ++absent;
          ++refused;
        }
      }
    });
    std::atomic<bool> filling = false;
    std::thread writer([&] {
      redis_filter mine = redis_filter::open(at("x"));
      for (std::uint64_t key = 1'000'000; !stop; ++key) {
        // What was acknowledged for the lost shard before the repair began would have to be in its source.
        if (!filling && shard_of(key) == lost) continue;
        mine.insert(key);
        into_lost += shard_of(key) == lost ? 1 : 0;
        const std::lock_guard held(lock);
        acknowledged.push_back(key);
      }
    });
    std::uint64_t new_keys = 0;
    const auto repaired = f.repair([&](redis_filter& fresh) {
      filling = true;
      wait_until("a writer inserts into the lost shard", [&] { return into_lost > 3; });
      for (std::uint64_t first = 0; first < n; first += 1000) {
        new_keys += fresh.insert(std::span(old).subspan(first, 1000));
        expect_damaged(knows, keys_in(old, true).front());
      }
      wait_until("the reader looked up", [&, before = answered.load()] { return answered > before + 50; });
    });
    wait_until("the reader looks up again", [&, before = answered.load()] { return answered > before + 200; });
    stop = true;
    reader.join();
    writer.join();

    EXPECT_EQ(repaired, std::vector<std::uint64_t>{lost});
    EXPECT_GT(refused, 0u);
    EXPECT_EQ(absent, 0u);
    EXPECT_NEAR(static_cast<double>(new_keys), static_cast<double>(keys_in(old, true).size()), 15);
    for (redis_filter* one : {&f, &knows}) {
      EXPECT_EQ(count_found(*one, old), n);
      EXPECT_EQ(count_found(*one, acknowledged), acknowledged.size());
    }
    const std::vector<std::uint64_t> others = keys_in(keys_from(50'000'000, 800'000), true);
    const double hits = static_cast<double>(count_found(f, others));
    EXPECT_LE(hits, most_hits(p.filter.target_fpr, static_cast<double>(others.size())));
    EXPECT_LE(f.info().rate_now, p.filter.target_fpr);
    EXPECT_TRUE(f.repair([](redis_filter&) { ADD_FAILURE() << "nothing is lost"; }).empty());
    f.drop();
  }
};

TEST_F(RedisRepair, OfAFixedFilterThatLostItsBits) {
  const redis_params p = with_shards(integers(2 * n, 0.01));
  redis_filter::create(at("x"), p);
  lose_and_repair(p, shard() + ":0");
}

TEST_F(RedisRepair, OfAGrowingFilterThatLostItsNewestOrAClosedLayerOrItsHeader) {
  const redis_params p = with_shards(growing(100));
  for (const bool newest_layer : {true, false}) {
    redis_filter f = redis_filter::create(at("x"), p);
    insert_all(f, keys_from(0, n));
    const std::string part = newest_layer ? newest() : shard() + ":0c";
    ASSERT_NE(newest(), shard() + ":0") << "it has not grown";
    lose_and_repair(p, part);
  }
  redis_filter f = redis_filter::create(at("x"), p);
  insert_all(f, keys_from(0, n));
  lose_and_repair(p, shard() + ":h");
}

TEST_F(RedisRepair, OfAGrowingFilterRemovesTheLayersBefore) {
  redis_filter f = redis_filter::create(at("x"), with_shards(growing(100)));
  insert_all(f, keys_from(0, n));
  server->command({"DEL", newest()});

  f.repair([](redis_filter&) {});

  std::vector<std::string> left;
  for (const auto& [key, held] : everything()) {
    if (key.starts_with(shard())) left.push_back(key);
  }
  EXPECT_EQ(left, (std::vector{shard() + ":0", shard() + ":h"}));
}

TEST_F(RedisRepair, OfAWindowThatLostItsNewestGeneration) {
  redis_filter::create(at("x"), windowed());
  lose_and_repair(windowed(), newest());
}

TEST_F(RedisRepair, AFilterOfFixedSizeThatLostOnlyAHeaderGetsItBackWithItsKeys) {
  redis_filter f = redis_filter::create(at("x"), with_shards(integers(2 * n, 0.01)));
  insert_all(f, keys_from(0, n));
  server->command({"DEL", shard() + ":h"});

  EXPECT_TRUE(f.repair([](redis_filter&) { ADD_FAILURE() << "no key is lost"; }).empty());

  redis_filter other = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(other, keys_from(0, n)), n);
  EXPECT_NEAR(static_cast<double>(other.info().inserted), static_cast<double>(n), 200);
}

TEST_F(RedisRepair, GoesOnWithWhatAnInterruptedRepairHasLeft) {
  const redis_params p = with_shards(integers(2 * n, 0.01));
  redis_filter f = redis_filter::create(at("x"), p);
  const std::vector<std::uint64_t> old = keys_from(0, n), more = keys_in(keys_from(1'000'000, 2000), true);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      redis_filter::open(at("x")).repair([&](redis_filter& fresh) {
        insert_all(fresh, keys_from(0, n / 2));
        ::_exit(0);
      });
    } catch (...) {
    }
    ::_exit(1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);

  expect_damaged(f, keys_in(old, true).front());
  insert_all(f, more);  // accepted, and kept by the next repair
  EXPECT_THROW(f.info(), error);
  const std::int64_t lease = server->command({"PTTL", "{x}:repair"}).integer();
  EXPECT_GT(lease, 0);
  EXPECT_LE(lease, 15'000);
  server->command({"PEXPIRE", "{x}:repair", "500"});  // as if most of the lease had passed
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    try {
      EXPECT_EQ(f.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), std::vector<std::uint64_t>{lost});
      break;
    } catch (const error& e) {
      ASSERT_EQ(e.code(), errc::locked) << e.what();
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  EXPECT_EQ(count_found(f, old), n);
  EXPECT_EQ(count_found(f, more), more.size());
}

TEST_F(RedisRepair, OfTwoAtOnceTheSecondIsLockedAndAFailedOneLeavesTheShardDamaged) {
  redis_filter f = redis_filter::create(at("x"), with_shards(integers(2 * n, 0.01)));
  redis_filter other = redis_filter::open(at("x"));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
  const auto code_of = [](auto work) {
    try {
      work();
    } catch (const error& e) {
      return std::optional(e.code());
    }
    return std::optional<errc>();
  };
  const auto failing = [&] {
    f.repair([&](redis_filter& fresh) {
      EXPECT_EQ(code_of([&] { other.repair([](redis_filter&) {}); }), errc::locked);
      EXPECT_EQ(code_of([&] { fresh.drop(); }), errc::locked);
      const std::uint64_t before = fresh.counters().exchanges;
      EXPECT_EQ(fresh.insert(keys_in(old, false)), 0u);
      EXPECT_EQ(fresh.counters().exchanges, before) << "keys of whole shards need no request";
      throw error(errc::io, {"the source ends", "", "", "", ""});
    });
  };
  EXPECT_EQ(code_of(failing), errc::io);
  expect_damaged(f, keys_in(old, true).front());
  redis_options maybe;
  maybe.on_damage = redis_damage::maybe;
  EXPECT_EQ(count_found(*std::make_unique<redis_filter>(redis_filter::open(at("x"), maybe)), old), n);

  EXPECT_EQ(other.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), std::vector<std::uint64_t>{lost});
  EXPECT_EQ(count_found(f, old), n);
}

TEST_F(RedisRepair, RefusesCountingFiltersAndFiltersThatAreBeingReplaced) {
  redis_params p = with_shards(integers(2 * n, 0.01));
  redis_filter f = redis_filter::create(at("x"), p);
  f.replace(p, [&](redis_filter&) {
    server->command({"DEL", shard() + ":0"});
    redis_filter other = redis_filter::open(at("x"));
    try {
      other.repair([](redis_filter&) { ADD_FAILURE(); });
      ADD_FAILURE();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::locked);
    }
  });
  f.drop();
  p.filter.layout = "counting";
  redis_filter counts = redis_filter::create(at("x"), p);
  server->command({"DEL", shard() + ":0"});
  try {
    counts.repair([](redis_filter&) { ADD_FAILURE(); });
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::incompatible);
    EXPECT_NE(std::string(e.what()).find("replace the filter"), std::string::npos);
  }
}

TEST_F(RedisRepair, MakesTheShardThatWasBuiltAtOnceAndChangesNoOther) {
  for (const redis_params& p : {with_shards(integers(2 * n, 0.01)), with_shards(growing(4 * n)), windowed()}) {
    redis_filter f = redis_filter::create(at("x"), p);
    const std::vector<std::uint64_t> old = keys_from(0, n);
    insert_all(f, old);
    const std::string part = newest();
    auto before = everything();
    server->command({"DEL", part});

    redis_filter::open(at("x")).repair([&](redis_filter& fresh) { insert_all(fresh, old); });

    auto after = everything();
    ASSERT_EQ(after[part].size(), before[part].size());
    EXPECT_TRUE(after[part].substr(0, after[part].size() - 16) == before[part].substr(0, before[part].size() - 16));
    for (const std::string& changed : {part, shard() + ":h"}) {
      EXPECT_NE(after[changed], before[changed]);
      before.erase(changed);
      after.erase(changed);
    }
    EXPECT_TRUE(before == after) << "another shard has changed";
    f.drop();
  }
}

TEST_F(RedisRepair, DoesNotTakeAShardOfAnInterruptedRepairThatLostItsHeaderForWhole) {
  redis_filter f = redis_filter::create(at("x"), with_shards(integers(2 * n, 0.01)));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
  interrupt_repair(f, n / 2);
  server->command({"DEL", shard() + ":h"});

  EXPECT_EQ(f.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), std::vector<std::uint64_t>{lost});

  EXPECT_EQ(count_found(f, old), n);
  redis_filter other = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(other, old), n);
}

TEST_F(RedisRepair, AKeyThatIsNotRefilledYetIsNotReportedAsNew) {
  for (const redis_params& p : {with_shards(integers(2 * n, 0.01)), with_shards(growing(100)), windowed()}) {
    redis_filter f = redis_filter::create(at("x"), p);
    const std::vector<std::uint64_t> old = keys_from(0, n), mine = keys_in(old, true);
    const std::vector<std::uint64_t> others = keys_from(5'000'000, 1000);
    insert_all(f, old);
    redis_filter knows = redis_filter::open(at("x"));
    ASSERT_EQ(count_found(knows, old), n);
    redis_filter repeats = redis_filter::open(at("x"));  // looks keys up before it inserts them
    for (int i = 0; i < 4; ++i) insert_all(repeats, old);
    server->command({"DEL", newest()});
    const auto third = static_cast<std::ptrdiff_t>(mine.size() / 3);
    f.repair([&](redis_filter& fresh) {
      redis_filter opened = redis_filter::open(at("x"));
      auto first = mine.begin();
      for (redis_filter* one : {&knows, &opened, &repeats}) {
        const std::vector<std::uint64_t> some(first, first + third);
        first += third;
        std::vector<std::uint8_t> is_new(some.size(), 9);
        EXPECT_EQ(one->insert(std::span<const std::uint64_t>(some), is_new), 0u);
        EXPECT_EQ(std::count(is_new.begin(), is_new.end(), 1), 0);
        EXPECT_GT(std::count(is_new.begin(), is_new.end(), maybe_new), third / 2);
      }
      EXPECT_GT(knows.insert(std::span<const std::uint64_t>(keys_in(others, false))), 800u);
      insert_all(fresh, old);
    });
    EXPECT_EQ(count_found(f, old), n);
    f.drop();
  }
}

TEST_F(RedisRepair, OfAGrowingFilterRemovesBitsThatAClientWroteWhereALayerIsToCome) {
  redis_filter f = redis_filter::create(at("x"), with_shards(growing(100)));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  server->command({"DEL", newest()});

  f.repair([&](redis_filter& fresh) {
    server->command({"SETBIT", shard() + ":1", "5", "1"});  // by a client that dies before it sees the repair
    insert_all(fresh, old);
  });

  ASSERT_NE(newest(), shard() + ":0") << "it has not grown";
  EXPECT_EQ(count_found(f, old), n);
}

TEST_F(RedisRepair, OfAGrowingFilterEndsTheLocalCopiesOfTheLayersBefore) {
  redis_filter f = redis_filter::create(at("x"), with_shards(growing(100)));
  std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  redis_options copying;
  copying.local_copy = true;
  redis_filter knows = redis_filter::open(at("x"), copying);
  const std::vector<std::uint64_t> others = keys_in(keys_from(9'000'000, 200'000), true);
  ASSERT_GT(count_found(knows, others), 0u);
  server->command({"DEL", newest()});
  std::reverse(old.begin(), old.end());

  f.repair([&](redis_filter& fresh) { insert_all(fresh, old); });

  redis_filter opened = redis_filter::open(at("x"));
  insert_all(knows, keys_in(old, true));  // finds that the shard has changed
  EXPECT_EQ(count_found(knows, others), count_found(opened, others));
  EXPECT_EQ(count_found(knows, old), n);
}

TEST_F(RedisRepair, OfAWindowEndsByItselfWhenAllGenerationsAreNewer) {
  redis_params p = windowed();
  p.filter.extra = window_of_milliseconds(1000);
  redis_filter f = redis_filter::create(at("x"), p);
  const std::vector<std::uint64_t> mine = keys_in(keys_from(0, n), true);
  insert_all(f, mine);
  server->command({"DEL", newest()});
  interrupt_repair(f, 0);
  expect_damaged(f, mine[0]);

  redis_filter other = redis_filter::open(at("x"));
  std::size_t turn = 0;
  wait_until("a lookup is answered", [&] {
    const std::uint64_t key = mine[++turn % mine.size()];
    other.insert(key);
    try {
      EXPECT_TRUE(f.may_contain(key));
      return true;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::damaged) << e.what();
      return false;
    }
  });
}

TEST_F(RedisRepair, OfAFilterThatIsDroppedOrReplacedMeanwhileFailsAndLeavesNothing) {
  const redis_params p = with_shards(integers(2 * n, 0.01));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  for (const bool is_replaced : {false, true}) {
    for (const bool inserts_after : {false, true}) {
      redis_filter f = redis_filter::create(at("x"), p);
      insert_all(f, old);
      server->command({"DEL", shard() + ":0", shard() + ":h"});
      try {
        f.repair([&](redis_filter& fresh) {
          insert_all(fresh, keys_from(0, n / 2));
          redis_filter other = redis_filter::open(at("x"));
          if (is_replaced) {
            other.replace(p, [&](redis_filter& next) { insert_all(next, old); });
          } else {
            other.drop();
          }
          if (inserts_after) insert_all(fresh, keys_in(old, true));
        });
        ADD_FAILURE() << "it was repaired";
      } catch (const error& e) {
        EXPECT_EQ(e.code(), is_replaced ? errc::locked : errc::not_found) << e.what();
      }
      if (is_replaced) {
        EXPECT_EQ(count_found(f, old), n);
        f.drop();
      }
      for (const auto& [key, value] : everything()) EXPECT_TRUE(is_mark(key)) << key;
      server->command({"FLUSHALL"});
    }
  }
}

// Between the requests of the repairing client.
TEST_F(RedisRepair, OfAFilterThatIsDroppedBeforeALostHeaderIsWrittenLeavesNothing) {
  redis_filter f = redis_filter::create(at("x"), with_shards(integers(2 * n, 0.01)));
  insert_all(f, keys_from(0, n));
  proxy between(server->socket());
  redis_filter slow = redis_filter::open(through(between));
  EXPECT_TRUE(slow.repair([](redis_filter&) {}).empty());  // the server has the script of the lease
  server->command({"DEL", shard() + ":0", shard() + ":h"});
  between.before("{x}:repair", [&] { between.before("EVALSHA", [&] { f.drop(); }); });
  try {
    slow.repair([](redis_filter&) { ADD_FAILURE() << "the filter was dropped"; });
    ADD_FAILURE() << "it was repaired";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::not_found) << e.what();
  }
  for (const auto& [key, value] : everything()) EXPECT_TRUE(is_mark(key)) << key;
}

TEST_F(RedisRepair, LeavesTheExpiryThatAnotherClientSetsMeanwhile) {
  redis_params p = with_shards(integers(2 * n, 0.01));
  p.expires_in = std::chrono::minutes(1);
  redis_filter f = redis_filter::create(at("x"), p);
  insert_all(f, keys_from(0, n));
  proxy between(server->socket());
  redis_filter slow = redis_filter::open(through(between));
  server->command({"DEL", shard() + ":0"});
  between.before("{x}:repair", [&] { f.expire(std::chrono::hours(2)); });

  EXPECT_EQ(slow.repair([](redis_filter& fresh) { insert_all(fresh, keys_from(0, n)); }).size(), 1u);

  EXPECT_GT(server->command({"PTTL", shard() + ":h"}).integer(), 7'000'000);
  EXPECT_NEAR(static_cast<double>(server->command({"PTTL", shard() + ":0"}).integer()),
              static_cast<double>(server->command({"PTTL", shard() + ":h"}).integer()), 1000);
}

class RedisRepairOnACluster : public on_a_cluster<RedisRepairOnACluster> {};

TEST_F(RedisRepairOnACluster, EveryShardOfALostNodeIsRefilled) {
  redis_filter f = redis_filter::create(cluster->address("x"), with_shards(growing(1000)));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  redis_filter reader = redis_filter::open(cluster->address("x"));
  ASSERT_EQ(count_found(reader, old), n);
  std::vector<redis_shard> before;
  f.info(&before);
  const std::string node = before[lost].node;
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    if (!node.ends_with(":" + std::to_string(cluster->node(i).port()))) continue;
    cluster->node(i).command({"FLUSHALL"});
  }
  std::vector<std::uint64_t> expected;
  for (std::uint64_t s = 0; s < shards; ++s) {
    if (before[s].node == node) expected.push_back(s);
  }

  EXPECT_EQ(f.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), expected);

  EXPECT_EQ(count_found(f, old), n);
  EXPECT_EQ(count_found(reader, old), n);
  EXPECT_LE(f.info().rate_now, 0.01);
}

}  // namespace
}  // namespace bloomery
