# bloomery_own_target(NAME): what every target of this project, and no consumer's, is compiled with.
#
# A fuzz target needs coverage of the branches in the libraries. Other programs do without, because coverage costs time.
function(bloomery_own_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${BLOOMERY_WERROR}>:-Werror>)
  if(BLOOMERY_BUILD_FUZZ AND name MATCHES "^(bloomery|bloomery_redis|fuzz_.*)$")
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link -fno-sanitize-coverage=stack-depth)
  endif()
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
