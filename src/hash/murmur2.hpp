// MurmurHash64A, the 64-bit variant of MurmurHash2 by Austin Appleby (public domain).
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// MurmurHash64A.
///
/// Example:
///     assert(murmur64a("", 0) == 0);
std::uint64_t murmur64a(std::string_view bytes, std::uint64_t seed) noexcept;

}  // namespace bloomery::hashes
