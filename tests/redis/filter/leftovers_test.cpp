// Interrupted replacements, old handles and old names, and the keys they leave on the server.
#include <bloomery/hash.hpp>

#include "redis/filter/replacement.hpp"
#include "redis/fixtures.hpp"

#include <limits>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

// ---- interrupted replacements ---------------------------------------------------------------------------------------

TEST_F(RedisReplacement, IsForgottenIfItWasInterruptedAndItsShardsAreLost) {
  filled();
  die_while_replacing(fixed());
  EXPECT_EQ(names().size(), 6u + 4u + 1u);
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

TEST_F(RedisReplacement, IsForgottenIfItWasInterruptedAndHasExpired) {
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

TEST_F(RedisReplacement, ALookupThatMeetsBothFiltersReadsTheNewOneForAllKeys) {
  const auto key_of_shard = [](std::uint64_t shard) {
    std::uint64_t key = 1'000'000;
    while (multiply_high(mix{}(key).hash64, 2) != shard) ++key;
    return key;
  };
  const std::uint64_t keys[] = {key_of_shard(0), key_of_shard(1)};
  proxy of_reader(server->socket()), of_replacer(server->socket());
  redis_filter f = redis_filter::create(of_replacer.address(), fixed());
  redis_filter reader = redis_filter::open(of_reader.address());
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

TEST_F(RedisReplacement, PreventsAMergeUntilItIsGivenUp) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  any_filter more = f.pull();
  more.insert(std::uint64_t{1'000'000});

  EXPECT_EQ(code_of([&] { f.merge(more); }), errc::locked) << "another client may still be filling the new filter";
  server->command({"DEL", "{x}:n"});  // as a client that gives up does before it removes the marks
  f.merge(more);

  EXPECT_TRUE(redis_filter::open(at("x")).may_contain(std::uint64_t{1'000'000}));
}

TEST_F(RedisReplacement, RemovesAnInterruptedReplacement) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  std::vector<std::string> notes;

  redis_filter::open(at("x"), noting(notes)).replace(fixed(), fill_with_old_keys);

  expect_the_old_one_alone();
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("interrupted")));
}

// ---- names ----------------------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnOldHandleWritesOnlyKeysIntoTheNextFilterOfTheName) {
  for (const redis_params& before : {counting(fixed()), sharded(integers(40'000, 0.01), 2)}) {
    redis_filter old = fresh(before);
    insert_all(old, keys_from(70'000, 10));
    redis_filter::open(at("x")).drop();
    filled();
    const std::int64_t length = server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer();

    insert_all(old, keys_from(80'000, 200));

    EXPECT_EQ(server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer(), length);
    expect_the_old_one_alone();
    EXPECT_EQ(found_at(at("x"), keys_from(80'000, 200)), 200u);
  }
}

TEST_F(RedisReplacement, IgnoresTheLeftoversOfADrop) {
  filled();
  EXPECT_EQ(code_of([] { redis_filter::open(without("unlink")).drop(); }), errc::not_permitted);

  redis_filter f = filled();

  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
  EXPECT_EQ(names().size(), 6u + 4u);
  f.drop();
  EXPECT_EQ(names().size(), 4u);
}

TEST_F(RedisReplacement, ADescriptionWithShardsOfAnotherFilterIsDamaged) {
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

TEST_F(RedisReplacement, ACreationThatFailsLeavesNothing) {
  EXPECT_TRUE(code_of([&] { redis_filter::create(without("setrange"), fixed()); }));

  EXPECT_EQ(names().size(), 0u);
}

// ---- expiry and leftovers -------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnExpiryOutOfRangeIsRefused) {
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

TEST_F(RedisReplacement, AnUnreadableClockIsReportedAsDamage) {
  filled();
  for (const char* time : {"*2\r\n$1\r\nx\r\n$1\r\n0\r\n", "*2\r\n$20\r\n99999999999999999999\r\n$1\r\n0\r\n",
                           "*2\r\n$18\r\n999999999999999999\r\n$1\r\n0\r\n", "*2\r\n$1\r\n5\r\n$0\r\n\r\n", "*0\r\n",
                           "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n", ":1\r\n"}) {
    SCOPED_TRACE(time);
    proxy net(server->socket());
    redis_filter f = redis_filter::open(net.address());
    net.instead_of_answer_to("TIME", time);

    EXPECT_EQ(code_of([&] { f.expire(milliseconds(60'000)); }), errc::damaged);
    EXPECT_TRUE(net.has_acted());
  }
}

TEST_F(RedisReplacement, SucceedsIfTheOldShardsCannotBeRemoved) {
  filled();
  std::vector<std::string> notes;
  redis_filter f = redis_filter::open(without("unlink"), noting(notes));

  f.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, keys_from(9000, 200)); });

  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("could not remove the shards")));
  EXPECT_EQ(found_at(at("x"), keys_from(9000, 200)), 200u);
}

TEST_F(RedisReplacement, LeavesTheOldShardsIfTooFewReplicasHaveTheNewFilter) {
  replicated_servers servers;
  test_server &replica = servers.replica, &master = servers.master;
  std::vector<std::string> notes;
  redis_options safe = noting(notes);
  safe.connection = within(milliseconds(300));
  safe.wait_replicas = 1;
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
  redis_filter::open(master.address("x"), {.wait_replicas = 1}).clear();
  EXPECT_EQ(master.command({"DBSIZE"}).integer(), 6 + 4 + 1) << "and the mark of the one before";
}

}  // namespace
}  // namespace bloomery
