// SHA-1, for the scheme `perl` only, which must match Perl's Bloom::Filter. Not for security: collisions are known
// since 2017.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// The five words of the digest, which is big-endian. Copies the message, so it is meant for short messages.
/// [FIPS 180-4, section 6.1]
std::array<std::uint32_t, 5> sha1(std::string_view message);

}  // namespace bloomery::hashes
