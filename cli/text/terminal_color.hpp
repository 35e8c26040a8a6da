// Detection of terminal colour support.
#pragma once

namespace bloomery::cli {

/// Whether output to a terminal may be coloured: not if NO_COLOR is set and not empty [no-color.org], or TERM is dumb.
bool wants_color();

}  // namespace bloomery::cli
