// The verdict on a filter: a code for programs and a sentence for people.
#pragma once

#include "playground/json/json.hpp"

#include <bloomery/filter_facts.hpp>

#include <string>

namespace bloomery::playground {

/// @param level  "good", "watch" or "bad"
json verdict(const char* level, const char* code, const std::string& text);

/// The most severe verdict that applies. Requires f.fill.
json verdict_of(const filter_facts& f);

}  // namespace bloomery::playground
