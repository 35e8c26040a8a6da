// Shared filters whose keys are evicted, replaced or dropped on one server while clients use them.
#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

const redis_options reading_all = {.closed_layers_bytes = 0};  // no copies of older layers

class RedisLostKeys : public on_a_server<RedisLostKeys> {};

// ---- evicted keys ---------------------------------------------------------------------------------------------------

TEST_F(RedisLostKeys, AnySingleKeyMayGoAndNoInsertedKeyIsAbsent) {
  const auto keys = keys_from(0, 600);
  for (const redis_params& p : {integers(1000, 0.01), growing(10), counting(integers(1000, 0.01))}) {
    const bool grows = p.growth != redis_growth::none;
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i) {
      redis_filter f = fresh(sharded(p, 2));
      insert_all(f, keys);
      const std::uint64_t ones = f.info().ones;
      const auto all = names();
      count = all.size();
      ASSERT_LT(i, count);
      SCOPED_TRACE(all[i]);
      const bool is_header = all[i].ends_with(":h"), is_description = all[i].starts_with("{x}");

      server->command({"DEL", all[i]});

      expect_never_absent(f, keys);
      const auto inserted = code_of([&] { insert_all(f, keys_from(0, 2000)); });
      if (is_description || (is_header && !grows)) {
        EXPECT_EQ(inserted, std::nullopt);
      } else {
        EXPECT_EQ(inserted, errc::damaged);
      }
      expect_never_absent(f, keys);
      redis_filter other = redis_filter::open(at("x"));
      expect_never_absent(other, keys);
      if (is_description || (is_header && !grows)) {
        EXPECT_GE(other.info().ones, ones) << "no key is lost";
      } else {
        EXPECT_EQ(code_of([&] { other.info(); }), errc::damaged);
      }
      f.drop();
      EXPECT_THAT(names(), testing::IsEmpty()) << "no client could create the filter again";
    }
    EXPECT_GE(count, 5u);
  }
}

TEST_F(RedisLostKeys, AnySingleGenerationMayGoAndNoKeyOfTheWindowIsAbsent) {
  const redis_params wanted = sharded(windowed(integers(1000, 0.01)), 1);
  redis_filter::create(at("x"), wanted).insert(keys_from(0, 100));
  for (const std::uint64_t first : {100u, 200u}) {
    const generation_aside aside(*server, "x");
    redis_filter::open(at("x")).insert(keys_from(first, 100));
  }
  const std::vector<std::string> parts = names(server->shard("x", 0) + ":*");
  ASSERT_EQ(parts.size(), 4u);
  for (const std::string& lost : parts) {
    SCOPED_TRACE(lost);
    redis_filter f = redis_filter::open(at("x"), reading_all);
    ASSERT_EQ(count_found(f, keys_from(0, 300)), 300u);
    const std::string dump = server->command({"DUMP", lost}).text();
    server->command({"DEL", lost});

    redis_filter other = redis_filter::open(at("x"));
    expect_never_absent(other, keys_from(0, 300));
    expect_never_absent(f, keys_from(0, 300));
    if (!lost.ends_with(":h")) {
      EXPECT_EQ(code_of([&] { count_found(f, keys_from(0, 300)); }), errc::damaged);
      EXPECT_EQ(code_of([&] { f.insert(std::uint64_t{1'000'000}); }), errc::damaged);
    }
    server->command({"RESTORE", lost, "0", dump, "REPLACE"});
  }
  // Bits that another client wrote there must not make it pass for complete when the next generation begins.
  const std::string newest = parts[parts.size() - 2];
  server->command({"DEL", newest});
  server->command({"SETBIT", newest, "4000", "1"});
  age_generations(*server, "x");
  redis_filter writer = redis_filter::open(at("x"), reading_all);
  code_of([&] { writer.insert(std::uint64_t{2'000'000}); });
  expect_never_absent(writer, keys_from(200, 100));
}

TEST_F(RedisLostKeys, WritesIntoAnEvictedLayerDoNotMakeItComplete) {
  const redis_params wanted = sharded(integers(1000, 0.01), 3);
  redis_filter f = filled(wanted, keys_from(0, 1000));
  const std::string lost = server->shard("x", 1) + ":0";
  server->command({"DEL", lost});
  server->command({"SETBIT", lost, "2000", "1"});  // as a client that dies before it reads the shard version

  // Marks all shards, then removes the marks.
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

// As if something had written there since: a bit in the last line, so that all lines exist.
TEST_F(RedisLostKeys, WritesIntoAnEvictedOlderLayerOrGenerationDoNotMakeItComplete) {
  for (const bool grows : {true, false}) {
    SCOPED_TRACE(grows ? "layer" : "generation");
    redis_filter f = fresh(sharded(grows ? growing(200) : windowed(integers(1000, 0.01)), 1), reading_all);
    insert_all(f, keys_from(0, grows ? 3000 : 100));
    std::string older = server->shard("x", 0) + ":0c";
    std::int64_t bytes = server->command({"STRLEN", older}).integer();
    if (!grows) {
      const generation_aside aside(*server, "x");
      older = aside.older;
      bytes = aside.bytes;
      EXPECT_EQ(count_found(f, keys_from(0, 100)), 100u);
      EXPECT_FALSE(f.insert(std::uint64_t{0}));
    }
    ASSERT_EQ(server->command({"DEL", older}).integer(), 1);
    server->command({"SETBIT", older, std::to_string(8 * (bytes - 16) - 1), "1"});

    for (std::uint64_t key = 1; key < 50; ++key) {
      EXPECT_EQ(code_of([&] { EXPECT_TRUE(f.may_contain(key)) << key; }), errc::damaged) << key;
      EXPECT_EQ(code_of([&] { EXPECT_FALSE(f.insert(key)) << key; }), errc::damaged) << key;
    }
    EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
  }
}

TEST_F(RedisLostKeys, AFilterWithoutAHeaderCanBeReplaced) {
  const redis_params wanted = sharded(growing(100), 3);
  redis_filter f = filled(wanted, keys_from(0, 1000));
  const std::string before = server->shard("x", 0);
  server->command({"DEL", server->shard("x", 1) + ":h"});

  f.replace(wanted, [](redis_filter& fresh) { insert_all(fresh, keys_from(0, 1000)); });

  EXPECT_EQ(count_found(f, keys_from(0, 1000)), 1000u);
  EXPECT_EQ(names("{x~*").size(), 6u);
  EXPECT_NE(server->shard("x", 0), before);
}

// ---- replaced by another client -------------------------------------------------------------------------------------

TEST_F(RedisLostKeys, AnOldHandleFindsTheKeysOfTheNewFilterWithAnotherHash) {
  redis_filter f = filled(integers(1000, 0.01), keys_from(0, 100));
  redis_params other = growing(300);
  other.filter.seed = 42;
  other.shards = 3;
  redis_filter::open(at("x")).drop();
  redis_filter g = filled(other, keys_from(5000, 500));

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
      << "a client that inserts into both filters would need both hashes";
}

TEST_F(RedisLostKeys, InsertsDoNotDependOnALocalCopy) {
  redis_filter::create(at("x"), growing(1000));
  const redis_options with_copy = {.local_copy = true};
  redis_filter f = redis_filter::open(at("x"), with_copy);
  redis_filter g = redis_filter::open(at("x"));
  f.insert(std::uint64_t{1});
  EXPECT_TRUE(f.may_contain(std::uint64_t{1}));

  g.clear();
  f.insert(std::uint64_t{1});

  EXPECT_TRUE(g.may_contain(std::uint64_t{1}));
}

TEST_F(RedisLostKeys, ABatchThatMeetsAReplacementIsInsertedIntoTheNewFilter) {
  const redis_params wanted = sharded(growing(1000), 1);
  redis_filter f = redis_filter::create(at("x"), wanted);
  f.insert(std::uint64_t{1});
  const std::string header_of_old = server->shard("x", 0) + ":h";
  redis_filter g = redis_filter::open(at("x"));
  code_of([&] {
    g.replace(wanted, [&](redis_filter&) {
      f.insert(std::uint64_t{2});  // so it has the mark of the old filter
      server->command({"ACL", "SETUSER", "default", "-unlink"});
    });
  });
  server->command({"ACL", "SETUSER", "default", "+unlink"});
  ASSERT_EQ(server->command({"EXISTS", header_of_old}).integer(), 1) << "the old one is to be there still";

  insert_all(f, {1, 3});

  EXPECT_EQ(count_found(f, {1, 3}), 2u);
  EXPECT_EQ(found_at(at("x"), {1, 3}), 2u);
}

TEST_F(RedisLostKeys, APresentKeyIsNotNewWhileAScalableFilterIsReplaced) {
  const redis_params wanted = sharded(growing(100), 1);
  redis_filter f = filled(wanted, keys_from(0, 10'000));
  ASSERT_GT(f.info().layers, 2u);
  redis_filter g = redis_filter::open(at("x"));
  const auto keys = keys_from(0, 100);
  std::vector<std::uint8_t> is_new(keys.size());

  g.replace(wanted, [&](redis_filter& fresh) {
    count_found(f, keys_from(1'000'000, 100));  // so it has the mark
    f.insert(std::span(keys), is_new);
    insert_all(fresh, keys_from(100, 9900));
  });

  EXPECT_EQ(std::count(is_new.begin(), is_new.end(), 1), 0);
  EXPECT_EQ(count_found(g, keys_from(0, 10'000)), 10'000u);
}

TEST_F(RedisLostKeys, AnExpiryCanBeRemovedByAnotherClient) {
  const redis_params wanted = windowed(integers(1000, 0.01), milliseconds(600'000'000));
  redis_filter f = redis_filter::create(at("x"), wanted);
  redis_filter g = redis_filter::open(at("x"));
  f.insert(std::uint64_t{1});
  const std::string bits = names(server->shard("x", 0) + ":*").front();
  const std::int64_t own = server->command({"PTTL", bits}).integer();

  f.expire(milliseconds(60'000));
  EXPECT_LE(server->command({"PTTL", bits}).integer(), 70'000);  // its own expiry would be four days or more
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

// ---- sliding windows ------------------------------------------------------------------------------------------------

TEST_F(RedisLostKeys, AWindowKeepsItsRateAndAnInsertRenewsAKey) {
  const redis_params wanted = windowed(integers(7'000, 0.01), milliseconds(1400));
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
    // At most 1,000 keys per generation of 200 ms. Delays of a busy machine are not made up, because that would exceed
    // it.
    if (since() - filled >= 45) {
      insert_all(f, keys_from(next, 200));
      next += 200;
      filled = since();
    }
    const auto now = since();
    if (now - renewed > 600 && renewed <= 1'400) {
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
