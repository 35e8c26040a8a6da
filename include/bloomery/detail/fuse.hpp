// Binary fuse filters, 3-wise [Graf & Lemire 2022, "Binary Fuse Filters: Fast and Smaller Than Xor Filters"]: built
// once from all keys, then immutable. The fingerprint of a key is the exclusive or of three cells.
//
//   payload:  | header, 64 bytes | P partitions, 32 bytes each | zeros to a multiple of 64 | cells | zeros, likewise |
//
//   partition = hi64(hash64 * P)          about a million keys, built independently, within the caches of one thread
//   h         = mix64(hash64 ^ seed)      with the seed of the partition
//   first     = hi64(h * starts)                          L: cells of a segment, a power of two
//   second    = (first + L) ^ (h >> 18 & (L - 1))         in the next segment
//   third     = (first + 2 L) ^ (h & (L - 1))             in the one after
//   print     = upper bits of (h ^ h >> 29) * multiplier
//
// This file builds, checks and reads the payload; static_filter.hpp has the filter. Cells are numbered from the
// beginning of the payload: cell x is bits x * w to x * w + w - 1, where w is the width of a fingerprint, 1 to 32.
// Cells of 8, 16 and 32 bits are read as integers. All others are packed: a cell is read with the 8 bytes from that of
// its first bit on, so at least 7 bytes follow the last cell. The number of the first cell of a partition is a multiple
// of 8, so the partition begins with a byte, and threads can write partitions independently.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/detail/static_payload.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/hash.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

namespace fuse {

using sealed::header_bytes;
using sealed::most_width;
using sealed::multiplier;
using sealed::partitions_in;
using sealed::width_in;

}  // namespace fuse

/// The descriptor of a partition in the payload.
struct fuse_partition {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;    ///< its first cell, counted from the beginning of the payload
  std::uint64_t keys = 0;     ///< 0: it has no cells, and every lookup returns false
  std::uint32_t starts = 0;   ///< cells that can be the first cell of a key: all but those of the last two segments
  std::uint32_t segment = 0;  ///< L, cells of a segment: a power of two, or 0 without keys

  std::uint64_t cells() const noexcept { return keys == 0 ? 0 : starts + 2 * std::uint64_t{segment}; }
  friend bool operator==(const fuse_partition&, const fuse_partition&) = default;
};

/// The cells of a key and its fingerprint.
struct fuse_place {
  std::array<std::uint64_t, 3> cells{};  ///< 0, 0, 0 in a partition without keys
  std::uint32_t fingerprint = 0;         ///< in the lower `width` bits
  bool somewhere = false;                ///< false: the partition has no keys
};

namespace fuse {

inline constexpr std::uint32_t probes = 3;
inline constexpr std::uint64_t partition_bytes = 32;

/// Whether cells of this width are read as integers.
constexpr bool is_whole(unsigned width) noexcept { return width == 8 || width == 16 || width == 32; }

/// The smallest such width that is at least `width`, which is at most 32.
constexpr unsigned whole_width(unsigned width) noexcept { return width <= 8 ? 8 : width <= 16 ? 16 : 32; }

/// Byte offset of the first cell, for packed cells at least.
constexpr std::uint64_t cells_at(std::uint64_t partitions) noexcept {
  return (header_bytes + partitions * partition_bytes + 63) / 64 * 64;
}

/// The first cell of a partition whose cells may begin with `cell`.
constexpr std::uint64_t aligned_cell(std::uint64_t cell, unsigned width) noexcept {
  return is_whole(width) ? cell : (cell + 7) / 8 * 8;
}

/// The first cell of the first partition.
constexpr std::uint64_t first_cell(std::uint64_t partitions, unsigned width) noexcept {
  return aligned_cell((8 * cells_at(partitions) + width - 1) / width, width);
}

/// The size of a payload with `cells` cells, including the numbers before the first one.
constexpr std::uint64_t payload_bytes(std::uint64_t cells, unsigned width) noexcept {
  const std::uint64_t end = (cells * width + 7) / 8;
  return (end + (is_whole(width) ? 0 : 7) + 63) / 64 * 64;
}

/// In templates: the width in the payload, not 8, 16 or 32.
inline constexpr unsigned packed = 0;

/// Cell `i` of those that begin at `cells`. The width is W, or if W is `packed`, `width`.
template <unsigned W>
std::uint32_t cell(const std::uint8_t* cells, std::uint64_t i, [[maybe_unused]] unsigned width) noexcept {
  const auto read = [cells](auto value, std::uint64_t byte) {
    std::memcpy(&value, cells + byte, sizeof value);
    return value;
  };
  if constexpr (W == 8) {
    return cells[i];
  } else if constexpr (W == 16) {
    return read(std::uint16_t{}, 2 * i);
  } else if constexpr (W == 32) {
    return read(std::uint32_t{}, 4 * i);
  } else {
    const unsigned bits = W == packed ? width : W;
    const std::uint64_t bit = i * bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    return static_cast<std::uint32_t>(read(std::uint64_t{}, bit / 8) >> bit % 8 & mask);
  }
}

// Field by field: copied as a whole, the descriptor of each key would pass through the stack.
inline fuse_partition partition_in(const std::uint8_t* payload, std::uint64_t number) noexcept {
  const std::uint8_t* const at = payload + header_bytes + number * partition_bytes;
  fuse_partition p;
  static_assert(sizeof p == partition_bytes);
  std::memcpy(&p.seed, at + offsetof(fuse_partition, seed), sizeof p.seed);
  std::memcpy(&p.first, at + offsetof(fuse_partition, first), sizeof p.first);
  std::memcpy(&p.keys, at + offsetof(fuse_partition, keys), sizeof p.keys);
  std::memcpy(&p.starts, at + offsetof(fuse_partition, starts), sizeof p.starts);
  std::memcpy(&p.segment, at + offsetof(fuse_partition, segment), sizeof p.segment);
  return p;
}

/// The same for packed cells, but reads no byte that contains only bits of other cells.
inline std::uint32_t only_cell(const std::uint8_t* cells, std::uint64_t i, unsigned width) noexcept {
  const std::uint64_t bit = i * width;
  std::uint64_t word = 0;
  std::memcpy(&word, cells + bit / 8, (bit % 8 + width + 7) / 8);
  return static_cast<std::uint32_t>(word >> bit % 8 & ((std::uint64_t{1} << width) - 1));
}

/// The three cells of a key, counted from the first cell of the partition, and its fingerprint.
struct offsets {
  std::uint32_t first, second, third;
  std::uint32_t fingerprint;

  offsets(std::uint64_t h, std::uint32_t starts, std::uint32_t segment, unsigned width) noexcept
      : first(static_cast<std::uint32_t>(multiply_high(h, starts))),
        second((first + segment) ^ (static_cast<std::uint32_t>(h >> 18) & (segment - 1))),
        third((first + 2 * segment) ^ (static_cast<std::uint32_t>(h) & (segment - 1))),
        // Given its cells, a key has every fingerprint with equal probability: no bit of the product is a sum of bits
        // of h that select the cells.
        fingerprint(static_cast<std::uint32_t>(((h ^ h >> 29) * multiplier) >> (64 - width))) {}
};

/// Whether the key with this hash may be present, given its partition. W as for cell().
template <unsigned W>
bool has_in(const fuse_partition& p, const std::uint8_t* payload, std::uint64_t hash64) noexcept {
  if (p.starts == 0) [[unlikely]]
    return false;
  const unsigned width = W == packed ? width_in(payload) : W;
  const offsets at(mix64(hash64 ^ p.seed), p.starts, p.segment, width);
  const std::uint8_t* const cells = payload + p.first * width / 8;  // whole bytes
  return (cell<W>(cells, at.first, width) ^ cell<W>(cells, at.second, width) ^ cell<W>(cells, at.third, width)) ==
         at.fingerprint;
}

/// The partition directory of a checked payload. It copies the descriptor of the first partition, so that a lookup in a
/// filter with a single partition reads cells only. The payload may move, but not change.
class directory {
 public:
  explicit directory(const std::uint8_t* payload) noexcept
      : partitions_(partitions_in(payload)), first_(partition_in(payload, 0)) {}

  /// Whether the key with this hash may be present.
  template <unsigned W>
  bool has(const std::uint8_t* payload, std::uint64_t hash64) const noexcept {
    if (partitions_ == 1) return has_in<W>(first_, payload, hash64);
    return has_in<W>(partition_in(payload, multiply_high(hash64, partitions_)), payload, hash64);
  }

 private:
  std::uint64_t partitions_;
  fuse_partition first_;
};

/// The same for one lookup, without a directory. The payload must have been checked.
template <unsigned W>
bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept {
  return has_in<W>(partition_in(payload, multiply_high(hash64, partitions_in(payload))), payload, hash64);
}

/// Looks up many keys: bit i%64 of bitmap[i/64] is the answer for key i. `bits` is the size of the payload.
void has_batch(const std::uint8_t* payload, std::uint64_t bits, const hash_span& keys, std::uint64_t* bitmap) noexcept;

}  // namespace fuse

/// "fuse1" to "fuse32". @throws error invalid_argument: another width
///
/// Example:
///     assert(fuse_layout_name(11) == "fuse11");
std::string_view fuse_layout_name(std::uint64_t width);

/// The size of a fuse filter of `keys` keys, assuming that keys are spread evenly over the partitions and no partition
/// has to be enlarged. The real size of a filter with several partitions differs by a few thousandths.
///
/// @param width  1 to 32, bits
///
/// Example:
///     assert(fuse_geometry(8, 1'000'000).bits < 9'100'000);   // 9.04 bits per key
///     assert(fuse_geometry(10, 1'000'000).bits < 11'400'000);  // 11.3
///     std::vector<std::uint64_t> hash64s(1000);
///     for (std::uint64_t i = 0; i < hash64s.size(); ++i) hash64s[i] = mix{}(i).hash64;
///     assert(fuse_geometry(8, 1000).bits == 8 * fuse_build(hash64s, 8).payload.size());
geometry fuse_geometry(unsigned width, std::uint64_t keys);

/// Checks the sizes, positions and sums in an untrusted payload, without accessing anything not checked before. After
/// this, lookups stay within the payload, whatever its cells contain.
/// @throws error  damaged: names the field
void check_fuse(unsigned width, std::span<const std::uint8_t> payload, const std::string& where);

template <>
struct sealed::lookups<static_structure::fuse> : fuse::directory {
  static constexpr auto check = check_fuse;
  static constexpr auto has_batch = fuse::has_batch;

  using fuse::directory::directory;
};

/// The cells and the fingerprint of the key with this hash, in a checked payload.
fuse_place fuse_place_of(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t hash64) noexcept;

/// The value of a cell of a checked payload.
std::uint32_t fuse_cell(unsigned width, std::span<const std::uint8_t> payload, std::uint64_t cell) noexcept;

/// Builds a filter of the keys with these hashes and verifies each key with a lookup. Equal sets give equal bytes,
/// independent of order, repetitions and number of threads.
///
/// Building takes the memory of the filter and about 40 MiB per thread. `hash64s` is reordered; its contents are
/// unspecified afterwards.
///
/// @param hash64s  the hash64 of each key; may be empty
/// @param width    1 to 32
/// @param threads  0: one per processor
/// @throws error   invalid_argument: another width; too_large: more than this machine's memory; what `watch` throws
///
/// Example:
///     std::vector<std::uint64_t> hash64s{mix{}(1).hash64, mix{}(2).hash64, mix{}(1).hash64};
///     const static_bytes built = fuse_build(hash64s, 8);
///     assert(built.keys == 2 && fuse::has<8>(built.payload.data(), mix{}(2).hash64));
static_bytes fuse_build(std::span<std::uint64_t> hash64s, unsigned width, unsigned threads = 0,
                        const build_watch& watch = {});

}  // namespace bloomery
