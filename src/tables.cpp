#include "tables.hpp"

#include <bloomery/hash.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>

#include <algorithm>
#include <limits>

namespace bloomery {
namespace {

template <layout L>
void cells_of(const geometry& g, key_hash hash, std::uint64_t* out) {
  typename L::cells cells(g, hash);
  for (std::uint32_t i = 0; i < cells.count(); ++i) out[i] = cells.next();
}

template <layout L>
constexpr layout_row row_of_layout() {
  return {L::name,     L::geometry_for, L::check,    L::false_positive_rate, L::keys_from_zeros,
          cells_of<L>, insert_batch<L>, has_batch<L>};
}

template <class Hash, class Key>
void hash_each(std::uint64_t seed, std::span<const Key> keys, key_hash* out) {
  const Hash hash{seed};
  for (const Key& key : keys) *out++ = hash(key);
}

template <class Hash>
constexpr hash_row row_of_hash(std::uint64_t most_seed = std::numeric_limits<std::uint64_t>::max()) {
  hash_row row{Hash::name, most_seed, false, nullptr, hash_each<Hash, std::uint64_t>};
  if constexpr (hash_of<Hash, std::string_view>) {
    row.takes_bytes = true;
    row.of_bytes = hash_each<Hash, std::string_view>;
  }
  return row;
}

constexpr layout_row layouts[] = {row_of_layout<split_block>(), row_of_layout<classic>()};
constexpr hash_row hashes[] = {row_of_hash<xxh3>(), row_of_hash<mix>(), row_of_hash<murmur3>(murmur3::most_seed)};

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) noexcept {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const layout_row> layout_rows() noexcept { return layouts; }
std::span<const hash_row> hash_rows() noexcept { return hashes; }
const layout_row* find_layout(std::string_view name) noexcept { return find(layout_rows(), name); }
const hash_row* find_hash(std::string_view name) noexcept { return find(hash_rows(), name); }

}  // namespace bloomery
