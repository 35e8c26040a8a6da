// quotient4 to quotient24: vector quotient filters with slots of w bits, so that keys can be removed.
//
// A key has a fingerprint, which consists of one of q buckets and a remainder of w bits, and two blocks of 64 bytes.
// The filter stores one fingerprint per copy of a key, in the block with more free slots:
//
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64): see probe_sequence.hpp
//   fingerprint = hi64(x * q 2^w);  bucket = fingerprint >> w;  remainder = the lower w bits
//   first block  = hi64(hash64 * blocks)
//   second block = hi64(mix64(fingerprint + 1) * blocks) - first block  (mod blocks)
//
// The number of blocks is odd, so exactly one block of each fingerprint is its own second block. The second block of
// the second block is the first one, so a filter does not store which of the two was the first.
//
//   bits of a block   | marks: s + q bits, from the lowest | slot 0 | slot 1 | ... | slot s - 1 |
//
// The slots have the remainders of bucket 0, then those of bucket 1, and so on. The marks have a zero for each used
// slot and a one after the slots of each bucket; zeros follow. They are stored with the lowest q bits inverted, so an
// empty block is all zeros. Remainders of a bucket are in the order of insertion; unused slots are zeros.
//
//   s = floor(512 / (w + 2.44)),  q = 512 - s (w + 1)
//
// q / s is about 1.44 = 1 / ln 2, which minimizes the FPR for a given memory.
//
// A key has at most 15 copies: from then on, insertions and removals of this key change nothing, as for a saturated
// counter of `counting`.
//
// Prashant Pandey, Alex Conway, Joe Durie, Michael A. Bender, Martin Farach-Colton, Rob Johnson: Vector Quotient
// Filters: Overcoming the Time/Space Trade-Off in Filter Design, SIGMOD 2021. There, the number of blocks is a power of
// two and the second block is an exclusive or.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include "layouts/quotient_operations.hpp"
#include "layouts/row.hpp"

#include <cstdint>
#include <vector>

namespace bloomery::quotient {

inline constexpr unsigned least_width = 4;
inline constexpr unsigned most_width = 24;

/// Free slots per block, on average, that remain when a filter has as many keys as it is made for, and further ones per
/// filter. With these, fewer than one in 10^7 insertions had no room while keys were removed and inserted in turn
/// (docs/decisions.md): only few blocks have many more keys than the average.
inline constexpr unsigned spare_slots = 5;
inline constexpr unsigned spare_slots_of_filter = 48;

/// Requires least_width <= width <= most_width.
///
/// Example:
///     constexpr kernels::quotient_shape shape = quotient::shape_of(7);
///     static_assert(shape.slots == 54 && shape.buckets == 80);
constexpr kernels::quotient_shape shape_of(unsigned width) noexcept {
  const unsigned slots = 51200 / (100 * width + 244);
  return {width, slots, 512 - slots * (width + 1)};
}

/// The capacity of a filter with an odd number of blocks b, in keys with at most two copies each. All copies of a key
/// are in the same two blocks, so keys with more copies fill the blocks unevenly. With one block, both blocks of a key
/// are the same, and all slots can be used.
///
///   b (s - 5) - 48;  s for b = 1
std::uint64_t keys_for(unsigned width, std::uint64_t blocks) noexcept;

/// The exact FPR with n keys in b blocks, b odd, and f = q 2^w fingerprints. A stored key matches an absent key with
/// probability 2 / (b f), or with 1 / (b f) if both blocks of the absent key are the same:
///
///   (b - 1) / b (1 - (1 - 2 / (b f))^n) + 1 / b (1 - (1 - 1 / (b f))^n)
double rate(unsigned width, std::uint64_t blocks, std::uint64_t keys) noexcept;

/// The rows of the layouts quotient4 to quotient24.
std::vector<layout_row> rows();

}  // namespace bloomery::quotient
