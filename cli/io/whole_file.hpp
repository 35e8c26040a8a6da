// Atomic file replacement: a file appears under its name only when it is complete.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::cli {

/// Checks, before the work begins, that a file can be created or replaced at this path.
/// @throws error not_found, not_permitted
void check_can_write(const std::string& path);

/// Creates or replaces the file. On failure, or if the process is killed, the old state remains.
/// @throws error not_found, not_permitted, io
void write_whole(const std::string& path, std::string_view bytes);

}  // namespace bloomery::cli
