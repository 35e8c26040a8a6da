// Keys and parameters for tests of shared filters, and lookups of many keys.
#pragma once

#include <bloomery/params.hpp>
#include <bloomery/redis.hpp>

#include "redis/servers.hpp"
#include "support/errors.hpp"
#include "support/long_tests.hpp"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

inline std::vector<std::uint64_t> keys_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) keys[static_cast<std::size_t>(i)] = first + i;
  return keys;
}

inline std::uint64_t count_found(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  f.may_contain(keys, bitmap);
  std::uint64_t count = 0;
  for (const std::uint64_t word : bitmap) count += static_cast<std::uint64_t>(std::popcount(word));
  return count;
}

inline void insert_all(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys) {
  f.insert(std::span<const std::uint64_t>(keys));
}

inline bloomery::redis_params integers(std::uint64_t capacity, double rate) {
  return {.filter = {.keys = bloomery::key_kind::u64le, .capacity = capacity, .target_fpr = rate}};
}

inline bloomery::redis_params growing(std::uint64_t capacity, double rate = 0.01) {
  bloomery::redis_params p = integers(capacity, rate);
  p.growth = bloomery::redis_growth::unlimited;
  return p;
}

/// Whether a key on a server is the mark of a dropped filter, which expires by itself.
inline bool is_mark(std::string_view key) { return key.find("}:gone~") != std::string_view::npos; }

/// The number of hits among n lookups at an FPR of at most p that is exceeded once in a million times.
inline double most_hits(double p, double n) { return n * p + 5 * std::sqrt(n * p) + 3; }

/// For a sliding-window filter with one shard: its only generation becomes the previous one, and the newest is empty,
/// as if its time had passed.
struct generation_aside {
  std::string older;
  std::string newest;
  std::int64_t bytes;  // of each generation

  generation_aside(test_server& server, const std::string& name) {
    const std::string shard = server.shard(name, 0);
    const std::string header = shard + ":h";
    const std::string number = server.command({"HGET", header, "layers"}).text();
    const std::string before = std::to_string(std::stoll(number) - 1);
    newest = shard + ":" + number;
    older = shard + ":" + before;
    bytes = server.command({"STRLEN", newest}).integer();
    const std::string end = std::to_string(bytes - 16);
    server.command({"RENAME", newest, older});
    server.command({"SETRANGE", older, end, std::string(16, '\0')});
    server.command({"SETRANGE", newest, end, "another stamp..."});
    server.command({"HSET", header, "layers", before + "," + number, "stamp", "another stamp..."});
  }
};

/// Repeats the action until it does not throw `unavailable`, or the time is over.
template <class Action>
void insist(Action action, std::chrono::seconds most = std::chrono::seconds(40)) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (true) {
    try {
      return action();
    } catch (const bloomery::error& e) {
      if (e.code() != bloomery::errc::unavailable || std::chrono::steady_clock::now() > end) throw;
    }
  }
}

}  // namespace bloomery_tests
