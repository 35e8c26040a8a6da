// A server with a shared filter that is replaced, and checks of the keys on it. The truth is the set of acknowledged
// keys, and the list of keys that may be on the server.
#pragma once

#include "redis/fixtures.hpp"
#include "support/processes.hpp"

namespace bloomery_tests {

class RedisReplacement : public on_a_server<RedisReplacement> {
 protected:
  static bloomery::redis_params fixed() { return sharded(integers(1000, 0.01), 2); }

  static bloomery::redis_filter filled() {
    bloomery::redis_filter f = bloomery::redis_filter::create(at("x"), fixed());
    insert_all(f, old_keys());
    return f;
  }

  static std::vector<std::uint64_t> old_keys() { return keys_from(0, 500); }
  static void fill_with_old_keys(bloomery::redis_filter& f) { insert_all(f, old_keys()); }

  static void unlink_all(const std::string& pattern) {
    for (const std::string& name : names(pattern)) server->command({"DEL", name});
  }

  // The pattern of the shards of the next filter, from its description.
  static std::string coming_shards() {
    const std::string zero = test_server::shard_of(server->command({"GET", "{x}:n"}).text(), 0);
    return zero.substr(0, zero.size() - 2) + "*";
  }

  // This filter alone has four keys of shards and two descriptions.
  static void expect_the_old_one_alone() {
    EXPECT_EQ(found_at(at("x"), old_keys()), old_keys().size());
    EXPECT_EQ(names().size(), 6u);
    EXPECT_EQ(server->command({"EXISTS", "{x}:n"}).integer(), 0);
  }

  // Another process begins to replace the filter, and dies.
  static void die_while_replacing(const bloomery::redis_params& wanted) {
    EXPECT_EQ(status_of_child([&] {
                bloomery::redis_filter::open(at("x")).replace(wanted, [](bloomery::redis_filter&) { ::_exit(0); });
                return 1;
              }),
              0);
  }
};

}  // namespace bloomery_tests
