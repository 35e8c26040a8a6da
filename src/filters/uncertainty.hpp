// The accuracy of the FPR that a scheme computes from bits.
#pragma once

#include <bloomery/params.hpp>
#include <bloomery/scheme.hpp>

namespace bloomery {

/// The factor within which the current FPR is right: 1 if it is exact.
inline double uncertainty_of(const params& p, double current_fpr) {
  const scheme* const of_system = find_scheme(p.scheme);
  if (of_system == nullptr || current_fpr == 0 || current_fpr == 1) return 1;  // no bit is set, or all
  const double of_bits = of_system->error_of_bits / static_cast<double>(p.geometry.bits);
  return 1 + of_system->relative_error + of_bits / current_fpr;
}

}  // namespace bloomery
