// Limits on memory: the memory that this process may allocate, the memory that it could ever allocate, and the error if
// a size exceeds them.
#pragma once

#include <bloomery/memory.hpp>

#include <cstdint>
#include <string>

namespace bloomery {

/// The folders of the system's own description. Tests use other folders.
struct system_folders {
  std::string proc = "/proc";
  std::string groups = "/sys/fs/cgroup";
};

/// available_memory(), read from these folders.
memory_budget available_memory(const system_folders& from);

/// The memory that this process could use without any other process: physical memory, or a lower limit of a control
/// group.
memory_budget memory_capacity(const system_folders& from = {});

/// Throws if no process on this machine could use `bytes`. Small sizes are not checked.
/// @throws error too_large, which names `what`, the size and the limit
void check_memory_capacity(const std::string& what, std::uint64_t bytes);

/// Reports that the system refused to allocate `bytes`.
/// @throws error too_large, which names `what`, the size, the memory available and the limit that decides
[[noreturn]] void refuse_memory(const std::string& what, std::uint64_t bytes);

}  // namespace bloomery
