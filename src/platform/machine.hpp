// Properties of the machine: cache size and processor vendor.
#pragma once

#include <cstdint>

namespace bloomery {

/// Bytes of a core's share of the second-level cache; 1 MiB if unknown.
std::uint64_t own_cache_size() noexcept;

/// Whether the processor is from AMD.
bool is_amd() noexcept;

}  // namespace bloomery
