# GoogleTest from its sources. Distributions package its library for their own processor and C++ library only, but its
# sources for all.
set(BLOOMERY_GOOGLETEST_SOURCE /usr/src/googletest CACHE PATH "Has googletest/ and googlemock/")
set(gtest "${BLOOMERY_GOOGLETEST_SOURCE}/googletest")
set(gmock "${BLOOMERY_GOOGLETEST_SOURCE}/googlemock")
if(NOT EXISTS "${gmock}/src/gmock-all.cc")
  message(FATAL_ERROR "GoogleTest's sources are missing: apt-get install googletest, or set BLOOMERY_GOOGLETEST_SOURCE")
endif()
add_library(
  bloomery_gtest STATIC
  "${gtest}/src/gtest-all.cc" "${gtest}/src/gtest_main.cc" "${gmock}/src/gmock-all.cc")
target_include_directories(
  bloomery_gtest SYSTEM
  PUBLIC "${gtest}/include" "${gmock}/include"
  PRIVATE "${gtest}" "${gmock}")
target_link_libraries(bloomery_gtest PUBLIC Threads::Threads)
add_library(GTest::gmock ALIAS bloomery_gtest)
add_library(GTest::gtest_main ALIAS bloomery_gtest)
