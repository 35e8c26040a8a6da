// key_hash: the 128-bit hash of a key. Layouts see the hash only, not the key.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// A hash of 128 bits: two 64-bit words, each uniform and independent of the other. Blocked layouts read `hash64` only.
/// The other layouts exceed the target FPR if a hash function sets `high64` to a multiple of `hash64`.
struct key_hash {
  std::uint64_t hash64;  // no initializers: arrays on the stack need not be cleared
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
