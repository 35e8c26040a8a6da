# Headers compile as C++23, and name the standard first as C++17: cmake -DCXX=... -DINCLUDE=... -P standards.cmake
set(source "${CMAKE_CURRENT_BINARY_DIR}/standards.cpp")
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/bloomery/*.hpp")

list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" text)
file(WRITE "${source}" "${text}\n")
execute_process(COMMAND "${CXX}" -std=c++2b -fsyntax-only "-I${INCLUDE}" "${source}" RESULT_VARIABLE status
                ERROR_VARIABLE messages)
if(NOT status EQUAL 0 OR NOT text MATCHES "bloomery/filter.hpp")
  message(FATAL_ERROR "expected all public headers to compile as C++23:\n${messages}")
endif()

foreach(header error.hpp filter.hpp redis/handle.hpp detail/joined_threads.hpp)
  file(WRITE "${source}" "#include <bloomery/${header}>\n")
  execute_process(COMMAND "${CXX}" -std=c++17 -fsyntax-only "-I${INCLUDE}" "${source}" RESULT_VARIABLE status
                  ERROR_VARIABLE messages)
  string(REGEX MATCH "error: [^\n]*" first "${messages}")
  if(status EQUAL 0 OR NOT first MATCHES "bloomery needs C\\+\\+20: compile with -std=c\\+\\+20 or later")
    message(FATAL_ERROR "${header}: expected that the first error names C++20, found \"${first}\":\n${messages}")
  endif()
endforeach()
