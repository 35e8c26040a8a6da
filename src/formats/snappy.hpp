// Decompression of Snappy's raw format, which LevelDB uses for blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bloomery::formats {

/// Decompresses a block; empty if it is damaged. Takes at most 22 bytes of memory per compressed byte.
std::optional<std::vector<std::uint8_t>> decompress_snappy(std::span<const std::uint8_t> from);

}  // namespace bloomery::formats
