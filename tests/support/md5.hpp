// MD5 for tests: some systems' published examples name their keys by it. [RFC 1321]
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery_tests {

/// The digest in lower-case hexadecimal digits.
inline std::string md5_hex(std::string_view message) {
  constexpr int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::uint32_t sine[64];  // floor(2^32 |sin(i + 1)|)
  for (int i = 0; i < 64; ++i) sine[i] = static_cast<std::uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 0x1p32));

  std::string text(message);
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(bits >> (8 * i) & 0xFF);

  std::uint32_t state[4] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
  for (std::size_t block = 0; block < text.size(); block += 64) {
    std::uint32_t words[16] = {};
    for (std::size_t i = 0; i < 64; ++i) {
      words[i / 4] |= std::uint32_t{static_cast<unsigned char>(text[block + i])} << (8 * (i % 4));
    }
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int i = 0; i < 64; ++i) {
      const int round = i / 16;
      const std::uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                                  : round == 1 ? (d & b) | (~d & c)
                                  : round == 2 ? b ^ c ^ d
                                               : c ^ (b | ~d);
      const int word = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
      const std::uint32_t next = b + std::rotl(a + mixed + sine[i] + words[word % 16], turns[round][i % 4]);
      a = d;
      d = c;
      c = b;
      b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }

  std::string hex;
  for (const std::uint32_t word : state) {
    for (int byte = 0; byte < 4; ++byte) {
      for (const int shift : {4, 0}) hex += "0123456789abcdef"[word >> (8 * byte + shift) & 15];
    }
  }
  return hex;
}

/// The keys of the Java and Redis example: MD5 of the 4 little-endian bytes of i.
inline std::string md5_hex_of_number(std::uint32_t i) {
  std::string number;
  for (int byte = 0; byte < 4; ++byte) number += static_cast<char>(i >> (8 * byte) & 0xFF);
  return md5_hex(number);
}

}  // namespace bloomery_tests
