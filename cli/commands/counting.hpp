// What commands do otherwise with a counting filter: its keys are copies, its cells are counters, its file changes as a
// whole.
#pragma once

#include "cli/commands/commands.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// A bit, or the value of a counter.
std::uint32_t value_of_cell(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t cell);

/// "bit" or "counter".
const char* name_of_cell(const params& p);

/// What is said of a filter whose keys were to be removed and were not there; empty for one that is not tainted.
/// @param rate  of the filter, by its counters
std::string taint_text(const params& p, std::uint64_t refused, double rate);

/// unnoticed_removals() at the rate of the filter when they came. It is not known, for what is removed takes the rate down:
/// the promised one stands for it, or the one of now if that is higher.
double unnoticed_by_now(const params& p, std::uint64_t refused, double rate);

/// What info adds for a counting filter: names and texts of lines, or members of the JSON object. Nothing for others.
std::vector<std::pair<const char*, std::string>> counting_lines(const mapped_storage& filter, double rate);
void add_counting_facts(nlohmann::ordered_json& result, const mapped_storage& filter, double rate);

}  // namespace bloomery::cli
