// Handles of filters on a server: their shards, their facts, and refused calls.
#include <bloomery/redis/handle.hpp>

#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

class RedisHandle : public on_a_server<RedisHandle> {};

TEST_F(RedisHandle, ReachesTheShardsOfASharedFilterAndOfNoOther) {
  redis_filter::create(at("f"), integers(1000, 0.01));
  redis_chain::create(at("c"), {1000, 0.01});
  const std::unique_ptr<filter_handle> filter = redis::open_filter(at("f").text());
  const std::unique_ptr<filter_handle> chain = redis::open_filter(at("c").text());
  const std::unique_ptr<filter_handle> local = make_handle(any_filter(complete({.capacity = 10, .target_fpr = 0.1})));

  redis_filter* const behind = redis::shared_filter_of(*filter);

  ASSERT_NE(behind, nullptr);
  std::vector<redis_shard> shards;
  const std::uint64_t count = behind->info(&shards).parameters.shards;
  EXPECT_EQ(shards.size(), count);
  EXPECT_EQ(redis::shared_filter_of(*chain), nullptr);
  EXPECT_EQ(redis::shared_filter_of(*local), nullptr);
  EXPECT_EQ(code_of([&] { filter->cells(); }), errc::incompatible);
}

TEST_F(RedisHandle, FactsOfADescriptionAreThoseOfTheHandle) {
  for (const redis_params& p : {integers(1000, 0.01), growing(1000)}) {
    redis_filter::create(at("f"), p).drop();
    redis_filter made = redis_filter::create(at("f"), p);
    insert_all(made, keys_from(0, 3000));

    const filter_facts facts = redis::facts_of(made.info());
    const filter_facts of_handle = redis::open_filter(at("f").text())->info(info_depth::bits);

    EXPECT_EQ(facts.insert_count, of_handle.insert_count);
    EXPECT_EQ(facts.keys_left, of_handle.keys_left);
    EXPECT_EQ(facts.bits, of_handle.bits);
    EXPECT_EQ(facts.fill->cells_set, of_handle.fill->cells_set);
    EXPECT_GT(facts.fill->cells_set, 0u);
    EXPECT_EQ(facts.shared->layers, of_handle.shared->layers);
    EXPECT_EQ(facts.shared->grows, p.growth != redis_growth::none);
    made.drop();
  }
}

TEST_F(RedisHandle, OpenedForReadingRefusesChangesAsAFileDoes) {
  redis_filter::create(at("f"), integers(1000, 0.01));
  redis_filter::create(at("counting"), counting(integers(1000, 0.01)));
  redis_chain::create(at("c"), {1000, 0.01});
  const std::vector<std::uint64_t> numbers = {1, 2, 3};
  const std::vector<std::string> names = {"a", "b"};
  any_filter local(complete(integers(1000, 0.01).filter));

  for (const char* name : {"f", "counting", "c"}) {
    SCOPED_TRACE(name);
    const std::unique_ptr<filter_handle> reader = redis::open_filter(at(name).text());
    const bool is_chain = std::string(name) == "c";
    const auto insert = [&](filter_handle& into) { return is_chain ? into.insert(names) : into.insert(numbers); };
    const capabilities can = reader->capabilities();

    EXPECT_FALSE(can.can_insert || can.can_remove || can.can_merge || can.can_clear);
    try {
      insert(*reader);
      ADD_FAILURE() << "inserted";
    } catch (const partial_error& e) {
      EXPECT_EQ(e.code(), errc::not_permitted);
      EXPECT_EQ(e.done().keys + e.undecided(), 0u);
    }
    EXPECT_EQ(code_of([&] { reader->clear(); }), errc::not_permitted);
    if (!is_chain) {
      EXPECT_EQ(code_of([&] { reader->remove(numbers); }), errc::not_permitted);
      EXPECT_EQ(code_of([&] { reader->merge(*make_handle(local.clone())); }), errc::not_permitted);
    }
    EXPECT_FALSE(is_chain ? reader->contains("a") : reader->contains(1));

    const auto writer = redis::open_filter(at(name).text(), {{.mode = access::read_write}});
    EXPECT_GT(insert(*writer).changed, 0u);
    EXPECT_TRUE(is_chain ? reader->contains("a") : reader->contains(1));
  }
}

TEST_F(RedisHandle, ARefusedMergeNamesTheOtherFilter) {
  redis_filter::create(at("f"), integers(1000, 0.01));
  redis_chain::create(at("c"), {1000, 0.01});
  const redis::open_options write = {{.mode = access::read_write}};
  const std::unique_ptr<filter_handle> remote = redis::open_filter(at("f").text(), write);
  const std::unique_ptr<filter_handle> chain = redis::open_filter(at("c").text(), write);
  const std::unique_ptr<filter_handle> local = make_handle(remote->copy());

  const auto from_servers = error_of([&] { local->merge(*remote); });
  const auto from_chain = error_of([&] { remote->merge(*chain); });

  ASSERT_TRUE(from_servers && from_chain);
  EXPECT_EQ(from_servers->code(), errc::incompatible);
  EXPECT_EQ(from_servers->text().found, remote->parameters().layout + " on servers");
  EXPECT_EQ(from_chain->code(), errc::incompatible);
  EXPECT_EQ(from_chain->text().found, "guava");
  local->merge(*make_handle(remote->copy()));  // what the error advises
}

}  // namespace
}  // namespace bloomery
