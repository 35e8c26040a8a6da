// Error texts of the command: the library's hints, expressed as commands and options.
#pragma once

#include <bloomery/error.hpp>

#include <string>

namespace bloomery::cli {

/// The hint of an error for the command line: commands and options if the hint's code has some, otherwise the hint's
/// own text. Empty without a hint.
///
/// Example:
///     const error missing(errc::not_found, {"no such filter", "redis://host/f", "", "", hint::make_shared_filter});
///     assert(hint_text(missing) == "create one: bloomery build -o redis://host/f -n NUMBER");
std::string hint_text(const error& e);

/// The text of what(), ending in hint_text().
std::string sentence_of(const error& e);

}  // namespace bloomery::cli
