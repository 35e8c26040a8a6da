// The chart of an experiment in block characters, for a terminal.
#pragma once

#include "cli/text/chart.hpp"

#include <string>

namespace bloomery::cli {

/// What a terminal can show.
struct terminal_look {
  unsigned columns = 80;
  bool unicode = true;  ///< else ASCII alone
  bool color = false;
};

/// Of what standard output is: its width if it is a terminal, else 80; ASCII where the environment names a locale
/// without UTF-8; colour on a terminal unless NO_COLOR is set.
terminal_look look_of_standard_output();

/// Lines of at most this many columns; with axes, a legend and marks where n and p are. Empty where there is no room
/// for a chart: in less than 40 columns.
std::string terminal_chart(const chart& c, const terminal_look& look);

}  // namespace bloomery::cli
