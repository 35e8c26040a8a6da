// Files that appear when they are whole: a reader, or the next command, never meets half of one.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::cli {

/// Refuses a path at which no file can be made or replaced: better now than after the work.
/// @throws error not_found, not_permitted
void check_can_write(const std::string& path);

/// Makes the file, or replaces an old one; the old one, or nothing, stays if this fails or the process is killed.
/// @throws error not_found, not_permitted, io
void write_whole(const std::string& path, std::string_view bytes);

}  // namespace bloomery::cli
