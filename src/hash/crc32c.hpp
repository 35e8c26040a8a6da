// CRC-32C (Castagnoli), the checksum of blocks in tables of LevelDB and RocksDB.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace bloomery::hashes {

namespace detail {

inline constexpr auto crc32c_of_bytes = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
    table[byte] = crc;
  }
  return table;
}();

}  // namespace detail

/// Example:
///     const std::uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
///     assert(crc32c(digits) == 0xE3069283);
constexpr std::uint32_t crc32c(std::span<const std::uint8_t> bytes) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) crc = crc >> 8 ^ detail::crc32c_of_bytes[(crc ^ byte) & 0xFF];
  return ~crc;
}

/// The form in which LevelDB stores checksums: a checksum of data that contains checksums would be weak.
constexpr std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) noexcept {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

}  // namespace bloomery::hashes
