// key_explanation: why a filter reports a key as present or absent, cell by cell.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/key_hash.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// A cell of a key, and what it holds.
struct explained_cell {
  std::uint64_t cell = 0;    ///< its number in its layer
  std::uint32_t value = 0;   ///< a bit: 0 or 1; a counter: 0 to 15; a static filter: a fingerprint
  std::uint64_t offset = 0;  ///< on servers: of SETBIT for a bit, of BITFIELD for a counter
};

/// The cells of a key in one layer, in the order of its probes; some may be equal.
struct explained_layer {
  std::vector<explained_cell> cells;
  std::uint64_t block = 0;       ///< the block that has them all
  std::uint64_t blocks = 0;      ///< of this layer, on servers of this shard; 0: the layout has no blocks
  std::uint64_t first_byte = 0;  ///< of the block
  std::uint64_t bytes = 0;       ///< of a block
  std::string server_key = {};   ///< on servers: the key that holds the layer
  std::int64_t number = 0;       ///< on servers: of the layer, or its generation
};

/// A generation of a sliding-window filter in memory or in a file.
struct explained_generation {
  std::uint64_t epoch = 0;
  std::uint32_t cells_set = 0;  ///< of the key's cells
  bool maybe_present = false;   ///< all of them
};

/// The three cells of a key in a static filter prove its absence unless their exclusive or is its fingerprint.
struct explained_fingerprint {
  unsigned width = 0;              ///< bits
  std::uint32_t exclusive_or = 0;  ///< of the cells
  std::uint32_t expected = 0;      ///< the key's
};

/// A key looked up, with the evidence.
struct key_explanation {
  bool maybe_present = false;
  std::optional<key_hash> hash = {};    ///< empty: a scheme has hashes of its own
  std::vector<explained_layer> layers;  ///< the newest first; none: a partition of a static filter without keys
  std::uint64_t shard = 0;              ///< on servers
  std::uint64_t shards = 0;             ///< on servers; else 0
  std::vector<explained_generation> generations = {};     ///< of a sliding-window filter, the newest first
  std::optional<explained_fingerprint> fingerprint = {};  ///< of a static filter
};

}  // namespace bloomery
