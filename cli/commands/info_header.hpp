// info --header: the contents of the header of a file.
#pragma once

#include "cli/commands/options.hpp"

#include <string>

namespace bloomery::cli {

/// @throws error  as mapped_storage::open; invalid_argument: the address of a filter on servers
exit_status info_of_header(const std::string& path, bool json);

}  // namespace bloomery::cli
