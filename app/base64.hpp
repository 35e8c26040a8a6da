// Base64 [RFC 4648], with padding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::app {

/// The last two characters of an alphabet.
inline constexpr std::string_view base64_standard = "+/";
inline constexpr std::string_view base64_for_urls = "-_";

std::string base64_of(std::span<const std::uint8_t> bytes, std::string_view alphabet);

/// The bytes, or nothing if the text is not exactly what base64_of() writes for them. Takes no memory for other texts
/// than those of `bytes` bytes.
std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text, std::uint64_t bytes,
                                                     std::string_view alphabet);

}  // namespace bloomery::app
