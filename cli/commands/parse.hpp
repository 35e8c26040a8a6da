// Parser of the command line: finds the command that the words name and passes their values to its arguments.
#pragma once

#include "cli/commands/grammar.hpp"

#include <string>
#include <vector>

namespace bloomery::cli {

/// A parsed command line.
struct request {
  enum class kind {
    run,
    help,
    version,
    list,  ///< no command was given, which is an error
  };

  kind what = kind::run;
  command* verb = nullptr;  ///< the command to run or to describe
};

/// @param words  without the name of the program
/// @throws error invalid_argument
request parse(command& root, const std::vector<std::string>& words);

/// The subcommand of this name. @throws error invalid_argument: there is none; suggests one
command& subcommand_of(command& c, const std::string& word);

/// The text of --help.
std::string help_of(const command& verb);

}  // namespace bloomery::cli
