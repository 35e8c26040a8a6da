// Validation of the window in params of sliding-window filters.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include "layouts/row.hpp"

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a separate library

/// fullest_generations() of a filter with this window.
keys_by_generation fullest_generations(const window_length& window, std::uint64_t capacity) noexcept;

/// @throws error invalid_argument: no length, or more than window_length::most
void check_window_length(const window_length& length);

/// @throws error invalid_argument: as above for a sliding layout, or a window in params of another layout
void check_window_length(const params& p);

}  // namespace bloomery
