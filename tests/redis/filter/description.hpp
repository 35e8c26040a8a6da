// A server for tests of filters whose description is lost. The tests advance the clock of checks instead of waiting.
#pragma once

#include "redis/filter/description_check.hpp"
#include "redis/fixtures.hpp"

namespace bloomery_tests {

class RedisDescription : public on_a_server<RedisDescription> {
 protected:
  static void lose_description() { EXPECT_EQ(server->command({"DEL", "{x}:m", "{x}:m2"}).integer(), 2); }
  static std::int64_t descriptions() { return server->command({"EXISTS", "{x}:m", "{x}:m2"}).integer(); }

  // The description as it is before the shards are made.
  static std::string description_in_the_making() {
    std::string text = server->command({"GET", "{x}:m"}).text();
    const std::string ready = "state=ready";
    return text.replace(text.find(ready), ready.size(), "state=in the making");
  }

  // A client without permission for UNLINK drops the filter: the description is deleted, the shards remain.
  static void drop_halfway() {
    server->command({"ACL", "SETUSER", "default", "-unlink"});
    EXPECT_EQ(code_of([] { bloomery::redis_filter::open(at("x")).drop(); }), bloomery::errc::not_permitted);
    server->command({"ACL", "SETUSER", "default", "+unlink"});
  }
};

}  // namespace bloomery_tests
