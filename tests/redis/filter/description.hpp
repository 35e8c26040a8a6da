// A server for tests of filters whose description is lost. The tests advance the clock of checks instead of waiting.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/description_check.hpp"
#include "redis/filter/faults.hpp"
#include "redis/filters.hpp"
#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

class RedisDescription : public RedisFaults {
 protected:
  struct kind {
    const char* name;
    bloomery::redis_params parameters;
  };
  static std::vector<kind> kinds() {
    bloomery::redis_params counting = integers(4000, 0.01);
    counting.filter.layout = "counting";
    bloomery::redis_params window = integers(4000, 0.01);
    window.filter.extra = bloomery::window_of_time(std::chrono::hours(7 * 24));
    std::vector<kind> all = {
        {"fixed", integers(4000, 0.01)}, {"growing", growing(400)}, {"window", window}, {"counting", counting}};
    for (kind& k : all) k.parameters.shards = 5;
    return all;
  }

  static void lose_description(const std::string& name = "x") {
    EXPECT_EQ(server->command({"DEL", "{" + name + "}:m", "{" + name + "}:m2"}).integer(), 2);
  }
  static std::int64_t descriptions(const std::string& name = "x") {
    return server->command({"EXISTS", "{" + name + "}:m", "{" + name + "}:m2"}).integer();
  }

  // Keys that a client finds that opens the filter now.
  static std::uint64_t found_by_reader(const std::vector<std::uint64_t>& keys) {
    bloomery::redis_filter reader = bloomery::redis_filter::open(at("x"));
    return count_found(reader, keys);
  }

  // A client without permission for UNLINK drops the filter: the description is deleted, the shards remain.
  static void drop_halfway() {
    server->command({"ACL", "SETUSER", "default", "-unlink"});
    EXPECT_EQ(code_of([] { bloomery::redis_filter::open(at("x")).drop(); }), bloomery::errc::not_permitted);
    server->command({"ACL", "SETUSER", "default", "+unlink"});
  }

  static std::uint64_t calls_of(const std::string& command) {
    const std::string all = server->command({"INFO", "commandstats"}).text();
    const std::string begin = "cmdstat_" + command + ":calls=";
    const std::size_t at = all.find(begin);
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + begin.size()));
  }

  static bloomery::redis_address limited(std::initializer_list<std::string_view> rules) {
    std::vector<std::string_view> words = {"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*"};
    words.insert(words.end(), rules);
    bloomery::redis::router admin(at("x"), {});
    admin.run_on_nodes(words);
    bloomery::redis_address a = at("x");
    a.user = "limited";
    a.password = "any";
    return a;
  }
};

}  // namespace bloomery_tests
