// A server for tests of faults. An acknowledged key may lead to an error, but must never be reported absent.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filters.hpp"
#include "redis/fixtures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bloomery_tests {

class RedisFaults : public on_a_server<RedisFaults> {
 protected:
  static std::vector<std::string> names(const std::string& pattern) {
    std::vector<std::string> found;
    const auto all = server->command({"KEYS", pattern});
    for (std::size_t i = 0; i < all.reply().size(); ++i) {
      if (!is_mark(all.reply()[i].text())) found.emplace_back(all.reply()[i].text());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // All keys are found, or an error reports the damage; no key may be reported absent.
  static void expect_never_absent(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys) {
    std::uint64_t there = keys.size();
    const auto code = code_of([&] { there = count_found(f, keys); });
    if (code) {
      EXPECT_TRUE(code == bloomery::errc::damaged || code == bloomery::errc::not_found) << static_cast<int>(*code);
    }
    EXPECT_EQ(there, keys.size());
  }
};

}  // namespace bloomery_tests
