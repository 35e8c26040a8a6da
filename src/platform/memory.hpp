// The limits on memory: how much this process may allocate, how much it could ever allocate, and the error if that is
// too little.
#pragma once

#include <bloomery/memory.hpp>

#include <cstdint>
#include <string>

namespace bloomery {

/// Where the system describes itself. Tests use folders of their own.
struct system_folders {
  std::string proc = "/proc";
  std::string groups = "/sys/fs/cgroup";
};

/// As available_memory(), read from these folders.
memory_budget available_memory(const system_folders& from);

/// The memory that a process alone on this machine could use: physical memory, or less in a control group with a limit.
memory_budget memory_capacity(const system_folders& from = {});

/// Throws if no process on this machine could use `bytes`. Small sizes are not checked.
/// @throws error too_large, which names `what`, the size and the limit
void check_memory_capacity(const std::string& what, std::uint64_t bytes);

/// Reports that the system refused to allocate `bytes`.
/// @throws error too_large, which names `what`, the size, the memory available and the limit that decides
[[noreturn]] void refuse_memory(const std::string& what, std::uint64_t bytes);

}  // namespace bloomery
