// Constants of hashes and layouts for kernels, which include no other headers of bloomery.
// src/kernels/dispatch.cpp asserts that they are equal to the originals.
#pragma once

#include <cstdint>

namespace bloomery::kernels {

inline constexpr std::uint64_t golden_multiplier = 0x9E3779B97F4A7C15;  ///< 2^64 / golden ratio, odd
inline constexpr std::uint64_t mix_first = 0x3C79AC492BA7B653;          ///< of mix64
inline constexpr std::uint64_t mix_second = 0x1C69B3F74AC4AE35;         ///< of mix64

}  // namespace bloomery::kernels
