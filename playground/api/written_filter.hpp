// A requested filter written as a command and as C++.
#pragma once

#include "playground/session/wanted_filter.hpp"

#include <bloomery/params.hpp>

#include <string>

namespace bloomery::playground {

/// The command that builds the filter from the lines of keys.txt. For scalable filters it is a filter with a key log,
/// because a scalable filter has no file. @param p  params_of(wanted)
///
/// Example:
///     const wanted_filter wanted{.layout = "classic", .capacity = 20, .rate = 0.05};
///     assert(command_of(wanted, params_of(wanted)) ==
///            "bloomery build -o filter.bloom --layout classic -n 20 -p 0.05 keys.txt");
std::string command_of(const wanted_filter& wanted, const params& p);

/// The declaration of an empty filter. @param p  params_of(wanted)
///
/// Example:
///     const wanted_filter wanted{.layout = "classic", .capacity = 20, .rate = 0.05};
///     assert(cpp_of(wanted, params_of(wanted)) ==
///            R"(bloomery::any_filter filter(bloomery::complete({.layout = "classic", .capacity = 20, )"
///            R"(.target_fpr = 0.05}));)");
std::string cpp_of(const wanted_filter& wanted, const params& p);

}  // namespace bloomery::playground
