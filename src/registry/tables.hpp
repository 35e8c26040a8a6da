// Tables of layouts and hashes, for selection at run time by any_filter. scheme.hpp has the table of schemes.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include "layouts/row.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a separate library

/// The parameters of a hash: secret and seed. Each hash uses the parts that it supports. The seed is stored as a `mix`,
/// which precomputes what that hash needs.
struct hash_seed {
  mix seed;
  secret_key secret;
};

/// Functions for single keys with a given layout and hash, so that a key costs a single indirect call.
struct single_key_calls {
  bool (*insert_bytes)(std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::string_view key);
  bool (*has_bytes)(const std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::string_view key);
  bool (*insert_integer)(std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::uint64_t key);
  bool (*has_integer)(const std::uint8_t* bytes, const geometry& g, const hash_seed& seed, std::uint64_t key);
};

struct hash_row {
  std::string_view name;
  std::uint64_t most_seed;  ///< maximum seed
  bool takes_bytes;         ///< false: integer keys only
  void (*of_bytes)(const hash_seed& seed, std::span<const std::string_view> keys, key_hash* out);
  void (*of_integers)(const hash_seed& seed, std::span<const std::uint64_t> keys, key_hash* out);
  key_hash (*of_one_bytes)(const hash_seed& seed, std::string_view key);  ///< null unless takes_bytes
  key_hash (*of_one_integer)(const hash_seed& seed, std::uint64_t key);
  /// hash64 alone. Prefetches the block of each key unless `blocks` is empty. Null: the hash has no such function.
  void (*hash64_of_bytes)(const hash_seed& seed, std::span<const std::string_view> keys, std::uint64_t* out,
                          const detail::block_prefetch& blocks);
  bool keyed;        ///< it requires a secret
  bool in_kernels;   ///< the kernels hash integers: hash_span::mixed
  bool is_identity;  ///< hash64 is the integer itself: hash_span::hash64s
};

/// The layouts of plain filters, the fastest first.
std::span<const layout_row> layout_rows() noexcept;
std::span<const hash_row> hash_rows() noexcept;

/// The functions for single keys of a layout and a hash.
const single_key_calls& single_key_calls_of(const layout_row& layout, const hash_row& hash) noexcept;

/// The row with this name, of any family, or null.
const layout_row* find_layout(std::string_view name) noexcept;
const hash_row* find_hash(std::string_view name) noexcept;

/// Whether keys of a filter with these parameters can be hashed: its hash or scheme is built in, and its secret is
/// known.
bool can_hash_keys(const params& p) noexcept;

/// The names of a table's rows: "a, b, c".
template <class Row>
std::string names_of(std::span<const Row> rows) {
  std::string names;
  for (const Row& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

}  // namespace bloomery
