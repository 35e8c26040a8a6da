#include "cli/commands/confirmation.hpp"

#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"

#include <bloomery/error.hpp>

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace bloomery::cli {
namespace {

// One line of standard input, without its end; at the end of the input, the text so far.
std::string typed_line() {
  std::string line;
  while (true) {
    std::array<pollfd, 2> wait = {{{STDIN_FILENO, POLLIN, 0}, {stop_descriptor(), POLLIN, 0}}};
    ::poll(wait.data(), wait.size(), -1);
    if (stop_signal() != 0) throw interrupted();
    if (wait[0].revents == 0) continue;
    char c = 0;
    if (::read(STDIN_FILENO, &c, 1) != 1 || c == '\n') return line;
    if (line.size() < 100) line += c;
  }
}

}  // namespace

void add_yes(command& c, bool& yes) {
  c.flag("--yes", yes, "do not ask for confirmation; required without a terminal");
}

bool can_ask() { return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDERR_FILENO) != 0; }

bool confirmed(const std::string& loss, bool yes) {
  if (yes) return true;
  if (!can_ask()) {
    throw error(errc::invalid_argument,
                {loss + "; this needs a confirmation", "", "", "", "give --yes to confirm; nothing was changed"});
  }
  say(loss);
  const std::string question = "bloomery: type 'yes' to continue: ";
  static_cast<void>(::write(STDERR_FILENO, question.data(), question.size()) < 0);
  const std::string answer = typed_line();
  if (answer == "yes" || answer == "y") return true;
  say("nothing was changed");
  return false;
}

}  // namespace bloomery::cli
