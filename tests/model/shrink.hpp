// Shrinking: the shortest and simplest sequence of operations that still fails.
//
// Delta debugging [Zeller & Hildebrandt 2002, "Simplifying and Isolating Failure-Inducing Input"]: runs of operations
// are left out, from half of the sequence down to single ones; then each operation is made simpler by itself; and
// again, until nothing changes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace bloomery_model {

/// @param failing  fails
/// @param fails    replays a sequence on a fresh filter: whether it fails
/// @param simpler  the simpler forms of one operation
/// @param time     after which the shortest sequence so far is good enough
///
/// Example:
///     // Fails with at least two numbers above 9: the result is {10, 10}.
///     shrunk(std::vector<int>{3, 40, 7, 12}, two_above_nine, [](int i) { return std::vector<int>{i / 2, i - 1}; }, 1s);
template <class Operation, class Fails, class Simpler>
std::vector<Operation> shrunk(std::vector<Operation> failing, Fails fails, Simpler simpler,
                              std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  const auto is_over = [&] { return std::chrono::steady_clock::now() > end; };

  const auto leave_out = [&] {
    bool any = false;
    for (std::size_t run = std::max<std::size_t>(failing.size() / 2, 1); run > 0 && !is_over();) {
      bool shorter = false;
      for (std::size_t at = 0; at + run <= failing.size() && !is_over();) {
        std::vector<Operation> without = failing;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(at),
                      without.begin() + static_cast<std::ptrdiff_t>(at + run));
        if (fails(without)) {
          failing = std::move(without);
          shorter = any = true;
        } else {
          at += run;
        }
      }
      if (!shorter || run > failing.size()) run = std::min(run / 2, failing.size());
    }
    return any;
  };

  const auto simplify = [&] {
    bool any = false;
    for (std::size_t at = 0; at < failing.size(); ++at) {
      for (bool again = true; again && !is_over();) {
        again = false;
        for (const Operation& candidate : simpler(failing[at])) {
          std::vector<Operation> changed = failing;
          changed[at] = candidate;
          if (!fails(changed)) continue;
          failing = std::move(changed);
          again = any = true;
          break;
        }
      }
    }
    return any;
  };

  while (!is_over()) {
    const bool shorter = leave_out();
    const bool simplified = simplify();
    if (!shorter && !simplified) break;
  }
  return failing;
}

}  // namespace bloomery_model
