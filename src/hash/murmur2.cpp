#include "hash/murmur2.hpp"

#include <cstddef>
#include <cstring>

namespace bloomery::hashes {

// Words of 8 bytes, little-endian. A shorter word at the end is padded with zeros and not mixed on its own.
std::uint64_t murmur64a(std::string_view bytes, std::uint64_t seed) noexcept {
  constexpr std::uint64_t factor = 0xC6A4A7935BD1E995u;
  constexpr int shift = 47;
  std::uint64_t hash = seed ^ (bytes.size() * factor);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    word *= factor;
    word ^= word >> shift;
    hash = (hash ^ word * factor) * factor;
  }
  if (!bytes.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    hash = (hash ^ word) * factor;
  }
  hash ^= hash >> shift;
  hash *= factor;
  return hash ^ hash >> shift;
}

}  // namespace bloomery::hashes
