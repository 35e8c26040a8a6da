// The layout choice of complete(), which skips layouts that cannot change the result.
#pragma once

#include <bloomery/detail/geometry.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string_view>

namespace bloomery {

struct choice {
  std::string_view layout;
  bloomery::geometry geometry;
};

/// The layout that layout_candidates() marks as chosen, and its size.
/// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN; too_large: no layout keeps the target FPR
choice choose_layout(std::uint64_t capacity, double target_fpr, preference prefer);

}  // namespace bloomery
