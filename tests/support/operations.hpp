// Random sequences of operations against a model, and the shortest sequence found that fails.
#pragma once

#include "model/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace bloomery_tests {

/// Draws `runs` sequences of `length` operations and runs each; the first that fails is shrunk and printed, each
/// operation by operator<<, with the seed that made it.
///
/// Example:
///     EXPECT_TRUE(holds_for_all(100, 50, [](std::mt19937_64& random) { return int(random() % 10); },
///                               [](const std::vector<int>& numbers) { return sum(numbers) < 0 ? "negative" : ""; }));
template <class Draw, class Fails>
::testing::AssertionResult holds_for_all(int runs, std::size_t length, Draw draw, Fails fails) {
  for (int run = 0; run < runs; ++run) {
    std::mt19937_64 random(static_cast<std::uint64_t>(run) + 1);
    std::vector<decltype(draw(random))> operations;
    for (std::size_t i = 0; i < length; ++i) operations.push_back(draw(random));
    if (std::string(fails(operations)).empty()) continue;
    const auto shortest = bloomery_model::shrunk(
        operations, [&](const auto& some) { return !std::string(fails(some)).empty(); },
        [](const auto& one) { return std::vector(std::size_t{0}, one); }, std::chrono::minutes(1));
    std::ostringstream words;
    words << std::string(fails(shortest)) << ", after (seed " << run + 1 << ", " << shortest.size() << " operations):";
    for (const auto& operation : shortest) words << "\n  " << operation;
    return ::testing::AssertionFailure() << words.str();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace bloomery_tests
