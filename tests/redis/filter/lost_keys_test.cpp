// Shared filters whose keys are evicted, replaced or dropped on one server while clients use them.
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/faults.hpp"
#include "redis/filters.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// ---- evicted keys ---------------------------------------------------------------------------------------------------

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
      EXPECT_EQ(names("*").size(), 0u) << names("*").front() << ": no client could create the filter again";
    }
    EXPECT_GE(count, 5u);
  }
}

TEST_F(RedisFaults, EverySingleGenerationMayGoAndNoKeyOfTheWindowIsAbsent) {
  redis_params wanted = integers(1000, 0.01);
  wanted.filter.extra = window_of_milliseconds(2800);
  std::vector<redis_filter> filters;
  redis_options reading_all;
  reading_all.closed_layers_bytes = 0;
  for (int i = 0; i < 8; ++i) filters.push_back(redis_filter::create(at("w" + std::to_string(i)), wanted, reading_all));
  const auto begin = steady_clock::now();
  std::uint64_t key = 0;
  const auto parts_of = [&](std::size_t i) { return names(server->shard("w" + std::to_string(i), 0) + ":*"); };
  wait_until("three generations of each", [&] {
    for (redis_filter& f : filters) f.insert(key);
    ++key;
    return parts_of(0).size() >= 4 && parts_of(7).size() >= 4;
  });

  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<std::string> parts = parts_of(i);  // each shard changed generations at its own time
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
  // Bits that another client wrote there must not make it pass for complete when the next generation begins.
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

TEST_F(RedisFaults, WritesIntoAnEvictedLayerDoNotMakeItComplete) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 3;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 1000));
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

TEST_F(RedisFaults, WritesIntoAnEvictedOlderLayerDoNotMakeItComplete) {
  redis_params wanted = growing(200);
  wanted.shards = 1;
  redis_options reading_all;
  reading_all.closed_layers_bytes = 0;
  redis_filter f = redis_filter::create(at("x"), wanted, reading_all);
  insert_all(f, keys_from(0, 3000));
  ASSERT_EQ(server->command({"HGET", server->shard("x", 0) + ":h", "layers"}).text().substr(0, 3), "0,1");
  const std::int64_t bytes = server->command({"STRLEN", server->shard("x", 0) + ":0c"}).integer();
  server->command({"DEL", server->shard("x", 0) + ":0c"});
  // As if something had written there since: a bit in the last line, so that all lines exist.
  server->command({"SETBIT", server->shard("x", 0) + ":0c", std::to_string(8 * (bytes - 16) - 1), "1"});

  for (std::uint64_t key = 0; key < 150; ++key) {
    EXPECT_EQ(code_of([&] { EXPECT_TRUE(f.may_contain(key)) << key; }), errc::damaged) << key;
  }
  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 150)); }), errc::damaged);
  EXPECT_EQ(code_of([&] { f.info(); }), errc::damaged);
}

TEST_F(RedisFaults, AnOlderGenerationThatIsNotWholeMakesNoKeyNew) {
  redis_params wanted = integers(1000, 0.01);
  wanted.shards = 1;
  wanted.filter.extra = window_of_time(std::chrono::hours(7 * 24));
  redis_options reading_all;
  reading_all.closed_layers_bytes = 0;
  redis_filter f = redis_filter::create(at("x"), wanted, reading_all);
  insert_all(f, keys_from(0, 100));
  // A day passes: the newest generation becomes the previous one.
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

// ---- replaced by another client -------------------------------------------------------------------------------------

TEST_F(RedisFaults, AnOldHandleFindsTheKeysOfTheNewFilterWithAnotherHash) {
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
      << "a client that inserts into both filters would need both hashes";
}

TEST_F(RedisFaults, InsertsDoNotDependOnALocalCopy) {
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

TEST_F(RedisFaults, AScalableFilterIsReplacedWithoutAMomentOfWrongAnswers) {
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
      f.insert(std::uint64_t{2});  // so it has the mark of the old filter
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

TEST_F(RedisFaults, AKeyThatIsThereIsNotNewWhileAScalableFilterIsReplaced) {
  redis_params wanted = growing(100);
  wanted.shards = 1;
  redis_filter f = redis_filter::create(at("x"), wanted);
  insert_all(f, keys_from(0, 10'000));
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

TEST_F(RedisFaults, OneClientSetsTheExpiryAndAnotherTakesItBack) {
  redis_params wanted = integers(1000, 0.01);
  wanted.filter.extra = window_of_milliseconds(600'000'000);
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

TEST_F(RedisFaults, AWindowKeepsItsRateAndAnInsertRenewsAKey) {
  redis_params wanted = integers(7'000, 0.01);
  wanted.filter.extra = window_of_milliseconds(1400);
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
