// Cell positions of many keys in blocks of sliding and sliding64, up to sixteen probes each, as defined by the layouts
// (include/bloomery/layouts/sliding.hpp). Like kernels.hpp, this file includes no other header of bloomery.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::uint32_t window_probes = 16;

/// The constants of the layouts; src/layouts/sliding.cpp asserts that they are equal.
inline constexpr std::uint64_t window_multiplier = 0x9E3779B97F4A7C15;
inline constexpr std::uint64_t window_step = 0xD1342543DE82EF95;

/// Writes the first min(probes, window_probes) positions of each key, below `cells`, to `positions`, with 16 elements
/// per key. Further elements of a key are unspecified.
using sliding_positions = void (*)(const std::uint64_t* hash64s, std::size_t count, std::uint32_t cells,
                                   std::uint32_t probes, std::uint16_t* positions) noexcept;

/// For AVX-512 (F, CD, DQ, BW, VL), the features of the kernel set avx512. Null on other architectures.
extern const sliding_positions sliding_positions_avx512;

/// The function of the chosen kernel set, or null.
sliding_positions chosen_sliding_positions();

}  // namespace bloomery::kernels
