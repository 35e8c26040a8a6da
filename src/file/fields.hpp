// Header fields of the library's files: numbers in memory byte order, and names padded with NUL.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

namespace bloomery::format {

static_assert(std::endian::native == std::endian::little, "fields are written in memory byte order");

inline constexpr std::size_t name_bytes = 32;  // at most 31 are used

template <class T>
void put(std::span<std::uint8_t> bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
T get(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

constexpr bool is_name_character(std::uint8_t c) { return c > 0x20 && c < 0x7F; }

/// The name at an offset, which may be empty; nullopt if it is unreadable.
inline std::optional<std::string> name_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  const auto field = bytes.subspan(at, name_bytes);
  const auto end = std::find(field.begin(), field.end(), std::uint8_t{0});
  const bool printable = std::all_of(field.begin(), end, is_name_character);
  const bool padded = end != field.end() && std::all_of(end, field.end(), [](std::uint8_t c) { return c == 0; });
  if (!printable || !padded) return std::nullopt;
  return std::string(field.begin(), end);
}

inline bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace bloomery::format
