// The exact FPR of static filters.
#include <bloomery/detail/static_payload.hpp>

#include "math/rates.hpp"

#include <cmath>

namespace bloomery {

double static_rate(unsigned width, std::uint64_t keys) {
  if (keys == 0) return 0;
  return static_cast<double>(
      rates::either(std::exp2(-static_cast<long double>(width)), rates::collision(0x1p64L, keys)));
}

std::optional<unsigned> static_width_for(double target_fpr, std::uint64_t keys) {
  constexpr double by_collisions = 1e-6;  // of the target, so that 2^-w is enough for 2^-w
  for (unsigned width = 1; width <= sealed::most_width; ++width) {
    if (static_rate(width, keys) <= target_fpr * (1 + by_collisions)) return width;
  }
  return std::nullopt;
}

}  // namespace bloomery
