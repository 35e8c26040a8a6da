#include "playground/json/base64.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace bloomery::playground {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

// Three bytes are four letters of 6 bits each; one or two bytes at the end are two or three letters.
std::string base64_of(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view some = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < some.size() ? static_cast<std::uint8_t>(some[i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += i <= some.size() ? alphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::string_view letters = text.substr(0, std::min(text.find('='), text.size()));
  const std::size_t padding = text.size() - letters.size();
  if (padding > 2 || text.substr(letters.size()) != std::string_view("==").substr(0, padding)) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const std::size_t value = alphabet.find(letters[i]);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 255);
  }
  return bytes;
}

}  // namespace bloomery::playground
