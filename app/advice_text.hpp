// Texts that explain the library's choices of layouts and structures, and what would change them.
#pragma once

#include <bloomery/advice.hpp>

#include <string>

namespace bloomery::app {

/// Why a layout is chosen or not: "slower than split_block". For a layout that cannot reach the target FPR, the
/// library's sentence.
std::string reason_text(const candidate& c);

/// Why the chosen structure is chosen.
std::string taken_reason(const requirements& wanted, const advice& a);

/// Why this structure of advice::passed_over is not chosen.
std::string passed_reason(const requirements& wanted, const advice& a, const option& passed);

/// "with an FPR of 0.1%"
std::string phrase_of(const requirements& wanted, what_if change);

/// The change in one sentence: "without deletes: plain split_block, 10.50 bits per key (76% less), ..."
std::string change_text(const requirements& wanted, const advice& a, const change& c);

/// Notes on the choice, in complete sentences.
std::string caution_text(const advice& a, caution c);

}  // namespace bloomery::app
