// Terminal charts: the chart of an experiment in block characters.
#pragma once

#include "cli/text/chart.hpp"

#include <string>

namespace bloomery::cli {

/// The capabilities of a terminal.
struct terminal_look {
  unsigned columns = 80;
  bool unicode = true;  ///< false: ASCII only
  bool color = false;
};

/// The capabilities of standard output: the width of the terminal, else 80; ASCII if the environment names a locale
/// without UTF-8; color by wants_color().
terminal_look look_of_standard_output();

/// Draws the chart in lines of at most the terminal's width, with axes, a legend, and marks at n and p. Empty for fewer
/// than 40 columns.
std::string terminal_chart(const chart& c, const terminal_look& look);

}  // namespace bloomery::cli
