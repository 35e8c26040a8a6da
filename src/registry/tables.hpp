// The tables from which any_filter chooses at run time: a row a layout, a row a hash. Schemes have theirs in
// scheme.hpp.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/key_hash.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include "layouts/row.hpp"

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

struct hash_row {
  std::string_view name;
  std::uint64_t most_seed;  ///< the largest seed this hash takes
  bool takes_bytes;         ///< false: integer keys only
  void (*of_bytes)(const hash_seed& seed, std::span<const std::string_view> keys, key_hash* out);
  void (*of_integers)(const hash_seed& seed, std::span<const std::uint64_t> keys, key_hash* out);
  bool keyed;       ///< it takes the secret, and cannot do without
  bool in_kernels;  ///< layouts take integers as they are: hash_span::mixed
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
