// The range of an experiment chart.
#include "cli/text/chart.hpp"

#include <algorithm>

namespace bloomery::cli {

double chart::highest_rate() const {
  double highest = 0;
  for (const theory_point& p : theory) highest = std::max(highest, p.rate);
  for (const measured_point& p : points) {
    for (const double rate : p.rates) highest = std::max(highest, rate);
  }
  return highest;
}

}  // namespace bloomery::cli
