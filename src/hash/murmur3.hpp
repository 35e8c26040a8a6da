// MurmurHash3 by Austin Appleby (public domain), in the two variants used by filters of other systems.
#pragma once

#include <bloomery/detail/key_hash.hpp>

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// MurmurHash3_x64_128: hash64 and high64 are the first and second eight bytes of the output, little-endian.
key_hash murmur3_x64_128(std::string_view bytes, std::uint32_t seed) noexcept;

/// MurmurHash3_x86_32.
std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept;

/// Spark's variant of it, Murmur3_x86_32.hashUnsafeBytes: each byte after the last whole word is extended with its sign
/// and mixed as a word of its own. Equal to murmur3_x86_32 if the length is a multiple of 4.
std::uint32_t murmur3_of_spark(std::string_view bytes, std::uint32_t seed) noexcept;

}  // namespace bloomery::hashes
