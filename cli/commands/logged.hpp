// Options and parameters of filters that keep a key log and grow by it.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/params.hpp>
#include <bloomery/rebuilding_filter.hpp>

namespace bloomery::cli {

/// Refuses options that do not go together with --grow for a file. @throws error incompatible, invalid_argument
void check_growing(const making_options& wanted);

/// The parameters asked for, for rebuilding_filter::create.
params growing_params(const making_options& wanted, double default_rate);

}  // namespace bloomery::cli
