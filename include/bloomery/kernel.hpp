// Which instruction set the batch calls use. All write the same bits; only the speed differs.
#pragma once

#include <string>

namespace bloomery {

/// The name of the kernels chosen for this CPU: "avx2" or "scalar". The environment variable BLOOMERY_KERNEL, read
/// once, overrides the choice.
///
/// @throws error invalid_argument: BLOOMERY_KERNEL names a kernel that this build or this CPU does not have. Programs
/// that
///         honour the variable call this at their start; a batch call that meets a wrong name ends the program.
///
/// Example:
///     assert(!kernel_name().empty());
std::string kernel_name();

}  // namespace bloomery
