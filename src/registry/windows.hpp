// What params of filters that forget must have.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/export.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include "layouts/row.hpp"

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {  // bloomery::redis is a library of its own

/// Moments and insertions stay below this: what epochs are multiplied with does not overflow.
inline constexpr std::uint64_t most_moments = std::uint64_t{1} << 62;

/// @throws error invalid_argument: a window without length, or with two, or of a filter that has none
void check_window_length(const params& p);

}  // namespace bloomery
