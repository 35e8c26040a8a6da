# The port of vcpkg for the C++ library, built from the checkout that contains this file:
#
#   vcpkg install bloomery --overlay-ports=packaging/vcpkg
#   vcpkg install 'bloomery[redis]' --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES redis BLOOMERY_BUILD_REDIS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DBLOOMERY_BUILD_CLI=OFF -DBLOOMERY_BUILD_C=OFF -DBLOOMERY_BUILD_SQLITE=OFF
          -DBLOOMERY_BUILD_PYTHON=OFF -DBLOOMERY_BUILD_TESTS=OFF -DBLOOMERY_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/bloomery)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
