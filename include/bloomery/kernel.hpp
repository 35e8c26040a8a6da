// The kernels: the instruction set that calls on keys use. All kernels write the same bits; only their speed differs.
#pragma once

#include <bloomery/export.hpp>

#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The name of the kernels in use: "avx512", "avx2", "neon" or "scalar". They are the best ones that this processor
/// supports, unless the environment variable BLOOMERY_KERNEL, read once, names others: see kernel_info().
///
/// Example:
///     assert(!kernel_name().empty());
std::string kernel_name();

/// The kernels in use, and why.
struct kernel_choice {
  std::string name;            ///< as kernel_name()
  std::string requested = {};  ///< what BLOOMERY_KERNEL was, its first 63 bytes; empty: nothing was requested
  bool refused = false;        ///< `requested` names no kernels of this build, or kernels that this processor lacks
};

/// Which kernels are in use, what was requested, and whether the request was refused. A refused request changes
/// nothing: the best kernels are used, as without it. A program whose users may set the variable tells them of a
/// refusal.
///
/// Example:
///     assert(kernel_info().name == kernel_name());
///     assert(kernel_info().refused || kernel_info().requested.empty() || kernel_info().requested == kernel_name());
kernel_choice kernel_info();

/// A set of kernels of this build.
struct kernel_description {
  std::string name;
  std::string needs;  ///< processor features, as /proc/cpuinfo names them
  bool supported;     ///< by this processor and its operating system
  bool chosen;
};

/// All sets of this build, the slowest first.
///
/// Example:
///     assert(kernel_list().front().name == "scalar");
std::vector<kernel_description> kernel_list();

/// Whether BLOOMERY_KERNEL made the choice, not the processor.
bool kernel_is_forced();

}  // namespace bloomery
