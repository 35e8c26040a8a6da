// The probe sequence of a key within its block, used by blocked, blocked_page, counting, sliding and sliding64.
//
//   x = (2 * hash64 + 1) * multiplier  (mod 2^64)
//   per probe:  the upper bits of x choose the cell;  x = x * step  (mod 2^64)
//
// This is a multiplicative congruential generator modulo 2^64. A factor 2^t of its state persists and leaves only
// 64 - t varying bits: from state 0 all probes select cell 0, from odd * 2^60 there are at most 4 cells. Here the first
// state is odd and odd factors keep it odd, so every hash, including 0, starts a sequence of the full period 2^62.
//
// The state is a bijection of the lower 63 bits of hash64 and ignores the top bit. Two hashes that differ only in the
// top bit select blocks that are B / 2 apart, where B is the number of blocks: different blocks for B >= 2. So two
// random hashes share block and state with probability 2^-64, as assumed by expected_fpr(). For B = 1 it is 2^-63.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {
namespace probe_sequence {

/// 2^64 / golden ratio, odd. As in split_block512: makes x independent of the bits of hash64 that select the block.
inline constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15;

/// [Steele & Vigna 2021], as in classic. It is 5 modulo 8, so odd states have the period 2^62.
inline constexpr std::uint64_t step = 0xD1342543DE82EF95;

/// The odd factor of the first state; the state of probe i is odd_of(hash64) * multiplier * step^i.
constexpr std::uint64_t odd_of(std::uint64_t hash64) noexcept { return 2 * hash64 + 1; }

/// The state of the first probe.
///
/// Example:
///     assert(probe_sequence::first(0) == probe_sequence::multiplier);
///     assert(probe_sequence::first(1) == 3 * probe_sequence::multiplier);
constexpr std::uint64_t first(std::uint64_t hash64) noexcept { return odd_of(hash64) * multiplier; }

}  // namespace probe_sequence
}  // namespace bloomery
