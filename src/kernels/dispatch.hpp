// The choice among the kernel sets, made once.
#pragma once

#include "kernels/kernels.hpp"

#include <bloomery/detail/hash_span.hpp>

#include <cstdint>

namespace bloomery {

/// The set that BLOOMERY_KERNEL names, if this build has it and this processor supports it, else the best one
/// supported.
const kernels::kernel_set& chosen_kernels() noexcept;

/// A kernel's view of keys.
kernels::keys kernel_keys(const hash_span& keys) noexcept;

/// Where blocks of a filter of so many bytes are fetched to, ahead of their use.
kernels::fetch fetch_for(std::uint64_t bytes);

}  // namespace bloomery
