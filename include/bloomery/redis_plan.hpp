// How a shared filter lies on its servers: shards, lines, layers and the memory they take. Pure arithmetic: no server
// is asked.
//
// S shards, L lines of 64 bytes in a shard's layer, k bits a key.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/redis.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// A layer of a shard; of a filter that forgets, a generation.
struct redis_layer {
  std::uint64_t lines = 0;     ///< L
  std::uint32_t probes = 0;    ///< k
  std::uint64_t capacity = 0;  ///< keys that were certainly new, until the next layer is made; 0: no next one

  /// Bytes of the string on the server: lines and the stamp.
  std::uint64_t string_bytes() const noexcept { return 64 * lines + 16; }

  /// As the local filter of all shards' layers like this one, end to end, has it.
  bloomery::geometry whole(std::uint64_t shards) const noexcept { return {512 * lines * shards, probes}; }

  friend bool operator==(const redis_layer&, const redis_layer&) = default;
};

struct redis_plan {
  redis_params parameters;   ///< complete: layout, hash, geometry, shards
  std::uint64_t shards = 0;  ///< S
  redis_layer first;         ///< of each shard
  std::uint64_t layers = 1;  ///< of a shard when it is full: generations, of a filter that forgets; 16 without a limit
  std::uint64_t server_keys = 0;        ///< keys on all servers when just made: two a shard, and two
  std::uint64_t memory_bytes = 0;       ///< what they take there when just made, as the servers' allocator rounds
  std::uint64_t full_memory_bytes = 0;  ///< with all layers for `maximum` keys, or for all generations; without a
                                        ///< limit the same as memory_bytes
};

/// Plans a filter. Shards: one up to 64 KiB; from then on at least 16, of 64 KiB to 1 MiB each, as few as need be. A
/// string is as long as fits into what the allocator gives for it.
///
/// @throws error  invalid_argument: a capacity or rate out of range, a layout that cannot be shared, a maximum below
///                the
///                capacity; too_large: more than 2^24 shards, or a string of more than 512 MiB
///
/// Example:
///     const redis_plan p = plan_redis({.filter = {.capacity = 1'000'000, .target_fpr = 0.01}});
///     assert(p.shards == 16 && p.parameters.filter.layout == "blocked");
///     assert(8 * p.memory_bytes < 11'500'000);  // at most 11.5 bits a key
redis_plan plan_redis(const redis_params& wanted);

/// The next layer of a shard of a filter that grows: for as many keys as the layers before it, at least one, have.
/// @param complete  of plan_redis()
/// @throws error too_large: there are 16 layers already, or the maximum is reached
redis_layer next_layer(const redis_params& complete, std::span<const redis_layer> before);

/// Bytes that jemalloc, which Redis and Valkey are built with, gives for so many: four sizes for each doubling.
///
/// Example:
///     assert(allocated_bytes(65'500) == 65'536 && allocated_bytes(65'537) == 81'920);
std::uint64_t allocated_bytes(std::uint64_t bytes) noexcept;

}  // namespace bloomery
