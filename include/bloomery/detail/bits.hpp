// Bit arrays: cell x is byte x>>3, mask 1<<(x&7), with the same bytes in memory, in files and on Redis.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <span>

namespace BLOOMERY_EXPORT bloomery {

/// Whether bit `x` is set.
inline bool test_bit(const std::uint8_t* bytes, std::uint64_t x) noexcept {
  return (bytes[x >> 3] >> (x & 7) & 1) != 0;
}

/// Sets bit `x`; true if it was 0 before.
inline bool set_bit(std::uint8_t* bytes, std::uint64_t x) noexcept {
  std::uint8_t& byte = bytes[x >> 3];
  const auto mask = static_cast<std::uint8_t>(1u << (x & 7));
  const bool was_clear = (byte & mask) == 0;
  byte |= mask;
  return was_clear;
}

/// Number of set bits in `bytes`; reads all of them.
///
/// Example:
///     const std::uint8_t bytes[] = {0x03, 0x80};
///     assert(count_ones(bytes) == 3);
std::uint64_t count_ones(std::span<const std::uint8_t> bytes) noexcept;

/// Writes the number of set bits of each cache line to `ones`.
/// @param bytes  64 for each element of `ones`
/// @throws error invalid_argument: another number of bytes
///
/// Example:
///     const std::uint8_t bytes[128] = {0x03, 0x80};
///     std::uint64_t ones[2];
///     count_ones_of_lines(bytes, ones);
///     assert(ones[0] == 3 && ones[1] == 0);
void count_ones_of_lines(std::span<const std::uint8_t> bytes, std::span<std::uint64_t> ones);

/// Sets in `into` the bits that are set in `from`: the union of two compatible filters.
/// @throws error invalid_argument: the two differ in size
///
/// Example:
///     std::uint8_t bytes[] = {0x0F};
///     const std::uint8_t others[] = {0x3C};
///     unite_bits(bytes, others);
///     assert(bytes[0] == 0x3F);
void unite_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from);

/// Clears in `into` the bits that are clear in `from`: a filter that contains all common keys of two compatible
/// filters, and possibly more.
/// @throws error invalid_argument: the two differ in size
///
/// Example:
///     std::uint8_t bytes[] = {0x0F};
///     const std::uint8_t others[] = {0x3C};
///     intersect_bits(bytes, others);
///     assert(bytes[0] == 0x0C);
void intersect_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from);

}  // namespace bloomery
