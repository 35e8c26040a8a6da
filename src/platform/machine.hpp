// Properties of the machine: cache line, cache size and processor vendor.
#pragma once

#include <cstdint>

namespace bloomery {

/// Size of the unit in which memory is cached. Layers on servers and in files consist of such units, so it cannot
/// change without their formats.
inline constexpr std::uint64_t cache_line_bytes = 64;
inline constexpr std::uint32_t cache_line_bits = 8 * cache_line_bytes;

/// Bytes of a core's share of the second-level cache; 1 MiB if unknown.
std::uint64_t own_cache_size() noexcept;

/// Whether the processor is from AMD.
bool is_amd() noexcept;

}  // namespace bloomery
