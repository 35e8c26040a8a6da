// The decision whether a terminal is written to in colour.
#pragma once

namespace bloomery::cli {

/// Whether a terminal may be written to in colour: unless NO_COLOR is set and not empty [no-color.org], or TERM is
/// dumb.
bool wants_color();

}  // namespace bloomery::cli
