// The axes of a chart, whatever draws it: from numbers to places, and round numbers to write beside them.
#pragma once

#include <string>
#include <vector>

namespace bloomery::cli {

struct axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;  ///< round numbers from low to high

  /// Where a value lies: 0 at low, 1 at high; what is beyond lies at the end.
  double place(double value) const;
};

/// From 0 to `high`, with about `ticks` round numbers.
axis linear_axis(double high, unsigned ticks);

/// For rates up to `highest` of a filter that promises `target`: from 0, so that a student sees how the error grows; by
/// powers of ten where the promise would lie too close to 0 to be seen.
axis rate_axis(double highest, double target, unsigned ticks);

/// What to write beside a tick: "2 %", "0.01 %", "1e-06"; at the foot of powers of ten, where 0 lies too,
/// "up to 1e-09".
std::string rate_label(const axis& a, double rate);

}  // namespace bloomery::cli
