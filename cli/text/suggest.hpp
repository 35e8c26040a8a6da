// Suggestions for mistyped names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bloomery::cli {

/// The candidate with the smallest edit distance (insertions, deletions, substitutions, swaps of neighbours), or "" if
/// all distances exceed a third of the length.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace bloomery::cli
