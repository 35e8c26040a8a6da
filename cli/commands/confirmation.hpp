// Confirmation of commands that destroy data: --yes, or "yes" typed at a terminal.
#pragma once

#include <string>

namespace bloomery::cli {

class command;

void add_yes(command& c, bool& yes);

/// Whether a question can be asked: standard input and standard error are terminals.
bool can_ask();

/// Prints what will be lost and asks at the terminal whether to continue. With --yes, returns true without asking.
/// @param loss  "redis://host/users: drop removes 1,000 keys"
/// @throws error invalid_argument: neither --yes nor a terminal; interrupted: a signal
bool confirmed(const std::string& loss, bool yes);

}  // namespace bloomery::cli
