// A number with its error bar; estimate.hpp makes such numbers of a filter's bits.
#pragma once

#include <bloomery/export.hpp>

namespace BLOOMERY_EXPORT bloomery {

/// A value and its standard deviation, in the same unit.
struct estimate {
  double value = 0;
  double sigma = 0;

  /// Whether it is lost in chance: less than three standard deviations. What is noise should not be reported.
  bool is_noise() const noexcept { return !(value >= 3 * sigma); }

  /// Two standard deviations, which 95 % of all estimates keep to.
  double margin() const noexcept { return 2 * sigma; }
};

}  // namespace bloomery
