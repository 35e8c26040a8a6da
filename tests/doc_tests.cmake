# Tests of the documentation: every public header compiles alone, and every example in
# README.md, in docs/api.md and in the public headers compiles and runs. tools/extract-examples describes the format
# of examples.

# ---- each header alone: one translation unit per header, which includes only that header -----------------------------

set(alone_sources "")
foreach(header IN LISTS public_headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE include_name)
  string(MAKE_C_IDENTIFIER "${include_name}" unit)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${unit}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include <${include_name}>\n" @ONLY)
  list(APPEND alone_sources "${source}")
endforeach()
if(alone_sources)
  add_library(bloomery_headers_alone OBJECT ${alone_sources})
  bloomery_own_target(bloomery_headers_alone)
  target_compile_options(bloomery_headers_alone PRIVATE -Werror)
  target_link_libraries(bloomery_headers_alone PRIVATE bloomery::bloomery)
endif()

# ---- examples --------------------------------------------------------------------------------------------------------

set(extract "${PROJECT_SOURCE_DIR}/tools/extract-examples")
set(readme "${PROJECT_SOURCE_DIR}/README.md")
set(tour "${PROJECT_SOURCE_DIR}/docs/api.md")
set(examples_dir "${CMAKE_CURRENT_BINARY_DIR}/examples")

# Without bloomery::redis its headers still compile, but their examples have nothing to link with.
set(example_headers ${public_headers})
set(redis_if_any "")
if(TARGET bloomery_redis)
  set(redis_if_any bloomery::redis)
else()
  list(FILTER example_headers EXCLUDE REGEX "/redis[^/]*\\.hpp$")
  set(tour "") # it has an example of a filter on servers
endif()

if(public_headers)
  set(readme_if_any "")
  set(programs "")
  if(EXISTS "${readme}")
    set(readme_if_any "${readme}")
    # The programs of README.md are counted during configuration, so a change of README.md configures again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${readme}")
    execute_process(COMMAND "${BLOOMERY_PYTHON}" "${extract}" programs "${readme}" OUTPUT_VARIABLE programs
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" programs "${programs}")
  endif()

  set(generated "${examples_dir}/examples.cpp")
  foreach(program IN LISTS programs)
    list(APPEND generated "${examples_dir}/${program}.cpp" "${examples_dir}/${program}.expected")
  endforeach()
  add_custom_command(
    OUTPUT ${generated}
    COMMAND "${BLOOMERY_PYTHON}" "${extract}" write "${examples_dir}" --include-dir "${PROJECT_SOURCE_DIR}/include"
            ${readme_if_any} ${tour} ${example_headers}
    DEPENDS "${extract}" ${readme_if_any} ${tour} ${example_headers}
    COMMENT "Collecting the examples of README.md, docs/api.md and the public headers"
    VERBATIM)
  add_custom_target(bloomery_example_sources DEPENDS ${generated})

  # An example may declare a variable only for illustration.
  set(lenient -Wno-unused-variable -Wno-unused-but-set-variable -Wno-unused-value -Wno-unused-result)

  add_executable(bloomery_examples "${examples_dir}/examples.cpp")
  add_dependencies(bloomery_examples bloomery_example_sources)
  bloomery_own_target(bloomery_examples)
  target_include_directories(bloomery_examples PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_options(bloomery_examples PRIVATE ${lenient})
  target_link_libraries(bloomery_examples PRIVATE bloomery::bloomery ${redis_if_any} GTest::gtest GTest::gtest_main)
  bloomery_add_suites(bloomery_examples "*" examples 40 120)

  foreach(program IN LISTS programs)
    add_executable(bloomery_${program} "${examples_dir}/${program}.cpp")
    add_dependencies(bloomery_${program} bloomery_example_sources)
    bloomery_own_target(bloomery_${program})
    target_compile_options(bloomery_${program} PRIVATE ${lenient})
    target_link_libraries(bloomery_${program} PRIVATE bloomery::bloomery)
    add_test(NAME examples.${program}
             COMMAND "${BLOOMERY_PYTHON}" "${extract}" run "$<TARGET_FILE:bloomery_${program}>"
                     "${examples_dir}/${program}.expected" WORKING_DIRECTORY "${scratch}")
    set_tests_properties(examples.${program} PROPERTIES LABELS examples TIMEOUT 120)
  endforeach()
endif()
