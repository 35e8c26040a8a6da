// Copies of shared scalable filters, and of sliding-window filters where both are alike: the same answers, and the same
// bits when pushed under another name.
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>

#include "redis/fixtures.hpp"
#include "support/files.hpp"

#include <bit>
#include <cmath>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

class CopyLayers : public on_a_server<CopyLayers> {
 protected:
  // The bits of all layers and what the headers say of them, without the versions.
  static std::vector<std::string> contents(const std::string& name, std::uint64_t shards) {
    std::vector<std::string> all;
    for (std::uint64_t s = 0; s < shards; ++s) {
      const std::string shard = server->shard(name, s);
      const std::string layers = server->command({"HGET", shard + ":h", "layers"}).text();
      all.push_back(layers);
      all.push_back(server->command({"HGET", shard + ":h", "count"}).text());
      for (int l = 0; server->command({"HEXISTS", shard + ":h", "layer" + std::to_string(l)}).integer() == 1; ++l) {
        all.push_back(server->command({"HGET", shard + ":h", "layer" + std::to_string(l)}).text());
        const std::string key = shard + ":" + std::to_string(l);
        const bool closed = server->command({"EXISTS", key + "c"}).integer() == 1;
        all.push_back(server->command({"GETRANGE", key + (closed ? "c" : ""), "0", "-17"}).text());
        EXPECT_GT(all.back().size(), 0u);
      }
    }
    return all;
  }

  static void expect_equal_answers(redis_filter& grown, filter_handle& copy, std::uint64_t present) {
    const std::vector<std::uint64_t> keys = keys_from(0, present + 50'000);
    std::vector<std::uint64_t> here((keys.size() + 63) / 64), there(here.size());
    copy.contains(keys, here);
    grown.may_contain(keys, there);
    EXPECT_EQ(here, there);
    EXPECT_EQ(count_found(grown, keys_from(0, present)), present);
  }
};

// The exact FPR of a layer of layout split_block512: a random key has one random bit in each of the 8 words of a line.
double rate_of_lines(const layered_filter& layers, std::size_t layer) {
  const std::span<const std::uint8_t> bytes = layers.bytes_of(layer);
  double sum = 0;
  for (std::size_t line = 0; line < bytes.size(); line += 64) {
    double all = 1;
    for (std::size_t word = line; word < line + 64; word += 8) {
      int ones = 0;
      for (const std::uint8_t byte : bytes.subspan(word, 8)) ones += std::popcount(byte);
      all *= ones / 64.0;
    }
    sum += all;
  }
  return sum / (static_cast<double>(bytes.size()) / 64);
}

// The reported FPR is that of the bits, computed here again: each layer's mean over its lines, and 1 - product of
// (1 - FPR) over the layers of each shard. Lookups of absent keys agree with it.
void expect_exact_rate(filter_handle& copy) {
  const layered_filter& layers = *layered_filter_of(copy);
  double rate = 0;
  for (std::uint64_t s = 0; s < layers.parameters().shards; ++s) {
    double none = 1;
    for (std::size_t i = layers.first_of(s); i < layers.first_of(s + 1); ++i) none *= 1 - rate_of_lines(layers, i);
    rate += (1 - none) / static_cast<double>(layers.parameters().shards);
  }
  const filter_facts facts = copy.info(info_depth::bits);
  EXPECT_NEAR(facts.fill->current_fpr, rate, 1e-12);
  EXPECT_TRUE(facts.count_is_at_most);

  constexpr std::uint64_t asked = 1'000'000;
  std::vector<std::uint64_t> bitmap(asked / 64);
  copy.contains(keys_from(std::uint64_t{1} << 40, asked), bitmap);
  double found = 0;
  for (const std::uint64_t word : bitmap) found += std::popcount(word);
  EXPECT_NEAR(found / asked, rate, 6 * std::sqrt(rate / asked) + 0.05 * rate);
}

TEST_F(CopyLayers, AnswersAsTheServerAndComesBackBitForBit) {
  for (const char* const layout : {"split_block512", "blocked"}) {
    for (const std::uint64_t shards : {1u, 5u}) {
      for (const bool limited : {false, true}) {
        const std::string name = layout + std::to_string(shards) + (limited ? "limited" : "");
        SCOPED_TRACE(name);
        const std::uint64_t present = limited ? 25'000 : 40'013;  // not all shards have grown equally often
        redis_params wanted = growing(1000);
        wanted.filter.layout = layout;
        wanted.shards = shards;
        if (limited) wanted = growing_to(30'000, wanted);
        { redis_filter::create(at(name), wanted).insert(keys_from(0, present)); }  // returns what it had reserved
        redis_filter grown = redis_filter::open(at(name));
        const scratch_folder folder;

        grown.pull_layers("a note").save(folder / "f");
        const std::unique_ptr<filter_handle> file = open_filter(folder / "f");

        EXPECT_GE(grown.info().layers, 2u);
        expect_equal_answers(grown, *file, present);
        EXPECT_EQ(layered_filter_of(*file)->keys(), grown.info().inserted);
        EXPECT_EQ(layered_filter_of(*file)->parameters().metadata, "a note");

        redis_filter again = redis_filter::create_from(at(name + "-again"), *layered_filter_of(*file));

        EXPECT_EQ(contents(name, shards), contents(name + "-again", shards));
        expect_equal_answers(again, *file, present);
        const redis_info a = grown.info(), b = again.info();
        EXPECT_EQ(a.inserted, b.inserted);
        EXPECT_EQ(a.parameters.growth, b.parameters.growth);
        EXPECT_EQ(a.parameters.maximum, b.parameters.maximum);
        EXPECT_EQ(a.parameters.filter, b.parameters.filter);
      }
    }
  }
}

TEST_F(CopyLayers, HasAllLayersOfUnequallyGrownShards) {
  redis_params wanted = growing(1000);
  wanted.filter.layout = "split_block512";
  wanted.shards = 16;
  redis_filter grown = redis_filter::create(at("f"), wanted);
  std::set<std::size_t> numbers;
  std::uint64_t present = 0;
  while (numbers.size() < 2 && present < 100'000) {
    insert_all(grown, keys_from(present, 200));
    present += 200;
    std::vector<redis_shard> shards;
    grown.info(&shards);
    numbers.clear();
    for (const redis_shard& shard : shards) numbers.insert(shard.layers.size());
  }
  ASSERT_EQ(numbers.size(), 2u);

  const std::unique_ptr<filter_handle> copy = make_handle(grown.pull_layers());

  expect_equal_answers(grown, *copy, present);
  expect_exact_rate(*copy);
  redis_filter::create_from(at("again"), *layered_filter_of(*copy));
  redis_filter again = redis_filter::open(at("again"));
  expect_equal_answers(again, *copy, present);
}

TEST_F(CopyLayers, ContinuesToGrowAfterAPush) {
  redis_params wanted = sharded(growing(1000), 3);
  { redis_filter::create(at("f"), wanted).insert(keys_from(0, 20'000)); }
  const layered_filter copy = redis_filter::open(at("f")).pull_layers();
  redis_filter again = redis_filter::create_from(at("again"), copy);
  const std::uint64_t layers = again.info().layers;

  insert_all(again, keys_from(20'000, 200'000));

  EXPECT_GT(again.info().layers, layers);
  EXPECT_EQ(count_found(again, keys_from(0, 220'000)), 220'000u);
  EXPECT_LE(again.info().rate_now, 0.01);
}

TEST_F(CopyLayers, IsRefusedIfALayerWasLost) {
  for (const char* const lost : {":0c", ":1"}) {
    SCOPED_TRACE(lost);
    server->command({"FLUSHALL"});
    redis_filter grown = redis_filter::create(at("f"), sharded(growing(1000), 2));
    std::uint64_t present = 0;
    while (grown.info().layers < 2) insert_all(grown, keys_from(present += 100, 100));
    insert_all(grown, keys_from(present + 100, 600));  // both shards have grown
    ASSERT_EQ(server->command({"EXISTS", server->shard("f", 1) + lost}).integer(), 1);
    server->command({"DEL", server->shard("f", 1) + lost});

    EXPECT_EQ(code_of([&] { redis_filter::open(at("f")).pull_layers(); }), errc::damaged);
  }
}

// ---- scalable and sliding-window filters ----------------------------------------------------------------------------

const redis_params both_kinds[] = {sharded(growing(1000), 4), sharded(windowed(integers(4000, 0.01)), 4)};

TEST_F(CopyLayers, HasEveryKeyThatWasInsertedBeforeWhileOthersInsert) {
  for (const redis_params& wanted : both_kinds) {
    const bool grows = wanted.growth != redis_growth::none;
    SCOPED_TRACE(grows ? "growing" : "window");
    redis_filter reader = fresh(grows ? wanted : windowed(wanted, milliseconds(1400)));
    std::atomic<std::uint64_t> done = 0;
    background writer([&, f = redis_filter::open(at("x"))]() mutable {
      insert_all(f, keys_from(done, grows ? 500 : 20));
      done += grows ? 500 : 20;
    });
    std::set<std::pair<std::int64_t, std::uint64_t>> seen;  // layers by number, slices by their time
    wait_until("layers or slices are added", [&] {
      const std::uint64_t before = done;
      const std::unique_ptr<filter_handle> copy = make_handle(reader.pull_layers());
      for (const filter_layer& l : layered_filter_of(*copy)->layers()) seen.emplace(l.geometry.bits, l.start);
      std::vector<std::uint64_t> bitmap(before / 64 + 1);
      copy->contains(keys_from(0, before), bitmap);
      EXPECT_EQ(count_of(bitmap), before);
      return HasFailure() || seen.size() >= 4;
    });
  }
}

TEST_F(CopyLayers, NeedsAndKeepsTheSecretOfAKeyedFilter) {
  for (redis_params wanted : both_kinds) {
    server->command({"FLUSHALL"});
    wanted.filter.keys = key_kind::bytes;
    const redis_options keyed = {.secret = wanted.filter.secret = random_secret()};
    redis_filter f = redis_filter::create(at("f"), wanted);
    std::vector<std::string> keys;
    for (int i = 0; i < 3000; ++i) keys.push_back(std::to_string(i));
    f.insert(keys);
    const scratch_folder folder;
    f.pull_layers().save(folder / "f");

    const layered_filter file = layered_filter::open(folder / "f", {.secret = keyed.secret});
    redis_filter::create_from(at("again"), file, {}, keyed);

    redis_filter again = redis_filter::open(at("again"), keyed);
    for (const std::string& key : keys) ASSERT_TRUE(again.may_contain(key));
    EXPECT_EQ(code_of([&] { redis_filter::open(at("again")); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { layered_filter::open(folder / "f"); }), errc::incompatible);
    EXPECT_EQ(code_of([&] { redis_filter::create_from(at("f"), file, {}, keyed); }), errc::already_exists);
  }
}

TEST_F(CopyLayers, IsRefusedWhereItCannotBeExact) {
  redis_filter fixed = redis_filter::create(at("fixed"), integers(1000, 0.01));
  EXPECT_EQ(code_of([&] { fixed.pull_layers(); }), errc::incompatible);
  const layered_filter scalable(scalable_layers(0.01), {.hash = "mix", .keys = key_kind::u64le});
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("new"), scalable); }), errc::incompatible);
  for (const redis_params& wanted : both_kinds) {
    redis_filter f = redis_filter::create(at("f"), wanted);
    insert_all(f, keys_from(0, 4000));
    const layered_filter copy = f.pull_layers();

    for (const char* taken : {"f", "fixed"})
      EXPECT_EQ(code_of([&] { redis_filter::create_from(at(taken), copy); }), errc::already_exists);
    std::vector<filter_layer> other = copy.layers();
    for (filter_layer& l : other) {
      if (&l == &other.back() || wanted.filter.has_window()) l.geometry.bits += 512;
    }
    EXPECT_EQ(code_of([&] { redis_filter::create_from(at("new"), layered_filter(copy.parameters(), other)); }),
              errc::incompatible);
    EXPECT_EQ(code_of([&] { redis_filter::open(at("new")); }), errc::not_found);
    f.drop();
  }
}

TEST_F(CopyLayers, IsRefusedIfTheNewestLayerWasCut) {
  for (const redis_params& wanted : {both_kinds[0], both_kinds[1], integers(1000, 0.01)}) {
    redis_filter f = fresh(wanted);
    insert_all(f, keys_from(0, 100));
    const std::string shard = server->shard("x", 0);
    const std::int64_t newest = numbers_in(server->command({"HGET", shard + ":h", "layers"}).text()).back();
    const std::string layer = shard + ":" + std::to_string(newest);
    server->command({"SET", layer, server->command({"GETRANGE", layer, "-16", "-1"}).text()});

    redis_filter reader = redis_filter::open(at("x"));
    const bool has_layers = wanted.growth != redis_growth::none || wanted.filter.has_window();
    EXPECT_EQ(code_of([&] { has_layers ? void(reader.pull_layers()) : void(reader.pull()); }), errc::damaged);
  }
}

// A repair may give a layer the number of one that was lost; a copy of both would miss keys.
TEST_F(CopyLayers, IsRefusedIfAShardIsRepairedMeanwhile) {
  for (const redis_params& wanted : both_kinds) {
    server->command({"FLUSHALL"});
    proxy net(server->socket());
    redis_filter f = redis_filter::create(net.address(), wanted);
    insert_all(f, keys_from(0, 4000));
    net.before(wanted.filter.has_window() ? "GETRANGE" : "count", [&] {
      server->command({"HSET", server->shard("x", 3) + ":h", "repaired", "0123456789abcdef"});
    });

    EXPECT_EQ(code_of([&] { f.pull_layers(); }), errc::locked);
    EXPECT_TRUE(net.has_acted());
    EXPECT_NO_THROW(f.pull_layers());
  }
}

TEST_F(CopyLayers, CanExpireAsAWhole) {
  for (const redis_params& wanted : both_kinds) {
    redis_filter f = fresh(wanted);
    insert_all(f, keys_from(0, 4000));

    redis_filter::create_from(at("again"), f.pull_layers(), std::chrono::hours(1));

    const std::vector<std::string> parts = names("{again~*");
    EXPECT_GE(parts.size(), 8u);
    for (const std::string& part : parts) {
      const std::int64_t left = server->command({"PTTL", part}).integer();
      EXPECT_GT(left, 3'500'000) << part;
      EXPECT_LE(left, 3'600'000) << part;
    }
  }
}

}  // namespace
}  // namespace bloomery
