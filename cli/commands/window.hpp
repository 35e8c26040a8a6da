// Sliding-window filters (bloomery/sliding_window_filter.hpp) in the commands: --window, --window-keys, --now, and
// reports of generations.
#pragma once

#include "cli/commands/common.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {

/// Whether the options ask for a sliding-window filter.
bool wants_window(const making_options& wanted);

/// Refuses an empty window, options that exclude a window, and options that need one.
/// @throws error invalid_argument
void check_window(const making_options& wanted);

/// Refuses an option that a sliding-window filter does not have. @throws error invalid_argument
void refuse_with_window(const making_options& wanted, const std::string& option);

/// The capacity of a window: -n, or the keys of the window. 0 for a window of time without -n, which requires it.
std::uint64_t window_capacity(const making_options& wanted);

/// The same if it is required. @throws error invalid_argument
std::uint64_t window_capacity_said(const making_options& wanted);

/// The requested parameters of a sliding-window filter.
params window_params(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Refuses --now for a filter without a window of time. @throws error invalid_argument
void check_now(const std::optional<std::uint64_t>& now, const params& p);

/// Sets the clock of a sliding-window filter to `now`; default: the system clock.
/// @throws error invalid_argument: the filter has no window of time
void set_now(any_filter& filter, const std::optional<std::uint64_t>& now);

/// Refuses options for a window of keys if the state has a window of time, or the reverse.
/// @throws error incompatible
void refuse_another_window(const making_options& wanted, const params& p, const std::string& state);

/// Whether the options ask for another window than the filter has.
bool asks_for_another_window(const making_options& wanted, const params& p);

/// Refuses a state without a window if the options ask for one. @throws error incompatible
void refuse_state_without_window(const making_options& wanted, const std::string& state);

/// " in 24 h", " in the last 1,000"; empty without a window.
std::string window_text(const params& p);

/// " --window 24h", " --window-keys 1000", as commands take it.
std::string window_option(const params& p);

/// Fixes the time of a copy of a shared sliding-window filter: --now or the system time, or the time of the copy if
/// that is later. @returns milliseconds since 1970; empty if `filter` is not such a copy
std::optional<std::uint64_t> fix_time(filter_handle& filter, const std::optional<std::uint64_t>& now);

/// Notes that all slices of a copy have expired by `time`, so that no key is found.
void note_if_expired(const std::string& name, const filter_handle& filter, std::uint64_t time);

/// Milliseconds since 1970 as seconds.
nlohmann::ordered_json seconds_json(std::uint64_t milliseconds);

/// Warns if the newest generation of a local window of time is more than a day ahead of the clock: until the clock has
/// caught up, no key expires. @param now  --now
void warn_of_clock(const std::string& name, const filter_handle& filter, const std::optional<std::uint64_t>& now = {});

/// Warns if a generation has too many keys and the FPR exceeds its target. Returns whether it did.
bool warn_of_generations(const std::string& where, const any_filter& filter);

/// The times or numbers of the insertions of a generation: "from 2023-11-14 22:13:20 UTC", "insertions 1 to 1,000".
std::string generation_text(const window_facts& f, std::uint64_t epoch);

/// The facts of a window as JSON.
nlohmann::ordered_json window_json(const window_facts& f);

/// "the last 1,000", "24 h".
std::string length_text(const window_length& length);

/// The lengths of a window and its slices: "24 h, in 7 generations of 3 h and a current one".
std::string window_line(const filter_facts& f);

/// The slices of a copy of a shared sliding-window filter, the newest first, as JSON and as lines of text. No lines for
/// other filters.
nlohmann::ordered_json window_copy_json(const filter_facts& f);
std::vector<std::string> slice_lines(const filter_facts& f);

/// The generations with their times and keys, the newest first: "2 ago, insertions 1 to 1,000: 998 keys".
std::vector<std::string> generation_lines(const window_facts& f);

}  // namespace bloomery::cli
