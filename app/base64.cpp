// Base64 [RFC 4648], with padding.
#include "app/base64.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace bloomery::app {
namespace {

constexpr std::string_view common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::uint8_t no_digit = 64;

std::array<std::uint8_t, 256> digits_of(std::string_view alphabet) {
  std::array<std::uint8_t, 256> digits;
  digits.fill(no_digit);
  for (std::size_t i = 0; i < 64; ++i) {
    const char c = i < common.size() ? common[i] : alphabet[i - common.size()];
    digits[static_cast<std::uint8_t>(c)] = static_cast<std::uint8_t>(i);
  }
  return digits;
}

}  // namespace

std::string base64_of(std::span<const std::uint8_t> bytes, std::string_view alphabet) {
  const std::string all = std::string(common) + std::string(alphabet);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto some = bytes.subspan(at, std::min<std::size_t>(3, bytes.size() - at));
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < some.size() ? some[i] : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= some.size() ? all[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text, std::uint64_t bytes,
                                                     std::string_view alphabet) {
  if (text.size() % 4 != 0 || text.size() / 4 != bytes / 3 + (bytes % 3 != 0)) return std::nullopt;
  const std::size_t padding = (3 - bytes % 3) % 3;
  if (text.substr(text.size() - padding) != std::string_view("==").substr(0, padding)) return std::nullopt;
  text.remove_suffix(padding);
  const std::array<std::uint8_t, 256> digits = digits_of(alphabet);
  std::vector<std::uint8_t> result;
  result.reserve(bytes);
  std::uint32_t group = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::uint8_t digit = digits[static_cast<std::uint8_t>(c)];
    if (digit == no_digit) return std::nullopt;
    group = (group << 6 | digit) & 0xFFFF;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    result.push_back(static_cast<std::uint8_t>(group >> bits));
  }
  if ((group & ((1u << bits) - 1)) != 0) return std::nullopt;
  return result;
}

}  // namespace bloomery::app
