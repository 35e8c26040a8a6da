// Validation of the window in params of sliding-window filters.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include "layouts/row.hpp"

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a library of its own

/// Limit for times and insertion counts, so that products with epochs do not overflow.
inline constexpr std::uint64_t most_moments = std::uint64_t{1} << 62;

/// @throws error invalid_argument: a window without length, or with two lengths, or a window in params of another
///               filter
void check_window_length(const params& p);

}  // namespace bloomery
