// Repair of shared filters that have lost shards: no acknowledged key is reported absent before, during or after it.
// The reference is the list of acknowledged keys.
#include <bloomery/hash.hpp>

#include "redis/fixtures.hpp"
#include "support/processes.hpp"

#include <mutex>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t shard_count = 16;
constexpr std::uint64_t lost_shard = 5;
constexpr std::uint64_t n = 8000;

std::uint64_t shard_of(std::uint64_t key) { return multiply_high(mix{}(key).hash64, shard_count); }

const redis_params fixed_params = sharded(integers(2 * n, 0.01), shard_count);
const redis_params scalable_params = sharded(growing(100), shard_count);
const redis_params window_params = windowed(fixed_params, std::chrono::hours(24));

// Of the lost shard, or of the others.
std::vector<std::uint64_t> keys_in(const std::vector<std::uint64_t>& keys, bool in_lost) {
  std::vector<std::uint64_t> some;
  for (const std::uint64_t key : keys) {
    if ((shard_of(key) == lost_shard) == in_lost) some.push_back(key);
  }
  return some;
}

void expect_damaged(redis_filter& f, std::uint64_t key) {
  EXPECT_EQ(code_of([&] { EXPECT_TRUE(f.may_contain(key)) << "absent: " << key; }), errc::damaged);
}

class RedisRepair : public on_a_server<RedisRepair> {
 protected:
  static std::string shard() { return server->shard("x", lost_shard); }
  static std::string newest() {
    const std::string layers = server->command({"HGET", shard() + ":h", "layers"}).text();
    return shard() + ":" + layers.substr(layers.rfind(',') + 1);
  }

  // All keys of the server with what they hold; of a header, what a repair of its shard changes.
  static std::map<std::string, std::string> everything() {
    std::map<std::string, std::string> all;
    for (const std::string& key : names()) {
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
          if (e.code() != errc::damaged || shard_of(key) != lost_shard) ++absent;
          ++refused;
        }
      }
    });
    std::atomic<bool> filling = false;
    std::thread writer([&] {
      redis_filter mine = redis_filter::open(at("x"));
      for (std::uint64_t key = 1'000'000; !stop; ++key) {
        // What was acknowledged for the lost shard before the repair began would have to be in its source.
        if (!filling && shard_of(key) == lost_shard) continue;
        mine.insert(key);
        into_lost += shard_of(key) == lost_shard ? 1 : 0;
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

    EXPECT_EQ(repaired, std::vector<std::uint64_t>{lost_shard});
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

TEST_F(RedisRepair, RefillsWhatIsLostWhileClientsLookUpAndInsert) {
  struct row {
    const redis_params& parameters;
    std::string lost;  // of the shard's parts; empty: the newest layer or generation
  };
  for (const row& r : {row{fixed_params, ":0"},
                       {scalable_params, ""},
                       {scalable_params, ":0c"},
                       {scalable_params, ":h"},
                       {window_params, ""}}) {
    redis_filter f = filled(r.parameters, keys_from(0, n));
    if (r.parameters.growth != redis_growth::none) {
      ASSERT_NE(newest(), shard() + ":0") << "it has not grown";
    }
    lose_and_repair(r.parameters, r.lost.empty() ? newest() : shard() + r.lost);
  }
}

TEST_F(RedisRepair, RemovesTheEarlierLayersOfAGrowingFilter) {
  redis_filter f = filled(scalable_params, keys_from(0, n));
  server->command({"DEL", newest()});

  f.repair([](redis_filter&) {});

  EXPECT_EQ(names(shard() + "*"), (std::vector{shard() + ":0", shard() + ":h"}));
}

TEST_F(RedisRepair, RestoresALostHeaderOfAFixedFilterWithItsKeys) {
  redis_filter f = filled(fixed_params, keys_from(0, n));
  server->command({"DEL", shard() + ":h"});

  EXPECT_TRUE(f.repair([](redis_filter&) { ADD_FAILURE() << "no key is lost"; }).empty());

  redis_filter other = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(other, keys_from(0, n)), n);
  EXPECT_NEAR(static_cast<double>(other.info().inserted), static_cast<double>(n), 200);
}

TEST_F(RedisRepair, ContinuesAnInterruptedRepair) {
  const redis_params p = fixed_params;
  redis_filter f = redis_filter::create(at("x"), p);
  const std::vector<std::uint64_t> old = keys_from(0, n), more = keys_in(keys_from(1'000'000, 2000), true);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
  const auto die_while_repairing = [] {
    redis_filter::open(at("x")).repair([](redis_filter& refilled) {
      insert_all(refilled, keys_from(0, n / 2));
      ::_exit(0);
    });
    return 1;
  };
  ASSERT_EQ(status_of_child(die_while_repairing), 0);

  expect_damaged(f, keys_in(old, true).front());
  insert_all(f, more);  // accepted, and kept by the next repair
  EXPECT_THROW(f.info(), error);
  const std::int64_t lease = server->command({"PTTL", "{x}:repair"}).integer();
  EXPECT_GT(lease, 0);
  EXPECT_LE(lease, 15'000);
  server->command({"PEXPIRE", "{x}:repair", "500"});  // as if most of the lease had passed
  wait_until("the lease is over", [&] {
    const auto code = code_of([&] {
      EXPECT_EQ(f.repair([&](redis_filter& refilled) { insert_all(refilled, old); }),
                std::vector<std::uint64_t>{lost_shard});
    });
    EXPECT_TRUE(!code || code == errc::locked);
    return !code;
  });
  EXPECT_EQ(count_found(f, old), n);
  EXPECT_EQ(count_found(f, more), more.size());
}

TEST_F(RedisRepair, IsLockedForASecondClientAndLeavesTheShardDamagedIfItFails) {
  redis_filter f = redis_filter::create(at("x"), fixed_params);
  redis_filter other = redis_filter::open(at("x"));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
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
  redis_filter tolerant = redis_filter::open(at("x"), {.on_damage = redis_damage::maybe});
  EXPECT_EQ(count_found(tolerant, old), n);

  EXPECT_EQ(other.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), std::vector<std::uint64_t>{lost_shard});
  EXPECT_EQ(count_found(f, old), n);
}

TEST_F(RedisRepair, RefusesCountingFiltersAndFiltersThatAreBeingReplaced) {
  redis_filter f = redis_filter::create(at("x"), fixed_params);
  f.replace(fixed_params, [&](redis_filter&) {
    server->command({"DEL", shard() + ":0"});
    redis_filter other = redis_filter::open(at("x"));
    EXPECT_EQ(code_of([&] { other.repair([](redis_filter&) { ADD_FAILURE(); }); }), errc::locked);
  });
  f.drop();
  redis_filter counts = redis_filter::create(at("x"), counting(fixed_params));
  server->command({"DEL", shard() + ":0"});
  const auto refused = error_of([&] { counts.repair([](redis_filter&) { ADD_FAILURE(); }); });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code(), errc::incompatible);
  EXPECT_THAT(refused->what(), testing::HasSubstr("replace the filter"));
}

TEST_F(RedisRepair, RestoresTheSameBitsAndChangesNoOtherShard) {
  for (const redis_params& p : {fixed_params, sharded(growing(4 * n), shard_count), window_params}) {
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

TEST_F(RedisRepair, RefillsAShardAfterAnInterruptedRepairAndALostHeader) {
  redis_filter f = redis_filter::create(at("x"), fixed_params);
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  server->command({"DEL", shard() + ":0"});
  interrupt_repair(f, n / 2);
  server->command({"DEL", shard() + ":h"});

  EXPECT_EQ(f.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), std::vector<std::uint64_t>{lost_shard});

  EXPECT_EQ(count_found(f, old), n);
  EXPECT_EQ(found_at(at("x"), old), n);
}

TEST_F(RedisRepair, ReportsNoKeyAsNewBeforeItIsRefilled) {
  for (const redis_params& p : {fixed_params, scalable_params, window_params}) {
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

TEST_F(RedisRepair, RemovesBitsThatAClientWroteWhereALayerIsToCome) {
  redis_filter f = redis_filter::create(at("x"), scalable_params);
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

TEST_F(RedisRepair, EndsTheLocalCopiesOfEarlierLayers) {
  redis_filter f = redis_filter::create(at("x"), scalable_params);
  std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  redis_filter knows = redis_filter::open(at("x"), {.local_copy = true});
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

TEST_F(RedisRepair, EndsByItselfWhenAllGenerationsOfAWindowAreNewer) {
  redis_filter f = redis_filter::create(at("x"), windowed(window_params, std::chrono::seconds(1)));
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
    const auto code = code_of([&] { EXPECT_TRUE(f.may_contain(key)); });
    EXPECT_TRUE(!code || code == errc::damaged);
    return !code;
  });
}

TEST_F(RedisRepair, FailsAndLeavesNothingIfTheFilterIsDroppedOrReplaced) {
  const redis_params p = fixed_params;
  const std::vector<std::uint64_t> old = keys_from(0, n);
  for (const bool is_replaced : {false, true}) {
    for (const bool inserts_after : {false, true}) {
      redis_filter f = filled(p, old);
      server->command({"DEL", shard() + ":0", shard() + ":h"});
      const auto code = code_of([&] {
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
      });
      EXPECT_EQ(code, is_replaced ? errc::locked : errc::not_found);
      if (is_replaced) {
        EXPECT_EQ(count_found(f, old), n);
        f.drop();
      }
      EXPECT_THAT(names(), testing::IsEmpty());
      server->command({"FLUSHALL"});
    }
  }
}

// Between the requests of the repairing client.
TEST_F(RedisRepair, LeavesNothingIfTheFilterIsDroppedBeforeAHeaderIsWritten) {
  redis_filter f = filled(fixed_params, keys_from(0, n));
  proxy between(server->socket());
  redis_filter slow = redis_filter::open(between.address());
  EXPECT_TRUE(slow.repair([](redis_filter&) {}).empty());  // the server has the script of the lease
  server->command({"DEL", shard() + ":0", shard() + ":h"});
  between.before("{x}:repair", [&] { between.before("EVALSHA", [&] { f.drop(); }); });
  EXPECT_EQ(code_of([&] { slow.repair([](redis_filter&) { ADD_FAILURE() << "the filter was dropped"; }); }),
            errc::not_found);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(RedisRepair, LeavesTheExpiryThatAnotherClientSetsMeanwhile) {
  redis_params p = fixed_params;
  p.expires_in = std::chrono::minutes(1);
  redis_filter f = filled(p, keys_from(0, n));
  proxy between(server->socket());
  redis_filter slow = redis_filter::open(between.address());
  server->command({"DEL", shard() + ":0"});
  between.before("{x}:repair", [&] { f.expire(std::chrono::hours(2)); });

  EXPECT_EQ(slow.repair([](redis_filter& fresh) { insert_all(fresh, keys_from(0, n)); }).size(), 1u);

  EXPECT_GT(server->command({"PTTL", shard() + ":h"}).integer(), 7'000'000);
  EXPECT_NEAR(static_cast<double>(server->command({"PTTL", shard() + ":0"}).integer()),
              static_cast<double>(server->command({"PTTL", shard() + ":h"}).integer()), 1000);
}

class RedisRepairOnACluster : public on_a_cluster<RedisRepairOnACluster> {};

TEST_F(RedisRepairOnACluster, EveryShardOfALostNodeIsRefilled) {
  redis_filter f = redis_filter::create(cluster->address("x"), sharded(growing(1000), shard_count));
  const std::vector<std::uint64_t> old = keys_from(0, n);
  insert_all(f, old);
  redis_filter reader = redis_filter::open(cluster->address("x"));
  ASSERT_EQ(count_found(reader, old), n);
  std::vector<redis_shard> before;
  f.info(&before);
  const std::string node = before[lost_shard].node;
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    if (!node.ends_with(":" + std::to_string(cluster->node(i).port()))) continue;
    cluster->node(i).command({"FLUSHALL"});
  }
  std::vector<std::uint64_t> expected;
  for (std::uint64_t s = 0; s < shard_count; ++s) {
    if (before[s].node == node) expected.push_back(s);
  }

  EXPECT_EQ(f.repair([&](redis_filter& fresh) { insert_all(fresh, old); }), expected);

  EXPECT_EQ(count_found(f, old), n);
  EXPECT_EQ(count_found(reader, old), n);
  EXPECT_LE(f.info().rate_now, 0.01);
}

}  // namespace
}  // namespace bloomery
