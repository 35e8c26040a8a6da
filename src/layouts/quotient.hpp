// quotient4 to quotient24: vector quotient filters with slots of w bits, so that keys can be removed.
//
// A filter of B blocks of 64 bytes has a fingerprint per copy of a key: a number below M = B 80 2^(w-1). It consists of
// the key's first block and a tag, and the tag of one of 80 buckets and a remainder of w - 1 bits:
//
//   fingerprint  = hi64(hash64 * M)
//   first block  = fingerprint div 80 2^(w-1);  tag = fingerprint mod 80 2^(w-1)
//   bucket       = tag >> (w - 1);  remainder = the lower w - 1 bits of tag
//   second block = hi64(mix64(tag + 1) * B) - first block  (mod B)
//
// Each fingerprint is stored in the one of its two blocks that has more free slots. The slot has the remainder, and
// above it a bit that is one in the second block.
//
//   bits of a block   | marks: s + 80 bits, from the lowest | slot 0 | slot 1 | ... | slot s - 1 | zeros |
//
// The slots have the values of bucket 0, then those of bucket 1, and so on. The marks have a zero for each used slot
// and a one after the slots of each bucket; zeros follow. They are stored with the lowest 80 bits inverted, so an empty
// block is all zeros. Values of a bucket are in the order of insertion; unused slots are zeros.
//
//   s = floor((512 - 80) / (w + 1))
//
// The second block of the second block is the first one, so a block, a bucket and a slot determine the fingerprint.
// Hence a filter can be doubled without its keys: with 2 B blocks and slots of w - 1 bits, M is the same, and so are
// the fingerprints, at other places.
//
// A key has at most 15 copies: from then on, insertions and removals of this key change nothing, as for a saturated
// counter of `counting`.
//
// Prashant Pandey, Alex Conway, Joe Durie, Michael A. Bender, Martin Farach-Colton, Rob Johnson: Vector Quotient
// Filters: Overcoming the Time/Space Trade-Off in Filter Design, SIGMOD 2021. There, the number of blocks is a power of
// two, the second block is an exclusive or, and slots do not tell which block they are in.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include "layouts/quotient_operations.hpp"
#include "layouts/row.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery::quotient {

inline constexpr unsigned least_width = 4;
inline constexpr unsigned most_width = 24;

/// Free slots per block, on average, that remain when a filter has as many keys as it is made for, and further ones per
/// filter. With these, fewer than one in 10^7 insertions had no room while keys were removed and inserted in turn
/// (docs/decisions.md): only few blocks have many more keys than the average.
inline constexpr unsigned spare_slots = 5;
inline constexpr unsigned spare_slots_of_filter = 48;

/// At 1%, this number of buckets leads to the fewest bits per key (docs/decisions.md). It is the same for all widths,
/// so that doubling a filter leaves M as it is.
inline constexpr unsigned buckets = 80;

/// Requires least_width <= width <= most_width.
///
/// Example:
///     constexpr kernels::quotient_shape shape = quotient::shape_of(7);
///     static_assert(shape.slots == 54 && shape.buckets == 80);
constexpr kernels::quotient_shape shape_of(unsigned width) noexcept {
  return {width, (512 - buckets) / (width + 1), buckets};
}

/// The constants of a width, in static storage. Requires least_width <= width <= most_width.
const kernels::quotient_masks& masks_of(unsigned width) noexcept;

/// The capacity of a filter with b blocks, in keys with at most two copies each. All copies of a key are in the same
/// two blocks, so keys with more copies fill the blocks unevenly. With one block, both blocks of a key are the same,
/// and all slots can be used.
///
///   b (s - 5) - 48;  s for b = 1
std::uint64_t keys_for(unsigned width, std::uint64_t blocks) noexcept;

/// The exact FPR with n keys in b blocks: an absent key has each of the M = b 80 2^(w-1) fingerprints with the same
/// probability.
///
///   1 - (1 - 1 / M)^n
double rate(unsigned width, std::uint64_t blocks, std::uint64_t keys) noexcept;

/// The lowest hash64 with a fingerprint f, of M. Requires f < M <= 2^60.
///
///   f 2^64 / M, rounded up
std::uint64_t hash_of(std::uint64_t fingerprint, std::uint64_t all_fingerprints) noexcept;

/// Adds the fingerprints of another filter, which has 2^-doublings times as many blocks and slots that are longer by
/// `doublings` bits. False: both blocks of a fingerprint are full; `into` has some of the fingerprints.
bool add(unsigned width, const geometry& g, std::span<std::uint8_t> into, unsigned doublings,
         std::span<const std::uint8_t> from);

/// The rows of the layouts quotient4 to quotient24.
std::vector<layout_row> rows();

}  // namespace bloomery::quotient
