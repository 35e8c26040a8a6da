#include "cli/text/color.hpp"

#include <unistd.h>

#include <cstdlib>

namespace bloomery::cli {
namespace {

color_mode mode_of_process = color_mode::automatic;

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

const char* code_of(tone t) {
  switch (t) {
    case tone::error: return "\x1B[1;31m";
    case tone::warning: return "\x1B[33m";
    case tone::good: return "\x1B[32m";
    case tone::bad: return "\x1B[31m";
  }
  return "";
}

}  // namespace

void set_color_mode(color_mode mode) { mode_of_process = mode; }

bool wants_color(int fd) {
  if (mode_of_process != color_mode::automatic) return mode_of_process == color_mode::always;
  return ::isatty(fd) != 0 && !is_set("NO_COLOR") && is_set("TERM") && std::string_view(std::getenv("TERM")) != "dumb";
}

std::string painted(std::string_view text, tone t, int fd) {
  if (!wants_color(fd)) return std::string(text);
  return code_of(t) + std::string(text) + "\x1B[0m";
}

}  // namespace bloomery::cli
