// What most tests use: GoogleTest, the containers and algorithms of the standard library, errors and files.
#pragma once

#include "support/errors.hpp"
#include "support/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery_tests {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_literals;

/// Names of typed tests: the name of the layout. TYPED_TEST_SUITE(X, layouts, names_of_layouts).
struct names_of_layouts {
  template <class Layout>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    return std::string(Layout::name);
  }
};

/// Expects that the action throws this code, with these words in the message.
#define EXPECT_ERROR(action, wanted, words)                                \
  do {                                                                     \
    const auto thrown = bloomery_tests::error_of([&] { action; });         \
    ASSERT_TRUE(thrown.has_value()) << #action;                            \
    EXPECT_EQ(thrown->code(), wanted) << thrown->what();                   \
    EXPECT_THAT(std::string(thrown->what()), ::testing::HasSubstr(words)); \
  } while (false)

}  // namespace bloomery_tests
