# Library, headers, command, man page; bloomery is then found by find_package(bloomery) and by pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bloomery")

install(TARGETS bloomery EXPORT bloomeryTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/bloomery" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING
        PATTERN "*.hpp")
if(TARGET bloomery_cli)
  if(BUILD_SHARED_LIBS)
    file(RELATIVE_PATH from_bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    set_target_properties(bloomery_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${from_bin_to_lib}")
  endif()
  install(TARGETS bloomery_cli)
endif()
if(EXISTS "${PROJECT_SOURCE_DIR}/docs/bloomery.1")
  install(FILES "${PROJECT_SOURCE_DIR}/docs/bloomery.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()

# find_package(bloomery)
install(EXPORT bloomeryTargets NAMESPACE bloomery:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/bloomeryConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/bloomeryConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bloomeryConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bloomeryConfig.cmake" "${PROJECT_BINARY_DIR}/bloomeryConfigVersion.cmake"
        DESTINATION "${package_dir}")

# pkg-config: the prefix is told from where the file lies, so that `cmake --install --prefix` may move the whole.
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
# Who links the static library must name the threads too; the shared one carries its own.
set(pc_libs "")
set(pc_libs_private "-pthread")
if(NOT BUILD_SHARED_LIBS)
  set(pc_libs " -pthread")
  set(pc_libs_private "-lstdc++ -lm")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/bloomery.pc.in" "${PROJECT_BINARY_DIR}/bloomery.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bloomery.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
