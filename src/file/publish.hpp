// Atomic writing of a filter file.
#pragma once

#include <bloomery/detail/storage.hpp>
#include <bloomery/params.hpp>

#include "platform/posix.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::format {

/// Writes header, payload, checksums and metadata, and renames the file to its final name. Returns the locked
/// descriptor.
/// @throws error  invalid_argument (a name or metadata too long, another number of bytes); as
///        posix::replacement::publish
posix::descriptor publish(posix::replacement& file, const std::string& path, const params& parameters,
                          std::span<const std::uint8_t> payload, const key_counts& counts, const std::string& metadata);

}  // namespace bloomery::format
