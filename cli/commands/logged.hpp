// Options and parameters of filters that grow by a key log.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/params.hpp>
#include <bloomery/rebuilding_filter.hpp>

namespace bloomery::cli {

/// Refuses options that cannot be combined with --grow for a file. @throws error incompatible, invalid_argument
void check_growing(const making_options& wanted);

/// The requested parameters, for rebuilding_filter::create.
params growing_params(const making_options& wanted, double default_rate);

}  // namespace bloomery::cli
