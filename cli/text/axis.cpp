#include "cli/text/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bloomery::cli {
namespace {

// The smallest 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

double axis::place(double value) const {
  const double at =
      logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(at, 0.0, 1.0);
}

axis linear_axis(double high, unsigned ticks) {
  axis a{0, high, false, {}};
  const double step = round_step(high / ticks);
  for (unsigned i = 0; i * step <= high * (1 + 1e-9); ++i) a.ticks.push_back(i * step);
  return a;
}

axis rate_axis(double highest, double target, unsigned ticks) {
  highest = std::max(highest, target);
  // At very high FPRs a linear axis shows more than powers of ten around the target.
  const bool promise_is_seen = highest < 25 * target;
  if (promise_is_seen || highest > 0.25) return linear_axis(std::min(1.04 * highest, 1.0), ticks);
  axis a{std::max(std::pow(10, std::floor(std::log10(target)) - 2), 1e-300), 1.5 * highest, true, {}};
  const double decades = std::log10(a.high / a.low);
  const double factor = std::pow(10, std::max(1.0, std::ceil(decades / ticks)));
  for (double tick = a.low; tick <= a.high; tick *= factor) a.ticks.push_back(tick);
  return a;
}

std::string rate_label(const axis& a, double rate) {
  if (a.logarithmic && rate == a.low) return fmt::format("up to {:.4g}", rate);
  if (rate != 0 && rate < 0.9995e-4) return fmt::format("{:.4g}", rate);
  return fmt::format("{:.4g}%", rate * 100);
}

}  // namespace bloomery::cli
