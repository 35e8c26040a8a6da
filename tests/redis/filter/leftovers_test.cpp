// Interrupted replacements, old handles and old names, and the keys they leave on the server.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/replacement.hpp"
#include "redis/filters.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

// ---- interrupted replacements ---------------------------------------------------------------------------------------

TEST_F(RedisReplacement, ThatWasInterruptedAndLostItsShardsDoesNotPreventAnother) {
  filled();
  die_while_replacing(fixed());
  EXPECT_EQ(keys_there(), 6u + 4u + 1u);
  redis_filter writer = redis_filter::open(at("x"));
  insert_all(writer, keys_from(9000, 10));
  unlink_all(coming_shards());

  redis_filter reader = redis_filter::open(at("x"));
  EXPECT_LT(count_found(reader, keys_from(5000, 200)), 20u);
  insert_all(writer, keys_from(9000, 200));

  EXPECT_EQ(count_found(reader, keys_from(9000, 200)), 200u);
  expect_the_old_one_alone();
  const std::string zero = server->shard("x", 0) + ":h";
  EXPECT_EQ(server->command({"HGET", zero, "next"}).text(), "");
  const auto clients = server->command({"INFO", "clients"}).text();
  EXPECT_LT(std::stoi(clients.substr(clients.find("connected_clients:") + 18)), 10) << clients;
}

TEST_F(RedisReplacement, ThatWasToExpireIsForgottenWhenItHas) {
  filled();
  redis_params wanted = fixed();
  wanted.expires_in = milliseconds(100'000);
  die_while_replacing(wanted);
  const std::int64_t left = server->command({"PTTL", "{x}:n"}).integer();
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 100'000);

  unlink_all(coming_shards());
  server->command({"DEL", "{x}:n"});
  redis_filter f = redis_filter::open(at("x"));
  insert_all(f, keys_from(9000, 200));
  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, ALookUpThatMeetsBothFiltersAsksTheNewOneForAllItsKeys) {
  const auto key_of_shard = [](std::uint64_t shard) {
    std::uint64_t key = 1'000'000;
    while (multiply_high(mix{}(key).hash64, 2) != shard) ++key;
    return key;
  };
  const std::uint64_t keys[] = {key_of_shard(0), key_of_shard(1)};
  proxy of_reader(server->socket()), of_replacer(server->socket());
  redis_filter f = redis_filter::create(through(of_replacer), fixed());
  redis_filter reader = redis_filter::open(through(of_reader));
  std::atomic<bool> between = false, gone = false;
  std::uint64_t there = 0;
  std::thread asking;
  f.replace(fixed(), [&](redis_filter&) {
    EXPECT_FALSE(reader.may_contain(keys[0]));  // it has the mark of this shard now, but not of the other
    of_replacer.before("UNLINK", [&] {          // the new filter is in place, the old shards still exist
      redis_filter::open(at("x")).insert(keys[0]);
      of_reader.before("HGETALL", [&] {
        of_reader.before("GETRANGE", [&] {
          between = true;
          while (!gone) std::this_thread::sleep_for(milliseconds(1));
        });
      });
      asking = std::thread([&] {
        reader.may_contain(keys, std::span(&there, 1));
        between = true;
      });
      while (!between) std::this_thread::sleep_for(milliseconds(1));
    });
  });
  gone = true;
  asking.join();

  EXPECT_EQ(there, 1u);
}

TEST_F(RedisReplacement, ThatWasAbandonedDoesNotPreventAMerge) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  any_filter more = f.pull();
  more.insert(std::uint64_t{1'000'000});

  EXPECT_EQ(code_of([&] { f.merge(more); }), errc::locked) << "another client may still be filling the new filter";
  server->command({"DEL", "{x}:n"});  // as a client that gives up does before it removes the marks
  f.merge(more);

  EXPECT_TRUE(redis_filter::open(at("x")).may_contain(std::uint64_t{1'000'000}));
}

TEST_F(RedisReplacement, ThatWasInterruptedIsTakenAwayByTheNext) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  std::vector<std::string> notes;
  redis_options options;
  options.notes = [&](const std::string& note) { notes.push_back(note); };

  redis_filter::open(at("x"), options).replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, old_keys()); });

  expect_the_old_one_alone();
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("interrupted")));
}

// ---- names ----------------------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnOldHandleWritesNothingIntoTheNextFilterOfTheName) {
  redis_params counting = fixed();
  counting.filter.layout = "counting";
  redis_params large = fixed();
  large.filter.capacity = 40'000;
  for (const redis_params& before : {counting, large}) {
    server->command({"FLUSHALL"});
    redis_filter old = redis_filter::create(at("x"), before);
    insert_all(old, keys_from(70'000, 10));
    redis_filter::open(at("x")).drop();
    filled();
    const std::int64_t length = server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer();

    insert_all(old, keys_from(80'000, 200));

    EXPECT_EQ(server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer(), length);
    expect_the_old_one_alone();
    redis_filter now = redis_filter::open(at("x"));
    EXPECT_EQ(count_found(now, keys_from(80'000, 200)), 200u);
  }
}

TEST_F(RedisReplacement, IgnoresTheLeftoversOfADrop) {
  filled();
  server->command({"ACL", "SETUSER", "default", "-unlink"});
  EXPECT_EQ(code_of([] { redis_filter::open(at("x")).drop(); }), errc::not_permitted);
  server->command({"ACL", "SETUSER", "default", "+unlink"});

  redis_filter f = filled();

  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
  EXPECT_EQ(keys_there(), 6u + 4u);
  f.drop();
  EXPECT_EQ(keys_there(), 4u);
}

TEST_F(RedisReplacement, ADescriptionThatNamesShardsOfAnotherFilterIsDamaged) {
  filled();
  server->command({"SET", "{evil}:m", server->command({"GET", "{x}:m"}).text()});
  redis_filter::create(at("good"), fixed());
  server->command({"SET", "{good}:n", server->command({"GET", "{x}:m"}).text()});

  EXPECT_EQ(code_of([&] { redis_filter::open(at("evil")).drop(); }), errc::damaged);
  redis_filter::open(at("good")).clear();
  redis_filter::open(at("good")).drop();

  server->command({"DEL", "{evil}:m"});
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, AFilterThatCannotBeMadeLeavesNothing) {
  server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@all", "-setrange"});
  redis_address a = at("x");
  a.user = "limited";
  a.password = "any";

  EXPECT_TRUE(code_of([&] { redis_filter::create(a, fixed()); }));

  EXPECT_EQ(keys_there(), 0u);
}

// ---- expiry and leftovers -------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnExpiryThatNoClockReachesIsRefused) {
  redis_filter f = filled();
  for (const std::int64_t time :
       {std::numeric_limits<std::int64_t>::max() - 5, (std::int64_t{1} << 53) + 1, std::int64_t{0}, std::int64_t{-1}}) {
    redis_params wanted = fixed();
    wanted.expires_in = milliseconds(time);
    EXPECT_EQ(code_of([&] { f.expire(milliseconds(time)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { f.replace(wanted, [](redis_filter&) {}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { redis_filter::create(at("y"), wanted); }), errc::invalid_argument);
  }
  expect_the_old_one_alone();

  f.expire(milliseconds(std::int64_t{1} << 53));
  expect_the_old_one_alone();
  EXPECT_GT(server->command({"PTTL", "{x}:m"}).integer(), std::int64_t{1} << 52);
}

TEST_F(RedisReplacement, AClockThatIsUnreadableIsDamaged) {
  filled();
  for (const char* time : {"*2\r\n$1\r\nx\r\n$1\r\n0\r\n", "*2\r\n$20\r\n99999999999999999999\r\n$1\r\n0\r\n",
                           "*2\r\n$18\r\n999999999999999999\r\n$1\r\n0\r\n", "*2\r\n$1\r\n5\r\n$0\r\n\r\n", "*0\r\n",
                           "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n", ":1\r\n"}) {
    SCOPED_TRACE(time);
    proxy net(server->socket());
    redis_filter f = redis_filter::open(through(net));
    net.instead_of_answer_to("TIME", time);

    EXPECT_EQ(code_of([&] { f.expire(milliseconds(60'000)); }), errc::damaged);
    EXPECT_TRUE(net.has_acted());
  }
}

TEST_F(RedisReplacement, WhoseRemainsCannotBeRemovedIsDone) {
  filled();
  server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@all", "-unlink"});
  redis_address a = at("x");
  a.user = "limited";
  a.password = "any";
  std::vector<std::string> notes;
  redis_options options;
  options.notes = [&](const std::string& note) { notes.push_back(note); };
  redis_filter f = redis_filter::open(a, options);

  f.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, keys_from(9000, 200)); });

  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("could not remove the shards")));
  redis_filter now = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(now, keys_from(9000, 200)), 200u);
}

TEST_F(RedisReplacement, OnTooFewReplicasLeavesTheShardsOfTheOneBefore) {
  test_server replica;
  test_server master({.tcp = true, .config = {"repl-diskless-sync-delay 0"}});
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  wait_until("the replica follows", [&] {
    return replica.command({"INFO", "replication"}).text().find("master_link_status:up") != std::string::npos;
  });
  redis_options safe;
  safe.wait_replicas = 1;
  safe.connection.time = milliseconds(300);
  std::vector<std::string> notes;
  safe.notes = [&](const std::string& note) { notes.push_back(note); };
  redis_filter f = redis_filter::create(master.address("x"), fixed(), safe);
  insist([&] { insert_all(f, old_keys()); });  // a new replica takes a second to report its offset
  const std::string before = master.shard("x", 0);

  replica.freeze();
  f.clear();
  replica.thaw();

  EXPECT_NE(master.shard("x", 0), before);
  EXPECT_EQ(master.command({"EXISTS", before + ":h", before + ":0"}).integer(), 2)
      << "the replica's description still names it";
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("replicas")));
  redis_options patient;
  patient.wait_replicas = 1;
  redis_filter::open(master.address("x"), patient).clear();
  EXPECT_EQ(master.command({"DBSIZE"}).integer(), 6 + 4 + 1) << "and the mark of the one before";
}

}  // namespace
}  // namespace bloomery
