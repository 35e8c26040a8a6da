// FNV-1 and FNV-1a with 64 bits by Glenn Fowler, Landon Curt Noll and Phong Vo.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

inline constexpr std::uint64_t fnv_start = 0xCBF29CE484222325u;
inline constexpr std::uint64_t fnv_prime = 0x100000001B3u;

/// FNV-1: for each byte, multiplies by the prime and then combines the byte by exclusive or. (FNV-1a does it in the
/// other order.)
///
/// Example:
///     assert(fnv1_64("") == 0xCBF29CE484222325 && fnv1_64("a") == 0xAF63BD4C8601B7BE);
constexpr std::uint64_t fnv1_64(std::string_view bytes) noexcept {
  std::uint64_t hash = fnv_start;
  for (const char byte : bytes) hash = hash * fnv_prime ^ static_cast<unsigned char>(byte);
  return hash;
}

/// One step of FNV-1a, from fnv_start on. The unit may have more than the 8 bits of the definition.
///
/// Example:
///     assert(fnv1a_64(fnv_start, 'a') == 0xAF63DC4C8601EC8C);
constexpr std::uint64_t fnv1a_64(std::uint64_t hash, std::uint64_t unit) noexcept { return (hash ^ unit) * fnv_prime; }

}  // namespace bloomery::hashes
