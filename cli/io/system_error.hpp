// Conversion of errno to an error with the operation, its object and a hint.
#pragma once

#include <string>

namespace bloomery::cli {

/// Throws the error that errno stands for: "NAME: cannot VERB: No space left on device; HINT".
/// `if_full` is the hint for a full disk, `otherwise` for other errors except limits, which have their own hints.
[[noreturn]] void fail(const std::string& verb, const std::string& name, const std::string& if_full = "",
                       const std::string& otherwise = "");

/// Raises the limit of open files to the maximum and returns it.
unsigned long allow_many_files();

}  // namespace bloomery::cli
