# Toolchain for WebAssembly: Emscripten, as Debian and other distributions package it.
find_program(BLOOMERY_EMCC emcc)
if(NOT BLOOMERY_EMCC)
  message(FATAL_ERROR "emcc is missing: apt-get install emscripten")
endif()
file(REAL_PATH "${BLOOMERY_EMCC}" emcc)
cmake_path(GET emcc PARENT_PATH folder)
include("${folder}/cmake/Modules/Platform/Emscripten.cmake")

# Exceptions of WebAssembly itself take less time and space than Emscripten's, which go through JavaScript.
set(CMAKE_CXX_FLAGS_INIT "-fwasm-exceptions")
