// Common to the parts of a shared filter's lifecycle: lifecycle.cpp (layers, generations, shard headers), create.cpp
// (create and open) and replace.cpp (replace, clear, expire).
#pragma once

#include "redis/filter/impl.hpp"
#include "redis/filter/meta.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Maximum number of shards whose commands are sent in one batch.
inline constexpr std::size_t together = 4096;

/// Calls work(numbers of shards) for all shards, one batch at a time.
template <class Work>
void each_part(std::uint64_t shards, Work work) {
  std::vector<std::uint64_t> part;
  for (std::uint64_t first = 0; first < shards; first += together) {
    part.clear();
    for (std::uint64_t s = first; s < std::min<std::uint64_t>(shards, first + together); ++s) part.push_back(s);
    work(part);
  }
}

/// @throws error invalid_argument: an expiry out of range
void check_expiry(std::chrono::milliseconds time, hint to_do = hint::none);

/// The description of a new filter by this plan, with an epoch of its own.
meta description_of(const redis_plan& plan, std::string_view name);

/// Starts a script on {NAME}:m, :m2, :n and the drop mark, whose first argument is the epoch of the filter `expected`
/// in m. The caller adds the other arguments.
void start_on_all(batch& commands, const script& script, std::string_view name, const meta& expected,
                  std::size_t more_args);

}  // namespace bloomery::redis
