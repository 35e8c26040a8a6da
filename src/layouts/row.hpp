// The row of a layout: all that code which learns the layout at run time needs of it. Each src/layouts/NAME.cpp makes
// its row with row_of.hpp; src/registry/tables.cpp lists the rows and adds what depends on hashes and kernels.
#pragma once

#include <bloomery/detail/hash_span.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layout_facts.hpp>
#include <bloomery/layouts/sliding.hpp>

#include "math/occupancy.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace bloomery {

struct params;
namespace kernels {
struct census_kernel;
}

/// The calls for one key, a layout and a hash in one; registry/tables.hpp defines them.
struct single_key_calls;

/// What the cells of a filter say. See certificate.hpp.
struct cells_seen {
  std::uint64_t used = 0;       ///< cells that are not 0
  long double hit = 0;          ///< probability that a random absent key finds all its cells used
  long double hash_values = 0;  ///< hashes that tell two keys apart, for hash collisions; 0: `hit` includes them
};

/// Kernels that count the bits of blocks.
struct block_counters {
  std::uint64_t (*ones)(const std::uint8_t* bytes, std::size_t count);
  /// Returns the ones of `count` blocks and writes what the rate of each follows from. Null: the layout has none.
  std::uint64_t (*blocks)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
};

/// What a layout from which keys can be removed does otherwise: layout_with_removal.
struct removal_calls {
  std::uint64_t (*remove)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, removal* results);
  std::uint64_t (*cells_used)(std::span<const std::uint8_t> bytes);
  double (*copies_in)(const geometry& g, std::span<const std::uint8_t> bytes);
  void (*merge)(std::span<std::uint8_t> into, std::span<const std::uint8_t> from);
};

/// The calls of sliding_blocks, for a layout that is chosen at run time.
struct window_calls {
  window_insertions (*insert)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                              std::uint8_t* is_new) noexcept;
  void (*look_up)(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                  std::uint64_t* bitmap) noexcept;
  void (*unite)(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g, std::uint32_t epoch) noexcept;
  window_cells (*look_at_cells)(const std::uint8_t* bytes, const geometry& g, std::uint32_t epoch);
  double (*rate_of)(const geometry& g, std::span<const std::uint64_t> keys);
  std::uint64_t (*block_at)(const geometry& g, std::uint64_t hash64) noexcept;
  occupancy (*lane)(const geometry& g);  ///< how the keys of one generation fall on their bits
};

struct layout_row : layout_facts {
  geometry (*geometry_for)(std::uint64_t capacity, double rate);
  void (*check)(const geometry& g);
  double (*expected_fpr)(const geometry& g, std::uint64_t keys);
  double (*keys_from_zeros)(const geometry& g, std::uint64_t zeros);
  void (*cells)(const geometry& g, key_hash hash, std::uint64_t* out);
  std::uint64_t (*insert)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint8_t* is_new);
  void (*may_contain)(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap);
  const single_key_calls* single;  ///< one for each hash, in the order of hash_rows(); the registry fills it in
  bulk_target (*bulk)(std::uint8_t* bytes, const geometry& g);  ///< null: keys cannot be sorted by block
  bloomery::occupancy (*occupancy)(const geometry& g);
  cells_seen (*look_at_cells)(const geometry& g, std::span<const std::uint8_t> bytes, const block_counters& counters);
  /// The kernel behind block_counters::blocks, or null; the registry fills it in.
  std::uint64_t (*kernels::census_kernel::*block_kernel)(const std::uint8_t*, std::size_t, std::uint64_t*) = nullptr;
  /// Only of a layout that counts copies of keys: else null.
  const removal_calls* removals = nullptr;
  const window_calls* window = nullptr;  ///< of layouts with a window; those go by it, not by single
  /// Sealed: throws unless a file's bytes are what these params say. Null: all bytes are a filter.
  void (*check_bytes)(const params& p, std::span<const std::uint8_t> bytes, const std::string& where) = nullptr;
};

/// The row of layout L, without single-key calls; instantiated in the .cpp file of each layout.
template <class L>
const layout_row& row_of() noexcept;

}  // namespace bloomery
