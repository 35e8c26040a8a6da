// SHA-1, implemented from FIPS 180-4.
#include "hash/sha1.hpp"

#include <bit>
#include <cstddef>
#include <string>

namespace bloomery::hashes {
namespace {

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

// Section 5.1.1: a 1 bit, zeros, and the length in bits as 64 bits, padded to a multiple of 64 bytes.
std::string padded(std::string_view message) {
  std::string text(message);
  text += '\x80';
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8);
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 0xFF);
  return text;
}

}  // namespace

std::array<std::uint32_t, 5> sha1(std::string_view message) {
  std::array<std::uint32_t, 5> h = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::string text = padded(message);
  for (std::size_t block = 0; block < text.size(); block += 64) {
    std::uint32_t w[80];
    for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(&text[block + 4 * t]);
    for (std::size_t t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    auto [a, b, c, d, e] = h;
    for (std::size_t t = 0; t < 80; ++t) {
      const std::uint32_t mixed = t < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                                  : t < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                                  : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                           : (b ^ c ^ d) + 0xCA62C1D6;
      const std::uint32_t next = std::rotl(a, 5) + mixed + e + w[t];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
  }
  return h;
}

}  // namespace bloomery::hashes
