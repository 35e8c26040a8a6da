// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bloomery::cli {

/// The candidate that takes the fewest letters to change (inserted, left out, replaced, neighbours swapped), or "" if
/// none is within a third of its length.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace bloomery::cli
