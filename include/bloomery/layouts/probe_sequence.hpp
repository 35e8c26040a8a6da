// The probe sequence of a key within its block, used by blocked, blocked_page, counting, sliding and sliding64, and the
// base of the first three.
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
#include <bloomery/layout.hpp>

#include <bit>
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

/// The cells of a key: `base` plus CellOf(x) for the state x of each probe.
template <std::uint64_t (*CellOf)(std::uint64_t x) noexcept>
class cells_from {
 public:
  constexpr cells_from(std::uint64_t base, std::uint64_t hash64, std::uint32_t probes) noexcept
      : base_(base), x_(first(hash64)), count_(probes) {}
  constexpr std::uint32_t count() const noexcept { return count_; }
  constexpr std::uint64_t next() noexcept {
    const std::uint64_t cell = base_ + CellOf(x_);
    x_ *= step;
    return cell;
  }

 private:
  std::uint64_t base_;
  std::uint64_t x_;
  std::uint32_t count_;
};

}  // namespace probe_sequence

namespace layouts {

/// Base of a layout L with k probes anywhere in a block of b cells: blocked, blocked_page, counting.
///
///   block = hi64(hash64 * blocks)
///   k times:  cell = b * block + (x >> (64 - log2 b))     x: the state of the probe
///
/// L defines name, most_chosen_probes, and the cell_bits that it passes here. Its .cpp file instantiates this class
/// with src/layouts/blocked_layout.hpp.
///
/// @tparam BlockBits  memory bits per block; b = BlockBits / CellBits is a power of two
template <class L, std::uint32_t BlockBits, std::uint32_t CellBits = 1>
class blocked_layout : public multiply_high_blocks<BlockBits> {
 public:
  static constexpr std::uint32_t hash_bits = 64;
  static constexpr std::uint32_t cells_of_block = BlockBits / CellBits;
  static_assert(std::has_single_bit(cells_of_block));

  /// The k cells of a key.
  class cells;

  static geometry geometry_for(std::uint64_t capacity, double target_fpr);
  static void check(const geometry& g);

  /// r(i) = classic(b, k, i), the exact FPR of i keys with k independent probes each in b cells.
  static double expected_fpr(const geometry& g, std::uint64_t keys);

  /// q = 1 - (1 - 1/b)^k
  static double keys_from_zeros(const geometry& g, std::uint64_t zeros);

  /// The cell of a probe within its block, for the state x of the probe.
  static constexpr std::uint64_t cell_in_block(std::uint64_t x) noexcept {
    return x >> (64 - std::countr_zero(cells_of_block));
  }
};

template <class L, std::uint32_t BlockBits, std::uint32_t CellBits>
class blocked_layout<L, BlockBits, CellBits>::cells
    : public probe_sequence::cells_from<blocked_layout<L, BlockBits, CellBits>::cell_in_block> {
 public:
  constexpr cells(const geometry& g, key_hash hash) noexcept
      : cells::cells_from(blocked_layout::block_of(hash.hash64, g.bits / BlockBits) * cells_of_block, hash.hash64,
                          g.probes) {}
};

}  // namespace layouts
}  // namespace bloomery
