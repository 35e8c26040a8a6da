// Folding: halving the size of a filter that was made too large, without its keys.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// How many times a filter with these params can be halved: the number of factors 2 in its number of blocks (classic:
/// bits). 0 for schemes, whose sizes follow the rules of other systems.
///
/// Example:
///     assert(times_foldable({.layout = "split_block512", .hash = "xxh3", .geometry = {64 * 512, 8}}) == 6);
unsigned times_foldable(const params& p);

/// The geometry of these params, rounded up to a multiple of `multiple` blocks, so that the filter can be halved at
/// least log2(multiple) times.
/// @param multiple  a power of 2
/// @throws error  invalid_argument: a scheme, an unknown layout, or not a power of 2; too_large: more than 2^64 bits
///
/// Example:
///     const params p = {.layout = "split_block512", .geometry = {65 * 512, 8}};
///     assert((foldable_geometry(p, 64) == geometry{128 * 512, 8}));
geometry foldable_geometry(const params& p, std::uint64_t multiple);

/// The params after halving `times` times. Only the number of bits changes; capacity and target FPR stay.
/// @throws error invalid_argument: `times` is more than times_foldable(p)
///
/// Example:
///     assert(folded({.layout = "classic", .geometry = {1000, 7}}, 3).geometry.bits == 125);
params folded(const params& p, unsigned times);

/// Halves the filter `times` times: each pair of adjacent blocks (classic: bits) becomes the bitwise or of the two.
/// Layouts scale a hash to the number of blocks, so block i of the smaller filter takes the keys of blocks 2i and
/// 2i + 1. The result equals, bit for bit, a filter of that size with the same keys.
///
/// @param bytes  the filter's bytes
/// @throws error  invalid_argument: `times` is more than times_foldable(p), or another number of bytes
///
/// Example:
///     any_filter large(complete({.layout = "split_block512", .geometry = {64 * 512, 8}, .capacity = 1000}));
///     any_filter small(complete({.layout = "split_block512", .geometry = {32 * 512, 8}, .capacity = 1000}));
///     for (int i = 0; i < 1000; ++i) large.insert(std::to_string(i)), small.insert(std::to_string(i));
///     const heap_storage half = fold(large.parameters(), large.bytes(), 1);
///     assert(std::equal(half.data(), half.data() + half.size(), small.bytes().begin()));
heap_storage fold(const params& p, std::span<const std::uint8_t> bytes, unsigned times);

}  // namespace bloomery
