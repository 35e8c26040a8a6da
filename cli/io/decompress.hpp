// Decompression of inputs: gzip and zstd as sources of bytes.
#pragma once

#include "cli/io/byte_source.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::cli {

enum class compression : std::uint8_t { gzip, zstd };

/// The decompressed bytes of `packed`: all members or frames, one after another.
/// @param name  of the input, for messages
/// @throws error  from read(): damaged: the data is invalid, or ends within a member or a frame
std::unique_ptr<byte_source> decompress(compression format, std::string name, std::unique_ptr<byte_source> packed);

}  // namespace bloomery::cli
