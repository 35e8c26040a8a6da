// The memory that this process may still allocate, and the limit that decides.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The limits on a process's memory.
enum class memory_limit : std::uint8_t {
  machine,        ///< the memory of the machine
  control_group,  ///< the limit of the control group, as containers and systemd set it
  address_space,  ///< RLIMIT_AS: ulimit -v
  data_segment,   ///< RLIMIT_DATA: ulimit -d
  commit,         ///< the system's limit on committed memory: vm.overcommit_memory = 2
};

/// The limit in English: "address-space limit, ulimit -v".
const char* name_of(memory_limit limit) noexcept;

/// An amount of memory and the limit that sets it.
struct memory_budget {
  std::uint64_t bytes;
  memory_limit limit;

  friend bool operator==(const memory_budget&, const memory_budget&) = default;
};

/// The memory that this process may still allocate: the minimum of MemAvailable, the memory left in its control groups
/// (versions 1 and 2, with all parent groups; cached file pages count as free), RLIMIT_AS and RLIMIT_DATA, and with
/// vm.overcommit_memory = 2 also CommitLimit.
///
/// The result is an estimate for choosing an algorithm: other processes allocate, too. A call takes about 0.1 ms.
///
/// Example:
///     const memory_budget budget = available_memory();
///     assert(budget.bytes > 0 && name_of(budget.limit) != std::string());
memory_budget available_memory();

}  // namespace bloomery
