// A shared filter on a cluster with moving slots, failing masters and delayed replicas; and random sequences of
// operations of two clients on one filter. The reference is the set of acknowledged keys.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/cluster.hpp"
#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/servers.hpp"
#include "support/operations.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

class RedisRaces : public on_a_cluster<RedisRaces> {
 protected:
  static std::uint16_t slot_of_shard(const std::string& name, std::uint64_t shard) {
    const std::string key = "{" + name + "}:m";
    return redis::slot_of(cluster->node(cluster->owner(redis::slot_of(key))).shard(name, shard));
  }
};

constexpr std::uint64_t apart = 1'000'000'000;

// Threads that insert until end(), and count acknowledged keys.
class writers {
 public:
  writers(const redis_address& address, std::size_t count, const redis_options& options = {}) : acknowledged_(count) {
    for (std::size_t w = 0; w < count; ++w) {
      threads_.emplace_back([this, address, options, w] {
        try {
          redis_filter f = redis_filter::open(address, options);
          std::mt19937_64 random(w);
          while (!done_) {
            const std::uint64_t some = 1 + random() % 100;
            insist([&] { insert_all(f, keys_from(w * apart + acknowledged_[w], some)); });
            acknowledged_[w] += some;
          }
        } catch (const error& e) {
          ADD_FAILURE() << e.what();
        }
      });
    }
  }
  ~writers() { end(); }

  void end() {
    done_ = true;
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  std::size_t count() const { return acknowledged_.size(); }
  std::uint64_t of(std::size_t w) const { return acknowledged_[w]; }
  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (const auto& one : acknowledged_) all += one;
    return all;
  }

  // Of all that was acknowledged when this was called.
  std::uint64_t missing_in(redis_filter& f) const {
    std::uint64_t missing = 0;
    for (std::size_t w = 0; w < count(); ++w) {
      const std::uint64_t all = of(w);
      missing += all - count_found(f, keys_from(w * apart, all));
    }
    return missing;
  }

 private:
  std::vector<std::atomic<std::uint64_t>> acknowledged_;
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

TEST_F(RedisRaces, SlotsMoveWhileWritersGrowTheFilterAndNothingIsAbsent) {
  redis_params wanted = growing(200);
  wanted.shards = 6;
  redis_filter f = redis_filter::create(cluster->address("moves"), wanted);
  writers some(cluster->address("moves"), 8);
  std::atomic<std::uint64_t> missing = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      try {
        redis_filter g = redis_filter::open(cluster->address("moves"));
        std::mt19937_64 random(static_cast<std::uint64_t>(r));
        while (!done) {
          const std::size_t w = random() % some.count();
          const std::uint64_t all = some.of(w);
          const std::uint64_t latest = std::min<std::uint64_t>(all, 300);
          missing += latest - count_found(g, keys_from(w * apart + all - latest, latest));
        }
      } catch (const error& e) {
        ADD_FAILURE() << e.what();
      }
    });
  }
  const auto end = [&] {
    done = true;
    for (std::thread& t : readers) t.join();
    readers.clear();
    some.end();
  };
  struct at_the_end {
    const decltype(end)& work;
    ~at_the_end() { work(); }
  } const guard{end};
  const std::uint64_t before = some.sum();
  for (int round = 0; round < (is_long() ? 10 : 1); ++round) {
    for (const std::uint64_t shard : {0u, 1u, 2u}) {
      const std::uint16_t slot = slot_of_shard("moves", shard);
      const std::size_t home = cluster->owner(slot);
      // A part of the keys is here, and a part is there. What concerns several of them, as growth, has to wait.
      const auto wait_a_little = [&] {
        const std::uint64_t now = some.sum();
        const auto most = std::chrono::steady_clock::now() + milliseconds(60);
        while (some.sum() < now + 200 && std::chrono::steady_clock::now() < most)
          std::this_thread::sleep_for(milliseconds(1));
      };
      cluster->move_slot(slot, (home + 1) % 3, wait_a_little);
      cluster->move_slot(slot, home, wait_a_little);
      const std::uint64_t now = some.sum();
      wait_until("the writers go on", [&] { return some.sum() > now + 200; });
    }
  }
  end();

  EXPECT_GT(some.sum(), before + 1000);
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(some.missing_in(f), 0u);
  const redis_info i = f.info();
  EXPECT_GT(i.layers, 1u);
  EXPECT_LE(i.rate_now, 0.01);
  EXPECT_GE(static_cast<double>(i.inserted), static_cast<double>(some.sum()) * 0.98);
}

redis_options of_replicas() {
  redis_options options;
  options.connection.read_from_replicas = true;
  return options;
}

// Separates the replica of a slot from its master until the object is destroyed.
class replica_alone {
 public:
  replica_alone(test_cluster& cluster, std::uint16_t slot) : cluster_(cluster) {
    test_server& master = cluster.node(cluster.owner(slot));
    for (std::size_t i = 3; i < cluster.size(); ++i) {
      const std::string about = about_replication(cluster.node(i));
      if (about.find("master_port:" + std::to_string(master.port()) + "\r") != std::string::npos) {
        replica_ = &cluster.node(i);
      }
    }
    if (replica_ == nullptr) throw std::runtime_error("the slot's master has no replica");
    replica_->command({"CONFIG", "SET", "masteruser", "nobody"});
    replica_->command({"CONFIG", "SET", "masterauth", "wrong"});
    master.command({"CLIENT", "KILL", "TYPE", "replica"});
    wait_until("the replica is alone",
               [&] { return about_replication(*replica_).find("master_link_status:down") != std::string::npos; });
  }
  ~replica_alone() {
    replica_->command({"CONFIG", "SET", "masteruser", ""});
    replica_->command({"CONFIG", "SET", "masterauth", ""});
    cluster_.wait_until_well();
  }

 private:
  static std::string about_replication(test_server& node) { return node.command({"INFO", "replication"}).text(); }

  test_cluster& cluster_;
  test_server* replica_ = nullptr;
};

TEST_F(RedisRaces, AReplicaThatIsBehindIsNotDamage) {
  redis_params wanted = growing(100);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(cluster->address("behind"), wanted);
  insert_all(f, keys_from(0, 50));
  redis_filter g = redis_filter::open(cluster->address("behind"), of_replicas());
  EXPECT_LE(count_found(g, keys_from(0, 50)), 50u);
  wait_until("the replica has them", [&] { return count_found(g, keys_from(0, 50)) == 50; });
  const replica_alone guard(*cluster, slot_of_shard("behind", 0));

  insert_all(f, keys_from(0, 20'000));  // new layers, new stamps
  EXPECT_EQ(count_found(f, keys_from(0, 20'000)), 20'000u);
  EXPECT_EQ(code_of([&] { count_found(g, keys_from(0, 20'000)); }), std::nullopt);
  insert_all(g, keys_from(50'000, 5'000));  // this reads the new shard versions, which the replica lacks

  EXPECT_EQ(count_found(g, keys_from(0, 20'000)), 20'000u) << "then it asks the master";
  EXPECT_EQ(count_found(f, keys_from(50'000, 5'000)), 5'000u);
  redis_filter h = redis_filter::open(cluster->address("behind"), of_replicas());
  EXPECT_EQ(code_of([&] { count_found(h, keys_from(0, 50)); }), std::nullopt);
}

TEST_F(RedisRaces, MergesAndCountsReadFromTheMaster) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(cluster->address("from"), wanted);
  redis_filter to = redis_filter::create(cluster->address("to"), wanted);
  redis_filter g = redis_filter::open(cluster->address("from"), of_replicas());
  insert_all(f, keys_from(0, 1));
  wait_until("the replica has it", [&] { return count_found(g, keys_from(0, 1)) == 1; });
  const replica_alone guard(*cluster, slot_of_shard("from", 0));
  insert_all(f, keys_from(1, 99));

  to.merge(g);

  EXPECT_EQ(count_found(to, keys_from(0, 100)), 100u);
  EXPECT_EQ(g.info().ones, f.info().ones);
}

TEST_F(RedisRaces, AMasterDiesAndNothingThatReplicasHaveIsLost) {
  redis_params wanted = growing(200);
  wanted.shards = 4;
  redis_filter f = redis_filter::create(cluster->address("dies"), wanted);
  redis_options safe;
  safe.wait_replicas = 1;
  safe.connection.time = milliseconds(1500);
  cluster->wait_until_well();
  writers some(cluster->address("dies"), 4, safe);
  wait_until("some inserts", [&] { return some.sum() > 1000; });
  const std::uint16_t slot = slot_of_shard("dies", 0);
  const std::size_t victim = cluster->owner(slot);

  cluster->kill(victim);
  cluster->wait_for_failover(slot, victim);
  insist([&] { EXPECT_EQ(some.missing_in(f), 0u); });
  cluster->revive(victim);
  const std::uint64_t then = some.sum();
  wait_until(
      "the writers go on", [&] { return some.sum() > then + 1000; }, std::chrono::seconds(40));
  some.end();

  EXPECT_EQ(some.missing_in(f), 0u);
  EXPECT_LE(f.info().rate_now, 0.01);
}

TEST_F(RedisRaces, KeysInsertedIntoBothAreOnReplicasOfBoth) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 1;
  redis_options safe;
  safe.wait_replicas = 1;
  safe.connection.time = milliseconds(500);
  cluster->wait_until_well();
  redis_filter f = redis_filter::create(cluster->address("both"), wanted);
  redis_filter g = redis_filter::open(cluster->address("both"), safe);
  const std::size_t home = cluster->owner(slot_of_shard("both", 0));
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

// ---- random sequences -----------------------------------------------------------------------------------------------

enum class deed : std::uint8_t {
  insert,
  look_up,
  clear,
  expire,
  persist,
  replace,
  merge,
  cut,
  make_anew,
  forget_scripts
};

struct operation {
  deed what;
  std::uint64_t client;
  std::uint64_t first;
  std::uint64_t count;

  friend std::ostream& operator<<(std::ostream& out, const operation& o) {
    constexpr const char* names[] = {"insert",  "look up", "clear", "expire",   "persist",
                                     "replace", "merge",   "cut",   "recreate", "forget scripts"};
    return out << names[static_cast<std::size_t>(o.what)] << " by " << o.client << ": " << o.first << ", " << o.count;
  }
};

TEST(RedisSequences, TwoClientsDoWhatTheyLikeAndTheModelHolds) {
  if (test_server::program().empty()) GTEST_SKIP() << test_server::how_to_get_one;
  test_server server;
  const auto draw = [](std::mt19937_64& random) {
    const std::uint64_t dice = random() % 100;
    const deed what = dice < 40   ? deed::insert
                      : dice < 60 ? deed::look_up
                      : dice < 65 ? deed::clear
                      : dice < 70 ? deed::expire
                      : dice < 75 ? deed::persist
                      : dice < 82 ? deed::replace
                      : dice < 87 ? deed::merge
                      : dice < 92 ? deed::cut
                      : dice < 96 ? deed::make_anew
                                  : deed::forget_scripts;
    return operation{what, random() % 2, random() % 5000, 1 + random() % 700};
  };
  const auto fails = [&](const std::vector<operation>& operations) -> std::string {
    if (operations.empty()) return "";
    server.command({"FLUSHALL"});
    const bool grows = operations.front().count % 2 == 0;
    redis_params wanted = grows ? growing(100) : integers(10'000, 0.01);
    wanted.shards = 1 + operations.front().first % 3;
    redis_options options;
    options.local_copy = operations.front().first % 5 == 0;
    std::vector<redis_filter> clients;
    clients.push_back(redis_filter::create(server.address("x"), wanted, options));
    clients.push_back(redis_filter::open(server.address("x")));
    std::set<std::uint64_t> model;
    const auto absent = [&](redis_filter& f) {
      const std::vector<std::uint64_t> all(model.begin(), model.end());
      return all.size() - count_found(f, all);
    };
    try {
      for (const operation& o : operations) {
        redis_filter& f = clients[static_cast<std::size_t>(o.client)];
        const auto keys = keys_from(o.first, o.count);
        switch (o.what) {
          case deed::insert: {
            std::vector<std::uint8_t> is_new(keys.size());
            f.insert(std::span<const std::uint64_t>(keys), is_new);
            for (std::size_t i = 0; i < keys.size(); ++i) {
              if (!model.insert(keys[i]).second && is_new[i] != 0) return "a key that is there is new";
            }
            break;
          }
          case deed::look_up:
            if (absent(f) != 0) return "an acknowledged key is absent";
            break;
          case deed::clear:
            f.clear();
            model.clear();
            break;
          case deed::expire: f.expire(milliseconds(3'600'000 + static_cast<int>(o.count))); break;
          case deed::persist:
            f.persist();
            for (const std::string& key :
                 {std::string("{x}:m"), server.shard("x", 0) + ":h",
                  server.shard("x", 0) +
                      (server.command({"EXISTS", server.shard("x", 0) + ":0"}).integer() == 1 ? ":0" : ":0c")}) {
              if (server.command({"PTTL", key}).integer() != -1) return "it does not stay: " + key;
            }
            break;
          case deed::replace:
            wanted.filter.capacity += o.count;
            wanted.shards = 1 + o.first % 4;
            f.replace(wanted, [&](redis_filter& fresh) {
              insert_all(fresh, {model.begin(), model.end()});
              insert_all(clients[static_cast<std::size_t>(1 - o.client)], keys);  // other clients continue
            });
            model.insert(keys.begin(), keys.end());
            break;
          case deed::merge: {
            if (grows) break;
            any_filter local(f.info().parameters.filter);
            local.insert(std::span<const std::uint64_t>(keys));
            f.merge(local);
            model.insert(keys.begin(), keys.end());
            break;
          }
          case deed::cut: server.command({"CLIENT", "KILL", "TYPE", "normal"}); break;
          case deed::make_anew:
            f.drop();
            model.clear();
            wanted.filter.seed = o.count;
            redis_filter::create(server.address("x"), wanted);
            break;
          case deed::forget_scripts: server.command({"SCRIPT", "FLUSH"}); break;
        }
      }
      for (redis_filter& f : clients) {
        if (absent(f) != 0) return "an acknowledged key is absent at the end";
      }
      const redis_info i = clients[0].info();
      if (i.rate_now > 0.01) return "the current FPR is above the target";
      const std::uint64_t wrong = count_found(clients[1], keys_from(std::uint64_t{1} << 40, 2000));
      if (static_cast<double>(wrong) > most_hits(0.01, 2000)) return "too many false positives";
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };

  EXPECT_TRUE(holds_for_all(is_long() ? 1000 : 40, 30, draw, fails));
}

}  // namespace
}  // namespace bloomery
