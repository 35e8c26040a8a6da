// Writing of a filter file.
#pragma once

#include <bloomery/detail/storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::format {

/// Writes header, payload, checksums and metadata. @param path  named in errors
/// @throws error  invalid_argument (a name or metadata too long, another number of bytes); io
void write(int fd, const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
           const key_counts& counts, const std::string& metadata);

}  // namespace bloomery::format
