// The hash of the Bloom filters of LevelDB, and of RocksDB up to format_version 4: 32 bits, similar to Murmur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// The one to three bytes after the last four: as numbers 0 to 255, or -128 to 127 in RocksDB.
enum class last_bytes : std::uint8_t { are_unsigned, are_signed };

/// Example:
///     assert(leveldb_32("hello", 0xBC9F1D34) == 0xF795964E);
constexpr std::uint32_t leveldb_32(std::string_view key, std::uint32_t seed,
                                   last_bytes last = last_bytes::are_unsigned) noexcept {
  constexpr std::uint32_t factor = 0xC6A4A793;
  const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(key[i])}; };
  std::uint32_t hash = seed ^ (static_cast<std::uint32_t>(key.size()) * factor);
  std::size_t at = 0;
  for (; at + 4 <= key.size(); at += 4) {
    hash = (hash + (byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24)) * factor;
    hash ^= hash >> 16;
  }
  if (at == key.size()) return hash;
  for (std::size_t i = at; i < key.size(); ++i) {
    hash += byte(i) << 8 * (i - at);
    if (last == last_bytes::are_signed && byte(i) >= 0x80) hash -= 0x100u << 8 * (i - at);
  }
  hash *= factor;
  return hash ^ hash >> 24;
}

}  // namespace bloomery::hashes
