// The longer forms of tests, which BLOOMERY_LONG=1 in the environment asks for.
#pragma once

#include <cstdlib>
#include <string_view>

namespace bloomery_tests {

/// Whether BLOOMERY_LONG is set to anything but "" and "0".
inline bool is_long() {
  const char* const value = std::getenv("BLOOMERY_LONG");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace bloomery_tests
