// Confirmation of commands that destroy data: --yes, or "yes" typed at a terminal.
#pragma once

#include <string>

namespace bloomery::cli {

class command;

void add_yes(command& c, bool& yes);

/// Whether a question can be asked: standard input and standard error are terminals.
bool can_ask();

/// Asks at the terminal whether to continue, after a line that says what is lost. True with --yes, without a question.
/// @param loss  "redis://host/users: drop removes 1,000 keys"
/// @throws error invalid_argument: neither --yes nor a terminal; interrupted: a signal
bool confirmed(const std::string& loss, bool yes);

}  // namespace bloomery::cli
