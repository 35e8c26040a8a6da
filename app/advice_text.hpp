// The library's choices in words: why a layout or a structure is taken, and what would change that.
#pragma once

#include <bloomery/advice.hpp>

#include <string>

namespace bloomery::app {

/// Why a layout is taken or not: "slower than split_block". For a layout that cannot keep the rate, the library's
/// sentence.
std::string reason_text(const candidate& c);

/// Why the structure taken is taken.
std::string taken_reason(const requirements& wanted, const advice& a);

/// Why this structure of advice::passed_over is passed over.
std::string passed_reason(const requirements& wanted, const advice& a, const option& passed);

/// "with an error of 0.1 %"
std::string phrase_of(const requirements& wanted, what_if change);

/// The change in one sentence: "without deletes: plain split_block, 10.50 bits a key (76 % less), ..."
std::string change_text(const requirements& wanted, const advice& a, const change& c);

/// What the user should know of the choice, in whole sentences.
std::string caution_text(const advice& a, caution c);

}  // namespace bloomery::app
