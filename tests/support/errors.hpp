// The error that an action throws, for tests of errors.
#pragma once

#include <bloomery/error.hpp>

#include <optional>
#include <ostream>
#include <utility>

namespace bloomery {

inline void PrintTo(errc code, std::ostream* out) { *out << "errc " << static_cast<int>(code); }

}  // namespace bloomery

namespace bloomery_tests {

/// The bloomery::error that the action throws; nothing if it throws none. Other exceptions pass.
template <class Action>
std::optional<bloomery::error> error_of(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const bloomery::error& e) {
    return e;
  }
  return std::nullopt;
}

template <class Action>
std::optional<bloomery::errc> code_of(Action&& action) {
  const auto thrown = error_of(std::forward<Action>(action));
  return thrown ? std::optional(thrown->code()) : std::nullopt;
}

}  // namespace bloomery_tests
