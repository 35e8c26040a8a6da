// 128 bits that stand for a key: all that a layout ever sees of it.
#pragma once

#include <bloomery/export.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// Two 64-bit halves, each uniform and independent of the other. Blocked layouts read `hash64` only; a hash that fills
/// `high64` with a multiple of `hash64` breaks the promised error rate of the others.
struct key_hash {
  std::uint64_t hash64;  // no initialisers: batches keep arrays of these on the stack, and need not clear them first
  std::uint64_t high64;

  friend bool operator==(const key_hash&, const key_hash&) = default;
};

/// High 64 bits of the 128-bit product: maps a uniform x to 0 .. n-1 without a division.
///
/// Example:
///     assert(multiply_high(std::uint64_t{1} << 63, 10) == 5);
constexpr std::uint64_t multiply_high(std::uint64_t x, std::uint64_t n) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<wide>(x) * n) >> 64);
}

}  // namespace bloomery
