// SHA-1, for the scheme `perl` alone, which must do as Perl's Bloom::Filter does. It is of no use for security:
// collisions have been made since 2017.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// The digest's five words, as they stand in it (each big-endian). Copies the message: meant for short ones.
/// [FIPS 180-4, section 6.1]
std::array<std::uint32_t, 5> sha1(std::string_view message);

}  // namespace bloomery::hashes
