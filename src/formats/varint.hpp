// Variable-length integers: seven bits per byte, the lowest first, and a high bit that is set if more bytes follow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace bloomery::formats {

/// Removes a number from the beginning of `from`; empty if it is longer than `from` or than 64 bits.
inline std::optional<std::uint64_t> take_varint(std::span<const std::uint8_t>& from) {
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < 10 && i < from.size(); ++i) {
    const std::uint8_t byte = from[i];
    if (i == 9 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7Fu} << 7 * i;
    if (byte >= 0x80) continue;
    from = from.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

}  // namespace bloomery::formats
