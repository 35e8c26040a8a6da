// The facts of filters on servers, for the adapters of filter_handle.
#pragma once

#include <bloomery/filter_facts.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/chain.hpp>

#include <cstdint>

namespace bloomery::redis {

/// Maximum number of bits that info() lets servers count, which takes tens of milliseconds, or send, which takes
/// seconds: 64 MiB.
inline constexpr std::uint64_t most_bits_counted = std::uint64_t{64} << 23;

/// @throws error  as redis_filter::info and redis_filter::pull
filter_facts facts_of(redis_filter& filter, info_depth depth);

/// @param p  parameters of one bitmap
/// @throws error  as redis_chain::info
filter_facts facts_of(redis_chain& chain, const params& p, info_depth depth);

}  // namespace bloomery::redis
