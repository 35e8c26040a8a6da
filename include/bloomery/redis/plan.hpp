// redis_plan: the placement of a shared filter on its servers: shards, lines, layers and memory. Pure arithmetic,
// without a connection to a server.
//
// S shards, L lines of 64 bytes in each layer of a shard, k probes per key.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/redis.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// A layer of a shard; in sliding-window filters a generation.
struct redis_layer {
  std::uint64_t lines = 0;     ///< L
  std::uint32_t probes = 0;    ///< k
  std::uint64_t capacity = 0;  ///< certainly new keys at which the next layer is added; 0: no next layer

  /// Bytes of the string on the server: the lines and the shard version.
  std::uint64_t string_bytes() const noexcept { return 64 * lines + 16; }

  /// The geometry of a local filter that consists of this layer of all shards.
  bloomery::geometry whole(std::uint64_t shards) const noexcept { return {512 * lines * shards, probes}; }

  friend bool operator==(const redis_layer&, const redis_layer&) = default;
};

struct redis_plan {
  redis_params parameters;   ///< complete: layout, hash, geometry, shards
  std::uint64_t shards = 0;  ///< S
  redis_layer first;         ///< of each shard
  std::uint64_t layers = 1;  ///< of a full shard: 16 for unlimited growth; in sliding-window filters the generations
  std::uint64_t server_keys = 0;        ///< keys on all servers after creation: two per shard, plus two
  std::uint64_t memory_bytes = 0;       ///< memory on all servers after creation, as rounded by their allocator
  std::uint64_t full_memory_bytes = 0;  ///< with all layers for `maximum` keys, or with all generations; without a
                                        ///< limit the same as memory_bytes
  double log_bytes_per_key = 0;         ///< bytes that a new key adds to the append-only file, and to what goes to each
                                        ///< replica, inserted with many others; a key that is present adds none
};

/// Plans a filter. A filter of up to 64 KiB has one shard; a larger one has at least 16 shards of 64 KiB to 1 MiB each,
/// as few as possible. Strings use the full size that the allocator provides for them.
///
/// @throws error  invalid_argument: a capacity or rate out of range, a layout that cannot be shared, or a maximum below
///                the capacity; too_large: more than 2^24 shards, or a string of more than 512 MiB
///
/// Example:
///     const redis_plan p = plan_redis({.filter = {.capacity = 1'000'000, .target_fpr = 0.01}});
///     assert(p.shards == 16 && p.parameters.filter.layout == "blocked");
///     assert(8 * p.memory_bytes < 11'500'000);  // at most 11.5 bits per key
redis_plan plan_redis(const redis_params& wanted);

/// The next layer of a shard of a scalable filter. Its capacity is at least the sum of the capacities of the layers
/// before it; without a maximum seven times that sum while the layer fits into 64 KiB.
/// @param complete  redis_plan::parameters
/// @param before    the present layers, at least one
/// @throws error too_large: there are 16 layers already, or the maximum is reached
redis_layer next_layer(const redis_params& complete, std::span<const redis_layer> before);

/// The size that jemalloc, the allocator of Redis and Valkey, provides for a request of `bytes`: four sizes per
/// doubling.
///
/// Example:
///     assert(allocated_bytes(65'500) == 65'536 && allocated_bytes(65'537) == 81'920);
std::uint64_t allocated_bytes(std::uint64_t bytes) noexcept;

}  // namespace bloomery
