# bloomery_own_target(NAME): what every target of this project, and no consumer's, is compiled with.
function(bloomery_own_target name)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${BLOOMERY_WERROR}>:-Werror>)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
