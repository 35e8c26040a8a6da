// Variance of the FPR of a filter over all filters with the same number of keys, caused by the random fill.
#pragma once

#include "math/occupancy.hpp"

namespace bloomery {

/// Relative variance of the exact FPR of the present bits, Var(R) / E(R)^2, after n keys.
double relative_variance_of_rate(const occupancy& o, double n);

}  // namespace bloomery
