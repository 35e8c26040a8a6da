// Validation of windows.
#include "registry/windows.hpp"

#include <string>

namespace bloomery {

std::uint64_t window_length::slice_length() const noexcept {
  return count / window_slices + (count % window_slices != 0 ? 1 : 0);
}

std::string window_length::text() const {
  return count == 0 ? "" : std::to_string(count) + (by_time() ? " ms" : " keys");
}

keys_by_generation fullest_generations(const window_length& window, std::uint64_t capacity) noexcept {
  return fullest_generations(capacity, window.by_time() ? 0 : window.slice_length());
}

void check_window_length(const window_length& length) {
  const auto refuse = [](const char* what, const char* expected, const std::string& found) {
    throw error(errc::invalid_argument, {what, "window", expected, found, ""});
  };
  if (length.count == 0) refuse("the window has no length", "a number of keys or a time", "none");
  if (length.count > window_length::most)
    refuse("the window is too long", "at most 2^62", std::to_string(length.count));
}

void check_window_length(const params& p) {
  if (family_of(p) == family::sliding_window) return check_window_length(p.window());
  if (!p.has_window()) return;
  throw error(errc::invalid_argument, {"only sliding-window filters have a window", "window",
                                       "layout sliding or sliding64", "'" + p.layout + p.scheme + "'", ""});
}

}  // namespace bloomery
