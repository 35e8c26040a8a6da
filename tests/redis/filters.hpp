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
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery_tests {

inline std::vector<std::uint64_t> keys_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) keys[static_cast<std::size_t>(i)] = first + i;
  return keys;
}

/// How many bits of a batch's answer are set.
inline std::uint64_t count_of(std::span<const std::uint64_t> answers) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : answers) ones += static_cast<std::uint64_t>(std::popcount(word));
  return ones;
}

inline std::uint64_t count_found(bloomery::redis_filter& f, const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  f.may_contain(keys, bitmap);
  return count_of(bitmap);
}

/// The same by a client that opens the filter now.
inline std::uint64_t found_at(const bloomery::redis_address& address, const std::vector<std::uint64_t>& keys) {
  bloomery::redis_filter f = bloomery::redis_filter::open(address);
  return count_found(f, keys);
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

inline bloomery::redis_params growing_to(std::uint64_t maximum, bloomery::redis_params p) {
  p.growth = bloomery::redis_growth::to_maximum;
  p.maximum = maximum;
  return p;
}

inline bloomery::redis_params sharded(bloomery::redis_params p, std::uint64_t shards) {
  p.shards = shards;
  return p;
}

inline bloomery::redis_params counting(bloomery::redis_params p) {
  p.filter.layout = "counting";
  return p;
}

inline bloomery::redis_params windowed(bloomery::redis_params p,
                                       std::chrono::milliseconds length = std::chrono::hours(7 * 24)) {
  p.filter.extra = bloomery::window_of_milliseconds(static_cast<std::uint64_t>(length.count()));
  return p;
}

/// A shared filter of each kind, of 4,000 keys in 5 shards.
struct kind_of_filter {
  const char* name;
  bloomery::redis_params parameters;
};
inline std::vector<kind_of_filter> kinds_of_filters() {
  return {{"fixed", sharded(integers(4000, 0.01), 5)},
          {"growing", sharded(growing(400), 5)},
          {"window", sharded(windowed(integers(4000, 0.01)), 5)},
          {"counting", sharded(counting(integers(4000, 0.01)), 5)}};
}

/// Options whose notes go to a list.
inline bloomery::redis_options noting(std::vector<std::string>& notes) {
  return {.notes = [&notes](const std::string& note) { notes.push_back(note); }};
}

/// Whether a key on a server is the mark of a dropped filter, which expires by itself.
inline bool is_mark(std::string_view key) { return key.find("}:gone~") != std::string_view::npos; }

/// The number of hits among n lookups at an FPR of at most p that is exceeded once in a million times.
inline double most_hits(double p, double n) { return n * p + 5 * std::sqrt(n * p) + 3; }

/// The numbers in a list of layers or generations, as headers of shards have it.
inline std::vector<std::int64_t> numbers_in(const std::string& list) {
  std::vector<std::int64_t> numbers;
  std::istringstream text(list);
  for (std::string one; std::getline(text, one, ',');) numbers.push_back(std::stoll(one));
  return numbers;
}

/// For a sliding-window filter with one shard: each generation becomes the one before, as if its time had passed.
/// @returns their numbers, as the header has them
inline std::string age_generations(test_server& server, const std::string& name) {
  const std::string shard = server.shard(name, 0);
  std::string list;
  for (const std::int64_t number : numbers_in(server.command({"HGET", shard + ":h", "layers"}).text())) {
    const std::string before = std::to_string(number - 1);
    server.command({"RENAME", shard + ":" + std::to_string(number), shard + ":" + before});
    list += (list.empty() ? "" : ",") + before;
  }
  server.command({"HSET", shard + ":h", "layers", list});
  return list;
}

/// The same, and the newest generation is empty.
struct generation_aside {
  std::string older;  // was the newest
  std::string newest;
  std::int64_t bytes;  // of each generation

  generation_aside(test_server& server, const std::string& name) {
    const std::string shard = server.shard(name, 0);
    const std::int64_t number = numbers_in(server.command({"HGET", shard + ":h", "layers"}).text()).back();
    newest = shard + ":" + std::to_string(number);
    older = shard + ":" + std::to_string(number - 1);
    bytes = server.command({"STRLEN", newest}).integer();
    const std::string layers = age_generations(server, name) + "," + std::to_string(number);
    const std::string end = std::to_string(bytes - 16);
    server.command({"SETRANGE", older, end, std::string(16, '\0')});
    server.command({"SETRANGE", newest, end, "another stamp..."});
    server.command({"HSET", shard + ":h", "layers", layers, "stamp", "another stamp..."});
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
