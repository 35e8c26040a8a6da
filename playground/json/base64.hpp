// Base64 with padding [RFC 4648, section 4].
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bloomery::playground {

/// Example:
///     assert(base64_of("fo") == "Zm8=");
std::string base64_of(std::string_view bytes);

/// @return  nothing: a character that is not of the alphabet, or missing or misplaced padding
///
/// Example:
///     assert(bytes_of_base64("Zm8=") == "fo" && !bytes_of_base64("Zm8"));
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace bloomery::playground
