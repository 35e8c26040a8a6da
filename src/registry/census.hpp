// Certified rates, layout by layout; include/bloomery/census.hpp says what they are.
#pragma once

#include <bloomery/census.hpp>
#include <bloomery/geometry.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <cstdint>
#include <span>

namespace bloomery {

/// Set bits among the `bits` that a filter uses of its bytes, without a stranger's in the last of them.
/// @param from_top  bits of a byte are used from its top downwards
std::uint64_t used_ones(std::uint64_t bits, std::span<const std::uint8_t> bytes, bool from_top);

/// Of a filter of layout L, for each layout of the table.
template <class L>
census census_of(const geometry& g, std::span<const std::uint8_t> bytes);

template <>
census census_of<split_block>(const geometry& g, std::span<const std::uint8_t> bytes);
template <>
census census_of<split_block512>(const geometry& g, std::span<const std::uint8_t> bytes);
template <>
census census_of<blocked>(const geometry& g, std::span<const std::uint8_t> bytes);
template <>
census census_of<blocked_page>(const geometry& g, std::span<const std::uint8_t> bytes);
template <>
census census_of<classic>(const geometry& g, std::span<const std::uint8_t> bytes);
template <>
census census_of<counting>(const geometry& g, std::span<const std::uint8_t> bytes);

/// That of split_block. 2^32 values of the upper half do not divide evenly among B blocks: 2^32 mod B of them are asked
/// for by one value more than the others. Beyond `even_blocks` each block has its own weight. (Without, at 2^25 blocks,
/// 3e-4 of the rate is missing at most.)
census census_of_split_block(const geometry& g, std::span<const std::uint8_t> bytes, std::uint64_t even_blocks);

}  // namespace bloomery
