// What a layout is: the rule that gives a key its cells, and the exact mathematics that follow from the rule.
//
// A layout is one type. Its `cells` is the definition: everything else (batches, SIMD, Redis) is another spelling of
// it. Read layouts/split_block.hpp first, then layouts/classic.hpp.
#pragma once

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/key_hash.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// Requirements on a layout L, for a geometry g:
///
/// - L::cells(g, hash)  the key's cells, a pure function: count() of them, each from next(), all below g.bits; a layout
///   with cells of more than one bit says L::cell_bits, numbers its cells, not bits, and has calls of its own for all
/// - L::geometry_for(n, p)  the smallest geometry whose exact rate at n keys is at most p
/// - L::check(g)  throws error unless g is one of this layout's geometries
/// - L::expected_fpr(g, n)  the exact probability that a key which was never inserted is reported, at n keys
/// - L::keys_from_zeros(g, z)  the number of distinct keys that most likely left z cells at 0
template <class L>
concept layout = requires(const geometry& g, key_hash hash, typename L::cells cells, std::uint64_t n, double p) {
  { L::name } -> std::convertible_to<std::string_view>;
  typename L::cells;
  requires std::constructible_from<typename L::cells, const geometry&, key_hash>;
  { cells.count() } -> std::convertible_to<std::uint32_t>;
  { cells.next() } -> std::same_as<std::uint64_t>;
  { L::geometry_for(n, p) } -> std::same_as<geometry>;
  L::check(g);
  { L::expected_fpr(g, n) } -> std::same_as<double>;
  { L::keys_from_zeros(g, n) } -> std::same_as<double>;
};

/// Bits of a cell of layout L: one, unless it says otherwise.
template <class L>
constexpr std::uint32_t cell_bits_in() noexcept {
  if constexpr (requires { L::cell_bits; })
    return L::cell_bits;
  else
    return 1;
}

/// The byte that has this cell of layout L, or begins with it.
template <class L>
constexpr std::uint64_t byte_of_cell(std::uint64_t cell) noexcept {
  return cell * cell_bits_in<L>() >> 3;
}

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

/// How a layout numbers the block of a key.
enum class block_rule {
  upper_half,     ///< ((hash64 >> 32) * blocks) >> 32, as Apache Parquet does
  multiply_high,  ///< hi64(hash64 * blocks)
};

/// A layout that says `static constexpr block_rule blocks_by`: it reads nothing but hash64, and a key's cells are all
/// in the block of block_bits, whole bytes, that the rule names. Keys can then be sorted by block before they are
/// inserted.
template <class L>
concept layout_by_halves = layout<L> && requires {
  { L::blocks_by } -> std::convertible_to<block_rule>;
  { L::block_bits } -> std::convertible_to<std::uint32_t>;
};

/// A layout with kernels of its own; the others are served by the loops below.
template <class L>
concept layout_with_kernels = layout<L> &&
    requires(std::uint8_t* bytes, const geometry& g, key_hash hash, const hash_span& keys, std::uint8_t* is_new,
             std::uint64_t* bitmap) {
  { L::insert_one(bytes, g, hash) } -> std::same_as<bool>;
  { L::has_one(bytes, g, hash) } -> std::same_as<bool>;
  { L::insert_batch(bytes, g, keys, is_new) } -> std::same_as<std::uint64_t>;
  L::has_batch(bytes, g, keys, bitmap);
};

/// What became of a key that was to be removed.
enum class removal : std::uint8_t {
  not_found,  ///< it was certainly not there; nothing is changed
  removed,    ///< one copy of it, or what looked like it
};

/// Counts one removal: a copy less, or a refusal. (More copies may be removed than were inserted: strangers, and keys
/// whose counters are full.)
inline void count_removal(key_counts& counts, removal result) noexcept {
  if (result == removal::not_found)
    ++counts.refused_removals;
  else if (counts.inserted > 0)
    --counts.inserted;
}

/// A layout that keys can be removed from: it counts their copies, so that every insertion changes bytes.
template <class L>
concept layout_with_removal = layout_with_kernels<L> &&
    requires(std::uint8_t* bytes, std::span<std::uint8_t> into, std::span<const std::uint8_t> from, const geometry& g,
             key_hash hash, const hash_span& keys, removal* results) {
  { L::remove_one(bytes, g, hash) } -> std::same_as<removal>;
  { L::remove_batch(bytes, g, keys, results) } -> std::same_as<std::uint64_t>;
  { L::cells_used(from) } -> std::same_as<std::uint64_t>;
  { L::copies_in(g, from) } -> std::same_as<double>;
  L::merge_bytes(into, from);
};

/// Inserts one key; true: certainly new.
template <layout L>
bool insert_one(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  if constexpr (layout_with_kernels<L>) return L::insert_one(bytes, g, hash);
  return insert_cells<L>(bytes, g, hash);
}

/// Looks one key up; false is certain absence.
template <layout L>
bool has_one(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept {
  if constexpr (layout_with_kernels<L>) return L::has_one(bytes, g, hash);
  return has_cells<L>(bytes, g, hash);
}

/// Keys whose cells the loops below have on their way from memory while as many others are worked on.
inline constexpr std::size_t fetched_together = 16;

/// Cells of a key that a lookup fetches ahead: at half fill an absent key is refused after two on average, so that
/// fetching all would be for nothing.
inline constexpr std::uint32_t cells_looked_ahead = 3;

/// Filters up to this size are in a core's own cache on all but the smallest processors: nothing is fetched ahead.
inline constexpr std::uint64_t near_bits = std::uint64_t{8} << 19;

/// Keys of a batch with their first cells asked for.
template <layout L>
class fetched_group {
 public:
  fetched_group() = default;

  /// Takes up to fetched_together keys from `first` on and asks for at most `most_cells` cells of each.
  fetched_group(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::size_t first,
                std::uint32_t most_cells) noexcept
      : size_(keys.size() - first < fetched_together ? keys.size() - first : fetched_together) {
    for (std::size_t i = 0; i < size_; ++i) {
      hashes_[i] = keys.hash(first + i);
      typename L::cells cells(g, hashes_[i]);
      const std::uint32_t ahead = cells.count() < most_cells ? cells.count() : most_cells;
      for (std::uint32_t c = 0; c < ahead; ++c) __builtin_prefetch(bytes + byte_of_cell<L>(cells.next()), 0, 2);
    }
  }

  /// Calls work(i, hash) for each key i, group by group, the next group's cells on their way.
  template <class Work>
  static void each(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint32_t most_cells,
                   Work work) noexcept {
    if (g.bits <= near_bits) {
      for (std::size_t i = 0; i < keys.size(); ++i) work(i, keys.hash(i));
      return;
    }
    if (keys.size() == 0) return;
    fetched_group here(bytes, g, keys, 0, most_cells);
    for (std::size_t first = 0; first < keys.size(); first += fetched_together) {
      fetched_group next;
      if (first + fetched_together < keys.size()) {
        next = fetched_group(bytes, g, keys, first + fetched_together, most_cells);
      }
      for (std::size_t i = 0; i < here.size_; ++i) work(first + i, here.hashes_[i]);
      here = next;
    }
  }

 private:
  std::array<key_hash, fetched_together> hashes_{};
  std::size_t size_ = 0;
};

/// Inserts keys one after another. is_new is null or takes a 1 (certainly new) or 0 for each. Returns how many are new.
template <layout L>
std::uint64_t insert_batch(std::uint8_t* bytes, const geometry& g, const hash_span& keys,
                           std::uint8_t* is_new) noexcept {
  if constexpr (layout_with_kernels<L>) {
    return L::insert_batch(bytes, g, keys, is_new);
  } else {
    std::uint64_t all_new = 0;
    fetched_group<L>::each(bytes, g, keys, max_probes, [&](std::size_t i, key_hash hash) {
      const bool fresh = insert_cells<L>(bytes, g, hash);
      if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
      all_new += fresh ? 1 : 0;
    });
    return all_new;
  }
}

/// Looks keys up; bit i%64 of bitmap[i/64] is the answer for key i, unused bits of the last word are 0.
template <layout L>
void has_batch(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  if constexpr (layout_with_kernels<L>) {
    L::has_batch(bytes, g, keys, bitmap);
  } else {
    fetched_group<L>::each(bytes, g, keys, cells_looked_ahead, [&](std::size_t i, key_hash hash) {
      if (i % 64 == 0) bitmap[i / 64] = 0;
      bitmap[i / 64] |= std::uint64_t{has_cells<L>(bytes, g, hash)} << (i % 64);
    });
  }
}

/// The part of bulk insertion that no layout changes.
struct bulk_target {
  std::uint8_t* bytes;
  bloomery::geometry geometry;
  std::uint32_t block_bits;
  block_rule blocks_by;
  std::uint64_t (*insert)(std::uint8_t* bytes, const bloomery::geometry& g, const hash_span& keys,
                          std::uint8_t* is_new);
};

/// The target of layout L.
template <layout_by_halves L>
bulk_target bulk_target_of(std::uint8_t* bytes, const geometry& g) {
  return {bytes, g, L::block_bits, L::blocks_by, insert_batch<L>};
}

}  // namespace bloomery
