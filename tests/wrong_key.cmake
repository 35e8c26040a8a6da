# A key type that no hash supports causes one readable error line: cmake -DCXX=... -DINCLUDE=... -P wrong_key.cmake
set(source "${CMAKE_CURRENT_BINARY_DIR}/wrong_key.cpp")
file(WRITE "${source}" "#include <bloomery/filter.hpp>\nbloomery::filter<double> seen(1000, 0.01);\n")
execute_process(COMMAND "${CXX}" -std=c++20 -fsyntax-only "-I${INCLUDE}" "${source}" RESULT_VARIABLE status
                ERROR_VARIABLE messages)
string(REGEX MATCHALL "error: " errors "${messages}")
list(LENGTH errors count)
if(status EQUAL 0 OR NOT count EQUAL 1 OR NOT messages MATCHES "keys of a filter are text .std::string, std::string_view. or integers")
  message(FATAL_ERROR "expected one error about the type of the key, found ${count}:\n${messages}")
endif()
