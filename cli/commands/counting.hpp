// What commands do otherwise with a counting filter: its keys are copies, its cells are counters, its file changes as a
// whole.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string>

namespace bloomery::cli {

/// Refuses what cannot go together with --counting. @throws error invalid_argument
void check_counting(const making_options& wanted);

/// What removals of absent keys mean for the filter's other keys; empty if none was refused.
/// @param unnoticed  expected number of those that were not refused
std::string taint_text(std::uint64_t refused, double unnoticed);

/// unnoticed_removals() at the FPR of the filter when the refused ones came. It is not known, for removals lower the
/// FPR: the target FPR stands for it, or the present one if that is higher.
double unnoticed_by_now(const params& p, std::uint64_t refused, double fpr);

}  // namespace bloomery::cli
