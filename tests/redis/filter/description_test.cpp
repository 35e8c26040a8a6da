// Shared filters whose description or shards are evicted or deleted while clients use them. The truth is the set of
// acknowledged keys: a client that opens the filter finds all of them.
#include "redis/filter/description.hpp"
#include "redis/filter/description_check.hpp"
#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using redis::advance_check_clock;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const redis_params described_params = kinds_of_filters().front().parameters;
const redis_params counted = kinds_of_filters().back().parameters;

// ---- lost under clients ---------------------------------------------------------------------------------------------

TEST_F(RedisDescription, IsRestoredByWritersWithinAMinute) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    server->command({"FLUSHALL"});
    std::vector<std::string> notes;
    redis_filter writer = redis_filter::create(at("x"), k.parameters, noting(notes));
    insert_all(writer, keys_from(0, 1000));
    lose_description();
    insert_all(writer, keys_from(1000, 500));
    EXPECT_EQ(descriptions(), 0) << "this insert was to check nothing";

    advance_check_clock(seconds(31));
    insert_all(writer, keys_from(1500, 500));

    EXPECT_EQ(descriptions(), 2);
    EXPECT_EQ(found_at(at("x"), keys_from(0, 2000)), 2000u);
    EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("restored")));
  }
}

TEST_F(RedisDescription, IsRestoredByLookupsAndRemovals) {
  redis_filter f = filled(counted, keys_from(0, 1000));
  const std::function<void()> calls[] = {
      [&] { EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u); },
      [&] { EXPECT_EQ(f.remove(std::span<const std::uint64_t>(keys_from(0, 10))), 10u); }};
  for (const auto& call : calls) {
    lose_description();
    advance_check_clock(seconds(31));
    call();
    EXPECT_EQ(descriptions(), 2);
  }
  EXPECT_EQ(found_at(at("x"), keys_from(10, 990)), 990u);
}

TEST_F(RedisDescription, IsCheckedEverySecondAtFirstAfterALoss) {
  redis_filter f = fresh(integers(1000, 0.01));
  lose_description();
  advance_check_clock(seconds(31));
  f.insert(std::uint64_t{1});
  ASSERT_EQ(descriptions(), 2);

  lose_description();
  advance_check_clock(milliseconds(1'500));
  f.insert(std::uint64_t{2});
  EXPECT_EQ(descriptions(), 2);

  // 1 s, then an eighth longer each time: 29 s after 29 checks.
  reset_calls();
  for (int second = 0; second < 600; ++second) {
    advance_check_clock(seconds(1));
    f.may_contain(std::uint64_t{1});
  }
  const std::uint64_t reads = calls_of("get") / 2;
  EXPECT_GT(reads, 600u / 30 + 5);
  EXPECT_LT(reads, 60u);
}

TEST_F(RedisDescription, IsCompleteAgainAfterTheLossOfOneOfItsTwoKeys) {
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
  redis_filter f = redis_filter::open(net.address());
  net.before("BITFIELD", [] {
    advance_check_clock(seconds(61));
    lose_description();
  });

  f.insert(std::uint64_t{1});

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(descriptions(), 2);
}

TEST_F(RedisDescription, IsRestoredWithTheExpiryThatAnotherClientHasSet) {
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
TEST_F(RedisDescription, IsNotCopiedIntoHeadersInItsFormBeforeAnExpiry) {
  proxy net(server->socket());
  redis_filter f = redis_filter::create(net.address(), integers(1000, 0.01));
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
  EXPECT_EQ(found_at(at("x"), keys_from(0, 500)), 500u);
  EXPECT_EQ(f.parameters().filter.capacity, 2000u);
}

TEST_F(RedisDescription, IsNotNeededByAUserWhoMayOnlyLookUp) {
  redis_filter writer = filled(integers(1000, 0.01), keys_from(0, 500));
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

TEST_F(RedisDescription, MustBeRestoredBeforeAnInsertIsAcknowledged) {
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
    for (const kind_of_filter& k : kinds_of_filters()) {
      SCOPED_TRACE(name + " " + k.name);
      server->command({"FLUSHALL"});
      redis_filter::create(at(name), k.parameters).insert(keys_from(0, 1000));
      redis_filter::create(at(name + "2"), k.parameters);
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

TEST_F(RedisDescription, IsFoundByWritersWithinAMinuteIfItIsAnother) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    redis_filter writer = fresh(k.parameters);
    insert_all(writer, keys_from(0, 1000));
    lose_description();
    std::vector<std::string> notes;
    redis_filter other = redis_filter::create(without("scan"), k.parameters, noting(notes));
    EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("SCAN")));
    EXPECT_LT(count_found(other, keys_from(0, 1000)), 50u);
    advance_check_clock(seconds(31));

    std::vector<std::uint8_t> is_new(1000);
    const auto keys = keys_from(0, 1000);
    EXPECT_GT(writer.insert(std::span(keys), is_new), 950u) << "these are answers of the filter before";

    EXPECT_EQ(count_found(other, keys_from(0, 1000)), 1000u);
    EXPECT_EQ(found_at(at("x"), keys_from(0, 1000)), 1000u);
  }
}

TEST_F(RedisDescription, IsNotReplacedByAnEmptyFilterIfHeadersAreLostToo) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    redis_filter writer = fresh(k.parameters);
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

TEST_F(RedisDescription, IsNotGuessedFromTheShardsOfTwoFilters) {
  const auto wanted = described_params;
  for (int i = 0; i < 2; ++i) {
    redis_filter::create(without("scan"), wanted);
    lose_description();
  }

  EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), wanted); }), errc::damaged);
  EXPECT_TRUE(redis_filter::drop(at("x")));
  EXPECT_EQ(names("*").size(), 0u);
  EXPECT_EQ(code_of([&] { redis_filter::create(at("x"), wanted); }), std::nullopt);
}

TEST_F(RedisDescription, IsCopiedIntoHeadersWithoutACopyByAnInsertThatChecks) {
  redis_filter f = redis_filter::create(at("x"), described_params);
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
  redis_filter f = filled(described_params, keys_from(0, 1000));
  advance_check_clock(seconds(31));
  f.insert(std::uint64_t{1});
  const auto processed = [&](const std::function<void()>& work) {
    reset_calls();
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

// The server evicts the keys that were used least recently. Its clock for that counts seconds.
TEST_F(RedisDescription, IsNotEvictedWhileAWriterUsesTheFilter) {
  test_server full({.config = {"maxmemory-policy allkeys-lru", "maxmemory-samples 20"}});
  redis_filter writer = redis_filter::create(full.address("x"), integers(20'000, 0.01));
  const std::uint64_t shards = writer.parameters().shards;
  std::uint64_t acknowledged = 0;
  const auto use = [&] {
    advance_check_clock(seconds(31));
    insert_all(writer, keys_from(acknowledged, 100));
    acknowledged += 100;
  };
  const auto fill = [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      full.command({"SET", "filler" + std::to_string(i), std::string(20'000, 'x')});
      if (i % 20 == 0) use();
    }
  };
  const auto number_in = [&](const char* section, const std::string& field) {
    const std::string about = full.command({"INFO", section}).text();
    return std::stoull(about.substr(about.find(field) + field.size()));
  };
  fill(0, 1000);
  wait_until("the fillers are older than the keys of the filter", [&] {
    use();
    return full.command({"OBJECT", "IDLETIME", "filler999"}).integer() >= 2;
  });
  full.command({"CONFIG", "SET", "maxmemory", std::to_string(number_in("memory", "used_memory:"))});

  fill(1000, 600);

  EXPECT_GT(number_in("stats", "evicted_keys:"), 500u);
  EXPECT_EQ(found_at(full.address("x"), keys_from(0, acknowledged)), acknowledged);
  EXPECT_EQ(full.command({"EXISTS", "{x}:m", "{x}:m2"}).integer(), 2);
  EXPECT_EQ(full.command({"KEYS", "{x~*:h"}).reply().size(), shards);
}

// ---- lost headers ---------------------------------------------------------------------------------------------------

TEST_F(RedisDescription, ReplacesLostHeadersOfUnchangedShardsForInfo) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    redis_filter f = fresh(k.parameters);
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

TEST_F(RedisDescription, DoesNotReplaceTheLostHeaderOfAChangedShard) {
  redis_filter f = filled(integers(4000, 0.01), keys_from(0, 300));
  // Marks all shards, and takes the marks away.
  EXPECT_THROW(f.replace(integers(4000, 0.01), [](redis_filter&) { throw std::runtime_error("given up"); }),
               std::runtime_error);
  f.info();
  server->command({"DEL", names("{x~*:h").front()});

  EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
  EXPECT_EQ(code_of([] { redis_filter::open(at("x")).info(); }), errc::damaged);
}

// ---- lookups in lost shards -----------------------------------------------------------------------------------------

TEST_F(RedisDescription, LetsLookupsInALostShardAnswerMaybe) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    for (const char* lost : {":h", ":layer"}) {
      SCOPED_TRACE(std::string(k.name) + lost);
      redis_filter f = fresh(sharded(k.parameters, 16));
      insert_all(f, keys_from(0, 400));
      redis_filter strict = redis_filter::open(at("x"));
      redis_filter guard = redis_filter::open(at("x"), {.on_damage = redis_damage::maybe});
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
      insert_all(strict, {elsewhere.begin(), elsewhere.begin() + 100});
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
  redis_params wanted = sharded(integers(20'000, 0.01), 16);
  redis_filter writer = redis_filter::create(a, wanted);
  insert_all(writer, keys_from(0, 5000));
  lose();
  advance_check_clock(seconds(31));
  insert_all(writer, keys_from(5000, 100));
  EXPECT_EQ(found_at(a, keys_from(0, 5100)), 5100u);

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
