#include "registry/windows.hpp"

#include <algorithm>
#include <string>

namespace bloomery {

void check_window_length(const params& p) {
  const bool windowed = family_of(p) == family::windowed;
  const auto refuse = [](const char* what, const std::string& expected, const std::string& found) {
    throw error(errc::invalid_argument, {what, "window", expected, found, ""});
  };
  if (!windowed) {
    if (p.window_keys == 0 && p.window_milliseconds == 0) return;
    refuse("only sliding-window filters have a window", "layout sliding or sliding64", "'" + p.layout + p.scheme + "'");
  }
  if (p.window_keys == 0 && p.window_milliseconds == 0) {
    refuse("the window has no length", "a number of keys or a time", "none");
  }
  if (p.window_keys != 0 && p.window_milliseconds != 0) refuse("the window has two lengths", "keys or a time", "both");
  if (std::max(p.window_keys, p.window_milliseconds) > most_moments) {
    refuse("the window is too long", "at most 2^62", std::to_string(std::max(p.window_keys, p.window_milliseconds)));
  }
}

}  // namespace bloomery
