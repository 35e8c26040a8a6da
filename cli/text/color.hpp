// Color of messages and results: --color, and the rule for terminals.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::cli {

enum class color_mode {
  automatic,  ///< on a terminal, unless NO_COLOR is set and not empty [no-color.org], or TERM is unset or dumb
  always,
  never,
};

/// Sets the mode for the rest of the process; the default is automatic.
void set_color_mode(color_mode mode);

/// Whether output to this descriptor is colored.
bool wants_color(int fd);

enum class tone { error, warning, good, bad };

/// The text in the color of the tone if output to this descriptor is colored, otherwise unchanged.
std::string painted(std::string_view text, tone t, int fd);

}  // namespace bloomery::cli
