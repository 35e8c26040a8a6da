# Included by ctest when it starts, with program, filter, label, most, timeout and folder set: adds the tests of a
# GoogleTest program that match the filter. A test of ctest is a suite, or `most` consecutive tests of a larger one: a
# process per test would take longer to start than most tests take to run, and the tests of a suite share their
# servers.
cmake_path(GET program FILENAME name)
if(NOT EXISTS "${program}")
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(
  COMMAND "${program}" --gtest_list_tests "--gtest_filter=${filter}"
  OUTPUT_VARIABLE listed
  RESULT_VARIABLE status
  WORKING_DIRECTORY "${folder}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests: ${status}")
endif()

macro(end_group) # of tests of a suite
  if(group)
    set(test "${suite}")
    if(most EQUAL 1)
      set(test "${group}")
    elseif(number GREATER 1)
      string(APPEND test ".${number}")
    endif()
    add_test("${test}" sh "${CMAKE_CURRENT_LIST_DIR}/run_group.sh" "${program}" "--gtest_filter=${group}" --gtest_brief=1)
    set_tests_properties("${test}" PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77 WORKING_DIRECTORY "${folder}")
  endif()
  set(group "")
  set(count 0)
endmacro()

string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}") # types and values of parameters
string(REGEX MATCHALL "[^\n]+" listed "${listed}")
set(group "")
foreach(line IN LISTS listed)
  if(line MATCHES "^([^ ]+)\\.$")
    end_group()
    set(suite "${CMAKE_MATCH_1}")
    set(number 1)
  elseif(line MATCHES "^  ([^ ]+)$")
    if(count EQUAL most)
      end_group()
      math(EXPR number "${number} + 1")
    endif()
    string(APPEND group ":${suite}.${CMAKE_MATCH_1}")
    string(REGEX REPLACE "^:" "" group "${group}")
    math(EXPR count "${count} + 1")
  endif()
endforeach()
end_group()
