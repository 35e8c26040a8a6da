// Filters with removal in the commands: options that exclude --counting and --quotient, and the effect of removing
// absent keys.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string>

namespace bloomery::cli {

/// Refuses options that cannot be combined with --counting or --quotient. @throws error invalid_argument
void check_removal(const making_options& wanted);

/// The layout of a new filter: that of --counting or --quotient, or a given one; empty: to be chosen.
std::string layout_for(const making_options& wanted);

/// The effect of removals of absent keys on the other keys; empty if no removal was refused.
/// @param unnoticed  expected number of such removals that were not refused
std::string taint_text(std::uint64_t refused, double unnoticed);

/// unnoticed_removals() at the FPR of the filter at the time of the refused removals. That FPR is unknown, because
/// removals lower it: the target FPR is used, or the current one if that is higher.
double unnoticed_by_now(const params& p, std::uint64_t refused, double fpr);

}  // namespace bloomery::cli
