// Shared filters that are dropped while clients use them. The reference is the list of keys on the server: no client
// creates a dropped filter again.
#include "redis/filter/description.hpp"
#include "redis/filter/description_check.hpp"
#include "redis/filter/scripts.hpp"
#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using redis::advance_check_clock;
using std::chrono::hours;
using std::chrono::seconds;

const redis_params dropped_params = kinds_of_filters().front().parameters;

TEST_F(RedisDescription, IsNotRestoredAfterADrop) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    redis_filter f = fresh(k.parameters);
    insert_all(f, keys_from(0, 1000));

    drop_halfway();  // so no shard indicates the drop
    advance_check_clock(seconds(61));

    EXPECT_EQ(code_of([&] { insert_all(f, keys_from(1000, 10)); }), errc::not_found);
    EXPECT_EQ(code_of([&] { count_found(f, keys_from(0, 10)); }), errc::not_found);
    if (std::string(k.name) == "counting") {
      EXPECT_EQ(code_of([&] { f.remove(std::span<const std::uint64_t>(keys_from(0, 10))); }), errc::not_found);
    }
    EXPECT_EQ(code_of([&] { f.clear(); }), errc::not_found);
    EXPECT_EQ(descriptions(), 0);
    EXPECT_EQ(code_of([] { redis_filter::open(at("x")); }), errc::not_found);

    redis_filter next = redis_filter::create(at("x"), k.parameters);
    EXPECT_LT(count_found(next, keys_from(0, 1000)), 50u) << "the dropped filter is back";
    insert_all(f, keys_from(5000, 100));
    EXPECT_EQ(count_found(next, keys_from(5000, 100)), 100u);
  }
}

// The description comes before the shards. A client of the dropped filter must not write where shards are to be made.
TEST_F(RedisDescription, IsNotUsedByClientsOfADroppedFilterWhileTheNextOneIsMade) {
  for (const kind_of_filter& k : kinds_of_filters()) {
    SCOPED_TRACE(k.name);
    redis_filter f = fresh(k.parameters);
    insert_all(f, keys_from(0, 100));
    redis_filter g = redis_filter::open(at("x"));
    redis_filter::open(at("x")).drop();
    redis_filter::create(at("x"), k.parameters);
    const std::string coming = description_in_the_making();
    server->command({"FLUSHALL"});
    server->command({"SET", "{x}:m", coming});

    EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 100)); }), errc::not_found);
    EXPECT_EQ(code_of([&] { count_found(g, keys_from(0, 100)); }), errc::not_found);
    EXPECT_THAT(names("{x~*"), testing::IsEmpty());

    redis_filter next = redis_filter::create(at("x"), k.parameters);
    insert_all(f, keys_from(200, 100));
    EXPECT_EQ(count_found(next, keys_from(200, 100)), 100u);
    EXPECT_EQ(count_found(g, keys_from(200, 100)), 100u);
  }
}

// The shards of the dropped filter are still there: an insert would be acknowledged and lost.
TEST_F(RedisDescription, IsCheckedByEachCallWhileTheNextFilterIsMade) {
  redis_filter::create(at("x"), integers(4000, 0.01));
  const std::string coming = description_in_the_making();
  redis_filter::drop(at("x"));
  redis_filter f = filled(integers(4000, 0.01), keys_from(0, 100));
  drop_halfway();
  server->command({"SET", "{x}:m", coming});
  advance_check_clock(seconds(61));

  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code_of([&] { insert_all(f, keys_from(100, 10)); }), errc::not_found);
    EXPECT_EQ(code_of([&] { count_found(f, keys_from(0, 100)); }), errc::not_found);
  }

  redis_filter next = redis_filter::create(at("x"), integers(4000, 0.01));
  insert_all(f, keys_from(100, 10));
  EXPECT_EQ(count_found(next, keys_from(100, 10)), 10u);
}

TEST_F(RedisDescription, StaysAwayIfTheFilterIsDroppedWhileClientsRestoreIt) {
  const auto all = kinds_of_filters();
  const std::size_t rounds = is_long() ? 400 : 40;
  for (std::size_t round = 0; round < rounds && !HasFailure(); ++round) {
    const kind_of_filter& k = all[round % all.size()];
    SCOPED_TRACE(k.name);
    redis_filter f = fresh(k.parameters);
    std::atomic<std::uint64_t> calls = 0;
    std::vector<std::thread> writers;
    for (std::uint64_t w = 0; w < 3; ++w) {
      writers.emplace_back([&, w, g = redis_filter::open(at("x"))]() mutable {
        std::optional<errc> end;
        for (std::uint64_t i = 0; !end; ++i, ++calls) {
          advance_check_clock(seconds(31));
          end = code_of([&] { insert_all(g, keys_from(w << 32 | i, 20)); });
        }
        EXPECT_EQ(*end, errc::not_found);
      });
    }
    wait_until("writers are at work", [&] { return calls > 10; });
    for (int i = 0; i < 5; ++i) {
      server->command({"DEL", "{x}:m", "{x}:m2"});
      const std::uint64_t before = calls;
      wait_until("each writer has checked", [&] { return calls > before + 6; });
    }
    EXPECT_EQ(descriptions(), 2);

    f.drop();
    for (std::thread& t : writers) t.join();

    EXPECT_THAT(names("*"), testing::IsEmpty());
  }
}

TEST_F(RedisDescription, IsNotWrittenIfTheFilterIsDroppedRightBefore) {
  redis_filter::create(at("x"), dropped_params);
  proxy net(server->socket());
  redis_filter f = redis_filter::open(net.address());
  lose_description();
  advance_check_clock(seconds(31));
  net.before(std::string(redis::digest_of(redis::scripts::restore)), [] { redis_filter::drop(at("x")); });

  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 100)); }), errc::not_found);

  EXPECT_TRUE(net.has_acted());
  EXPECT_THAT(names("*"), testing::IsEmpty());
}

TEST_F(RedisDescription, LeavesAMarkThatExpiresWhenItIsDropped) {
  redis_filter f = redis_filter::create(at("x"), dropped_params);
  const std::string shard = server->shard("x", 0);  // "{x~EPOCH:0}"
  redis_filter::open(at("x")).drop();

  const std::string mark = "{x}:gone" + shard.substr(2, 17);
  EXPECT_EQ(server->command({"DBSIZE"}).integer(), 1);
  EXPECT_GT(server->command({"PTTL", mark}).integer(), 500'000);
  EXPECT_LE(server->command({"PTTL", mark}).integer(), 600'000);
  EXPECT_EQ(code_of([&] { f.insert(std::uint64_t{1}); }), errc::not_found);
  advance_check_clock(hours(1));
  server->command({"DEL", mark});  // expired
  EXPECT_EQ(code_of([&] { f.insert(std::uint64_t{1}); }), errc::not_found);
  EXPECT_EQ(code_of([&] { f.clear(); }), errc::not_found);
  EXPECT_EQ(server->command({"DBSIZE"}).integer(), 0);
}

TEST_F(RedisDescription, IsDroppedByNameInAnyState) {
  const auto filled = [](const std::string& name) {
    redis_filter f = redis_filter::create(at(name), dropped_params);
    insert_all(f, keys_from(0, 1000));
    return f;
  };
  const std::vector<std::pair<const char*, std::function<void()>>> states = {
      {"whole", [] {}},
      {"without a description", [] { lose_description(); }},
      {"unreadable",
       [] {
         server->command({"SET", "{x}:m", "bloomery=1\nstate=ready\n"});
         server->command({"SET", "{x}:m2", "bloomery=1\n"});
       }},
      {"a header is unreadable",
       [] {
         server->command({"HSET", server->shard("x", 3) + ":h", "layers", "none", "stamp", "x"});
       }},
      {"without a shard",
       [] {
         server->command({"DEL", server->shard("x", 1) + ":h", server->shard("x", 2) + ":0"});
       }},
  };
  for (const auto& [state, make] : states) {
    SCOPED_TRACE(state);
    server->command({"FLUSHALL"});
    redis_filter writer = filled("x");
    redis_filter others[] = {filled("y"), filled("x~y"), filled("xx")};
    const std::size_t keys_of_others = names("*").size() - names("{x~*").size() - 2;
    make();

    EXPECT_TRUE(redis_filter::drop(at("x")));

    EXPECT_EQ(names("*").size(), keys_of_others);
    EXPECT_EQ(code_of([&] { insert_all(writer, keys_from(0, 1000)); }), errc::not_found);
    advance_check_clock(seconds(61));
    EXPECT_EQ(code_of([&] { insert_all(writer, keys_from(0, 1000)); }), errc::not_found);
    EXPECT_FALSE(redis_filter::drop(at("x")));
    EXPECT_EQ(names("*").size(), keys_of_others);
    for (redis_filter& other : others) EXPECT_EQ(count_found(other, keys_from(0, 1000)), 1000u);
  }
}

TEST_F(RedisDescription, IsNotDroppedIfItBelongsToAnotherProgram) {
  server->command({"SET", "{x}:m", "mine"});

  EXPECT_EQ(code_of([] { redis_filter::drop(at("x")); }), errc::not_a_filter);

  EXPECT_EQ(server->command({"GET", "{x}:m"}).text(), "mine");
}

TEST_F(RedisDescription, IsDroppedByNameWithoutTheSecret) {
  redis_filter::create(at("x"), integers(1000, 0.01), {.secret = secret_key{1, 2}});

  EXPECT_TRUE(redis_filter::drop(at("x")));

  EXPECT_EQ(names("*").size(), 0u);
}

}  // namespace
}  // namespace bloomery
