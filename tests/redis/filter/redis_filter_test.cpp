// A shared filter on a real server, compared with local filters of the same keys and with exact formulas, and its
// lifecycle.
#include <bloomery/detail/bits.hpp>
#include <bloomery/redis/plan.hpp>

#include "redis/filter/meta.hpp"
#include "redis/fixtures.hpp"

#include <bit>
#include <cmath>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

std::vector<std::uint64_t> words_for(std::size_t keys) { return std::vector<std::uint64_t>((keys + 63) / 64); }

class RedisFilter : public on_a_server<RedisFilter> {};

TEST_F(RedisFilter, HasTheBitsOfTheLocalFilterWithTheSameKeys) {
  for (const char* layout : {"blocked", "split_block512", "counting"}) {
    for (const std::uint64_t shards : {0u, 1u, 7u, 64u}) {
      SCOPED_TRACE(std::string(layout) + " " + std::to_string(shards));
      redis_params wanted = integers(30'000, 0.01);
      wanted.filter.layout = layout;
      wanted.shards = shards;
      redis_filter f = redis_filter::create(at(layout + std::to_string(shards)), wanted);
      any_filter local(f.parameters().filter);
      const auto keys = keys_from(1, 20'000);
      std::vector<std::uint8_t> is_new(keys.size()), is_new_here(keys.size());

      f.insert(std::span(keys), is_new);
      local.insert(std::span(keys), is_new_here);

      const any_filter pulled = f.pull();
      EXPECT_TRUE(std::ranges::equal(pulled.bytes(), local.bytes()));
      EXPECT_EQ(pulled.parameters(), local.parameters());
      EXPECT_EQ(std::count(is_new.begin(), is_new.end(), 1), std::count(is_new_here.begin(), is_new_here.end(), 1));
      const auto strangers = keys_from(1'000'000, 20'000);
      auto here = words_for(strangers.size()), there = words_for(strangers.size());
      local.may_contain(std::span(strangers), here);
      f.may_contain(strangers, there);
      EXPECT_EQ(here, there);
      EXPECT_EQ(count_found(f, keys), keys.size());
    }
  }
}

TEST_F(RedisFilter, WithASecretIsOpenedOnlyWithThatSecret) {
  const secret_key secret = random_secret();
  redis_filter f =
      redis_filter::create(at("keyed"), {.filter = {.capacity = 1000, .target_fpr = 0.001, .secret = secret}});
  EXPECT_TRUE(f.insert("Madrid"));

  EXPECT_EQ(code_of([&] { redis_filter::open(at("keyed")); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_filter::open(at("keyed"), {.secret = random_secret()}); }), errc::incompatible);
  redis_filter opened = redis_filter::open(at("keyed"), {.secret = secret});
  EXPECT_TRUE(opened.may_contain("Madrid"));
  EXPECT_FALSE(opened.may_contain("Roma"));
}

TEST_F(RedisFilter, ChecksTheSizesOfOutputs) {
  redis_filter f = redis_filter::create(at("sizes"), counting(integers(1000, 0.01)));
  const auto keys = keys_from(0, 130);
  std::vector<std::uint64_t> bitmap(4, 7);

  for (const std::size_t size : {1u, 129u, 131u}) {
    std::vector<std::uint8_t> is_new(size);
    std::vector<removal> results(size);
    EXPECT_EQ(code_of([&] { f.insert(std::span(keys), is_new); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { f.remove(std::span(keys), results); }), errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] { f.may_contain(std::span(keys), std::span(bitmap).first(2)); }), errc::invalid_argument);

  EXPECT_EQ(bitmap, std::vector<std::uint64_t>(4, 7)) << "a refused call writes nothing";
  EXPECT_EQ(f.info().inserted, 0u) << "nor does it insert";
  f.insert(std::span(keys));
  f.may_contain(std::span(keys), bitmap);
  EXPECT_EQ(bitmap, (std::vector<std::uint64_t>{~std::uint64_t{0}, ~std::uint64_t{0}, 3, 0}));
  EXPECT_EQ(f.remove(keys), 130u) << "an empty output is one that is not wanted";
}

TEST_F(RedisFilter, GrowsFromAHundredKeysAndKeepsItsTarget) {
  for (const redis_params& wanted : {sharded(growing(100), 1), growing_to(60'000, integers(100, 0.01))}) {
    redis_filter f = fresh(wanted);
    std::uint64_t count = 0;
    for (const std::uint64_t batch : {1u, 99u, 900u, 9'000u, 50'000u}) {
      const auto keys = keys_from(count, batch);
      std::vector<std::uint8_t> is_new(keys.size());
      f.insert(std::span(keys), is_new);
      count += batch;

      const double all = static_cast<double>(batch);
      EXPECT_GE(std::count(is_new.begin(), is_new.end(), 1), all - most_hits(0.01, all));
      EXPECT_EQ(count_found(f, keys_from(0, count)), count);
      EXPECT_LE(static_cast<double>(count_found(f, keys_from(1'000'000'000, 30'000))), most_hits(0.01, 30'000))
          << count;
    }
    const redis_info i = f.info();
    EXPECT_GT(i.layers, 3u);
    EXPECT_LE(i.rate_now, 0.01);
    EXPECT_NEAR(static_cast<double>(i.inserted), static_cast<double>(count), 0.011 * static_cast<double>(count));
    EXPECT_EQ(found_at(at("x"), keys_from(0, count)), count);
  }
}

TEST_F(RedisFilter, CountsAKeyOfSeveralGenerationsOnce) {
  for (const std::uint64_t capacity : {2'000u, 2'000'000u}) {  // all of it is looked at, and a part
    SCOPED_TRACE(capacity);
    redis_filter f = fresh(windowed(sharded(integers(capacity, 0.01), 1)));
    const std::uint64_t count = capacity / 20;
    insert_all(f, keys_from(0, 2 * count));
    const generation_aside aside(*server, "x");
    redis_filter g = redis_filter::open(at("x"));
    EXPECT_EQ(count_found(g, keys_from(0, count)), count);  // so it has read both generations
    insert_all(g, keys_from(count, 2 * count));

    const estimate keys = g.card();

    const auto all = static_cast<double>(3 * count);
    EXPECT_NEAR(keys.value, all, 6 * keys.sigma);
    EXPECT_GT(keys.sigma, 0.0);
    EXPECT_LT(keys.sigma, 0.02 * all) << "a count without use";
    EXPECT_EQ(g.info().inserted, static_cast<std::uint64_t>(keys.value + 0.5));
    EXPECT_TRUE(g.info().is_estimate);
  }
}

// The lines that were heard, by shard and layer: each once.
struct lines_heard {
  std::map<std::pair<std::uint64_t, std::int64_t>, std::map<std::uint64_t, std::vector<std::uint8_t>>> lines;
  std::set<std::uint64_t> epochs;
  std::uint64_t count = 0;
  std::uint64_t ones = 0;

  lines_heard(redis_filter& f, std::uint64_t most) {
    f.read_lines(most, [&](const redis_lines& some) {
      epochs.insert(some.epoch);
      ASSERT_EQ(some.bytes.size() % 64, 0u);
      auto& of_layer = lines[{some.shard, some.layer}];
      for (std::size_t i = 0; i < some.bytes.size() / 64; ++i) {
        const auto line = some.bytes.subspan(64 * i, 64);
        const bool is_new = of_layer.try_emplace(some.first + i, line.begin(), line.end()).second;
        EXPECT_TRUE(is_new);
        ++count;
      }
      ones += count_ones(some.bytes);
    });
  }
};

TEST_F(RedisFilter, ReadsEachLineOnceAsItIsPulled) {
  redis_filter f = filled(sharded(integers(40'000, 0.01), 3), keys_from(0, 30'000));

  const lines_heard heard(f, std::uint64_t{1} << 20);

  std::vector<std::uint8_t> all;
  for (std::uint64_t s = 0; s < 3; ++s) {
    for (const auto& [number, line] : heard.lines.at({s, 0})) all.insert(all.end(), line.begin(), line.end());
  }
  const any_filter pulled = f.pull();
  EXPECT_TRUE(std::ranges::equal(all, pulled.bytes()));
  EXPECT_EQ(heard.epochs, std::set{f.info().epoch});
}

TEST_F(RedisFilter, ReadsTheLinesOfAllLayersAndGenerations) {
  redis_filter grown = redis_filter::create(at("grown"), growing(500));
  insert_all(grown, keys_from(0, 20'000));
  redis_filter first = redis_filter::create(at("weekly"), windowed(sharded(integers(1000, 0.01), 1)));
  insert_all(first, keys_from(0, 900));
  const generation_aside aside(*server, "weekly");
  redis_filter forgets = redis_filter::open(at("weekly"));
  insert_all(forgets, keys_from(500, 700));

  for (redis_filter* f : {&grown, &forgets}) {
    const lines_heard heard(*f, std::uint64_t{1} << 30);

    std::vector<redis_shard> shards;
    const redis_info i = f->info(&shards);
    EXPECT_GT(i.layers, 1u);
    EXPECT_EQ(heard.ones, i.ones);
    EXPECT_EQ(512 * heard.count, i.bits);
    for (std::uint64_t s = 0; s < shards.size(); ++s) {
      for (const redis_shard::layer& layer : shards[s].layers) {
        const auto& lines = heard.lines.at({s, layer.number});
        EXPECT_EQ(512 * lines.size(), layer.geometry.bits);
        EXPECT_EQ(512 * (lines.rbegin()->first + 1), layer.geometry.bits);
        std::uint64_t ones = 0;
        for (const auto& [number, line] : lines) ones += count_ones(line);
        EXPECT_EQ(ones, layer.ones);
      }
    }
  }
}

TEST_F(RedisFilter, ReadsEvenlySpreadRunsOfALargeFilter) {
  redis_filter f = filled(sharded(integers(2'000'000, 0.01), 2), keys_from(0, 300'000));
  std::vector<redis_shard> shards;
  const redis_info i = f.info(&shards);

  const lines_heard heard(f, i.bits / 8 / 10);

  EXPECT_LE(64 * heard.count, i.bits / 8 / 10);
  EXPECT_GT(64 * heard.count, i.bits / 8 / 11);
  for (std::uint64_t s = 0; s < 2; ++s) {
    const std::uint64_t lines = shards[s].layers.front().geometry.bits / 512;
    std::vector<std::uint64_t> tenths(10);
    for (const auto& [number, line] : heard.lines.at({s, 0})) ++tenths[number * 10 / lines];
    for (const std::uint64_t of_tenth : tenths)
      EXPECT_NEAR(static_cast<double>(of_tenth), static_cast<double>(lines) / 100, 64);
  }
  const double sampled = static_cast<double>(heard.ones) / (512.0 * static_cast<double>(heard.count));
  const double all = static_cast<double>(i.ones) / static_cast<double>(i.bits);
  // A line has some 7 keys: a Poisson variable, whose deviation is less than half of its mean.
  EXPECT_NEAR(sampled, all, 6 * all / std::sqrt(4.0 * static_cast<double>(heard.count)));
  EXPECT_LE(lines_heard(f, 0).count, 2 * 64u);
}

TEST_F(RedisFilter, ReadsNoLinesIfAPartIsLost) {
  redis_filter f = redis_filter::create(at("x"), sharded(integers(1000, 0.01), 4));
  server->command({"DEL", server->shard("x", 2) + ":0"});

  EXPECT_EQ(code_of([&] { lines_heard(f, std::uint64_t{1} << 20); }), errc::damaged);
}

TEST_F(RedisFilter, RemovesInsertedKeysAndRefusesAbsentKeys) {
  redis_filter f = redis_filter::create(at("counts"), counting(integers(5000, 0.01)));
  any_filter local(f.parameters().filter);
  const auto keys = keys_from(0, 5000);
  const auto some = keys_from(2500, 5000);  // half of them are absent
  f.insert(std::span(keys));
  local.insert(std::span(keys));
  std::vector<removal> there(some.size()), here(some.size());

  // Two calls: the order of keys within a call does not change which keys are removed, but which absent keys are
  // false positives.
  f.remove(std::span(some).first(2500), std::span(there).first(2500));
  local.remove(std::span(some).first(2500), std::span(here).first(2500));

  EXPECT_EQ(there, here);
  EXPECT_TRUE(std::ranges::equal(f.pull().bytes(), local.bytes()));
  EXPECT_EQ(count_found(f, keys_from(0, 2500)), 2500u);
  redis_filter plain = redis_filter::create(at("plain"), integers(100, 0.01));
  EXPECT_EQ(code_of([&] { plain.remove(std::span(some), there); }), errc::incompatible);
}

TEST_F(RedisFilter, ADeletedFilterIsNotFound) {
  redis_filter f = redis_filter::create(at("gone"), integers(1000, 0.01));
  f.insert(std::uint64_t{1});
  server->command({"FLUSHALL"});

  EXPECT_EQ(code_of([&] { f.may_contain(std::uint64_t{1}); }), errc::not_found);
  EXPECT_EQ(code_of([&] { f.insert(std::uint64_t{1}); }), errc::not_found);
  EXPECT_EQ(code_of([&] { redis_filter::open(at("gone")); }), errc::not_found);
  EXPECT_EQ(server->command({"DBSIZE"}).reply().integer(), 0) << "bits were left where there is no filter";
  EXPECT_TRUE(redis_filter::create(at("gone"), integers(1000, 0.01)).insert(std::uint64_t{1}));
  EXPECT_TRUE(f.may_contain(std::uint64_t{1})) << "the handle continues with the new filter";
}

TEST_F(RedisFilter, OtherDataUnderItsNamesIsReportedWithBothValues) {
  redis_filter::create(at("twice"), integers(1000, 0.01));
  EXPECT_EQ(code_of([&] { redis_filter::create(at("twice"), integers(1000, 0.01)); }), std::nullopt);
  const auto other = error_of([&] { redis_filter::create(at("twice"), integers(2000, 0.01)); });
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->code(), errc::incompatible);
  EXPECT_THAT(other->what(), testing::AllOf(testing::HasSubstr("2000"), testing::HasSubstr("1000")));
  server->command({"SET", "{strange}:m", "mine"});
  EXPECT_EQ(code_of([&] { redis_filter::create(at("strange"), integers(10, 0.01)); }), errc::not_a_filter);
  redis_filter f = redis_filter::create(at("taken"), sharded(growing(10), 1));
  const std::string next_layer = server->shard("taken", 0) + ":1";
  server->command({"SET", next_layer, "mine"});
  EXPECT_EQ(code_of([&] { insert_all(f, keys_from(0, 10'000)); }), errc::already_exists);
  EXPECT_EQ(server->command({"GET", next_layer}).text(), "mine");
  server->command({"LPUSH", "{list}:m", "mine"});
  EXPECT_EQ(code_of([&] { redis_filter::open(at("list")); }), errc::incompatible);
}

TEST_F(RedisFilter, TakesNamesOfAnyBytes) {
  for (const std::string& name : {std::string("a{b}c"), std::string("}{"), std::string("with spaces"),
                                  std::string("\0x", 2), std::string("per%cent~"), std::string("ü")}) {
    redis_filter f = redis_filter::create(at(name), sharded(integers(1000, 0.01), 3));
    insert_all(f, keys_from(0, 500));
    EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u) << name;
  }
}

TEST_F(RedisFilter, IsClearedDroppedAndExpires) {
  redis_filter f = redis_filter::create(at("life"), integers(1000, 0.01));
  redis_filter other = redis_filter::open(at("life"));
  insert_all(f, keys_from(0, 500));
  EXPECT_EQ(count_found(other, keys_from(0, 500)), 500u);

  f.clear();

  EXPECT_EQ(count_found(other, keys_from(0, 500)), 0u);
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 0u);
  EXPECT_EQ(server->command({"EXISTS", "{life}:m", "{life}:m2"}).integer(), 2);
  insert_all(other, keys_from(0, 500));
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u);

  f.expire(milliseconds(3'600'000));
  const std::int64_t left = server->command({"PTTL", "{life}:m"}).reply().integer();
  EXPECT_GT(left, 3'500'000);
  for (const std::string& name : names()) {
    EXPECT_NEAR(static_cast<double>(server->command({"PTTL", name}).integer()), static_cast<double>(left), 1000)
        << name;
  }
  f.persist();
  EXPECT_EQ(server->command({"PTTL", "{life}:m"}).reply().integer(), -1);
  EXPECT_EQ(count_found(f, keys_from(0, 500)), 500u);

  f.drop();
  EXPECT_EQ(server->command({"DBSIZE"}).reply().integer(), 1) << "the mark of the dropped filter";
  EXPECT_EQ(code_of([&] { other.may_contain(std::uint64_t{1}); }), errc::not_found);
}

TEST_F(RedisFilter, HasNoLayerThatOutlivesIt) {
  redis_filter f = redis_filter::create(at("grows"), sharded(growing(100), 1));
  const std::size_t before = names().size();
  f.expire(milliseconds(3'600'000));

  insert_all(f, keys_from(0, 5000));

  ASSERT_GT(names().size(), before) << "it has not grown";
  for (const std::string& name : names()) EXPECT_GT(server->command({"PTTL", name}).integer(), 3'500'000) << name;
}

TEST_F(RedisFilter, MergesFiltersOfTheSameGeometryOnly) {
  redis_filter a = redis_filter::create(at("a"), integers(1000, 0.01));
  redis_filter b = redis_filter::create(at("b"), integers(1000, 0.01));
  redis_filter c = redis_filter::create(at("c"), integers(3000, 0.01));
  insert_all(a, keys_from(0, 500));
  insert_all(b, keys_from(500, 500));

  a.merge(b);

  EXPECT_EQ(count_found(a, keys_from(0, 1000)), 1000u);
  EXPECT_EQ(code_of([&] { a.merge(c); }), errc::incompatible);
  any_filter local(a.parameters().filter);
  local.insert(std::span<const std::uint64_t>(keys_from(0, 1000)));
  EXPECT_TRUE(std::ranges::equal(a.pull().bytes(), local.bytes()));
}

TEST_F(RedisFilter, WithALocalCopyAsksTheServerForAbsentKeysOnly) {
  redis_filter f = redis_filter::create(at("copy"), integers(1000, 0.01));
  insert_all(f, keys_from(0, 500));
  redis_filter g = redis_filter::open(at("copy"), {.local_copy = true});
  EXPECT_EQ(count_found(g, keys_from(0, 500)), 500u);
  const std::uint64_t before = calls_of("getrange");

  EXPECT_EQ(count_found(g, keys_from(0, 500)), 500u);

  EXPECT_EQ(calls_of("getrange"), before);
  f.insert(std::uint64_t{1'000'000});
  EXPECT_TRUE(g.may_contain(std::uint64_t{1'000'000}));
}

TEST_F(RedisFilter, TakesNoKeysAndAMillion) {
  redis_filter f = redis_filter::create(at("many"), integers(1'000'000, 0.01));
  f.insert(std::span<const std::uint64_t>());
  EXPECT_EQ(count_found(f, {}), 0u);

  const auto keys = keys_from(0, 1'000'000);
  f.insert(std::span(keys));

  EXPECT_EQ(count_found(f, keys), keys.size());
  const estimate count = f.card();
  EXPECT_NEAR(count.value, 1e6, 6 * count.sigma);
  EXPECT_LE(f.info().rate_now, 0.01);
  EXPECT_LE(static_cast<double>(count_found(f, keys_from(1'000'000'000, 200'000))), most_hits(0.01, 200'000));
}

}  // namespace
}  // namespace bloomery
