// info --build: how this program was built.
#pragma once

#include "cli/commands/options.hpp"

namespace bloomery::cli {

exit_status info_of_build(bool json);

}  // namespace bloomery::cli
