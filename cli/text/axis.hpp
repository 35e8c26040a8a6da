// Chart axes, independent of the output: the mapping from numbers to positions, and ticks with labels.
#pragma once

#include <string>
#include <vector>

namespace bloomery::cli {

struct axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;  ///< round numbers, ascending

  /// The position of a value: 0 at low, 1 at high; clamped.
  double place(double value) const;
};

/// From 0 to `high`, with about `ticks` round numbers.
axis linear_axis(double high, unsigned ticks);

/// An axis for FPRs up to `highest` of a filter with the target FPR `target`: linear from 0, which shows the growth
/// best; logarithmic if the target would be indistinguishable from 0.
axis rate_axis(double highest, double target, unsigned ticks);

/// The label of a tick: "2%", "0.01%", "1e-06"; "up to 1e-09" at the low end of a logarithmic axis, which includes 0.
std::string rate_label(const axis& a, double rate);

}  // namespace bloomery::cli
