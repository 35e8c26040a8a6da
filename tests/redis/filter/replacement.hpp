// A server with a shared filter that is replaced, and checks of the keys on it. The truth is the set of acknowledged
// keys, and the list of keys that may be on the server.
#pragma once

#include <bloomery/redis.hpp>

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bloomery_tests {

class RedisReplacement : public on_a_server<RedisReplacement> {
 protected:
  static bloomery::redis_address through(const proxy& net) {
    bloomery::redis_address a = at("x");
    a.socket.clear();
    a.endpoints = {{"127.0.0.1", net.port()}};
    return a;
  }

  static bloomery::redis_params fixed() {
    bloomery::redis_params p = integers(1000, 0.01);
    p.shards = 2;
    return p;
  }

  static bloomery::redis_filter filled() {
    bloomery::redis_filter f = bloomery::redis_filter::create(at("x"), fixed());
    insert_all(f, old_keys());
    return f;
  }

  static std::vector<std::uint64_t> old_keys() { return keys_from(0, 500); }

  // The number of keys on the server, without marks. This filter alone has four keys of shards and two descriptions.
  static std::size_t keys_there(const std::string& pattern = "*") {
    const auto all = server->command({"KEYS", pattern});
    std::size_t count = 0;
    for (std::size_t i = 0; i < all.reply().size(); ++i) count += is_mark(all.reply()[i].text()) ? 0 : 1;
    return count;
  }

  static void unlink_all(const std::string& pattern) {
    const auto all = server->command({"KEYS", pattern});
    for (std::size_t i = 0; i < all.reply().size(); ++i) server->command({"DEL", all.reply()[i].text()});
  }

  // The pattern of the shards of the next filter, from its description.
  static std::string coming_shards() {
    const std::string zero = test_server::shard_of(server->command({"GET", "{x}:n"}).text(), 0);
    return zero.substr(0, zero.size() - 2) + "*";
  }

  static void expect_the_old_one_alone() {
    bloomery::redis_filter now = bloomery::redis_filter::open(at("x"));
    EXPECT_EQ(count_found(now, old_keys()), old_keys().size());
    EXPECT_EQ(keys_there(), 6u);
    EXPECT_EQ(server->command({"EXISTS", "{x}:n"}).integer(), 0);
  }

  // Another process begins to replace the filter, and dies.
  static void die_while_replacing(const bloomery::redis_params& wanted) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        bloomery::redis_filter::open(at("x")).replace(wanted, [](bloomery::redis_filter&) { ::_exit(0); });
      } catch (...) {
      }
      ::_exit(1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
};

}  // namespace bloomery_tests
