// What commands do otherwise with a counting filter: its keys are copies, its cells are counters, its file changes as a
// whole.
#pragma once

#include "cli/commands/commands.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string>

namespace bloomery::cli {

/// Whether this is the file of a counting filter; false for what is no filter at all.
bool is_counting(const std::string& path);

/// Refuses what cannot go together with --counting. @throws error invalid_argument
void check_counting(const making_options& wanted);

/// Refuses a counting filter where another is wanted. @throws error incompatible
/// @param what     "counting filters have no intersection"
/// @param hint  what to do instead
void refuse_counting(const std::string& path, const params& p, const char* what, const char* hint);

/// "the key was", "2 of 10 keys were", of keys that were to be removed.
std::string those_not_there(std::uint64_t keys, std::uint64_t not_found);

/// "bit" or "counter".
const char* name_of_cell(const params& p);

/// What removals of absent keys mean for the filter's other keys; empty if none was refused.
/// @param unnoticed  expected number of those that were not refused
std::string taint_text(std::uint64_t refused, double unnoticed);

/// unnoticed_removals() at the FPR of the filter when the refused ones came. It is not known, for removals lower the
/// FPR: the target FPR stands for it, or the present one if that is higher.
double unnoticed_by_now(const params& p, std::uint64_t refused, double fpr);

}  // namespace bloomery::cli
