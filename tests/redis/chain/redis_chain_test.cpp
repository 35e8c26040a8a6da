// The chain against a model of the original: Guava's positions, plain bitmaps in memory, keys one by one.
#include <bloomery/redis_chain.hpp>

#include "redis/chain/chain_model.hpp"
#include "redis/filter/rights.hpp"
#include "redis/fixtures.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"
#include "support/errors.hpp"
#include "support/processes.hpp"

#include <bloomery/scheme.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_chain;
using bloomery::redis_chain_params;
using std::chrono::milliseconds;

constexpr redis_chain_params published = {10'000, 0.0005};  // with exact figures
constexpr redis_chain_params small = {300, 0.01};

// ---- the server -----------------------------------------------------------------------------------------------------

class RedisChain : public on_a_server<RedisChain> {
 protected:
  void SetUp() override {
    on_a_server::SetUp();
    if (server != nullptr) server->command({"CONFIG", "RESETSTAT"});
  }

  static std::string value(const std::string& key) { return server->command({"GET", key}).text(); }

  static bloomery::redis_address through(const proxy& network) {
    bloomery::redis_address address = server->address();
    address.socket.clear();
    address.endpoints = {{"127.0.0.1", network.port()}};
    return address;
  }

  // As a user who may do all but this.
  static bloomery::redis_address without(const std::string& command) { return limited({"+@all", "-" + command}); }

  static bloomery::redis_address limited(const texts& rules) {
    server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~filter-*"});
    for (const std::string& rule : rules) server->command({"ACL", "SETUSER", "limited", rule});
    bloomery::redis_address address = server->address();
    address.user = "limited";
    address.password = "any";
    return address;
  }

  // All bitmaps of a chain, up to its cursor.
  static texts bitmaps(const std::string& name, const std::string& cursor) {
    texts all;
    const std::string last = value(cursor);
    for (int i = 0; i <= std::stoi(last.empty() ? "0" : last); ++i)
      all.push_back(value(name + "-" + std::to_string(i)));
    return all;
  }

  static texts all_keys() {
    const auto answer = server->command({"KEYS", "*"});
    texts keys;
    for (std::size_t i = 0; i < answer.reply().size(); ++i) keys.emplace_back(answer.reply()[i].text());
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  // How often the server was asked for a command since the test began.
  static std::uint64_t calls(const std::string& command) {
    const std::string stats = server->command({"INFO", "commandstats"}).text();
    const std::size_t at = stats.find("cmdstat_" + command + ":calls=");
    return at == std::string::npos ? 0 : std::stoull(stats.substr(at + command.size() + 15));
  }
};

// The original as a client: SETBIT, BITCOUNT, INCR, as many round trips as it likes; keys one by one.
class original {
 public:
  original(test_server& server, const redis_chain_params& p, std::string name, std::string cursor)
      : server_(server), rules_(p), name_(std::move(name)), cursor_(std::move(cursor)) {
    if (ones() == 0) begin();
  }

  void put(const std::string& key) {
    const auto at = rules_.positions(key);
    const std::uint64_t last = cursor();
    bool present = false;
    for (std::uint64_t i = 0; i <= last && !present; ++i) {
      present = std::all_of(at.begin(), at.end(), [&](std::uint64_t x) {
        return server_.command({"GETBIT", bitmap(i), std::to_string(x)}).integer() == 1;
      });
    }
    for (const std::uint64_t x : at) {
      if (!present) server_.command({"SETBIT", bitmap(last), std::to_string(x), "1"});
    }
    if (2 * ones() > rules_.geometry().bits) {
      server_.command({"INCR", cursor_});
      begin();
    }
  }

 private:
  std::string bitmap(std::uint64_t i) const { return name_ + "-" + std::to_string(i); }
  std::uint64_t cursor() const {
    const std::string text = server_.command({"GET", cursor_}).text();
    return text.empty() ? 0 : std::stoull(text);
  }
  std::uint64_t ones() const {
    return static_cast<std::uint64_t>(server_.command({"BITCOUNT", bitmap(cursor())}).integer());
  }
  void begin() { server_.command({"SETBIT", bitmap(cursor()), std::to_string(rules_.geometry().bits - 1), "0"}); }

  test_server& server_;
  chain_model rules_;
  std::string name_;
  std::string cursor_;
};

// ---- the published figures ------------------------------------------------------------------------------------------

TEST_F(RedisChain, GrowsRightAfterThePublishedInsertionsWhenKeysComeOneByOne) {
  redis_chain chain = redis_chain::create(server->address("users"), published);
  EXPECT_EQ(chain.geometry(), (bloomery::geometry{158'208, 11}));
  chain_model expected(published);

  std::vector<std::uint64_t> grew_after;
  std::uint64_t inserted = 0;
  for (const std::string& key : md5_keys(30'000)) {
    ASSERT_EQ(chain.insert(key), expected.insert(key)) << key;
    ++inserted;
    if (chain.growths() > grew_after.size()) grew_after.push_back(inserted);
    if (inserted == 10'000) {
      EXPECT_EQ(chain.growths(), 1u);
    }
  }

  EXPECT_EQ(grew_after, (std::vector<std::uint64_t>{9958, 19939, 29929}));
  EXPECT_EQ(expected.grew_after(), grew_after);
  EXPECT_EQ(chain.growths(), 3u);
  EXPECT_EQ(bitmaps("users", "users-cursor"), expected.bitmaps());
  // The original counts after every insertion.
  EXPECT_LT(calls("bitcount"), 400u);
}

TEST_F(RedisChain, ChecksTheSizesOfOutputs) {
  redis_chain chain = redis_chain::create(at("filter-sizes"), small);
  const std::vector<std::string_view> keys(130, "Madrid");
  std::vector<std::uint64_t> bitmap(4, 7);

  for (const std::size_t size : {1u, 129u, 131u}) {
    std::vector<std::uint8_t> is_new(size);
    EXPECT_EQ(code_of([&] { chain.insert(keys, is_new); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] { chain.may_contain(keys, std::span(bitmap).first(2)); }), errc::invalid_argument);

  EXPECT_EQ(bitmap, std::vector<std::uint64_t>(4, 7)) << "a refused call writes nothing";
  EXPECT_FALSE(chain.may_contain("Madrid"));
  chain.insert(keys);
  chain.may_contain(keys, bitmap);
  EXPECT_EQ(bitmap, (std::vector<std::uint64_t>{~std::uint64_t{0}, ~std::uint64_t{0}, 3, 0}));
}

TEST_F(RedisChain, AnswersAsPublished) {
  for (const std::uint32_t count : {10'000u, 30'000u}) {
    SCOPED_TRACE(count);
    redis_chain chain = redis_chain::create(server->address(std::to_string(count)), published);
    const texts keys = md5_keys(count);
    chain.insert(views(keys));

    EXPECT_EQ(chain.growths(), count == 10'000 ? 1u : 3u);
    EXPECT_FALSE(chain.may_contain(md5_hex_of_number(99'999)));
    EXPECT_TRUE(chain.may_contain(md5_hex_of_number(9999)));
    EXPECT_FALSE(chain.may_contain("abcdefghijklmnopqrstuvwxyz123456"));
  }
}

TEST_F(RedisChain, WritesTheSameBytesInBatchesOfEverySize) {
  const texts keys = md5_keys(30'000);
  chain_model expected(published);
  std::vector<std::uint8_t> expected_new;
  for (const std::string& key : keys) expected_new.push_back(expected.insert(key) ? 1 : 0);
  for (const std::size_t size : {1000u, 1024u, 9958u, 9959u, 30'000u}) {
    SCOPED_TRACE(size);
    server->command({"FLUSHALL"});
    redis_chain chain = redis_chain::create(server->address(), published);

    std::vector<std::uint8_t> is_new(keys.size(), 7);
    const auto all = views(keys);
    for (std::size_t at = 0; at < keys.size(); at += size) {
      const std::size_t n = std::min(size, keys.size() - at);
      chain.insert(std::span(all).subspan(at, n), std::span(is_new).subspan(at, n));
    }

    EXPECT_EQ(is_new, expected_new);
    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  }
  // A command carries the bits of 186 keys, a round trip those of 1024. The original sends 11 and more for each key.
  EXPECT_LT(calls("bitfield") + calls("bitfield_ro"), 5 * 30'000u / 32);
}

// ---- batches --------------------------------------------------------------------------------------------------------

// Keys of which many come again, also within a batch, in batches of any length; some are looked up in between.
TEST_F(RedisChain, DoesInBatchesWhatTheModelDoesOneByOne) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 6; ++run) {
    SCOPED_TRACE(run);
    server->command({"FLUSHALL"});
    const redis_chain_params p = {50 + random() % 500, 0.1 / static_cast<double>(1 + random() % 50)};
    auto chain = std::make_unique<redis_chain>(redis_chain::create(server->address(), p));
    chain_model expected(p);
    for (int batch = 0; batch < 20; ++batch) {
      texts keys(random() % 300);
      for (std::string& key : keys) key = std::to_string(random() % 3000);
      std::vector<std::uint8_t> is_new(keys.size()), expected_new;
      for (const std::string& key : keys) expected_new.push_back(expected.insert(key) ? 1 : 0);
      if (batch % 7 == 3) chain = std::make_unique<redis_chain>(redis_chain::open(server->address()));

      chain->insert(views(keys), is_new);

      ASSERT_EQ(is_new, expected_new);
      ASSERT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
      texts asked(random() % 200);
      for (std::string& key : asked) key = std::to_string(random() % 6000);
      std::vector<std::uint64_t> found(asked.size() / 64 + 1, ~std::uint64_t{0});
      chain->may_contain(views(asked), found);
      for (std::size_t i = 0; i < 64 * found.size(); ++i) {
        const bool bit = (found[i / 64] >> (i % 64) & 1) != 0;
        ASSERT_EQ(bit, i < asked.size() && expected.may_contain(asked[i])) << i;
      }
    }
    EXPECT_GT(chain->growths(), 0u);
  }
}

TEST_F(RedisChain, TakesKeysOfAnyBytes) {
  redis_chain chain = redis_chain::create(server->address(), small);
  const texts keys = {"", std::string("\0", 1), std::string("a\0b", 3), "\r\n", std::string(100'000, 'x')};

  chain.insert(views(keys));

  for (const std::string& key : keys) EXPECT_TRUE(chain.may_contain(key));
  EXPECT_FALSE(chain.may_contain("a"));
}

// ---- names, and the original's keys ---------------------------------------------------------------------------------

TEST_F(RedisChain, HasTheOriginalsNamesAndOneOfItsOwn) {
  const texts keys = md5_keys(400);
  redis_chain original_name = redis_chain::create(server->address("bloomfilter"), small);
  redis_chain other_name = redis_chain::create(server->address("other"), small);
  original_name.insert(views(keys));
  other_name.insert("a");

  EXPECT_EQ(all_keys(), (texts{"bloomfilter-0", "bloomfilter-1", "bloomfilter-bloomery", "cursor", "other-0",
                               "other-bloomery", "other-cursor"}));
  EXPECT_EQ(value("cursor"), "1");
  EXPECT_EQ(value("other-cursor"), "0");
  EXPECT_FALSE(other_name.may_contain(keys[0]));
}

TEST_F(RedisChain, TakesOverWhatTheOriginalHasWritten) {
  const texts before = md5_keys(700), after = md5_keys(700, 700);
  chain_model expected(small);
  original old(*server, small, "bloomfilter", "cursor");
  for (const std::string& key : before) {
    old.put(key);
    expected.insert(key);
  }
  ASSERT_EQ(bitmaps("bloomfilter", "cursor"), expected.bitmaps());
  ASSERT_EQ(expected.grew_after().size(), 2u);

  redis_chain chain = redis_chain::open(server->address("bloomfilter"), small);
  std::vector<std::uint64_t> found(before.size() / 64 + 1);
  chain.may_contain(views(before), found);
  EXPECT_EQ(count_of(found), before.size());
  EXPECT_EQ(all_keys(), (texts{"bloomfilter-0", "bloomfilter-1", "bloomfilter-2", "cursor"}))
      << "opening writes nothing";

  // Goes on exactly as the original would.
  for (const std::string& key : after) expected.insert(key);
  chain.insert(views(after));
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), expected.bitmaps());
  EXPECT_GT(chain.growths(), 3u);
}

TEST_F(RedisChain, AndTheOriginalGoOnWithWhatTheOtherHasWritten) {
  chain_model expected(small);
  original old(*server, small, "bloomfilter", "cursor");
  for (std::uint32_t round = 0; round < 6; ++round) {
    const texts theirs = md5_keys(90, 1000 * round), ours = md5_keys(90, 1000 * round + 500);
    for (const std::string& key : theirs) old.put(key);
    for (const std::string& key : ours) expected.insert(key);

    redis_chain::create(server->address("bloomfilter"), small).insert(views(ours));  // opened anew, it counts anew
  }

  chain_model all(small);
  for (std::uint32_t round = 0; round < 6; ++round) {
    for (const std::string& key : md5_keys(90, 1000 * round)) all.insert(key);
    for (const std::string& key : md5_keys(90, 1000 * round + 500)) all.insert(key);
  }
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), all.bitmaps());
}

TEST_F(RedisChain, ThatStaysOpenSeesWhatTheOriginalWritesMeanwhile) {
  original old(*server, small, "bloomfilter", "cursor");
  redis_chain chain = redis_chain::open(server->address("bloomfilter"), small);
  const texts theirs = md5_keys(600), ours = md5_keys(600, 5000);
  for (std::size_t i = 0; i < 600; ++i) {
    old.put(theirs[i]);
    chain.insert(ours[i]);
    ASSERT_TRUE(chain.may_contain(theirs[i]));
  }

  const texts all = bitmaps("bloomfilter", "cursor");
  ASSERT_GE(all.size(), 4u);
  const std::uint64_t bits = chain.geometry().bits, probes = chain.geometry().probes;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_GT(2 * ones_of(all[i]), bits);
    EXPECT_LE(ones_of(all[i]), bits / 2 + 2 * probes) << "one of them notices, at the latest the original";
  }
}

TEST_F(RedisChain, IsUsableWhereTheOriginalWasKilledBetweenItsTwoStepsOfGrowth) {
  const texts keys = md5_keys(100);
  redis_chain::create(server->address(), small).insert(views(keys));
  server->command({"INCR", "filter-cursor"});

  redis_chain chain = redis_chain::open(server->address());

  EXPECT_TRUE(chain.may_contain(keys[5]));
  EXPECT_FALSE(chain.may_contain("new"));
  EXPECT_TRUE(chain.insert("new"));
  EXPECT_TRUE(chain.may_contain("new"));
  EXPECT_EQ(value("filter-1").size(), chain.geometry().bits / 8);
}

// ---- several writers ------------------------------------------------------------------------------------------------

// All of them begin a batch at once, again and again: several find the newest bitmap half full before one has grown the
// chain.
TEST_F(RedisChain, GrowsOnceForAllOfManyThreadsThatMeetHalfTogether) {
  const redis_chain_params tiny = {40, 0.01};
  redis_chain chain = redis_chain::create(server->address(), tiny);
  constexpr std::uint32_t writers = 6, rounds = 40, batch = 12;
  const texts keys = md5_keys(writers * rounds * batch);
  const auto all_views = views(keys);
  std::barrier together(writers);
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      redis_chain mine = redis_chain::open(server->address());
      for (std::uint32_t round = 0; round < rounds; ++round) {
        together.arrive_and_wait();
        const auto thrown =
            error_of([&] { mine.insert(std::span(all_views).subspan((round * writers + w) * batch, batch)); });
        EXPECT_FALSE(thrown.has_value()) << thrown->what();
      }
    });
  }
  for (std::thread& t : threads) t.join();

  const texts all = bitmaps("filter", "filter-cursor");
  const std::uint64_t bits = chain.geometry().bits, probes = chain.geometry().probes;
  EXPECT_GT(all.size(), keys.size() / 160);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_GT(2 * ones_of(all[i]), bits) << "bitmap " << i << " was left early: the chain grew twice";
    EXPECT_LE(ones_of(all[i]), bits / 2 + 2 * writers * batch * probes) << "bitmap " << i << " was left late";
  }
  std::vector<std::uint64_t> found(keys.size() / 64 + 1);
  chain.may_contain(all_views, found);
  EXPECT_EQ(count_of(found), keys.size());
}

TEST_F(RedisChain, SharesTheCountOfBitsSoThatManyIdleWritersDoNotOverfill) {
  redis_chain chain = redis_chain::create(server->address(), small);
  std::vector<redis_chain> writers;
  for (int i = 0; i < 100; ++i) writers.push_back(redis_chain::open(server->address()));
  chain_model expected(small);

  // Each has seen an empty bitmap at first, and has set a hundredth of the bits.
  const texts keys = md5_keys(700);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    writers[i % writers.size()].insert(keys[i]);
    expected.insert(keys[i]);
  }

  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

TEST_F(RedisChain, GrowsAtTheSameKeysWhateverTheSharedCountSays) {
  const texts keys = md5_keys(900);
  const auto all = views(keys);
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
  for (const char* wrong : {"0", "1", "100000", "-5", "9223372036854770000"}) {
    SCOPED_TRACE(wrong);
    server->command({"FLUSHALL"});
    redis_chain::create(server->address(), small).insert(std::span(all).first(250));
    server->command({"HSET", "filter-bloomery", "ones:0", wrong, "ones:1", wrong});

    redis_chain chain = redis_chain::open(server->address());
    chain.insert(std::span(all).subspan(250));

    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  }
}

// ---- connections that fail ------------------------------------------------------------------------------------------

// Answers are lost every few kilobytes, so that commands run twice: also those that grow the chain.
TEST_F(RedisChain, GrowsAtTheSameKeysWhenConnectionsAreCutAndCommandsRunTwice) {
  const texts keys = md5_keys(700);
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
  ASSERT_GE(expected.grew_after().size(), 2u);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(through(network), small);

  std::mt19937_64 random(1);
  for (const std::string& key : keys) {
    if (random() % 3 == 0) network.cut_after_answers(static_cast<std::int64_t>(random() % 300));
    chain.insert(key);
  }

  EXPECT_GT(network.connections(), 100u);
  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

// A writer is killed somewhere, also between the steps of growth. What it was told of is in, and the chain is whole.
TEST_F(RedisChain, KeepsWhatKilledWritersWereToldOf) {
  const redis_chain_params tiny = {40, 0.01};
  redis_chain chain = redis_chain::create(server->address(), tiny);
  const texts keys = md5_keys(100'000);
  const auto all = views(keys);
  auto* const done = static_cast<std::atomic<std::size_t>*>(
      ::mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(done, MAP_FAILED);
  *done = 0;
  std::mt19937_64 random(1);
  for (int run = 0; run < 12; ++run) {
    const std::size_t from = *done, enough = from + 20 + random() % 60;
    const pid_t writer = start_child([&] {
      redis_chain mine = redis_chain::open(server->address());
      while (*done < keys.size()) {
        mine.insert(keys[*done]);
        ++*done;
      }
      return 0;
    });
    wait_until("the writer writes", [&] { return *done > enough; });
    ::kill(writer, SIGKILL);
    EXPECT_EQ(wait_for(writer), 128 + SIGKILL);
  }

  const std::size_t told = *done;
  ::munmap(done, sizeof *done);
  std::vector<std::uint64_t> found(told / 64 + 1);
  chain.may_contain(std::span(all).first(told), found);
  EXPECT_EQ(count_of(found), told);
  EXPECT_TRUE(chain.insert("one more"));
  const texts written = bitmaps("filter", "filter-cursor");
  EXPECT_GT(written.size(), 5u);
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (i + 1 < written.size()) {
      EXPECT_GT(2 * ones_of(written[i]), chain.geometry().bits) << i;
    }
    EXPECT_LE(ones_of(written[i]), chain.geometry().bits / 2 + 2 * chain.geometry().probes) << i;
  }
}

// ---- making and opening ---------------------------------------------------------------------------------------------

TEST_F(RedisChain, IsMadeOnceAndThenTaken) {
  EXPECT_TRUE(redis_chain::create(server->address(), small).insert("a"));
  redis_chain again = redis_chain::create(server->address(), small);
  redis_chain opened = redis_chain::open(server->address());

  EXPECT_TRUE(again.may_contain("a"));
  EXPECT_FALSE(opened.insert("a"));
  EXPECT_EQ(opened.parameters(), small);
  EXPECT_EQ(opened.geometry(), again.geometry());
}

TEST_F(RedisChain, RefusesOtherParametersThanItHas) {
  redis_chain::create(server->address(), small);

  const auto address = server->address();
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {301, 0.01}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::open(address, redis_chain_params{300, 0.02}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {0, 0.02}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {10, 1}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::create(address, {1'000'000'000, 0.01}); }), errc::too_large);
}

TEST_F(RedisChain, OfTheOriginalWantsTheSizeThatItsBitmapsHave) {
  original old(*server, small, "filter", "filter-cursor");
  old.put("a");

  EXPECT_THROW(redis_chain::open(server->address()), bloomery::redis_chain_params_unknown);
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address(), published); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_chain::create(server->address(), published); }), errc::incompatible);
  EXPECT_EQ(all_keys(), (texts{"filter-0"})) << "a refusal writes nothing";
  EXPECT_TRUE(redis_chain::open(server->address(), small).may_contain("a"));
}

TEST_F(RedisChain, TellsAMissingChainFromAnAbsentKey) {
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()); }), errc::not_found);
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address(), small); }), errc::not_found);

  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert("a");
  server->command({"FLUSHALL"});

  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { chain.insert("a"); }), errc::not_found);
}

TEST_F(RedisChain, SaysThatAPartIsGoneAndNotThatAKeyIsAbsent) {
  const texts keys = md5_keys(1000);
  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 3u);
  for (const char* lost : {"filter-0", "filter-1", "filter-3", "filter-cursor"}) {
    SCOPED_TRACE(lost);
    server->command({"RENAME", lost, "elsewhere"});

    EXPECT_EQ(code_of([&] { chain.may_contain(keys[0]); }), errc::damaged);
    EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);
    // And so for all who have never seen it.
    const auto fresh = [&](auto use) {
      return code_of([&] {
        redis_chain opened = redis_chain::open(server->address());
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

TEST_F(RedisChain, WithoutItsCursorIsNotGoneOnWithAndCanBeDropped) {
  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(md5_keys(3000)));
  ASSERT_GT(chain.growths(), 5u);
  server->command({"DEL", "filter-cursor"});

  EXPECT_EQ(code_of([&] { redis_chain::create(server->address(), small); }), errc::damaged);
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()); }), errc::damaged);
  EXPECT_EQ(code_of([&] { chain.growths(); }), errc::damaged);
  EXPECT_EQ(code_of([&] { chain.expire(std::chrono::hours(1)); }), errc::damaged);
  EXPECT_EQ(value("filter-cursor"), "");
  server->command({"DEL", "filter-1"});
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()); }), errc::damaged);
  chain.drop();
  EXPECT_EQ(all_keys(), texts{});
}

// The original makes a bitmap behind the cursor, and one that is written to before is as long as its last bit wants.
// Ours are whole.
TEST_F(RedisChain, TellsALostEndOfABitmapFromOneThatTheOriginalHasYetToWrite) {
  const texts keys = md5_keys(400);
  {
    redis_chain chain = redis_chain::create(server->address(), small);
    chain.insert(views(keys));
    ASSERT_EQ(chain.growths(), 1u);
    server->command({"SET", "filter-1", value("filter-1").substr(0, 100)});

    EXPECT_EQ(code_of([&] { chain.may_contain(keys[0]); }), errc::damaged);
    EXPECT_EQ(code_of([&] { redis_chain::open(server->address()).insert("new"); }), errc::damaged);
    EXPECT_EQ(value("filter-1").size(), 100u);
  }
  server->command({"FLUSHALL"});
  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(md5_keys(100)));
  server->command({"INCR", "filter-cursor"});
  chain_model rules(small);
  for (const std::uint64_t x : rules.positions("theirs")) {
    server->command({"SETBIT", "filter-1", std::to_string(x), "1"});
  }
  ASSERT_LT(value("filter-1").size(), chain.geometry().bits / 8);

  redis_chain fresh = redis_chain::open(server->address());
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

TEST_F(RedisChain, MakesNoBitmapAnewThatGoesBetweenReadingAndWriting) {
  const texts keys = md5_keys(400);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(through(network), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 1u);
  network.before("HINCRBY", [] { server->command({"DEL", "filter-1"}); });

  EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);

  EXPECT_EQ(all_keys(), (texts{"filter-0", "filter-bloomery", "filter-cursor"}));
  EXPECT_EQ(code_of([&] { chain.insert("new"); }), errc::damaged);
  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()).may_contain("new"); }), errc::damaged);
}

TEST_F(RedisChain, TakesAKeyThatMeetsAReset) {
  const texts keys = md5_keys(400);
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(through(network), small);
  chain.insert(views(keys));
  ASSERT_EQ(chain.growths(), 1u);
  network.before("HINCRBY", [] { redis_chain::open(server->address()).reset(); });

  EXPECT_TRUE(chain.insert("new"));

  EXPECT_EQ(all_keys(), (texts{"filter-0", "filter-bloomery", "filter-cursor"})) << "no bitmap is left behind";
  chain_model expected(small);
  expected.insert("new");
  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
}

TEST_F(RedisChain, RefusesOtherThingsUnderItsNames) {
  const auto fresh = [&] {
    server->command({"FLUSHALL"});
    redis_chain::create(server->address(), small).insert("a");
  };
  const auto both = [&](auto action) {
    const auto opened = code_of([&] { redis_chain::open(server->address()); });
    EXPECT_EQ(opened, code_of([&] { redis_chain::create(server->address(), small); }));
    action(opened);
  };
  for (const char* cursor : {"x", "-1", "", "1.5", " 1", "01", "10000", "99999999999999999999999"}) {
    fresh();
    redis_chain chain = redis_chain::open(server->address());
    server->command({"SET", "filter-cursor", cursor});

    both([&](auto code) { EXPECT_EQ(code, errc::incompatible) << cursor; });
    EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::incompatible) << cursor;
    EXPECT_EQ(code_of([&] { chain.insert("b"); }), errc::incompatible) << cursor;
  }
  for (const char* key : {"filter-cursor", "filter-0", "filter-bloomery"}) {
    fresh();
    server->command({"DEL", key});
    server->command({"LPUSH", key, "1"});

    both([&](auto code) { EXPECT_EQ(code, errc::incompatible) << key; });
  }
  for (const std::size_t length : {1u, 10'000u}) {
    fresh();
    redis_chain chain = redis_chain::open(server->address());
    server->command({"SET", "filter-0", std::string(length, 'x')});

    both([&](auto code) { EXPECT_EQ(code, errc::incompatible) << length; });
    EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::incompatible) << length;
  }
  using two_texts = std::pair<const char*, const char*>;
  for (const two_texts& wrong : {two_texts("", "0.01"), {"0", "0.01"}, {"300", "nan"}, {"300", "2"}, {"x", "y"}}) {
    fresh();
    server->command({"HSET", "filter-bloomery", "n", wrong.first, "p", wrong.second});

    both([&](auto code) { EXPECT_EQ(code, errc::damaged) << wrong.first << " " << wrong.second; });
  }
  fresh();
  server->command({"HSET", "filter-bloomery", "ones:0", "x"});
  EXPECT_TRUE(redis_chain::open(server->address()).insert("b")) << "a count that is none is counted anew";
}

// A cursor that somebody has set far ahead costs no memory for all the bitmaps that are not there.
TEST_F(RedisChain, ReportsACursorWithoutBitmaps) {
  redis_chain chain = redis_chain::create(server->address(), small);
  server->command({"SET", "filter-cursor", "9999"});

  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::damaged);
}

// ---- emptying, ending -----------------------------------------------------------------------------------------------

TEST_F(RedisChain, IsEmptyAfterResetForAllWhoHaveItOpen) {
  const texts keys = md5_keys(1000);
  const auto all = views(keys);
  redis_chain chain = redis_chain::create(server->address(), small), other = redis_chain::open(server->address());
  chain.insert(views(keys));
  EXPECT_TRUE(other.may_contain(keys[0]));

  chain.reset();

  EXPECT_EQ(all_keys(), (texts{"filter-0", "filter-bloomery", "filter-cursor"}));
  EXPECT_EQ(ones_of(value("filter-0")), 0u);
  for (redis_chain* c : {&chain, &other}) {
    EXPECT_EQ(c->growths(), 0u);
    EXPECT_FALSE(c->may_contain(keys[0]));
  }
  // And it grows as at first, whoever inserts.
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
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
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
  chain.insert(views(keys));
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), expected.bitmaps());
}

TEST_F(RedisChain, LeavesNothingBehindWhenDropped) {
  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(md5_keys(1000)));
  server->command({"SET", "filters-0", "another's"});

  chain.drop();

  EXPECT_EQ(all_keys(), (texts{"filters-0"}));
  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
}

TEST_F(RedisChain, EndsAsAWholeWithBitmapsThatCameLater) {
  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(md5_keys(400)));
  chain.expire(std::chrono::hours(1));
  chain.insert(views(md5_keys(400, 400)));

  ASSERT_EQ(chain.growths(), 2u);
  const auto time_of = [&](const std::string& key) { return server->command({"PTTL", key}).integer(); };
  for (const std::string& key : all_keys()) EXPECT_NEAR(static_cast<double>(time_of(key)), 3'600'000, 20'000) << key;
  EXPECT_TRUE(chain.info().expires_at.has_value());

  chain.reset();
  for (const std::string& key : all_keys()) EXPECT_GT(time_of(key), 0) << key;

  chain.persist();
  for (const std::string& key : all_keys()) EXPECT_EQ(time_of(key), -1) << key;
  EXPECT_FALSE(chain.info().expires_at.has_value());

  chain.expire(milliseconds(1));
  wait_until("the chain expires", [&] { return all_keys().empty(); });
  EXPECT_EQ(code_of([&] { chain.may_contain("a"); }), errc::not_found);
  EXPECT_EQ(code_of([&] { chain.expire(milliseconds(0)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { chain.expire(milliseconds::max()); }), errc::invalid_argument);
}

// Wherever growth is broken off.
TEST_F(RedisChain, HasNoBitmapThatOutlivesIt) {
  const texts keys = md5_keys(600);
  for (const char* refused : {"incr", "pexpire", "pexpireat", "persist", "pttl", "time", "setbit"}) {
    SCOPED_TRACE(refused);
    server->command({"FLUSHALL"});
    redis_chain::create(server->address(), small).expire(std::chrono::hours(1));

    redis_chain writer = redis_chain::open(without(refused));
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

TEST_F(RedisChain, TakesNoBitsOfOneThatEndedAndNothingOfOthers) {
  const texts keys = md5_keys(400);
  redis_chain::create(server->address(), small).insert(views(keys));
  const std::string full(value("filter-0").size(), '\xff');
  server->command({"FLUSHALL"});
  for (const char* left : {"filter-1", "filter-2", "filter-17"}) server->command({"SET", left, full});
  server->command({"HSET", "filter-3", "another's", "1"});
  server->command({"SET", "filter-4", "another's"});
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);

  redis_chain chain = redis_chain::create(server->address(), small);
  chain.insert(views(keys));

  EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  chain.drop();
  EXPECT_EQ(all_keys(), (texts{"filter-3", "filter-4"}));
}

TEST_F(RedisChain, LosesNothingToOneWhoMakesItAtTheSameTime) {
  const texts keys = md5_keys(400);
  chain_model expected(small);
  for (const std::string& key : keys) expected.insert(key);
  for (const char* last_seen : {"BITCOUNT", "EVALSHA"}) {
    SCOPED_TRACE(last_seen);
    server->command({"FLUSHALL"});
    server->command({"SET", "filter-1", std::string(expected.bitmaps()[0].size(), '\xff')});
    proxy network(server->socket());
    network.before(last_seen, [&] { redis_chain::create(server->address(), small).insert(views(keys)); });

    redis_chain chain = redis_chain::create(through(network), small);

    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
    EXPECT_TRUE(chain.may_contain(keys.back()));
  }
}

// A chain that expires while it grows leaves no cursor of its own to the next one.
TEST_F(RedisChain, ThatExpiresAsItGrowsStaysGone) {
  proxy network(server->socket());
  redis_chain chain = redis_chain::create(through(network), small);
  chain.insert(views(md5_keys(200)));
  network.before("PTTL", [] { server->command({"FLUSHDB"}); });

  static_cast<void>(code_of([&] { chain.insert(views(md5_keys(400))); }));

  EXPECT_EQ(code_of([&] { redis_chain::open(server->address()); }), errc::not_found);
  EXPECT_EQ(all_keys(), texts{});
  redis_chain::create(server->address(), small).insert("a");
}

TEST_F(RedisChain, SaysWhatItCannotDo) {
  redis_chain::create(server->address(), small);
  const auto refused = [&](const char* command, auto use) {
    const auto thrown = error_of([&] {
      redis_chain chain = redis_chain::open(without(command));
      use(chain);
    });
    return thrown ? std::string(thrown->what()) : std::string();
  };

  EXPECT_THAT(refused("hmget", [](redis_chain&) {}), testing::HasSubstr("cannot look for a chain: "));
  EXPECT_THAT(refused("bitfield_ro", [](redis_chain& c) { c.insert("a"); }),
              testing::HasSubstr("cannot read a chain: "));
  EXPECT_THAT(refused("hincrby", [](redis_chain& c) { c.insert("a"); }),
              testing::HasSubstr("cannot insert into a chain: "));
  EXPECT_THAT(refused("bitcount", [](redis_chain& c) { c.info(); }), testing::HasSubstr("cannot count bits: "));
  EXPECT_THAT(refused("unlink", [](redis_chain& c) { c.drop(); }), testing::HasSubstr("cannot drop a chain: "));
}

TEST_F(RedisChain, NeedsNoOtherRightsThanAreListed) {
  const texts keys = md5_keys(600);
  const texts reading = {"+get", "+hmget", "+strlen", "+bitfield_ro", "+bitcount", "+pttl"};
  texts writing;
  for (const auto& r : bloomery::redis::rights) {
    if (r.what == bloomery::redis::need::chain || r.what == bloomery::redis::need::both) {
      writing.push_back(bloomery::redis::rule_of(r));
    }
  }

  redis_chain writer = redis_chain::create(limited(writing), small);
  writer.expire(std::chrono::hours(1));
  writer.insert(views(keys));
  writer.persist();
  EXPECT_EQ(writer.growths(), 2u);

  redis_chain reader = redis_chain::open(limited(reading));
  EXPECT_TRUE(reader.may_contain(keys[0]));
  EXPECT_EQ(reader.info().growths, 2u);
  EXPECT_EQ(code_of([&] { reader.insert("new"); }), errc::not_permitted);

  limited(writing);
  writer.reset();
  writer.drop();
  EXPECT_EQ(all_keys(), texts{});
}

TEST_F(RedisChain, TellsWhatIsInIt) {
  redis_chain chain = redis_chain::create(server->address(), published);
  chain.insert(views(md5_keys(15'000)));

  const bloomery::redis_chain_info info = chain.info();

  EXPECT_EQ(info.parameters, published);
  EXPECT_EQ(info.growths, 1u);
  ASSERT_EQ(info.ones.size(), 2u);
  EXPECT_EQ(info.ones[0], ones_of(value("filter-0")));
  EXPECT_EQ(info.ones[1], ones_of(value("filter-1")));
  EXPECT_NEAR(info.keys, 15'000, 150);
  // The measured share of absent keys, within five deviations of a binomial.
  const texts absent = md5_keys(60'000, 1'000'000);
  std::vector<std::uint64_t> found(absent.size() / 64 + 1);
  chain.may_contain(views(absent), found);
  const double expected = info.rate_now * 60'000;
  EXPECT_NEAR(static_cast<double>(count_of(found)), expected, 5 * std::sqrt(expected) + 1);
}

}  // namespace
}  // namespace bloomery_tests
