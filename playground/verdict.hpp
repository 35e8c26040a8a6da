// How a filter fares, in one word for programs and one sentence for people.
#pragma once

#include "playground/filter_facts.hpp"
#include "playground/json.hpp"

#include <bloomery/params.hpp>

#include <string>

namespace bloomery::playground {

/// @param level  "good", "watch" or "bad"
json verdict(const char* level, const char* code, const std::string& text);

/// What a reader has to know first of all.
json verdict_of(const filter_facts& f, const params& p);

}  // namespace bloomery::playground
