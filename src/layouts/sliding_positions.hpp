// Where the cells of many keys lie in blocks of sliding and sliding64, sixteen probes at a time; the layouts
// (include/bloomery/layouts/sliding.hpp) define it. As kernels.hpp it includes nothing of ours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::uint32_t window_probes = 16;

/// multiplier * step^i, as the layouts have them; src/layouts/sliding.cpp compares them.
inline constexpr std::uint64_t window_multiplier = 0x9E3779B97F4A7C15;
inline constexpr std::uint64_t window_step = 0xD1342543DE82EF95;

/// Writes the first min(probes, window_probes) positions of each key, of `cells` ones, to every 16th of `positions`;
/// what stands behind them is left or overwritten.
using sliding_positions = void (*)(const std::uint64_t* hash64s, std::size_t count, std::uint32_t cells,
                                   std::uint32_t probes, std::uint16_t* positions) noexcept;

/// In AVX-512 (F, DQ, BW, VL): what the set avx512 of kernels.hpp needs. Null on other processors.
extern const sliding_positions sliding_positions_avx512;

/// The one that the chosen set of kernels brings, or null.
sliding_positions chosen_sliding_positions();

}  // namespace bloomery::kernels
