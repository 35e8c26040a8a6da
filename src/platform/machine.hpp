// What the code wants to know of the machine it runs on, read once.
#pragma once

#include <cstdint>

namespace bloomery {

/// Bytes of a core's share of the second level of cache. 1 MiB where the system does not tell.
std::uint64_t own_cache_size();

/// Bytes of memory that a process can take now without taking them from others: what the system calls available, or
/// what is left to its control group, if that is less.
std::uint64_t available_memory();

/// Whether the processor is one of AMD's.
bool is_amd() noexcept;

}  // namespace bloomery
