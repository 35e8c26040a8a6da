// Shared filters whose description or shards are evicted or deleted while clients use them. The truth is the set of
// acknowledged keys: a client that opens the filter finds all of them.
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/description.hpp"
#include "redis/filter/description_check.hpp"
#include "redis/filters.hpp"
#include "redis/proxy.hpp"
#include "support/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using redis::advance_check_clock;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// ---- lost under clients ---------------------------------------------------------------------------------------------

TEST_F(RedisDescription, ThatIsDeletedIsRestoredByWritersOfEveryKindOfFilterWithinAMinute) {
  for (const kind& k : kinds()) {
    SCOPED_TRACE(k.name);
    server->command({"FLUSHALL"});
    std::vector<std::string> notes;
    redis_options options;
    options.notes = [&](const std::string& note) { notes.push_back(note); };
    redis_filter writer = redis_filter::create(at("x"), k.parameters, options);
    insert_all(writer, keys_from(0, 1000));
    lose_description();
    insert_all(writer, keys_from(1000, 500));
    EXPECT_EQ(descriptions(), 0) << "this insert was to check nothing";

    advance_check_clock(seconds(31));
    insert_all(writer, keys_from(1500, 500));

    EXPECT_EQ(descriptions(), 2);
    EXPECT_EQ(found_by_reader(keys_from(0, 2000)), 2000u);
    EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("restored")));
  }
}

TEST_F(RedisDescription, ThatIsDeletedIsRestoredByLookupsAndRemovals) {
  redis_filter f = redis_filter::create(at("x"), kinds().back().parameters);
  insert_all(f, keys_from(0, 1000));

  lose_description();
  advance_check_clock(seconds(31));
  EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u);
  EXPECT_EQ(descriptions(), 2);

  lose_description();
  advance_check_clock(seconds(31));
  EXPECT_EQ(f.remove(std::span<const std::uint64_t>(keys_from(0, 10))), 10u);
  EXPECT_EQ(descriptions(), 2);
  EXPECT_EQ(found_by_reader(keys_from(10, 990)), 990u);
}

TEST_F(RedisDescription, ThatWasLostIsCheckedEverySecondAtFirst) {
  redis_filter f = redis_filter::create(at("x"), integers(1000, 0.01));
  lose_description();
  advance_check_clock(seconds(31));
  f.insert(std::uint64_t{1});
  ASSERT_EQ(descriptions(), 2);

  lose_description();
  advance_check_clock(milliseconds(1'500));
  f.insert(std::uint64_t{2});
  EXPECT_EQ(descriptions(), 2);

  // 1 s, then an eighth longer each time: 29 s after 29 checks.
  std::uint64_t reads = 0;
  server->command({"CONFIG", "RESETSTAT"});
  for (int second = 0; second < 600; ++second) {
    advance_check_clock(seconds(1));
    f.may_contain(std::uint64_t{1});
  }
  reads = calls_of("get") / 2;
  EXPECT_GT(reads, 600u / 30 + 5);
  EXPECT_LT(reads, 60u);
}

TEST_F(RedisDescription, OfWhichOneKeyIsLostIsCompleteAfterTheNextInsertThatChecks) {
  redis_filter f = redis_filter::create(at("x"), integers(1000, 0.01));
  for (const char* key : {"{x}:m", "{x}:m2"}) {
    server->command({"DEL", key});
    advance_check_clock(seconds(31));

    f.insert(std::uint64_t{1});

    EXPECT_EQ(descriptions(), 2) << key;
    EXPECT_EQ(server->command({"GET", "{x}:m"}).text(), server->command({"GET", "{x}:m2"}).text());
  }
}

TEST_F(RedisDescription, IsCheckedBeforeACallOfMoreThanAMinuteReturns) {
  redis_filter::create(at("x"), integers(1000, 0.01));
  proxy net(server->socket());
  redis_address a = at("x");
  a.socket.clear();
  a.endpoints = {{"127.0.0.1", net.port()}};
  redis_filter f = redis_filter::open(a);
  net.before("BITFIELD", [] {
    advance_check_clock(seconds(61));
    lose_description();
  });

  f.insert(std::uint64_t{1});

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(descriptions(), 2);
}

TEST_F(RedisDescription, ThatIsRestoredHasTheExpiryThatAnotherClientHasSet) {
  redis_filter f = redis_filter::create(at("x"), integers(1000, 0.01));
  redis_filter::open(at("x")).expire(milliseconds(1'000'000));
  lose_description();
  advance_check_clock(hours(5));

  f.insert(std::uint64_t{1});

  for (const char* key : {"{x}:m", "{x}:m2"}) {
    const std::int64_t left = server->command({"PTTL", key}).integer();
    EXPECT_GT(left, 900'000);
    EXPECT_LE(left, 1'000'000);
  }
}

// A check of the description is in the batch that sets the expiry of the shards, before the description changes.
TEST_F(RedisDescription, OfBeforeAnExpiryIsNotCopiedAfterIt) {
  proxy net(server->socket());
  redis_address through = at("x");
  through.socket.clear();
  through.endpoints = {{"127.0.0.1", net.port()}};
  redis_filter f = redis_filter::create(through, integers(1000, 0.01));
  net.before("HGETALL", [] { advance_check_clock(seconds(31)); });
  f.expire(milliseconds(1'000'000));
  ASSERT_TRUE(net.has_acted());

  f.insert(std::uint64_t{1});

  const std::string header = server->shard("x", 0) + ":h";
  EXPECT_EQ(server->command({"HGET", header, "meta"}).text(), server->command({"GET", "{x}:m"}).text());
}

TEST_F(RedisDescription, IsNotNeededToReplaceAFilter) {
  redis_filter f = redis_filter::create(at("x"), integers(1000, 0.01));

  f.replace(integers(2000, 0.01), [](redis_filter& fresh) {
    insert_all(fresh, keys_from(0, 500));
    lose_description();
  });

  EXPECT_EQ(descriptions(), 2);
  EXPECT_EQ(found_by_reader(keys_from(0, 500)), 500u);
  EXPECT_EQ(f.parameters().filter.capacity, 2000u);
}

TEST_F(RedisDescription, ThatIsLostDoesNotStopAUserWhoMayOnlyLookUp) {
  redis_filter writer = redis_filter::create(at("x"), integers(1000, 0.01));
  insert_all(writer, keys_from(0, 500));
  redis_filter reader = redis_filter::open(limited({"+get", "+getrange", "+hgetall", "+time"}));
  lose_description();
  advance_check_clock(seconds(61));

  EXPECT_EQ(count_found(reader, keys_from(0, 500)), 500u);
  EXPECT_EQ(descriptions(), 0);

  insert_all(writer, keys_from(500, 10));
  EXPECT_EQ(descriptions(), 2);
  drop_halfway();
  advance_check_clock(seconds(61));
  EXPECT_EQ(code_of([&] { count_found(reader, keys_from(0, 500)); }), errc::not_found);
}

TEST_F(RedisDescription, ThatCannotBeRestoredIsAnErrorForInserts) {
  redis_filter::create(at("x"), integers(1000, 0.01));
  redis_filter writer =
      redis_filter::open(limited({"+get", "+getrange", "+hgetall", "+time", "+bitfield", "+script|load"}));
  writer.insert(std::uint64_t{1});
  lose_description();
  advance_check_clock(seconds(31));

  EXPECT_EQ(code_of([&] { writer.insert(std::uint64_t{2}); }), errc::not_permitted);
}

// ---- lost without clients -------------------------------------------------------------------------------------------

TEST_F(RedisDescription, IsRestoredByCreateFromTheShardsOfTheName) {
  for (const std::string name : {"x", "a*[b]?\\{c}~d"}) {
    for (const kind& k : kinds()) {
      SCOPED_TRACE(name + " " + k.name);
      server->command({"FLUSHALL"});
      std::string encoded;
      {
        redis_filter f = redis_filter::create(at(name), k.parameters);
        insert_all(f, keys_from(0, 1000));
        redis_filter::create(at(name + "2"), k.parameters);
      }
      for (const std::string& key : names("*")) {
        const bool is_other = key.find("2}:") != std::string::npos || key.find("2~") != std::string::npos;
        if (!is_other && (key.ends_with("}:m") || key.ends_with("}:m2"))) server->command({"DEL", key});
      }
      ASSERT_EQ(code_of([&] { redis_filter::open(at(name)); }), errc::not_found);

      redis_params another = k.parameters;
      another.filter.capacity *= 2;
      EXPECT_EQ(code_of([&] { redis_filter::create(at(name), another); }), errc::incompatible);
      redis_filter f = redis_filter::create(at(name), k.parameters);

      EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u);
    }
  }
}

TEST_F(RedisDescription, OfAnotherFilterIsFoundByWritersWithinAMinute) {
  for (const kind& k : kinds()) {
    SCOPED_TRACE(k.name);
    server->command({"FLUSHALL"});
    redis_filter writer = redis_filter::create(at("x"), k.parameters);
    insert_all(writer, keys_from(0, 1000));
    lose_description();
    std::vector<std::string> notes;
    redis_options options;
    options.notes = [&](const std::string& note) { notes.push_back(note); };
    const redis_address no_scan = limited({"+@all", "-scan"});
    redis_filter fresh = redis_filter::create(no_scan, k.parameters, options);
    EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("SCAN")));
    EXPECT_LT(count_found(fresh, keys_from(0, 1000)), 50u);
    advance_check_clock(seconds(31));

    std::vector<std::uint8_t> is_new(1000);
    const auto keys = keys_from(0, 1000);
    EXPECT_GT(writer.insert(std::span(keys), is_new), 950u) << "these are answers of the filter before";

    EXPECT_EQ(count_found(fresh, keys_from(0, 1000)), 1000u);
    EXPECT_EQ(found_by_reader(keys_from(0, 1000)), 1000u);
  }
}

TEST_F(RedisDescription, AndHeadersThatAreEvictedAreNotReplacedByAnEmptyFilter) {
  for (const kind& k : kinds()) {
    SCOPED_TRACE(k.name);
    server->command({"FLUSHALL"});
    redis_filter writer = redis_filter::create(at("x"), k.parameters);
    insert_all(writer, keys_from(0, 1000));
    for (const std::string& key : names("{x~*:h")) server->command({"DEL", key});
    lose_description();

    EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), k.parameters); }), errc::damaged);

    advance_check_clock(seconds(31));
    EXPECT_EQ(count_found(writer, keys_from(0, 1000)), 1000u);
    redis_filter other = redis_filter::create(at("x"), k.parameters);
    EXPECT_EQ(count_found(other, keys_from(0, 1000)), 1000u);
    lose_description();
    EXPECT_TRUE(redis_filter::drop(at("x")));
    EXPECT_EQ(names("*").size(), 0u);
    EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), k.parameters); }), std::nullopt);
  }
}

TEST_F(RedisDescription, OfTwoOrphansOfOneNameIsNotGuessed) {
  const auto wanted = kinds().front().parameters;
  for (int i = 0; i < 2; ++i) {
    redis_filter::create(limited({"+@all", "-scan"}), wanted);
    lose_description();
  }

  EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), wanted); }), errc::damaged);
  EXPECT_TRUE(redis_filter::drop(at("x")));
  EXPECT_EQ(names("*").size(), 0u);
  EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), wanted); }), std::nullopt);
}

TEST_F(RedisDescription, IsCopiedIntoTheHeadersOfAFilterWithoutCopiesByTheNextInsertThatChecks) {
  redis_filter f = redis_filter::create(at("x"), kinds().front().parameters);
  const std::string header = server->shard("x", 0) + ":h";
  const std::string text = server->command({"GET", "{x}:m"}).text();
  EXPECT_EQ(server->command({"HGET", header, "meta"}).text(), text);
  for (int s = 0; s < 5; ++s) {
    server->command({"HDEL", server->shard("x", static_cast<std::uint64_t>(s)) + ":h", "meta"});
  }
  redis_filter old_filter = redis_filter::open(at("x"));

  old_filter.insert(std::uint64_t{1});
  EXPECT_EQ(server->command({"HEXISTS", header, "meta"}).integer(), 0);
  advance_check_clock(seconds(31));
  old_filter.insert(std::uint64_t{2});

  EXPECT_EQ(server->command({"HGET", header, "meta"}).text(), text);
}

// ---- cost -----------------------------------------------------------------------------------------------------------

TEST_F(RedisDescription, CostsTwoCommandsAndOnePerShardTwiceAMinuteAndNoneInBetween) {
  redis_filter f = redis_filter::create(at("x"), kinds().front().parameters);
  insert_all(f, keys_from(0, 1000));
  advance_check_clock(seconds(31));
  f.insert(std::uint64_t{1});
  const auto processed = [&](const std::function<void()>& work) {
    server->command({"CONFIG", "RESETSTAT"});
    work();
    return std::vector<std::uint64_t>{calls_of("getrange"), calls_of("get"), calls_of("hgetall")};
  };

  const auto without = processed([&] {
    for (int i = 0; i < 20; ++i) count_found(f, keys_from(0, 1000));
  });
  advance_check_clock(seconds(31));
  const auto with = processed([&] {
    for (int i = 0; i < 20; ++i) count_found(f, keys_from(0, 1000));
  });

  EXPECT_THAT(without, testing::ElementsAre(20 * 1005, 0, 0)) << "1000 lines and 5 stamps per batch";
  EXPECT_THAT(with, testing::ElementsAre(20 * 1005, 2, 5));
}

// ---- a full server --------------------------------------------------------------------------------------------------

TEST_F(RedisDescription, OutlivesTheEvictionOfOtherKeysWhileAWriterUsesTheFilter) {
  test_server full({.config = {"maxmemory 24mb", "maxmemory-policy allkeys-lru", "maxmemory-samples 20"}});
  redis_params wanted = integers(20'000, 0.01);
  redis_filter writer = redis_filter::create(full.address("x"), wanted);
  std::uint64_t acknowledged = 0;
  bool damaged = false;
  const std::string value(20'000, 'x');
  // The server's clock for eviction counts seconds.
  for (int round = 0; round < 5 && !damaged; ++round) {
    for (int i = 0; i < 500; ++i) full.command({"SET", "filler" + std::to_string(500 * round + i), value});
    const auto end = std::chrono::steady_clock::now() + milliseconds(1'100);
    while (!damaged && std::chrono::steady_clock::now() < end) {
      const auto code = code_of([&] { insert_all(writer, keys_from(acknowledged, 100)); });
      EXPECT_TRUE(!code || code == errc::damaged) << static_cast<int>(*code);
      damaged = code.has_value();
      if (!damaged) acknowledged += 100;
      advance_check_clock(seconds(31));
    }
  }
  ASSERT_GT(std::stoull(full.command({"INFO", "stats"})
                            .text()
                            .substr(full.command({"INFO", "stats"}).text().find("evicted_keys:") + 13)),
            500u);

  redis_filter reader = redis_filter::open(full.address("x"));
  expect_never_absent(reader, keys_from(0, acknowledged));
  if (damaged) return;  // the server's choice of keys to evict is random to a degree
  EXPECT_EQ(full.command({"KEYS", "{x~*:h"}).reply().size(), writer.parameters().shards);
  EXPECT_EQ(code_of([&] { reader.info(); }), std::nullopt);
}

// ---- lost headers ---------------------------------------------------------------------------------------------------

TEST_F(RedisDescription, ReplacesTheHeadersOfShardsThatHaveNotChangedForInfo) {
  for (const kind& k : kinds()) {
    SCOPED_TRACE(k.name);
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), k.parameters);
    insert_all(f, keys_from(0, 300));
    const redis_info before = f.info();
    for (const std::string& header : names("{x~*:h")) server->command({"DEL", header});

    redis_filter fresh = redis_filter::open(at("x"));
    for (redis_filter* client : {&f, &fresh}) {
      if (k.parameters.growth != redis_growth::none) {
        EXPECT_EQ(code_of([&] { client->info(); }), errc::damaged) << "the count of keys is lost";
        continue;
      }
      const redis_info now = client->info();
      EXPECT_EQ(now.ones, before.ones);
      EXPECT_EQ(now.inserted, before.inserted);
      EXPECT_EQ(now.rate_now, before.rate_now);
      EXPECT_EQ(count_found(*client, keys_from(0, 300)), 300u);
    }

    server->command({"DEL", names("{x~*:" + std::string(k.name == std::string("window") ? "[0-9]*" : "0")).front()});
    EXPECT_EQ(code_of([&] { fresh.info(); }), errc::damaged);
  }
}

TEST_F(RedisDescription, DoesNotReplaceTheHeaderOfAShardThatHasChanged) {
  redis_filter f = redis_filter::create(at("x"), integers(4000, 0.01));
  insert_all(f, keys_from(0, 300));
  // Marks all shards, and takes the marks away.
  EXPECT_THROW(f.replace(integers(4000, 0.01), [](redis_filter&) { throw std::runtime_error("given up"); }),
               std::runtime_error);
  f.info();
  server->command({"DEL", names("{x~*:h").front()});

  EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
  EXPECT_EQ(code_of([] { redis_filter::open(at("x")).info(); }), errc::damaged);
}

// ---- lookups in lost shards -----------------------------------------------------------------------------------------

TEST_F(RedisDescription, OfALostShardMayBeAnsweredMaybe) {
  for (const kind& k : kinds()) {
    for (const char* lost : {":h", ":layer"}) {
      SCOPED_TRACE(std::string(k.name) + lost);
      server->command({"FLUSHALL"});
      redis_params wanted = k.parameters;
      wanted.shards = 16;
      redis_filter f = redis_filter::create(at("x"), wanted);
      insert_all(f, keys_from(0, 400));
      redis_options careful, tolerant;
      tolerant.on_damage = redis_damage::maybe;
      redis_filter strict = redis_filter::open(at("x"), careful);
      redis_filter guard = redis_filter::open(at("x"), tolerant);
      for (const std::string& key : names(server->shard("x", 3) + ":*")) {
        if (lost == std::string(":layer") || key.ends_with(":h")) server->command({"DEL", key});
      }
      // Independent of the client: the shard of a key is the high part of its hash, as docs/redis.md has it.
      std::vector<std::uint64_t> here, elsewhere;
      for (const std::uint64_t key : keys_from(1'000'000, 4000)) {
        (multiply_high(mix{}(key).hash64, 16) == 3 ? here : elsewhere).push_back(key);
      }

      EXPECT_LT(count_found(strict, elsewhere), 150u);
      EXPECT_LT(count_found(guard, elsewhere), 150u);
      insert_all(strict, std::vector<std::uint64_t>(elsewhere.begin(), elsewhere.begin() + 100));
      if (lost == std::string(":layer")) {
        EXPECT_EQ(code_of([&] { count_found(strict, here); }), errc::damaged);
        EXPECT_EQ(count_found(guard, here), here.size());
        EXPECT_EQ(code_of([&] { insert_all(guard, here); }), errc::damaged);
        std::vector<std::uint64_t> both = elsewhere;
        both.insert(both.end(), here.begin(), here.end());
        const std::uint64_t found = count_found(guard, both);
        EXPECT_GE(found, here.size());
        EXPECT_LT(found, here.size() + 250);
      }
      EXPECT_EQ(count_found(guard, keys_from(0, 400)), 400u);
    }
  }
}

// ---- clusters -------------------------------------------------------------------------------------------------------

class RedisDescriptionInACluster : public on_a_cluster<RedisDescriptionInACluster> {
 public:
  static cluster_options options() { return {.masters = 3, .replicas = 0}; }
};

TEST_F(RedisDescriptionInACluster, IsRestoredByWritersAndByCreateAndDroppedByName) {
  test_server& node = cluster->node(cluster->owner(redis::slot_of("{x}:m")));
  const auto lose = [&] { EXPECT_EQ(node.command({"DEL", "{x}:m", "{x}:m2"}).integer(), 2); };
  const redis_address a = cluster->address("x");
  redis_params wanted = integers(20'000, 0.01);
  wanted.shards = 16;
  redis_filter writer = redis_filter::create(a, wanted);
  insert_all(writer, keys_from(0, 5000));
  lose();
  advance_check_clock(seconds(31));
  insert_all(writer, keys_from(5000, 100));
  redis_filter reader = redis_filter::open(a);
  EXPECT_EQ(count_found(reader, keys_from(0, 5100)), 5100u);

  lose();
  redis_filter again = redis_filter::create(a, wanted);
  EXPECT_EQ(count_found(again, keys_from(0, 5100)), 5100u);

  lose();
  EXPECT_TRUE(redis_filter::drop(a));
  std::int64_t keys = 0;
  for (std::size_t i = 0; i < cluster->size(); ++i) keys += cluster->node(i).command({"DBSIZE"}).integer();
  EXPECT_EQ(keys, 1) << "the mark";
  EXPECT_EQ(code_of([&] { insert_all(writer, keys_from(0, 100)); }), errc::not_found);
}

}  // namespace
}  // namespace bloomery
