// key_explanation: why a filter reports a key as present or absent, cell by cell.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_hash.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// A cell of a key and its value.
struct explained_cell {
  std::uint64_t cell = 0;    ///< index in its layer
  std::uint32_t value = 0;   ///< a bit: 0 or 1; a counter: 0 to 15; a static filter: a fingerprint
  std::uint64_t offset = 0;  ///< on servers: the offset for SETBIT (bits) or BITFIELD (counters)
};

/// The cells of a key in one layer, in probe order; some may be equal.
struct explained_layer {
  std::vector<explained_cell> cells;
  std::uint64_t block = 0;       ///< the block that contains all of them
  std::uint64_t blocks = 0;      ///< blocks of this layer, on servers of this shard; 0: the layout has no blocks
  std::uint64_t first_byte = 0;  ///< of the block
  std::uint64_t bytes = 0;       ///< of a block
  std::string server_key = {};   ///< on servers: the key that holds the layer
  std::int64_t number = 0;       ///< on servers: number of the layer or generation
};

/// A generation of a sliding-window filter in memory or in a file.
struct explained_generation {
  std::uint64_t epoch = 0;
  std::uint32_t cells_set = 0;  ///< number of the key's cells that are set
  bool maybe_present = false;   ///< all of them are set
};

/// The fingerprint of a key in a static filter. The key is absent unless the exclusive or of its three cells equals it.
struct explained_fingerprint {
  unsigned width = 0;              ///< bits
  std::uint32_t exclusive_or = 0;  ///< of the cells
  std::uint32_t expected = 0;      ///< the key's
};

/// The result of a lookup, with the cells that determine it.
struct key_explanation {
  bool maybe_present = false;
  std::optional<key_hash> hash = {};    ///< empty for schemes, which have their own hashes
  std::vector<explained_layer> layers;  ///< the newest first; empty: a partition of a static filter without keys
  std::uint64_t shard = 0;              ///< on servers
  std::uint64_t shards = 0;             ///< on servers; otherwise 0
  std::vector<explained_generation> generations = {};     ///< of a sliding-window filter, the newest first
  std::optional<explained_fingerprint> fingerprint = {};  ///< of a static filter
};

}  // namespace bloomery
