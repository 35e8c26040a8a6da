// Copies of shared scalable filters: the same answers, and the same bits when pushed under another name.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/redis.hpp>

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/proxy.hpp"
#include "support/errors.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::code_of;
using bloomery_tests::growing;
using bloomery_tests::insert_all;
using bloomery_tests::keys_from;
using bloomery_tests::scratch_folder;

class CopyLayers : public bloomery_tests::on_a_server<CopyLayers> {
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
    for (std::size_t i = 0; i < here.size(); ++i) ASSERT_EQ(here[i], there[i]) << "keys from " << 64 * i;
    for (std::uint64_t key = 0; key < present; ++key) ASSERT_TRUE((here[key / 64] >> key % 64 & 1) != 0) << key;
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
        if (limited) {
          wanted.growth = redis_growth::to_maximum;
          wanted.maximum = 30'000;
        }
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

TEST_F(CopyLayers, OfShardsThatGrewUnequallyHasAllOfThem) {
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

TEST_F(CopyLayers, OfANewFilterContinuesToGrow) {
  redis_params wanted = growing(1000);
  wanted.shards = 3;
  { redis_filter::create(at("f"), wanted).insert(keys_from(0, 20'000)); }
  const layered_filter copy = redis_filter::open(at("f")).pull_layers();
  redis_filter again = redis_filter::create_from(at("again"), copy);
  const std::uint64_t layers = again.info().layers;

  insert_all(again, keys_from(20'000, 200'000));

  EXPECT_GT(again.info().layers, layers);
  EXPECT_EQ(bloomery_tests::count_found(again, keys_from(0, 220'000)), 220'000u);
  EXPECT_LE(again.info().rate_now, 0.01);
}

TEST_F(CopyLayers, HasEveryKeyThatWasInsertedBeforeWhileOthersInsert) {
  redis_params wanted = growing(1000);
  wanted.shards = 4;
  redis_filter::create(at("f"), wanted);
  std::atomic<std::uint64_t> done = 0;
  std::atomic<bool> stopped = false;
  std::thread writer([&] {
    redis_filter grown = redis_filter::open(at("f"));
    while (!stopped && done < 1'000'000) {
      insert_all(grown, keys_from(done, 500));
      done += 500;
    }
  });
  redis_filter reader = redis_filter::open(at("f"));
  std::size_t most_layers = 0;
  for (std::uint64_t before = 0; before < 100'000;) {
    before = done;
    const std::unique_ptr<filter_handle> copy = make_handle(reader.pull_layers());
    most_layers = std::max(most_layers, layered_filter_of(*copy)->layers().size());
    std::vector<std::uint64_t> bitmap(before / 64 + 1);
    copy->contains(keys_from(0, before), bitmap);
    for (std::uint64_t key = 0; key < before; ++key) {
      if ((bitmap[key / 64] >> key % 64 & 1) != 0) continue;
      ADD_FAILURE() << key << " of " << before;
      break;
    }
  }
  stopped = true;
  writer.join();
  EXPECT_GT(most_layers, 4u);  // it grew meanwhile
}

TEST_F(CopyLayers, OfAKeyedFilterNeedsAndKeepsItsSecret) {
  redis_params wanted{.filter = {.capacity = 1000, .target_fpr = 0.01, .secret = random_secret()}};
  wanted.growth = redis_growth::unlimited;
  redis_options with_secret;
  with_secret.secret = wanted.filter.secret;
  redis_filter grown = redis_filter::create(at("f"), wanted);
  std::vector<std::string> keys;
  for (int i = 0; i < 9000; ++i) keys.push_back(std::to_string(i));
  grown.insert(keys);
  const scratch_folder folder;
  grown.pull_layers().save(folder / "f");

  const layered_filter file = layered_filter::open(folder / "f", {.secret = wanted.filter.secret});
  redis_filter::create_from(at("again"), file, {}, with_secret);

  redis_filter again = redis_filter::open(at("again"), with_secret);
  for (const std::string& key : keys) ASSERT_TRUE(again.may_contain(key));
  EXPECT_EQ(code_of([&] { redis_filter::open(at("again")); }), errc::incompatible);
}

TEST_F(CopyLayers, IsRefusedWhereItCannotBeExact) {
  redis_filter fixed = redis_filter::create(at("fixed"), bloomery_tests::integers(1000, 0.01));
  redis_filter grown = redis_filter::create(at("f"), growing(1000));
  insert_all(grown, keys_from(0, 20'000));
  const layered_filter copy = grown.pull_layers();

  EXPECT_EQ(code_of([&] { fixed.pull_layers(); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("f"), copy); }), errc::already_exists);
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("fixed"), copy); }), errc::already_exists);
  const layered_filter scalable(scalable_layers(0.01), {.hash = "mix", .keys = key_kind::u64le});
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("new"), scalable); }), errc::incompatible);
  std::vector<filter_layer> other = copy.layers();
  other.back().geometry.bits += 512;
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("new"), layered_filter(copy.parameters(), other)); }),
            errc::incompatible);
  EXPECT_EQ(code_of([&] { redis_filter::open(at("new")); }), errc::not_found);
}

TEST_F(CopyLayers, OfAFilterThatLostALayerIsRefused) {
  for (const char* const lost : {":0c", ":1"}) {
    SCOPED_TRACE(lost);
    server->command({"FLUSHALL"});
    redis_params wanted = growing(1000);
    wanted.shards = 2;
    redis_filter grown = redis_filter::create(at("f"), wanted);
    std::uint64_t present = 0;
    while (grown.info().layers < 2) insert_all(grown, keys_from(present += 100, 100));
    insert_all(grown, keys_from(present + 100, 600));  // both shards have grown
    ASSERT_EQ(server->command({"EXISTS", server->shard("f", 1) + lost}).integer(), 1);
    server->command({"DEL", server->shard("f", 1) + lost});

    EXPECT_EQ(code_of([&] { redis_filter::open(at("f")).pull_layers(); }), errc::damaged);
  }
}

TEST_F(CopyLayers, OfAFilterThatWasCutIsRefusedInOnePieceToo) {
  redis_filter fixed = redis_filter::create(at("fixed"), bloomery_tests::integers(1000, 0.01));
  const std::string layer = server->shard("fixed", 0) + ":0";
  server->command({"SET", layer, server->command({"GETRANGE", layer, "-16", "-1"}).text()});

  EXPECT_EQ(code_of([&] { fixed.pull(); }), errc::damaged);
}

// A repair may give a layer the number of one that was lost; a copy of both would miss keys.
TEST_F(CopyLayers, IsRefusedIfAShardIsRepairedMeanwhile) {
  bloomery_tests::proxy net(server->socket());
  redis_address through = at("f");
  through.socket.clear();
  through.endpoints = {{"127.0.0.1", net.port()}};
  redis_filter f = redis_filter::create(through, growing(1000));
  insert_all(f, keys_from(0, 20'000));
  net.before("count", [&] { server->command({"HSET", server->shard("f", 3) + ":h", "repaired", "0123456789abcdef"}); });

  EXPECT_EQ(code_of([&] { f.pull_layers(); }), errc::locked);
  EXPECT_TRUE(net.has_acted());
  EXPECT_NO_THROW(f.pull_layers());
}

TEST_F(CopyLayers, CanExpire) {
  redis_filter grown = redis_filter::create(at("f"), growing(1000));
  insert_all(grown, keys_from(0, 20'000));

  redis_filter again = redis_filter::create_from(at("again"), grown.pull_layers(), std::chrono::hours(1));

  const std::uint64_t shards = again.parameters().shards;
  for (std::uint64_t s = 0; s < shards; ++s) {
    const std::string shard = server->shard("again", s);
    for (const char* const key : {":h", ":0c"})
      EXPECT_GT(server->command({"PTTL", shard + key}).integer(), 3'500'000) << shard << key;
  }
}

}  // namespace
}  // namespace bloomery
