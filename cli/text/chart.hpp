// Experiment charts: expected and measured FPR against the number of keys, drawn by cairo.
#pragma once

#include "app/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery::cli {

using namespace app;

/// A point on the curve of the expected FPR.
struct theory_point {
  std::uint64_t keys = 0;
  double rate = 0;
};

struct chart {
  std::string title;     ///< the filter
  std::string subtitle;  ///< the experiment
  std::uint64_t capacity = 0;
  double target_fpr = 0;
  std::uint64_t runs = 0;
  std::vector<theory_point> theory;  ///< enough points for a smooth curve, from 0 keys on
  std::vector<measured_point> points;

  double highest_rate() const;  ///< maximum of all curves and dots
};

/// @throws error invalid_argument: the command was built without cairo (BLOOMERY_BUILD_CHARTS=OFF)
void require_charts();

/// The chart as the bytes of a file. @throws error as require_charts(); io: cairo cannot draw (out of memory, no font)
std::string svg_of(const chart& c);
std::string png_of(const chart& c);

}  // namespace bloomery::cli
