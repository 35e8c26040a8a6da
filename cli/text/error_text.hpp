// Errors in the words of the command: the library's hints, with the commands and options that follow them.
#pragma once

#include <bloomery/error.hpp>

#include <string>

namespace bloomery::cli {

/// What the user can do, for the command line: names commands and options where the hint's code has some, and is the
/// hint's own words elsewhere. Empty if there is no hint.
///
/// Example:
///     const error missing(errc::not_found, {"there is no filter of this name", "redis://host/f", "", "", hint::make_shared_filter});
///     assert(hint_text(missing) == "make one: bloomery build -o redis://host/f -n NUMBER");
std::string hint_text(const error& e);

/// The error's whole sentence as what() has it, with hint_text() for its end.
std::string sentence_of(const error& e);

}  // namespace bloomery::cli
