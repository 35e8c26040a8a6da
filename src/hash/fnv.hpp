// FNV-1 with 64 bits by Glenn Fowler, Landon Curt Noll and Phong Vo.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// FNV-1: for each byte, multiplies by the prime and then combines the byte by exclusive or. (FNV-1a does it in the
/// other order.)
///
/// Example:
///     assert(fnv1_64("") == 0xCBF29CE484222325 && fnv1_64("a") == 0xAF63BD4C8601B7BE);
constexpr std::uint64_t fnv1_64(std::string_view bytes) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = hash * 0x100000001B3u ^ static_cast<unsigned char>(byte);
  return hash;
}

}  // namespace bloomery::hashes
