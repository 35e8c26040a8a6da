# The API, its filters and the inspection of files: neither sockets nor Redis, and no threads by default.
if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json REQUIRED)
endif()
set(folder "${PROJECT_SOURCE_DIR}/playground")
file(GLOB api_sources CONFIGURE_DEPENDS "${folder}/api/*.cpp" "${folder}/inspect/*.cpp"
     "${folder}/json/*.cpp" "${folder}/session/*.cpp")
add_library(bloomery_playground_api STATIC ${api_sources})
bloomery_own_target(bloomery_playground_api)
target_compile_definitions(bloomery_playground_api PRIVATE BLOOMERY_VERSION="${PROJECT_VERSION}")
target_include_directories(bloomery_playground_api PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(bloomery_playground_api PUBLIC bloomery_app nlohmann_json::nlohmann_json)
