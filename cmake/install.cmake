# Installation of libraries, headers, command and man pages, and of the files for find_package(bloomery) and pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bloomery")

install(TARGETS bloomery EXPORT bloomeryTargets)
set(headers_left_out "")
if(TARGET bloomery_redis)
  # bloomery::redis finds the main library in its own directory.
  set_target_properties(bloomery_redis PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS bloomery_redis EXPORT bloomeryRedisTargets)
else()
  set(headers_left_out PATTERN "redis.hpp" EXCLUDE PATTERN "redis" EXCLUDE) # their library is not built
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/bloomery" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING
        PATTERN "*.hpp" ${headers_left_out})
if(TARGET bloomery_c)
  set_target_properties(bloomery_c PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS bloomery_c EXPORT bloomeryCTargets)
  install(FILES "${PROJECT_SOURCE_DIR}/include/bloomery.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(TARGET bloomery_cli)
  install(TARGETS bloomery_cli)
  # Absent only if the program was compiled for another machine and cannot run here.
  set(completions "${PROJECT_BINARY_DIR}/completions")
  install(FILES "${completions}/bash" RENAME bloomery DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" OPTIONAL)
  install(FILES "${completions}/zsh" RENAME _bloomery DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
  install(FILES "${completions}/fish" RENAME bloomery.fish DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" OPTIONAL)
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET bloomery_cli)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" FILES_MATCHING PATTERN "*.1")
endif()

# find_package(bloomery), and with COMPONENTS redis or c
install(EXPORT bloomeryTargets NAMESPACE bloomery:: DESTINATION "${package_dir}")
if(TARGET bloomery_c)
  install(EXPORT bloomeryCTargets NAMESPACE bloomery:: DESTINATION "${package_dir}")
endif()
if(TARGET bloomery_redis)
  install(EXPORT bloomeryRedisTargets NAMESPACE bloomery:: DESTINATION "${package_dir}")
endif()
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/bloomeryConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/bloomeryConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bloomeryConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bloomeryConfig.cmake" "${PROJECT_BINARY_DIR}/bloomeryConfigVersion.cmake"
        DESTINATION "${package_dir}")

# pkg-config: the prefix is relative to the location of the file, so that `cmake --install --prefix` can relocate the
# installation.
file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_INCLUDEDIR includedir_is_absolute)
set(pc_prefix "\${pcfiledir}/${prefix_from_pc}")
set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
if(libdir_is_absolute OR includedir_is_absolute)
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
endif()

# install_pc(NAME DESCRIPTION ... [LIBS ...] [LIBS_PRIVATE ...] [REQUIRES ...] [REQUIRES_PRIVATE ...])
function(install_pc pc_name)
  cmake_parse_arguments(PARSE_ARGV 1 pc "" "DESCRIPTION;LIBS;LIBS_PRIVATE;REQUIRES;REQUIRES_PRIVATE" "")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/bloomery.pc.in" "${PROJECT_BINARY_DIR}/${pc_name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${pc_name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

# With a static library, users must also link its dependencies; a shared library refers to its own.
set(description "${PROJECT_DESCRIPTION} (C++20)")
set(redis_description "Bloom filters on servers of Redis or Valkey that many machines share (C++20)")
set(bloomery_itself "bloomery = ${PROJECT_VERSION}")
if(BUILD_SHARED_LIBS)
  install_pc(bloomery DESCRIPTION "${description}" LIBS "-lbloomery" LIBS_PRIVATE "-pthread")
else()
  install_pc(bloomery DESCRIPTION "${description}" LIBS "-lbloomery -pthread" LIBS_PRIVATE "-lstdc++ -lm")
endif()
if(TARGET bloomery_redis AND BUILD_SHARED_LIBS)
  install_pc(bloomery-redis DESCRIPTION "${redis_description}" LIBS "-lbloomery_redis" REQUIRES "${bloomery_itself}"
             REQUIRES_PRIVATE "hiredis, openssl")
elseif(TARGET bloomery_redis)
  install_pc(bloomery-redis DESCRIPTION "${redis_description}" LIBS "-lbloomery_redis"
             REQUIRES "${bloomery_itself}, hiredis, openssl")
endif()
if(TARGET bloomery_c)
  install_pc(bloomery-c DESCRIPTION "The C interface of bloomery, Bloom filters" LIBS "-lbloomery_c")
endif()
