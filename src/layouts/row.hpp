// layout_row: the functions and constants of a layout, for code that selects the layout at run time. Each
// src/layouts/NAME.cpp creates its row with row_of.hpp; src/registry/tables.cpp lists the rows and adds the parts that
// depend on hashes and kernels.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/detail/static_payload.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/sliding.hpp>

#include "math/occupancy.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct params;
namespace kernels {
struct fill_kernel;
}

/// Functions for single keys with a given layout and hash; defined in registry/tables.hpp.
struct single_key_calls;

/// Consecutive bytes of a filter: whole blocks.
struct byte_slice {
  std::uint64_t first = 0;  ///< number of the first byte in the filter
  std::span<const std::uint8_t> bytes;
};

/// The result of a cell scan of a slice. The result of a filter is the sum over its slices, except for hash_values. See
/// cell_scan.hpp.
struct cell_scan_result {
  std::uint64_t used = 0;       ///< non-zero cells
  long double hit = 0;          ///< probability that all cells of a random absent key are used and in this slice. Plain
                                ///< layouts without blocks: 0, because it follows from `used` of the filter
  long double hash_values = 0;  ///< number of distinguishable hashes, for hash collisions; 0: `hit` includes them
};

/// The kernels that count the bits of blocks.
struct block_counters {
  std::uint64_t (*ones)(const std::uint8_t* bytes, std::size_t count);
  /// Returns the number of ones of `count` blocks and writes a result per block (fill_kernel). Null: no such kernel.
  std::uint64_t (*blocks)(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out);
};

/// The additional functions of layouts with removal.
struct removal_calls {
  std::uint64_t (*remove)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, removal* results);
  std::uint64_t (*cells)(const geometry& g);  ///< counters, or slots
  std::uint64_t (*cells_used)(const geometry& g, std::span<const std::uint8_t> bytes);
  std::uint64_t (*cells_full)(const geometry& g, std::span<const std::uint8_t> bytes);  ///< those that do not change
  double (*copies_in)(const geometry& g, std::span<const std::uint8_t> bytes);
  /// Adds the copies of `from`. Null: slot_calls::add.
  void (*merge)(const geometry& g, std::span<std::uint8_t> into, std::span<const std::uint8_t> from);
};

/// The place of a key in a filter with slots.
struct slot_lookup {
  struct block {
    std::uint64_t number;
    std::uint32_t copies;  ///< of the key's fingerprint
  };

  std::uint32_t bucket = 0;
  std::uint32_t remainder = 0;
  std::vector<block> blocks = {};  ///< one or two; the key is present if any has a copy
};

/// The additional functions of layouts that store each key in a slot, of which there may be too few.
struct slot_calls {
  std::uint64_t (*keys_for)(const geometry& g);  ///< number of keys for which there is room almost
                                                 ///< certainly, if none has more than two copies
  /// Inserts a copy of each key in order until a key has no room. Returns the number of keys inserted; `all_new`
  /// increases by the number of new ones.
  std::size_t (*insert)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint8_t* is_new,
                        std::uint64_t& all_new);
  std::uint32_t (*used_in_block)(const std::uint8_t* block);
  bool (*is_valid)(const geometry& g, std::span<const std::uint8_t> bytes);  ///< whether a filter may write these bytes
  /// The variance of the exact FPR of random filters with this number of keys, divided by the square of its mean.
  double (*relative_variance)(const geometry& g, std::uint64_t keys);
  slot_lookup (*look_up)(const std::uint8_t* bytes, const geometry& g, std::uint64_t hash64);
  /// The layout of a filter with the same fingerprints in twice as many blocks; null if there is none.
  const char* doubled_layout;
  /// Adds the fingerprints of a filter that has the same ones, but was doubled less often, by `doublings`. False:
  /// `into` has no room for some of them, and is changed in part.
  bool (*add)(const geometry& g, std::span<std::uint8_t> into, unsigned doublings, std::span<const std::uint8_t> from);
};

/// The functions of sliding_blocks, for a layout selected at run time.
struct window_calls {
  window_insertions (*insert)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                              std::uint8_t* is_new) noexcept;
  void (*look_up)(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t epoch,
                  std::uint64_t* bitmap) noexcept;
  void (*unite)(std::uint8_t* bytes, const std::uint8_t* other, const geometry& g, std::uint32_t epoch) noexcept;
  geometry (*geometry_for)(const keys_by_generation& fullest, double target_fpr);
  window_cells (*scan_cells)(const std::uint8_t* bytes, const geometry& g, std::uint32_t epoch);
  double (*rate_of)(const geometry& g, std::span<const std::uint64_t> keys);
  std::uint64_t (*block_at)(const geometry& g, std::uint64_t hash64) noexcept;
  occupancy (*lane)(const geometry& g);  ///< the occupancy of one generation
};

/// What a lookup in a static filter combines.
struct static_lookup {
  struct cell {
    std::uint64_t number;
    std::uint32_t value;
  };

  std::uint32_t fingerprint = 0;  ///< of the key
  std::vector<cell> cells = {};   ///< the key is present if their exclusive or is the fingerprint; none in a partition
                                  ///< without keys
};

/// Called with bytes of a payload before a lookup reads them, apart from those of the head and the table.
using before_reading = function_ref<void(std::uint64_t begin, std::uint64_t count)>;

/// A structure of static filters, of any width: fuse, ribbon, cascade. Payloads are checked, except for check().
struct static_calls {
  std::string_view (*layout_name)(std::uint64_t width);
  void (*check)(unsigned width, std::span<const std::uint8_t> payload, const std::string& where);
  bloomery::geometry (*geometry)(unsigned width, std::uint64_t keys);
  double (*rate)(unsigned width, std::uint64_t keys);          ///< expected FPR
  long double (*hits)(std::span<const std::uint8_t> payload);  ///< exact share of random hashes that it reports
  void (*may_contain)(const std::uint8_t* payload, const bloomery::geometry& g, const hash_span& keys,
                      std::uint64_t* bitmap);
  static_lookup (*look_up)(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64,
                           before_reading watch);
  std::uint32_t (*most_lines)(unsigned width);  ///< cache lines that a lookup reads, apart from those of the table
  std::uint64_t partition_bytes;                ///< of a descriptor
  std::uint32_t probes;                         ///< as in headers
  bool has_cells;                               ///< whether a fingerprint is in consecutive bits
  bool has_absent_list;                         ///< whether no key of a second list is reported
};

struct layout_row : layout_facts {
  geometry (*geometry_for)(std::uint64_t capacity, double rate);
  void (*check)(const geometry& g);
  double (*expected_fpr)(const geometry& g, std::uint64_t keys);
  double (*keys_from_zeros)(const geometry& g, std::uint64_t zeros);
  void (*cells)(const geometry& g, key_hash hash, std::uint64_t* out);
  /// Null: slot_calls::insert or window_calls::insert, or keys cannot be inserted.
  std::uint64_t (*insert)(std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint8_t* is_new);
  void (*may_contain)(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap);
  /// One per hash, in the order of hash_rows(); set by the registry. Null: the next three functions.
  const single_key_calls* single;

  /// Functions for a key in memory, of which hash64 is given. Null: a batch of one.
  bool (*has_hash)(const std::uint8_t* bytes, const geometry& g, std::uint64_t hash64);
  /// False: there is no room for the key.
  bool (*insert_hash)(std::uint8_t* bytes, const geometry& g, std::uint64_t hash64, bool& is_new);
  /// False: the key is absent.
  bool (*remove_hash)(std::uint8_t* bytes, const geometry& g, std::uint64_t hash64);

  bulk_target (*bulk)(std::uint8_t* bytes, const geometry& g);  ///< null: keys cannot be partitioned by block
  bloomery::occupancy (*occupancy)(const geometry& g);
  /// Sliding-window, static and quotient filters require the slice of all bytes.
  cell_scan_result (*scan_cells)(const geometry& g, const byte_slice& slice, const block_counters& counters);
  /// The kernel for block_counters::blocks, or null; set by the registry.
  std::uint64_t (*kernels::fill_kernel::*block_kernel)(const std::uint8_t*, std::size_t, std::uint64_t*) = nullptr;
  const removal_calls* removals = nullptr;  ///< layouts with removal only, otherwise null
  const slot_calls* slots = nullptr;        ///< layouts with slots only
  const window_calls* window = nullptr;     ///< sliding-window layouts only, which use it instead of `single`
  const static_calls* sealed = nullptr;     ///< static filters only
  /// Static filters: throws unless the bytes of a file match these params. Null: all bytes are valid.
  void (*check_bytes)(const params& p, std::span<const std::uint8_t> bytes, const std::string& where) = nullptr;
};

/// The functions of a layout with slots; null for others, and for null.
inline const slot_calls* slots_of(const layout_row* layout) noexcept {
  return layout != nullptr ? layout->slots : nullptr;
}

/// The row of layout L, without `single`; instantiated in the .cpp file of each layout.
template <class L>
const layout_row& row_of() noexcept;

}  // namespace bloomery
