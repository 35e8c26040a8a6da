// Filters that forget, in the commands: --window, --window-keys and --now, and what is said of generations. The filter
// is bloomery/sliding_window_filter.hpp.
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

/// Whether a filter with a window is asked for.
bool wants_window(const making_options& wanted);

/// Refuses a window of nothing, one with options that it cannot go together with, and such options without one.
/// @throws error invalid_argument
void check_window(const making_options& wanted);

/// Refuses an option that a filter with a window does not have. @throws error invalid_argument
void refuse_with_window(const making_options& wanted, const std::string& option);

/// Keys that a window is made for: -n, or the keys of the window. For a window of time -n is required: 0 without it.
std::uint64_t window_capacity(const making_options& wanted);

/// The same, where it has to be known. @throws error invalid_argument
std::uint64_t window_capacity_said(const making_options& wanted);

/// The params asked for, of a filter with a window.
params window_params(const making_options& wanted, std::uint64_t capacity, double default_rate);

/// Refuses a time for a filter that has no window by time. @throws error invalid_argument
void check_now(const std::optional<std::uint64_t>& now, const params& p);

/// Tells a filter with a window that it is `now`; nothing said: the system's clock goes on.
/// @throws error invalid_argument: a time is given, and the filter has no window by time
void set_now(any_filter& filter, const std::optional<std::uint64_t>& now);

/// Refuses options that ask for a window by keys where the state has one by time, or the other way round.
/// @throws error incompatible
void refuse_another_window(const making_options& wanted, const params& p, const std::string& state);

/// Whether another window is asked for than the filter has.
bool asks_for_another_window(const making_options& wanted, const params& p);

/// Refuses a state file that has no window, if one is asked for. @throws error incompatible
void refuse_state_without_window(const making_options& wanted, const std::string& state);

/// " in 24 h", " in the last 1,000"; empty without a window.
std::string window_text(const params& p);

/// " --window 24h", " --window-keys 1000", as commands take it.
std::string window_option(const params& p);

/// Makes a copy of a shared filter with a window answer as of one time: --now or the clock's, or the time of the copy
/// if that is later. @returns milliseconds since 1970; nothing: `filter` is no such copy
std::optional<std::uint64_t> fix_time(filter_handle& filter, const std::optional<std::uint64_t>& now);

/// Notes that all slices of a copy have expired by `time`, so that no key is found.
void note_if_expired(const std::string& name, const filter_handle& filter, std::uint64_t time);

/// Milliseconds since 1970 as seconds.
nlohmann::ordered_json seconds_json(std::uint64_t milliseconds);

/// Warns if the newest generation of a local window by time is more than a day ahead of the clock: until the clock has
/// caught up, no key expires. @param now  --now
void warn_of_clock(const std::string& name, const filter_handle& filter, const std::optional<std::uint64_t>& now = {});

/// Warns if a generation has more keys than it may and the FPR exceeds its target; whether it did.
bool warn_of_generations(const std::string& where, const any_filter& filter);

/// When, or at which insertions, the keys of a generation came: "from 2023-11-14 22:13:20 UTC", "insertions 1 to
/// 1,000".
std::string generation_text(const window_facts& f, std::uint64_t epoch);

/// What is known of a window, as JSON.
nlohmann::ordered_json window_json(const window_facts& f);

/// "the last 1,000", "24 h".
std::string length_text(const window_length& length);

/// The lengths of a window and of its slices, of a filter that has one: "24 h, in 7 generations of 3 h and the newest".
std::string window_line(const filter_facts& f);

/// The slices of a copy of a shared filter with a window, the newest first, as JSON, and as lines of a text. Other
/// filters have no lines.
nlohmann::ordered_json window_copy_json(const filter_facts& f);
std::vector<std::string> slice_lines(const filter_facts& f);

/// The generations with their times and keys, the newest first: "2 ago, insertions 1 to 1,000: 998 keys".
std::vector<std::string> generation_lines(const window_facts& f);

}  // namespace bloomery::cli
