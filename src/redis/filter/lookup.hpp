// Common to lookups (lookup.cpp) and inserts (insert.cpp): the limit of attempts, and the indices of keys.
#pragma once

#include "redis/filter/impl.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bloomery::redis {

inline constexpr unsigned most_rounds = 64;  // a shard changes once in thousands of keys

/// @throws error unavailable: the filter changed during each of most_rounds attempts
[[noreturn]] void throw_restless(const redis_address& address);

/// 0, 1, ..., count - 1
std::vector<std::uint32_t> numbers_up_to(std::size_t count);

}  // namespace bloomery::redis
