// The choice among kernels, made once.
#pragma once

#include "kernels/split_block.hpp"

namespace bloomery {

/// The best kernel that this CPU supports, or the one that BLOOMERY_KERNEL names. @throws error invalid_argument
const kernels::split_block_kernel& chosen_split_block_kernel();

}  // namespace bloomery
