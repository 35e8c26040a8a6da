// Suggestions for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bloomery::cli {

/// The candidate with the smallest edit distance (insertions, deletions, substitutions, swaps of neighbors). "" if all
/// distances exceed 2, or 1 for a word of up to 5 letters without leading dashes.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace bloomery::cli
