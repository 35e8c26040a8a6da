// The chain, compared with a model of the original in memory (Guava's positions, plain bitmaps, one key at a time), and
// with the original on one server.
#include <bloomery/redis/chain.hpp>

#include "redis/chain/chain_fixture.hpp"
#include "redis/chain/chain_model.hpp"
#include "redis/fixtures.hpp"

namespace bloomery_tests {
namespace {

using bloomery::errc;
using bloomery::redis_chain;
using bloomery::redis_chain_params;

// ---- the published figures ------------------------------------------------------------------------------------------

TEST_F(RedisChain, GrowsAndAnswersAsPublishedWhenKeysComeOneByOne) {
  redis_chain chain = redis_chain::create(server->address("users"), published);
  EXPECT_EQ(chain.geometry(), (bloomery::geometry{158'208, 11}));
  chain_model expected(published);

  std::vector<std::uint64_t> grew_after;
  std::uint64_t inserted = 0;
  for (const std::string& key : md5_keys(30'000)) {
    ASSERT_EQ(chain.insert(key), expected.insert(key)) << key;
    ++inserted;
    if (chain.growths() > grew_after.size()) grew_after.push_back(inserted);
    if (inserted == 10'000 || inserted == 30'000) {
      EXPECT_EQ(chain.growths(), inserted == 10'000 ? 1u : 3u);
      EXPECT_FALSE(chain.may_contain(md5_hex_of_number(99'999)));
      EXPECT_TRUE(chain.may_contain(md5_hex_of_number(9999)));
      EXPECT_FALSE(chain.may_contain("abcdefghijklmnopqrstuvwxyz123456"));
    }
  }

  EXPECT_EQ(grew_after, (std::vector<std::uint64_t>{9958, 19939, 29929}));
  EXPECT_EQ(expected.grew_after(), grew_after);
  EXPECT_EQ(bitmaps("users", "users-cursor"), expected.bitmaps());
  // The original counts after every insertion.
  EXPECT_LT(calls_of("bitcount"), 400u);
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

TEST_F(RedisChain, WritesTheSameBytesInBatchesOfEverySize) {
  const texts keys = md5_keys(30'000);
  chain_model expected(published);
  std::vector<std::uint8_t> expected_new;
  for (const std::string& key : keys) expected_new.push_back(expected.insert(key) ? 1 : 0);
  for (const std::size_t size : {1000u, 1024u, 9958u, 9959u, 30'000u}) {
    SCOPED_TRACE(size);
    server->command({"FLUSHALL"});
    redis_chain chain = redis_chain::create(at("filter"), published);

    std::vector<std::uint8_t> is_new(keys.size(), 7);
    const auto all = views(keys);
    for (std::size_t at = 0; at < keys.size(); at += size) {
      const std::size_t n = std::min(size, keys.size() - at);
      chain.insert(std::span(all).subspan(at, n), std::span(is_new).subspan(at, n));
    }

    EXPECT_EQ(is_new, expected_new);
    EXPECT_EQ(bitmaps("filter", "filter-cursor"), expected.bitmaps());
  }
  // A command carries the bits of 186 keys, a round trip those of 1024. The original sends 11 or more commands per key.
  EXPECT_LT(calls_of("bitfield") + calls_of("bitfield_ro"), 5 * 30'000u / 32);
}

// ---- batches --------------------------------------------------------------------------------------------------------

// Many repeated keys, also within a batch, in batches of any length; some keys are looked up in between.
TEST_F(RedisChain, HasTheSameBytesInBatchesAsTheModelKeyByKey) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 6; ++run) {
    SCOPED_TRACE(run);
    server->command({"FLUSHALL"});
    const redis_chain_params p = {50 + random() % 500, 0.1 / static_cast<double>(1 + random() % 50)};
    auto chain = std::make_unique<redis_chain>(redis_chain::create(at("filter"), p));
    chain_model expected(p);
    for (int batch = 0; batch < 20; ++batch) {
      texts keys(random() % 300);
      for (std::string& key : keys) key = std::to_string(random() % 3000);
      std::vector<std::uint8_t> is_new(keys.size()), expected_new;
      for (const std::string& key : keys) expected_new.push_back(expected.insert(key) ? 1 : 0);
      if (batch % 7 == 3) chain = std::make_unique<redis_chain>(redis_chain::open(at("filter")));

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

TEST_F(RedisChain, AcceptsKeysOfAnyBytes) {
  redis_chain chain = redis_chain::create(at("filter"), small);
  const texts keys = {"", std::string("\0", 1), std::string("a\0b", 3), "\r\n", std::string(100'000, 'x')};

  chain.insert(views(keys));

  for (const std::string& key : keys) EXPECT_TRUE(chain.may_contain(key));
  EXPECT_FALSE(chain.may_contain("a"));
}

// ---- names, and the original's keys ---------------------------------------------------------------------------------

TEST_F(RedisChain, UsesTheOriginalsNamesAndOneOfItsOwn) {
  const texts keys = md5_keys(400);
  redis_chain original_name = redis_chain::create(server->address("bloomfilter"), small);
  redis_chain other_name = redis_chain::create(server->address("other"), small);
  original_name.insert(views(keys));
  other_name.insert("a");

  EXPECT_EQ(names(), (texts{"bloomfilter-0", "bloomfilter-1", "bloomfilter-bloomery", "cursor", "other-0",
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
  EXPECT_EQ(count_found(chain, before), before.size());
  EXPECT_EQ(names(), (texts{"bloomfilter-0", "bloomfilter-1", "bloomfilter-2", "cursor"})) << "opening writes nothing";

  // Continues exactly as the original would.
  for (const std::string& key : after) expected.insert(key);
  chain.insert(views(after));
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), expected.bitmaps());
  EXPECT_GT(chain.growths(), 3u);
}

TEST_F(RedisChain, AndTheOriginalContinueEachOthersBitmaps) {
  chain_model expected(small);
  original old(*server, small, "bloomfilter", "cursor");
  for (std::uint32_t round = 0; round < 6; ++round) {
    const texts theirs = md5_keys(90, 1000 * round), ours = md5_keys(90, 1000 * round + 500);
    for (const std::string& key : theirs) old.put(key);
    for (const std::string& key : ours) expected.insert(key);

    redis_chain::create(server->address("bloomfilter"), small).insert(views(ours));  // opened again, it counts again
  }

  chain_model all(small);
  for (std::uint32_t round = 0; round < 6; ++round) {
    for (const std::string& key : md5_keys(90, 1000 * round)) all.insert(key);
    for (const std::string& key : md5_keys(90, 1000 * round + 500)) all.insert(key);
  }
  EXPECT_EQ(bitmaps("bloomfilter", "cursor"), all.bitmaps());
}

TEST_F(RedisChain, FindsWhatTheOriginalWritesMeanwhile) {
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

TEST_F(RedisChain, IsUsableIfTheOriginalWasKilledBetweenItsTwoStepsOfGrowth) {
  const texts keys = md5_keys(100);
  filled(keys);
  server->command({"INCR", "filter-cursor"});

  redis_chain chain = redis_chain::open(at("filter"));

  EXPECT_TRUE(chain.may_contain(keys[5]));
  EXPECT_FALSE(chain.may_contain("new"));
  EXPECT_TRUE(chain.insert("new"));
  EXPECT_TRUE(chain.may_contain("new"));
  EXPECT_EQ(value("filter-1").size(), chain.geometry().bits / 8);
}

}  // namespace
}  // namespace bloomery_tests
