// The numbers of a Bloom filter of RedisBloom, which both of its formats store: the value of a key of Redis (DUMP), and
// the chunks of BF.SCANDUMP.
#pragma once

#include "formats/format_row.hpp"

#include <cstdint>

namespace bloomery::formats::redisbloom {

/// A filter is a chain of layers. When a layer is full, the next one is added.
struct chain {
  std::uint64_t keys = 0;    ///< keys that were certainly new, in all layers
  std::uint64_t layers = 1;  ///< number of layers
  std::uint64_t options = 0;
  std::uint64_t growth = 2;  ///< the factor of the capacity from layer to layer
};

struct layer {
  std::uint64_t capacity = 0;
  double target_fpr = 0;
  std::uint64_t probes = 0;
  double bits_per_key = 0;
  std::uint64_t bits = 0;  ///< a multiple of 64
  std::uint64_t log2 = 0;  ///< of the number of bits, in filters of early versions; otherwise 0
  std::uint64_t keys = 0;  ///< keys that were certainly new
};

/// The name of the scheme of all layers.
inline constexpr const char* scheme_name = "redisbloom";

/// @throws error  damaged; incompatible: hashes of 32 bits
void check_chain(const chain& all, const head& file);

/// The parameters of a layer. The target FPR is that of a filter whose first layer it is: all layers of a filter that
/// grows keep the target FPR together, so the first one is made for half of it.
/// @throws error  damaged
params params_of(const chain& all, const layer& of, const head& file);

/// A chain of one layer, as BF.RESERVE would make it.
struct description {
  chain all;
  layer first;
};

/// @throws error  incompatible: the capacity or the target FPR is unknown, which RedisBloom has to know
description describe(const params& p, const key_counts& counts);

}  // namespace bloomery::formats::redisbloom
