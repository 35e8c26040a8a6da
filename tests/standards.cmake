# Headers compile as C++23 without warnings, and name the standard first as C++17.
# cmake -DCXX=... -DINCLUDE=... -P standards.cmake
set(source "${CMAKE_CURRENT_BINARY_DIR}/standards.cpp")
file(GLOB_RECURSE headers RELATIVE "${INCLUDE}" "${INCLUDE}/bloomery/*.hpp")

list(TRANSFORM headers REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE includes)
list(JOIN includes "\n" text)
string(APPEND text "\n")
string(APPEND text [=[
using namespace bloomery;
template <class Filter, class Key>
bool used(Filter filter, const std::vector<Key>& keys) {
  filter.insert(keys[0]);
  if constexpr (requires { filter.insert_all(keys); }) filter.insert_all(keys);
  std::vector<std::uint64_t> found(keys.size());
  if constexpr (requires { filter.may_contain(keys, found); }) filter.may_contain(keys, found);
  return filter.may_contain(keys[0]) && filter.insert_count() > 0;
}
template bool used(filter<>, const std::vector<std::string_view>&);
template bool used(filter<int>, const std::vector<int>&);
template bool used(filter<std::uint64_t, layouts::counting>, const std::vector<std::uint64_t>&);
template bool used(mapped_filter<std::string, layouts::classic>, const std::vector<std::string>&);
template bool used(scalable_filter<std::uint64_t>, const std::vector<std::uint64_t>&);
template bool used(concurrent_filter<>, const std::vector<std::string_view>&);
]=])
execute_process(COMMAND "${CXX}" --version OUTPUT_VARIABLE compiler)
set(warnings -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror)
if(NOT compiler MATCHES "clang")
  list(APPEND warnings -Wuseless-cast)
endif()
file(WRITE "${source}" "${text}\n")
execute_process(COMMAND "${CXX}" -std=c++2b ${warnings} -fsyntax-only "-I${INCLUDE}" "${source}" RESULT_VARIABLE status
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
