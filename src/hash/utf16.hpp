// UTF-16 code units of UTF-8 text, as a JavaScript program sees text that it reads from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace bloomery::hashes {

/// Calls each(std::uint16_t) for each UTF-16 code unit of the text. Invalid UTF-8 is replaced as by TextDecoder and by
/// Node.js's Buffer.toString(): U+FFFD for each byte that begins no character, and for each beginning of a character
/// that the next byte does not continue [Unicode 15, section 3.9, "U+FFFD Substitution of Maximal Subparts"].
template <class Each>
constexpr void each_utf16_unit(std::string_view text, Each&& each) {
  constexpr std::uint16_t replacement = 0xFFFD;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto first = static_cast<std::uint8_t>(text[at++]);
    if (first < 0x80) {
      each(std::uint16_t{first});
      continue;
    }
    const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4) {
      each(replacement);
      continue;
    }
    // The second byte has a smaller range where a shorter form, a surrogate or a number beyond U+10FFFF begins.
    std::uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    std::uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    std::uint32_t code = first & (0x3Fu >> more);
    std::size_t found = 0;
    for (; found < more && at < text.size(); ++found, ++at) {
      const auto next = static_cast<std::uint8_t>(text[at]);
      if (next < least || next > most) break;
      code = code << 6 | (next & 0x3Fu);
      least = 0x80;
      most = 0xBF;
    }
    if (found < more) {
      each(replacement);
    } else if (code < 0x10000) {
      each(static_cast<std::uint16_t>(code));
    } else {
      each(static_cast<std::uint16_t>(0xD7C0 + (code >> 10)));
      each(static_cast<std::uint16_t>(0xDC00 + (code & 0x3FF)));
    }
  }
}

}  // namespace bloomery::hashes
