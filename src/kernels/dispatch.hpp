// The choice of the kernel set, made once per process.
#pragma once

#include "kernels/kernels.hpp"

#include <bloomery/detail/hash_span.hpp>

#include <cstdint>

namespace bloomery {

/// The set named by BLOOMERY_KERNEL, if this build has it and this processor supports it; otherwise the fastest
/// supported set.
const kernels::kernel_set& chosen_kernels() noexcept;

/// A kernel's view of keys.
kernels::keys kernel_keys(const hash_span& keys) noexcept;

/// The prefetching for a filter of this size in bytes.
kernels::fetch fetch_for(std::uint64_t bytes);

}  // namespace bloomery
