// The occupancy of a filter with a layout or a scheme.
#pragma once

#include <bloomery/params.hpp>

#include "math/occupancy.hpp"

namespace bloomery {

/// Schemes have the occupancy of classic. @throws error invalid_argument: unknown layout or scheme; a sliding layout
occupancy occupancy_for(const params& p);

}  // namespace bloomery
