// A filter made too large, made smaller after the fact: halved as often as its size allows, without its keys.
#pragma once

#include <bloomery/detail/storage.hpp>
#include <bloomery/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// How often a filter of these params can be halved: as often as 2 divides its number of blocks, or for classic its
/// bits, so that at least one is left. Schemes: never, their sizes are their systems' own.
///
/// Example:
///     assert(times_foldable({.layout = "split_block512", .hash = "xxh3", .geometry = {64 * 512, 8}}) == 6);
unsigned times_foldable(const params& p);

/// The geometry of a filter of these params rounded up, by fewer than `multiple` blocks, so that it can be halved at
/// least log2(multiple) times.
/// @param multiple  a power of 2
/// @throws error  invalid_argument: a scheme, an unknown layout, no power of 2; too_large: more than 2^64 bits
///
/// Example:
///     assert((foldable_geometry({.layout = "split_block512", .geometry = {65 * 512, 8}}, 64) == geometry{128 * 512, 8}));
geometry foldable_geometry(const params& p, std::uint64_t multiple);

/// The params after halving `times` times: the same but for the bits. Capacity and target rate are left as they are.
/// @throws error invalid_argument: not so often
///
/// Example:
///     assert(folded({.layout = "classic", .geometry = {1000, 7}}, 3).geometry.bits == 125);
params folded(const params& p, unsigned times);

/// Halves the filter: each pair of neighbouring blocks (of bits, for classic) becomes one, their bits joined by or.
/// Because a layout scales a hash to the number of blocks, block i of half as many takes the keys of blocks 2i and 2i +
/// 1: the result is bit for bit the filter that its keys would have made at that size.
///
/// @param bytes  of the filter
/// @throws error invalid_argument: not so often, or another number of bytes
///
/// Example:
///     any_filter large(complete({.layout = "split_block512", .geometry = {64 * 512, 8}, .capacity = 1000}));
///     any_filter small(complete({.layout = "split_block512", .geometry = {32 * 512, 8}, .capacity = 1000}));
///     for (int i = 0; i < 1000; ++i) large.insert(std::to_string(i)), small.insert(std::to_string(i));
///     const heap_storage half = fold(large.parameters(), large.bytes(), 1);
///     assert(std::equal(half.data(), half.data() + half.size(), small.bytes().begin()));
heap_storage fold(const params& p, std::span<const std::uint8_t> bytes, unsigned times);

}  // namespace bloomery
