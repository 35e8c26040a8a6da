// estimate: a value with its standard deviation. measure.hpp computes estimates from a filter's bits.
#pragma once

#include <bloomery/detail/export.hpp>

namespace BLOOMERY_EXPORT bloomery {

/// A value and its standard deviation, in the same unit.
struct estimate {
  double value = 0;
  double sigma = 0;

  /// Whether the value is not significant: less than three standard deviations. Such values should not be reported.
  bool is_noise() const noexcept { return !(value >= 3 * sigma); }

  /// Two standard deviations: the error bound for 95% of all estimates.
  double margin() const noexcept { return 2 * sigma; }
};

}  // namespace bloomery
