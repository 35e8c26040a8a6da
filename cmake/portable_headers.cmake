# For WebAssembly: xxhash, fmt and nlohmann_json from the headers that are installed for this machine. A folder of their
# own has links to them, because /usr/include also has the headers of this machine's C library.
set(portable_headers "${CMAKE_BINARY_DIR}/portable_headers")
file(MAKE_DIRECTORY "${portable_headers}")
foreach(header IN ITEMS xxhash.h fmt nlohmann)
  find_path(folder_of_${header} ${header} PATHS /usr/include /usr/local/include REQUIRED NO_DEFAULT_PATH
                                                NO_CMAKE_FIND_ROOT_PATH)
  file(CREATE_LINK "${folder_of_${header}}/${header}" "${portable_headers}/${header}" SYMBOLIC)
endforeach()

set(BLOOMERY_XXHASH_INCLUDE_DIR "${portable_headers}")
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY FMT_STATIC_THOUSANDS_SEPARATOR=',' FMT_USE_INT128=0
                           FMT_USE_LONG_DOUBLE=0 FMT_USE_FLOAT=0)
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
foreach(package IN ITEMS fmt::fmt nlohmann_json::nlohmann_json)
  target_include_directories(${package} SYSTEM INTERFACE "${portable_headers}")
endforeach()
