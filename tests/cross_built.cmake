# Tests of a cross build, which run in an emulator: a part of test_sources, and GoogleTest built for the target.
#
# These files test code that depends on the processor: kernels, and the byte order of hashes, layouts and files. The
# files in tests/golden/ were written by another program on another machine.
set(files "bulk_insert|fill_statistics|(damaged_|golden_|shared_)?file|file_limits|fold|hash_span|hashes|layout")
string(APPEND files "|kernels|kernel_sets|kernel_choice|single_key")
list(FILTER test_sources INCLUDE REGEX "/(${files})_test\\.cpp$")

# Distributions package GoogleTest's library for their own processor only, but its sources for every processor.
set(BLOOMERY_GOOGLETEST_SOURCE /usr/src/googletest CACHE PATH "For cross builds: has googletest/ and googlemock/")
set(gtest "${BLOOMERY_GOOGLETEST_SOURCE}/googletest")
set(gmock "${BLOOMERY_GOOGLETEST_SOURCE}/googlemock")
if(NOT EXISTS "${gmock}/src/gmock-all.cc")
  message(FATAL_ERROR "GoogleTest's sources are missing: apt-get install googletest, or set BLOOMERY_GOOGLETEST_SOURCE")
endif()
add_library(
  cross_built_gtest STATIC
  "${gtest}/src/gtest-all.cc" "${gtest}/src/gtest_main.cc" "${gmock}/src/gmock-all.cc")
target_include_directories(
  cross_built_gtest SYSTEM
  PUBLIC "${gtest}/include" "${gmock}/include"
  PRIVATE "${gtest}" "${gmock}")
target_link_libraries(cross_built_gtest PUBLIC Threads::Threads)
add_library(GTest::gmock ALIAS cross_built_gtest)
add_library(GTest::gtest_main ALIAS cross_built_gtest)
