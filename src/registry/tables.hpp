// The tables from which any_filter chooses at run time: a row a layout, a row a hash. Schemes have theirs in
// scheme.hpp.
#pragma once

#include <bloomery/census.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/key_source.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layout_facts.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include "math/occupancy.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a library of its own

/// What makes a hash of a table one function of many. Each takes of it what it knows; the seed comes as a `mix`, which
/// has prepared what that hash wants of it.
struct hash_seed {
  mix seed;
  secret_key secret;
};

/// The calls for one key, a layout and a hash in one, so that a key costs a single indirect call.
struct single_key_calls {
  bool (*insert_bytes)(std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::string_view key);
  bool (*has_bytes)(const std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::string_view key);
  bool (*insert_integer)(std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::uint64_t key);
  bool (*has_integer)(const std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::uint64_t key);
};

/// What a layout from which keys can be removed does otherwise: layout_with_removal.
struct removal_calls {
  std::uint64_t (*remove)(std::uint8_t* bytes, const geometry& g, const key_source& keys, removal* results);
  std::uint64_t (*cells_used)(std::span<const std::uint8_t> bytes);
  double (*copies_in)(const geometry& g, std::span<const std::uint8_t> bytes);
  void (*merge)(std::span<std::uint8_t> into, std::span<const std::uint8_t> from);
};
struct window_calls;

struct layout_row : layout_facts {
  geometry (*geometry_for)(std::uint64_t capacity, double rate);
  void (*check)(const geometry& g);
  double (*false_positive_rate)(const geometry& g, std::uint64_t keys);
  double (*keys_from_zeros)(const geometry& g, std::uint64_t zeros);
  void (*cells)(const geometry& g, key_hash hash, std::uint64_t* out);
  std::uint64_t (*insert)(std::uint8_t* bytes, const geometry& g, const key_source& keys, std::uint8_t* is_new);
  void (*may_contain)(const std::uint8_t* bytes, const geometry& g, const key_source& keys, std::uint64_t* bitmap);
  const single_key_calls* single;                               ///< one for each hash, in the order of hash_rows()
  bulk_target (*bulk)(std::uint8_t* bytes, const geometry& g);  ///< null: keys cannot be sorted by block
  bloomery::occupancy (*occupancy)(const geometry& g);
  census (*take_census)(const geometry& g, std::span<const std::uint8_t> bytes);
  /// Only of a layout that counts copies of keys: else null.
  const removal_calls* removals = nullptr;
  const window_calls* window = nullptr;  ///< of layouts with a window (windows.hpp); those go by it, not by single
  /// Sealed: throws unless a file's bytes are what these params say. Null: all bytes are a filter.
  void (*check_bytes)(const params& p, std::span<const std::uint8_t> bytes, const std::string& where) = nullptr;
};

struct hash_row {
  std::string_view name;
  std::uint64_t most_seed;  ///< the largest seed this hash takes
  bool takes_bytes;         ///< false: integer keys only
  void (*of_bytes)(const hash_seed& seed, std::span<const std::string_view> keys, key_hash* out);
  void (*of_integers)(const hash_seed& seed, std::span<const std::uint64_t> keys, key_hash* out);
  bool keyed;       ///< it takes the secret, and cannot do without
  bool in_kernels;  ///< layouts take integers as they are: key_source::mixed
};

/// The layouts of plain filters, the quickest first.
std::span<const layout_row> layout_rows() noexcept;
std::span<const hash_row> hash_rows() noexcept;

/// The single-key calls of a layout and a hash of these tables.
const single_key_calls& single_key_calls_of(const layout_row& layout, const hash_row& hash) noexcept;

/// The row of this name, of whatever family, or null.
const layout_row* find_layout(std::string_view name) noexcept;
const hash_row* find_hash(std::string_view name) noexcept;

/// The names of a table's rows: "a, b, c".
template <class Row>
std::string names_of(std::span<const Row> rows) {
  std::string names;
  for (const Row& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

}  // namespace bloomery
