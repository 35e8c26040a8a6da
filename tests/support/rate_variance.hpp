// The variance of the FPR of one filter, caused by the chance of its fill. judgement_test.cpp compares these variances
// with those of hundreds of filters.
//
// n keys, m bits, k probes.
#pragma once

#include <bloomery/detail/geometry.hpp>

#include "layouts/occupancy_of.hpp"
#include "math/rate_variance.hpp"

namespace bloomery_tests {

/// Relative variance of the FPR of a filter without blocks.
inline double fill_variance(const bloomery::geometry& g, double n) {
  return bloomery::relative_variance_of_rate({1, g.bits, 0, g.probes}, n);
}

/// Relative variance of the FPR of a filter of this layout.
template <class Layout>
double variance_of_rate(const bloomery::geometry& g, double n) {
  return bloomery::relative_variance_of_rate(bloomery::occupancy_of<Layout>(g), n);
}

}  // namespace bloomery_tests
