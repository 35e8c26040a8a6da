# bloomery_own_target(NAME): compile options of all targets of this project, which do not apply to consumers.
#
# In fuzz builds only the libraries and the fuzz targets are instrumented, because instrumentation costs time.
function(bloomery_own_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${BLOOMERY_WERROR}>:-Werror>)
  if(EMSCRIPTEN)
    # std::size_t has 32 bits there. Sizes in files are 64-bit numbers that are checked against the size of the file,
    # and the module opens no file above 1 GiB.
    target_compile_options(${name} PRIVATE -Wno-shorten-64-to-32 -Wno-sign-conversion -Wno-c++11-narrowing)
  endif()
  if(BLOOMERY_BUILD_FUZZ AND name MATCHES "^(bloomery|bloomery_redis|fuzz_.*)$")
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=stack-depth)
  endif()
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  # Half of the compile time of these is spent on templates of JSON and of the test framework. A few sources together
  # take it once, and their local names must differ. The preset clang, which clang-tidy uses, compiles each alone.
  if(BLOOMERY_UNITY AND name MATCHES "^bloomery_(cli_parts|playground_api|playground_tests|redis_tests|tests)$")
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
  endif()
endfunction()
