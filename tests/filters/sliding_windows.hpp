// Times, types and checks that the tests of sliding-window filters share.
#pragma once

#include <bloomery/sliding_window_filter.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace bloomery_tests {

using layouts_with_window = ::testing::Types<bloomery::layouts::sliding, bloomery::layouts::sliding64>;

inline constexpr std::uint64_t hour = 3'600'000;
inline constexpr std::uint64_t some_day = 1'700'000'000'000;  // milliseconds since 1970

template <class Layout>
using filter_of_integers = bloomery::sliding_window_filter<std::uint64_t, Layout, bloomery::mix>;

}  // namespace bloomery_tests
