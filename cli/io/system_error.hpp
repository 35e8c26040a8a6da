// errno as an error that says what was tried, on what, and what can be done.
#pragma once

#include <string>

namespace bloomery::cli {

/// Throws the error that errno stands for: "NAME: cannot VERB: No space left on device; HINT".
/// `if_full` is for a full disk, `otherwise` for all else but limits, which have their own.
[[noreturn]] void fail(const std::string& verb, const std::string& name, const std::string& if_full = "",
                       const std::string& otherwise = "");

/// Lets this process have as many open files as the system allows, and says how many that are.
unsigned long allow_many_files();

}  // namespace bloomery::cli
