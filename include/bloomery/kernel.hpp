// Kernels: implementations of inserts and lookups for several instruction sets. All write the same bits; only their
// speed differs.
#pragma once

#include <bloomery/detail/export.hpp>

#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The name of the kernels in use: "avx512", "avx2", "neon" or "scalar". These are the fastest that this processor
/// supports, unless the environment variable BLOOMERY_KERNEL, which is read when the library is loaded, selects others:
/// see kernel_info().
///
/// Example:
///     assert(!kernel_name().empty());
std::string kernel_name();

/// The kernels in use, and why.
struct kernel_choice {
  std::string name;            ///< as kernel_name()
  std::string requested = {};  ///< the value of BLOOMERY_KERNEL, at most 63 bytes; empty: nothing was requested
  bool refused = false;        ///< `requested` names unknown kernels, or kernels that this processor does not support
};

/// The kernels in use, the requested ones, and whether the request was refused. A refused request has no effect: the
/// fastest kernels are used. Programs whose users may set the variable should report a refusal.
///
/// Example:
///     assert(kernel_info().name == kernel_name());
///     assert(kernel_info().refused || kernel_info().requested.empty() || kernel_info().requested == kernel_name());
kernel_choice kernel_info();

/// A kernel set of this build.
struct kernel_description {
  std::string name;
  std::string needs;  ///< processor features, as /proc/cpuinfo names them
  bool supported;     ///< by this processor and its operating system
  bool chosen;
};

/// All kernel sets of this build, the slowest first.
///
/// Example:
///     assert(kernel_list().front().name == "scalar");
std::vector<kernel_description> kernel_list();

/// Whether BLOOMERY_KERNEL selected the kernels.
bool kernel_is_forced();

}  // namespace bloomery
