// Which instruction set the calls of the one-line layouts use. All write the same bits; only the speed differs.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

/// The name of the kernels chosen for this processor: "avx512", "avx2", "neon" or "scalar". The environment variable
/// BLOOMERY_KERNEL, read once, overrides the choice.
///
/// @throws error invalid_argument: BLOOMERY_KERNEL names kernels that this build or this processor does not have.
///         Programs that honour the variable call this at their start; a call on keys that meets a wrong name ends the
///         program.
///
/// Example:
///     assert(!kernel_name().empty());
std::string kernel_name();

/// A set of kernels of this build.
struct kernel_info {
  std::string name;
  std::string needs;  ///< processor features, as /proc/cpuinfo names them
  bool supported;     ///< by this processor and its operating system
  bool chosen;
};

/// All sets of this build, the slowest first. @throws error as kernel_name()
///
/// Example:
///     assert(kernel_list().front().name == "scalar");
std::vector<kernel_info> kernel_list();

/// Whether BLOOMERY_KERNEL made the choice, not the processor. @throws error as kernel_name()
bool kernel_is_forced();

}  // namespace bloomery
