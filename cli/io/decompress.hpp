// Decompression of inputs: gzip, zstd, LZ4, xz and bzip2 as sources of bytes.
#pragma once

#include "cli/io/byte_source.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace bloomery::cli {

/// The memory limit of a decoder. xz -9 needs 65 MiB, and a hostile header can ask for 4 GiB. zstd has its own limit of
/// 128 MiB per window.
inline constexpr std::uint64_t most_decoder_bytes = std::uint64_t{256} << 20;

enum class compression : std::uint8_t { gzip, zstd, lz4, xz, bzip2 };

/// The decompressed bytes of `packed`: all members or frames, one after another.
/// @param name  of the input, for messages
/// @throws error  from read(): damaged: the data is invalid, or ends within a member or a frame; too_large:
///                decompression needs more than most_decoder_bytes of memory; incompatible: the data uses a feature
///                that is not supported
std::unique_ptr<byte_source> decompress(compression format, std::string name, std::unique_ptr<byte_source> packed);

}  // namespace bloomery::cli
