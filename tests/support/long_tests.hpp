// The amount of testing: longer forms of tests, selected by BLOOMERY_LONG=1 in the environment, and shorter forms for
// sanitizers.
#pragma once

#include <cstdlib>
#include <string_view>

namespace bloomery_tests {

/// Whether BLOOMERY_LONG is set to anything but "" and "0".
inline bool is_long() {
  const char* const value = std::getenv("BLOOMERY_LONG");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BLOOMERY_TESTS_SANITIZED true
#elif defined(__has_feature)
#define BLOOMERY_TESTS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define BLOOMERY_TESTS_SANITIZED false
#endif

/// Whether this build has a sanitizer, which makes it several times slower. Invalid memory accesses and races show in
/// few repetitions; the builds without a sanitizer repeat tests often enough to judge what depends on chance.
inline constexpr bool under_sanitizer = BLOOMERY_TESTS_SANITIZED;

/// Repetitions of a test: `usual`, or `sanitized` under a sanitizer, or `in_a_long_run`.
template <class Count>
Count repetitions(Count usual, Count sanitized, Count in_a_long_run) {
  return is_long() ? in_a_long_run : under_sanitizer ? sanitized : usual;
}

}  // namespace bloomery_tests
