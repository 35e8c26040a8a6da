// Unnamed temporary files: their folder, and its free space.
#pragma once

#include "platform/posix.hpp"

#include <cstdint>
#include <string>

namespace bloomery::posix {

/// Creates a file without a name in `folder`, for reading and writing. It disappears with its descriptor, even if the
/// process is killed.
/// @throws error  not_found, not_permitted, io
descriptor temporary_file(const std::string& folder);

/// The folder of temporary files: TMPDIR, or else the folder that contains `path`.
std::string temporary_folder(const std::string& path);

/// Free bytes on the disk of `folder`. @throws error  not_found, not_permitted, io
std::uint64_t free_bytes(const std::string& folder);

}  // namespace bloomery::posix
