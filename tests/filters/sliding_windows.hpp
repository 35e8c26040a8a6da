// Times, types and checks that the tests of sliding-window filters share.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/sliding_window_filter.hpp>

#include "support/errors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace bloomery_tests {

using layouts_with_window = ::testing::Types<bloomery::layouts::sliding, bloomery::layouts::sliding64>;

inline constexpr std::uint64_t hour = 3'600'000;
inline constexpr std::uint64_t some_day = 1'700'000'000'000;  // milliseconds since 1970

template <class Layout>
using filter_of_integers = bloomery::sliding_window_filter<std::uint64_t, Layout, bloomery::mix>;

// Expects that the action throws this code, with these words in the message.
#define EXPECT_ERROR(action, wanted, words)                                \
  do {                                                                     \
    const auto thrown = bloomery_tests::error_of([&] { action; });         \
    ASSERT_TRUE(thrown.has_value()) << #action;                            \
    EXPECT_EQ(thrown->code(), wanted) << thrown->what();                   \
    EXPECT_THAT(std::string(thrown->what()), ::testing::HasSubstr(words)); \
  } while (false)

}  // namespace bloomery_tests
