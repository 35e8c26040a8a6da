// The options under given requirements: each structure with its exact size and FPR, or why it cannot meet them.
#pragma once

#include <bloomery/advice.hpp>

#include "advice/requirements.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bloomery {

/// Why the structure cannot meet the requirements; empty if it can.
std::optional<ground> inability(structure take, const demand& d);

/// One option per structure, in order of simplicity. Options that are not possible have a reason in `why`.
std::vector<option> options_of(const demand& d);

/// A sliding-window filter of this layout. Requires a window.
option sliding_window_option_of(const demand& d, std::string_view layout);

/// The FPR of the longest fingerprints of a static filter for the maximum number of keys.
double least_static_rate(const demand& d);

/// The number of keys for which a scalable filter with this target FPR takes at most `bytes`.
std::uint64_t scalable_keys_within(double rate, std::uint64_t bytes);

}  // namespace bloomery
