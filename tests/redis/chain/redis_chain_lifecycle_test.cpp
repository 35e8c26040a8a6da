// The lifecycle of a chain: creating, opening, resetting, expiring and dropping it, and keys of the server that are
// missing or belong to another client.
#include <bloomery/redis/chain.hpp>

#include "redis/chain/chain_fixture.hpp"
#include "redis/chain/chain_model.hpp"
#include "redis/filter/rights.hpp"
#include "redis/fixtures.hpp"

#include <cmath>

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_chain;
using bloomery::redis_chain_params;
using std::chrono::milliseconds;

// ---- creating and opening -------------------------------------------------------------------------------------------

TEST_F(RedisChain, IsCreatedOnceAndThenOpened) {
  EXPECT_TRUE(redis_chain::create(at("filter"), small).insert("a"));
  redis_chain again = redis_chain::create(at("filter"), small);
  redis_chain opened = redis_chain::open(at("filter"));

  EXPECT_TRUE(again.may_contain("a"));
  EXPECT_FALSE(opened.insert("a"));
  EXPECT_EQ(opened.parameters(), small);
  EXPECT_EQ(opened.geometry(), again.geometry());
}

TEST_F(RedisChain, RefusesOtherParametersThanItHas) {
  redis_chain::create(at("filter"), small);

  const auto address = at("filter");
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {301, 0.01}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::open(address, redis_chain_params{300, 0.02}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {0, 0.02}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {10, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {1'000'000'000, 0.01}); }), errc::too_large);
}

TEST_F(RedisChain, IsOpenedWithTheSizeThatTheOriginalsBitmapsHave) {
  original old(*server, small, "filter", "filter-cursor");
  old.put("a");

  EXPECT_THROW(redis_chain::open(at("filter")), bloomery::redis_chain_params_unknown);
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter"), published); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::create(at("filter"), published); }), errc::incompatible);
  EXPECT_EQ(names(), (texts{"filter-0"})) << "a refusal writes nothing";
  EXPECT_TRUE(redis_chain::open(at("filter"), small).may_contain("a"));
}

TEST_F(RedisChain, DistinguishesAMissingChainFromAnAbsentKey) {
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), errc::not_found);
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter"), small); }), errc::not_found);

  redis_chain chain = redis_chain::create(at("filter"), small);
  chain.insert("a");
  server->command({"FLUSHALL"});

  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { chain.insert("a"); }), errc::not_found);
}

TEST_F(RedisChain, ReportsAMissingPartInsteadOfAnAbsentKey) {
  const texts keys = md5_keys(1000);
  redis_chain chain = filled(keys);
  ASSERT_EQ(chain.growths(), 3u);
  for (const char* lost : {"filter-0", "filter-1", "filter-3", "filter-cursor"}) {
    SCOPED_TRACE(lost);
    server->command({"RENAME", lost, "elsewhere"});

    EXPECT_EQ(code_of([&] { chain.may_contain(keys[0]); }), errc::damaged);
    EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);
    // The same for clients that never saw it.
    const auto fresh = [&](auto use) {
      return code_of([&] {
        redis_chain opened = redis_chain::open(at("filter"));
        use(opened);
      });
    };
    EXPECT_EQ(fresh([&](redis_chain& c) { c.may_contain(keys[0]); }), errc::damaged);
    EXPECT_EQ(fresh([](redis_chain& c) { c.insert("new"); }), errc::damaged);
    EXPECT_EQ(fresh([](redis_chain& c) { c.info(); }), errc::damaged);
    EXPECT_EQ(value(lost), "") << "nothing is put in its place";
    server->command({"RENAME", "elsewhere", lost});
  }
  EXPECT_TRUE(chain.may_contain(keys[0]));
}

TEST_F(RedisChain, IsNotContinuedWithoutItsCursorAndCanBeDropped) {
  redis_chain chain = filled(md5_keys(3000));
  ASSERT_GT(chain.growths(), 5u);
  server->command({"DEL", "filter-cursor"});

  EXPECT_EQ(code_of([&] { redis_chain::create(at("filter"), small); }), errc::damaged);
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), errc::damaged);
  EXPECT_EQ(code_of([&] { chain.growths(); }), errc::damaged);
  EXPECT_EQ(code_of([&] { chain.expire(std::chrono::hours(1)); }), errc::damaged);
  EXPECT_EQ(value("filter-cursor"), "");
  server->command({"DEL", "filter-1"});
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), errc::damaged);
  chain.drop();
  EXPECT_EQ(names(), texts{});
}

// The original creates a bitmap after it moves the cursor, and an earlier write makes that bitmap only as long as its
// last bit needs. bloomery creates bitmaps in full length.
TEST_F(RedisChain, DistinguishesATruncatedBitmapFromOneThatTheOriginalHasYetToWrite) {
  const texts keys = md5_keys(400);
  {
    redis_chain chain = filled(keys);
    ASSERT_EQ(chain.growths(), 1u);
    server->command({"SET", "filter-1", value("filter-1").substr(0, 100)});

    EXPECT_EQ(code_of([&] { chain.may_contain(keys[0]); }), errc::damaged);
    EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")).insert("new"); }), errc::damaged);
    EXPECT_EQ(value("filter-1").size(), 100u);
  }
  server->command({"FLUSHALL"});
  redis_chain chain = filled(md5_keys(100));
  server->command({"INCR", "filter-cursor"});
  chain_model rules(small);
  for (const std::uint64_t x : rules.positions("theirs")) {
    server->command({"SETBIT", "filter-1", std::to_string(x), "1"});
  }
  ASSERT_LT(value("filter-1").size(), chain.geometry().bits / 8);

  redis_chain fresh = redis_chain::open(at("filter"));
  for (redis_chain* c : {&chain, &fresh}) {
    EXPECT_TRUE(c->may_contain("theirs"));
    EXPECT_FALSE(c->may_contain("ours"));
  }
  EXPECT_TRUE(fresh.insert("ours"));
  EXPECT_EQ(value("filter-1").size(), chain.geometry().bits / 8) << "before its ones are counted";
  for (redis_chain* c : {&chain, &fresh}) {
    EXPECT_TRUE(c->may_contain("theirs"));
    EXPECT_TRUE(c->may_contain("ours"));
  }
}

TEST_F(RedisChain, DoesNotRecreateABitmapThatIsDeletedBetweenReadingAndWriting) {
  const texts keys = md5_keys(400);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(network.address("filter"), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 1u);
  network.before("HINCRBY", [] { server->command({"DEL", "filter-1"}); });

  EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);

  EXPECT_EQ(names(), (texts{"filter-0", "filter-bloomery", "filter-cursor"}));
  EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")).may_contain("new"); }), errc::damaged);
}

TEST_F(RedisChain, AcceptsAKeyDuringAReset) {
  const texts keys = md5_keys(400);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(network.address("filter"), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 1u);
  network.before("HINCRBY", [] { redis_chain::open(at("filter")).reset(); });

  EXPECT_TRUE(chain.insert("new"));

  EXPECT_EQ(names(), (texts{"filter-0", "filter-bloomery", "filter-cursor"})) << "no bitmap is left behind";
  chain_model expected(small);
  expected.insert("new");
  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

// The server has set the bits, and the answer is lost: the second request finds them set.
TEST_F(RedisChain, ReportsKeysInDoubtAfterALostConnection) {
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(network.address("filter"), small);
  ASSERT_TRUE(chain.insert("before"));
  network.instead_of_answer_to("HINCRBY", "");

  std::vector<std::uint8_t> is_new(3, 7);
  const std::vector<std::string_view> keys = {"a", "before", "b"};
  EXPECT_EQ(chain.insert(keys, is_new), 0u) << "none is certainly new";

  ASSERT_TRUE(network.has_acted());
  EXPECT_EQ(is_new, (std::vector<std::uint8_t>{bloomery::maybe_new, 0, bloomery::maybe_new}));
  EXPECT_TRUE(chain.may_contain("a"));
  EXPECT_EQ(chain.insert(keys, is_new), 0u);
  EXPECT_EQ(is_new, (std::vector<std::uint8_t>{0, 0, 0}));
}

TEST_F(RedisChain, RefusesOtherThingsUnderItsNames) {
  const auto fresh = [&] {
    server->command({"FLUSHALL"});
    redis_chain::create(at("filter"), small).insert("a");
  };
  const auto expect_refused = [&](errc code, const std::string& what) {
    EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), code) << what;
    EXPECT_EQ(code_of([&] { redis_chain::create(at("filter"), small); }), code) << what;
  };
  for (const char* cursor : {"x", "-1", "", "1.5", " 1", "01", "10000", "99999999999999999999999"}) {
    fresh();
    redis_chain chain = redis_chain::open(at("filter"));
    server->command({"SET", "filter-cursor", cursor});

    expect_refused(errc::incompatible, cursor);
    EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::incompatible) << cursor;
    EXPECT_EQ(code_of([&] { chain.insert("b"); }), errc::incompatible) << cursor;
  }
  for (const char* key : {"filter-cursor", "filter-0", "filter-bloomery"}) {
    fresh();
    server->command({"DEL", key});
    server->command({"LPUSH", key, "1"});

    expect_refused(errc::incompatible, key);
  }
  for (const std::size_t length : {1u, 10'000u}) {
    fresh();
    redis_chain chain = redis_chain::open(at("filter"));
    server->command({"SET", "filter-0", std::string(length, 'x')});

    expect_refused(errc::incompatible, std::to_string(length));
    EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::incompatible) << length;
  }
  using two_texts = std::pair<const char*, const char*>;
  for (const two_texts& wrong : {two_texts("", "0.01"), {"0", "0.01"}, {"300", "nan"}, {"300", "2"}, {"x", "y"}}) {
    fresh();
    server->command({"HSET", "filter-bloomery", "n", wrong.first, "p", wrong.second});

    expect_refused(errc::damaged, std::string(wrong.first) + " " + wrong.second);
  }
  fresh();
  server->command({"HSET", "filter-bloomery", "ones:0", "x"});
  EXPECT_TRUE(redis_chain::open(at("filter")).insert("b")) << "an invalid count is computed again from the bits";
}

// A cursor that another client set far ahead must not cost memory for missing bitmaps.
TEST_F(RedisChain, ReportsACursorWithoutBitmaps) {
  redis_chain chain = redis_chain::create(at("filter"), small);
  server->command({"SET", "filter-cursor", "9999"});

  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::damaged);
}

// ---- resetting, expiring, dropping ----------------------------------------------------------------------------------

TEST_F(RedisChain, IsEmptyAfterAResetForAllClients) {
  const texts keys = md5_keys(1000);
  const auto all = views(keys);
  redis_chain chain = redis_chain::create(at("filter"), small), other = redis_chain::open(at("filter"));
  chain.insert(views(keys));
  EXPECT_TRUE(other.may_contain(keys[0]));

  chain.reset();

  EXPECT_EQ(names(), (texts{"filter-0", "filter-bloomery", "filter-cursor"}));
  EXPECT_EQ(ones_of(value("filter-0")), 0u);
  for (redis_chain* c : {&chain, &other}) {
    EXPECT_EQ(c->growths(), 0u);
    EXPECT_FALSE(c->may_contain(keys[0]));
  }
  // It grows as it did at first, whichever client inserts.
  const chain_model expected(small, keys);
  other.insert(std::span(all).first(500));
  chain.insert(std::span(all).subspan(500));
  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

TEST_F(RedisChain, FollowsAResetOfTheOriginal) {
  const texts keys = md5_keys(400);
  redis_chain chain = redis_chain::create(server->address("bloomfilter"), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 1u);

  server->command({"DEL", "bloomfilter-0", "bloomfilter-1"});
  server->command({"SET", "cursor", "0"});
  server->command({"SETBIT", "bloomfilter-0", std::to_string(chain.geometry().bits - 1), "0"});

  EXPECT_FALSE(chain.may_contain(keys[0]));
  const chain_model expected(small, keys);
  chain.insert(views(keys));
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), expected.bitmaps());
}

TEST_F(RedisChain, LeavesNothingBehindWhenDropped) {
  redis_chain chain = filled(md5_keys(1000));
  server->command({"SET", "filters-0", "another's"});

  chain.drop();

  EXPECT_EQ(names(), (texts{"filters-0"}));
  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
}

TEST_F(RedisChain, ExpiresAsAWholeWithLaterBitmaps) {
  redis_chain chain = filled(md5_keys(400));
  chain.expire(std::chrono::hours(1));
  chain.insert(views(md5_keys(400, 400)));

  ASSERT_EQ(chain.growths(), 2u);
  const auto time_of = [&](const std::string& key) { return server->command({"PTTL", key}).integer(); };
  for (const std::string& key : names()) EXPECT_NEAR(static_cast<double>(time_of(key)), 3'600'000, 20'000) << key;
  EXPECT_TRUE(chain.info().expires_at.has_value());

  chain.reset();
  for (const std::string& key : names()) EXPECT_GT(time_of(key), 0) << key;

  chain.persist();
  for (const std::string& key : names()) EXPECT_EQ(time_of(key), -1) << key;
  EXPECT_FALSE(chain.info().expires_at.has_value());

  chain.expire(milliseconds(1));
  wait_until("the chain expires", [&] { return names().empty(); });
  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { chain.expire(milliseconds(0)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { chain.expire(milliseconds::max()); }), errc::invalid_argument);
}

// Wherever growth is interrupted.
TEST_F(RedisChain, HasNoBitmapThatOutlivesIt) {
  const texts keys = md5_keys(600);
  for (const char* refused : {"incr", "pexpire", "pexpireat", "persist", "pttl", "time", "setbit"}) {
    SCOPED_TRACE(refused);
    server->command({"FLUSHALL"});
    redis_chain::create(at("filter"), small).expire(std::chrono::hours(1));

    redis_chain writer = redis_chain::open(without(refused, "filter"));
    static_cast<void>(code_of([&] { writer.insert(views(keys)); }));

    const int last = std::stoi(value("filter-cursor"));
    for (int i = 0; i <= last; ++i) {
      EXPECT_GT(server->command({"PTTL", "filter-" + std::to_string(i)}).integer(), 0) << i;
    }
    if (std::string_view(refused) == "incr") {
      EXPECT_EQ(last, 0);
      EXPECT_GT(server->command({"PTTL", "filter-1"}).integer(), 0) << "before the cursor shows it";
    }
  }
}

TEST_F(RedisChain, TakesNoBitsOfAnExpiredChainAndNoKeysOfOthers) {
  const texts keys = md5_keys(400);
  filled(keys);
  const std::string full(value("filter-0").size(), '\xff');
  server->command({"FLUSHALL"});
  for (const char* left : {"filter-1", "filter-2", "filter-17"}) server->command({"SET", left, full});
  server->command({"HSET", "filter-3", "another's", "1"});
  server->command({"SET", "filter-4", "another's"});
  const chain_model expected(small, keys);

  redis_chain chain = filled(keys);

  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  chain.drop();
  EXPECT_EQ(names(), (texts{"filter-3", "filter-4"}));
}

TEST_F(RedisChain, LosesNoKeyIfTwoClientsCreateItAtOnce) {
  const texts keys = md5_keys(400);
  const chain_model expected(small, keys);
  for (const char* last_seen : {"BITCOUNT", "EVALSHA"}) {
    SCOPED_TRACE(last_seen);
    server->command({"FLUSHALL"});
    server->command({"SET", "filter-1", std::string(expected.bitmaps()[0].size(), '\xff')});
    proxy network(server->socket());
    network.before(last_seen, [&] { filled(keys); });

    redis_chain chain = redis_chain::create(network.address("filter"), small);

    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
    EXPECT_TRUE(chain.may_contain(keys.back()));
  }
}

// A chain that expires while it grows leaves no cursor behind for the next chain.
TEST_F(RedisChain, StaysGoneIfItExpiresAsItGrows) {
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(network.address("filter"), small);
  chain.insert(views(md5_keys(200)));
  network.before("PTTL", [] { server->command({"FLUSHDB"}); });

  static_cast<void>(code_of([&] { chain.insert(views(md5_keys(400))); }));

  EXPECT_EQ(code_of([&] { redis_chain::open(at("filter")); }), errc::not_found);
  EXPECT_EQ(names(), texts{});
  redis_chain::create(at("filter"), small).insert("a");
}

TEST_F(RedisChain, ReportsUnsupportedCalls) {
  redis_chain::create(at("filter"), small);
  struct row {
    const char* without_command;
    void (*use)(redis_chain&);
    const char* message;
  };
  for (const row& r : {row{"hmget", [](redis_chain&) {}, "cannot search for a chain: "},
                       {"bitfield_ro", [](redis_chain& c) { c.insert("a"); }, "cannot read a chain: "},
                       {"hincrby", [](redis_chain& c) { c.insert("a"); }, "cannot insert into a chain: "},
                       {"bitcount", [](redis_chain& c) { c.info(); }, "cannot count bits: "},
                       {"unlink", [](redis_chain& c) { c.drop(); }, "cannot drop a chain: "}}) {
    const auto thrown = error_of([&] {
      redis_chain chain = redis_chain::open(without(r.without_command, "filter"));
      r.use(chain);
    });
    ASSERT_TRUE(thrown.has_value()) << r.without_command;
    EXPECT_THAT(thrown->what(), testing::HasSubstr(r.message));
  }
}

TEST_F(RedisChain, NeedsOnlyTheListedPermissions) {
  const texts keys = md5_keys(600);
  const texts reading = {"+get", "+hmget", "+strlen", "+bitfield_ro", "+bitcount", "+pttl"};
  texts writing;
  for (const auto& r : bloomery::redis::rights) {
    if (r.what == bloomery::redis::need::chain || r.what == bloomery::redis::need::both) {
      writing.push_back(bloomery::redis::rule_of(r));
    }
  }

  redis_chain writer = redis_chain::create(limited(writing, "filter", "~filter-*"), small);
  writer.expire(std::chrono::hours(1));
  writer.insert(views(keys));
  writer.persist();
  EXPECT_EQ(writer.growths(), 2u);

  redis_chain reader = redis_chain::open(limited(reading, "filter", "~filter-*"));
  EXPECT_TRUE(reader.may_contain(keys[0]));
  EXPECT_EQ(reader.info().growths, 2u);
  EXPECT_EQ(code_of([&] { reader.insert("new"); }), errc::not_permitted);

  limited(writing, "filter", "~filter-*");
  writer.reset();
  writer.drop();
  EXPECT_EQ(names(), texts{});
}

TEST_F(RedisChain, ReportsItsContents) {
  redis_chain chain = redis_chain::create(at("filter"), published);
  chain.insert(views(md5_keys(15'000)));

  const bloomery::redis_chain_info info = chain.info();

  EXPECT_EQ(info.parameters, published);
  EXPECT_EQ(info.growths, 1u);
  ASSERT_EQ(info.ones.size(), 2u);
  EXPECT_EQ(info.ones[0], ones_of(value("filter-0")));
  EXPECT_EQ(info.ones[1], ones_of(value("filter-1")));
  EXPECT_NEAR(info.keys, 15'000, 150);
  // The measured share of absent keys, within five standard deviations of a binomial.
  const texts absent = md5_keys(60'000, 1'000'000);
  std::vector<std::uint64_t> found(absent.size() / 64 + 1);
  chain.may_contain(views(absent), found);
  const double expected = info.rate_now * 60'000;
  EXPECT_NEAR(static_cast<double>(count_of(found)), expected, 5 * std::sqrt(expected) + 1);
}

}  // namespace
}  // namespace bloomery_tests
