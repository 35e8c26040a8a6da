// What a layout is: the rule that gives a key its cells, and the exact mathematics that follow from the rule.
//
// A layout is one type. Its `cells` is the definition: everything else (batches, SIMD, Redis) is another spelling of
// it. Read layouts/split_block.hpp first, then layouts/classic.hpp.
#pragma once

#include <bloomery/bits.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_hash.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bloomery {

/// Requirements on a layout L, for a geometry g:
///
/// - L::cells(g, hash)  the key's cells, a pure function: count() of them, each from next(), all below g.bits
/// - L::geometry_for(n, p)  the smallest geometry whose exact rate at n keys is at most p
/// - L::check(g)  throws error unless g is one of this layout's geometries
/// - L::false_positive_rate(g, n)  the exact probability that a key which was never inserted is reported, at n keys
/// - L::keys_from_zeros(g, z)  the number of distinct keys that most likely left z bits at 0
template <class L>
concept layout = requires(const geometry& g, key_hash hash, typename L::cells cells, std::uint64_t n, double p) {
  { L::name } -> std::convertible_to<std::string_view>;
  typename L::cells;
  requires std::constructible_from<typename L::cells, const geometry&, key_hash>;
  { cells.count() } -> std::convertible_to<std::uint32_t>;
  { cells.next() } -> std::same_as<std::uint64_t>;
  { L::geometry_for(n, p) } -> std::same_as<geometry>;
  L::check(g);
  { L::false_positive_rate(g, n) } -> std::same_as<double>;
  { L::keys_from_zeros(g, n) } -> std::same_as<double>;
};

/// Sets the cells of one key; true if one of them was clear, that is, if the key is certainly new.
template <layout L>
bool insert_cells(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  typename L::cells cells(g, hash);
  bool is_new = false;
  for (std::uint32_t i = 0; i < cells.count(); ++i) is_new |= set_bit(bytes, cells.next());
  return is_new;
}

/// Whether all cells of one key are set; false is certain absence.
template <layout L>
bool has_cells(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  typename L::cells cells(g, hash);
  for (std::uint32_t i = 0; i < cells.count(); ++i) {
    if (!test_bit(bytes, cells.next())) return false;
  }
  return true;
}

/// A layout with batch kernels of its own; the others are served by the loops below.
template <class L>
concept layout_with_kernels = layout<L> &&
    requires(std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes, std::uint8_t* is_new,
             std::uint64_t* bitmap) {
  L::insert_batch(bytes, g, hashes, is_new);
  L::has_batch(bytes, g, hashes, bitmap);
};

/// Inserts hashes one after another. is_new is null or takes a 1 (certainly new) or 0 for each.
template <layout L>
void insert_batch(std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
                  std::uint8_t* is_new) noexcept {
  if constexpr (layout_with_kernels<L>) {
    L::insert_batch(bytes, g, hashes, is_new);
  } else {
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const bool fresh = insert_cells<L>(bytes, g, hashes[i]);
      if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
    }
  }
}

/// Looks hashes up; bit i%64 of bitmap[i/64] is the answer for hash i, unused bits of the last word are 0.
template <layout L>
void has_batch(const std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
               std::uint64_t* bitmap) noexcept {
  if constexpr (layout_with_kernels<L>) {
    L::has_batch(bytes, g, hashes, bitmap);
  } else {
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (i % 64 == 0) bitmap[i / 64] = 0;
      bitmap[i / 64] |= std::uint64_t{has_cells<L>(bytes, g, hashes[i])} << (i % 64);
    }
  }
}

}  // namespace bloomery
