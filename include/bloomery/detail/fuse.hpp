// Binary fuse filters, 3-wise [Graf & Lemire 2022, "Binary Fuse Filters: Fast and Smaller Than Xor Filters"]: made at
// once of all their keys, and then fixed. A key's fingerprint is the exclusive or of three cells.
//
//   payload:  | header, 64 bytes | P partitions, 32 bytes each | zeros to a multiple of 64 | cells | zeros, likewise |
//
//   partition = hi64(hash64 * P)          a million keys or so, built by itself: in the caches, and by any thread
//   h         = mix64(hash64 ^ seed)      of the partition
//   first     = hi64(h * starts)                          L: cells of a segment, a power of two
//   second    = (first + L) ^ (h >> 18 & (L - 1))         in the next segment
//   third     = (first + 2 L) ^ (h & (L - 1))             in the one after
//   print     = upper bits of (h ^ h >> 29) * multiplier
//
// static_filter.hpp has the filter; here are its bytes: how they are made, checked and read. Cells are numbered from
// the beginning of the payload: cell x is bits x * w to x * w + w - 1 of the filter, w the width.
#pragma once

#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/export.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/key_hash.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// What a cell of a fuse filter may be: its width is that of a fingerprint.
template <class F>
concept fuse_fingerprint =
    std::same_as<F, std::uint8_t> || std::same_as<F, std::uint16_t> || std::same_as<F, std::uint32_t>;

/// A partition, as the payload has it.
struct fuse_partition {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;    ///< its first cell, counted from the beginning of the payload
  std::uint64_t keys = 0;     ///< 0: it has no cells, and says no to everything
  std::uint32_t starts = 0;   ///< cells at which a key's first one may be: all but those of the last two segments
  std::uint32_t segment = 0;  ///< L, cells of a segment: a power of two, or 0 without keys

  std::uint64_t cells() const noexcept { return keys == 0 ? 0 : starts + 2 * std::uint64_t{segment}; }
  friend bool operator==(const fuse_partition&, const fuse_partition&) = default;
};

/// Where a key's fingerprint is, and what it must be.
struct fuse_place {
  std::array<std::uint64_t, 3> cells{};  ///< 0, 0, 0 in a partition without keys
  std::uint32_t fingerprint = 0;         ///< as many lower bits of it as a cell has
  bool somewhere = false;                ///< false: the partition has no keys
};

namespace fuse {

inline constexpr std::uint32_t probes = 3;
inline constexpr std::uint64_t header_bytes = 64;
inline constexpr std::uint64_t partition_bytes = 32;
inline constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd

/// The first cell's byte.
constexpr std::uint64_t cells_at(std::uint64_t partitions) noexcept {
  return (header_bytes + partitions * partition_bytes + 63) / 64 * 64;
}

inline std::uint64_t partitions_in(const std::uint8_t* payload) noexcept {
  std::uint32_t partitions;
  std::memcpy(&partitions, payload + 8, sizeof partitions);
  return partitions;
}

inline fuse_partition partition_in(const std::uint8_t* payload, std::uint64_t number) noexcept {
  fuse_partition p;
  static_assert(sizeof p == partition_bytes);
  std::memcpy(&p, payload + header_bytes + number * partition_bytes, sizeof p);
  return p;
}

/// The three cells, counted from the partition's first one, and the fingerprint.
struct offsets {
  std::uint32_t first, second, third;
  std::uint32_t fingerprint;

  offsets(std::uint64_t h, std::uint32_t starts, std::uint32_t segment, unsigned width) noexcept
      : first(static_cast<std::uint32_t>(multiply_high(h, starts))),
        second((first + segment) ^ (static_cast<std::uint32_t>(h >> 18) & (segment - 1))),
        third((first + 2 * segment) ^ (static_cast<std::uint32_t>(h) & (segment - 1))),
        // A key whose cells are given has any fingerprint with equal probability: no sum of bits of h that chose the
        // cells makes a bit of the product.
        fingerprint(static_cast<std::uint32_t>(((h ^ h >> 29) * multiplier) >> (64 - width))) {}
};

/// Whether the key of this hash may be there. The payload has been checked.
template <fuse_fingerprint F>
bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept {
  const fuse_partition p = partition_in(payload, multiply_high(hash64, partitions_in(payload)));
  if (p.starts == 0) [[unlikely]]
    return false;
  const offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, 8 * sizeof(F));
  const std::uint8_t* const cells = payload + p.first * sizeof(F);
  const auto cell = [&](std::uint32_t i) {
    F value;
    std::memcpy(&value, cells + i * sizeof(F), sizeof value);
    return value;
  };
  return (cell(at.first) ^ cell(at.second) ^ cell(at.third)) == static_cast<F>(at.fingerprint);
}

/// The same for many keys: bit i%64 of bitmap[i/64] is the answer for key i.
template <fuse_fingerprint F>
void has_batch(const std::uint8_t* payload, std::uint64_t bits, const hash_span& keys, std::uint64_t* bitmap) noexcept;

extern template void has_batch<std::uint8_t>(const std::uint8_t*, std::uint64_t, const hash_span&,
                                             std::uint64_t*) noexcept;
extern template void has_batch<std::uint16_t>(const std::uint8_t*, std::uint64_t, const hash_span&,
                                              std::uint64_t*) noexcept;
extern template void has_batch<std::uint32_t>(const std::uint8_t*, std::uint64_t, const hash_span&,
                                              std::uint64_t*) noexcept;

}  // namespace fuse

/// "fuse8", "fuse16" or "fuse32". @throws error invalid_argument: another width
///
/// Example:
///     assert(fuse_layout_name(16) == "fuse16");
std::string_view fuse_layout_name(std::uint64_t width);

/// The exact probability that an absent key is reported by a fuse filter of `keys` keys: 2^-w, and the collisions of
/// 64-bit hashes; 0 without keys.
///
/// Whatever the cells hold, the three that a random key reads give some value, and its fingerprint, which the choice of
/// the cells says nothing of, is that value with probability 2^-w.
///
/// Example:
///     assert(fuse_rate(8, 1'000'000) > 1 / 256.0 && fuse_rate(8, 1'000'000) < 1.0001 / 256);
///     assert(fuse_rate(8, 0) == 0);
double fuse_rate(unsigned width, std::uint64_t keys);

/// The size of a fuse filter of so many keys, for who plans: as if they were spread evenly over the partitions, and no
/// partition had to be made larger. One that is built of several partitions takes as much but for some thousandths.
///
/// @param width  8, 16 or 32, bits
///
/// Example:
///     assert(fuse_geometry(8, 1'000'000).bits < 9'100'000);  // 9.04 bits a key
///     std::vector<std::uint64_t> hash64s(1000);
///     for (std::uint64_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix{}(i).hash64;
///     assert(fuse_geometry(8, 1000).bits == 8 * fuse_build(hash64s, 8).payload.size());
geometry fuse_geometry(unsigned width, std::uint64_t keys);

/// Looks through a payload, and through nothing that it has not found to be right before: sizes, positions, sums. After
/// that lookups stay within the payload, whatever its cells hold.
/// @throws error  damaged: names the field
void check_fuse(unsigned width, std::span<const std::uint8_t> payload, const std::string& where);

/// Keys of a payload that was checked.
std::uint64_t fuse_keys(std::span<const std::uint8_t> payload) noexcept;

/// Where a payload that was checked has the key of this hash.
fuse_place fuse_place_of(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64) noexcept;

/// What a cell of a payload that was checked holds.
std::uint32_t fuse_cell(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t cell) noexcept;

/// A sealed set.
struct fuse_bytes {
  heap_storage payload;
  std::uint64_t keys;  ///< distinct hashes
};

/// Called now and then while a filter is built, by one thread at a time, with the number of keys that are done; may
/// throw, which ends the building.
using fuse_watch = std::function<void(std::uint64_t keys)>;

/// Builds a filter of the keys with these hashes, and looks each of them up in it. Equal sets give equal bytes, in
/// whatever order they come, however often each, with any number of threads.
///
/// Takes a little more memory than the filter itself and some 40 MiB a thread; `hash64s` are moved about, and have no
/// meaning afterwards.
///
/// @param hash64s      hash64 of each key's hash; none is allowed
/// @param width    8, 16 or 32
/// @param threads  0: one a processor
/// @throws error   invalid_argument: another width; too_large: more than this machine's memory; what `watch` throws
///
/// Example:
///     std::vector<std::uint64_t> hash64s{mix{}(1).hash64, mix{}(2).hash64, mix{}(1).hash64};
///     const fuse_bytes sealed = fuse_build(hash64s, 8);
///     assert(sealed.keys == 2 && fuse::has<std::uint8_t>(sealed.payload.data(), mix{}(2).hash64));
fuse_bytes fuse_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads = 0,
                      const fuse_watch& watch = {});

}  // namespace bloomery
