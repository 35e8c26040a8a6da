#include "cli/text/terminal_color.hpp"

#include <cstdlib>
#include <string>

namespace bloomery::cli {

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && terminal != nullptr && std::string(terminal) != "dumb";
}

}  // namespace bloomery::cli
