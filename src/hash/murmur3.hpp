// MurmurHash3 by Austin Appleby (public domain), both forms that other systems' filters use, over any bytes.
#pragma once

#include <bloomery/key_hash.hpp>

#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// MurmurHash3_x64_128: lo and hi are the first and the second eight bytes of its output, little-endian.
key_hash murmur3_x64_128(std::string_view bytes, std::uint32_t seed) noexcept;

/// MurmurHash3_x86_32.
std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept;

}  // namespace bloomery::hashes
