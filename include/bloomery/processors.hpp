// The number of threads that a function starts if the caller asks for 0 threads.
#pragma once

#include <bloomery/detail/export.hpp>

namespace BLOOMERY_EXPORT bloomery {

/// The number of processors that this process may use at once; at least 1.
///
/// The lowest of: processors of the machine; processors of the affinity mask of the calling thread (`taskset`); the CPU
/// quota of each control group of the process, rounded down (a container with 1.5 processors: 1). With more threads
/// than its quota, a process is paused for the rest of each period.
///
/// Example:
///     assert(available_processors() >= 1);
unsigned available_processors();

}  // namespace bloomery
