// Properties of the machine: cache size, memory and processor vendor.
#pragma once

#include <cstdint>

namespace bloomery {

/// Bytes of a core's share of the second-level cache; 1 MiB if unknown.
std::uint64_t own_cache_size();

/// Available memory in bytes, as reported by the system, limited by what remains in the control group.
std::uint64_t available_memory();

/// Whether the processor is from AMD.
bool is_amd() noexcept;

}  // namespace bloomery
