// How far the FPR of one filter may be from the mean over all filters with as many keys: by the chance of its fill.
#pragma once

#include "math/occupancy.hpp"

namespace bloomery {

/// Relative variance of the exact FPR of the present bits, Var(R) / E(R)^2, after n keys.
double relative_variance_of_rate(const occupancy& o, double n);

}  // namespace bloomery
