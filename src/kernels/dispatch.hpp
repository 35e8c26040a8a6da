// The choice among the kernel sets, made once.
#pragma once

#include "kernels/kernels.hpp"

#include <bloomery/key_source.hpp>

#include <cstdint>

namespace bloomery {

/// The best set that this processor supports, or the one that BLOOMERY_KERNEL names. @throws error invalid_argument
const kernels::kernel_set& chosen_kernels();

/// A kernel's view of keys.
kernels::keys kernel_keys(const key_source& keys) noexcept;

/// Where blocks of a filter of so many bytes are fetched to, ahead of their use.
kernels::fetch fetch_for(std::uint64_t bytes);

}  // namespace bloomery
