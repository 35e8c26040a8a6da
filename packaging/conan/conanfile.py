"""The recipe of Conan 2 for the C++ library, built from the checkout that contains this file.

    conan create packaging/conan
    conan create packaging/conan -o 'bloomery/*:with_redis=True'

A package that requires it calls find_package(bloomery) and links bloomery::bloomery, or bloomery::redis for filters on
servers.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps


class Bloomery(ConanFile):
    name = "bloomery"
    description = "Bloom filters with exact false-positive rates, in memory, in files and on Redis"
    license = "Apache-2.0"
    topics = ("bloom-filter", "deduplication", "redis")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "with_redis": [True, False]}
    default_options = {"shared": False, "fPIC": True, "with_redis": False}
    implements = ["auto_shared_fpic"]

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._checkout, "CMakeLists.txt"))
        self.version = re.search(r"project\(\s*bloomery\s+VERSION (\S+)", text)[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, src=self._checkout, dst=self.export_sources_folder)

    def requirements(self):
        self.requires("xxhash/[>=0.8.1 <1]", libs=False, visible=False)  # its header is compiled into the library
        if self.options.with_redis:
            self.requires("hiredis/[>=0.14 <2]")
            self.requires("openssl/[>=1.1 <4]")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("bloomery works on Linux only")
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BLOOMERY_XXHASH_INCLUDE_DIR"] = self.dependencies["xxhash"].cpp_info.includedir
        toolchain.cache_variables["BLOOMERY_BUILD_REDIS"] = bool(self.options.with_redis)
        for part in ("CLI", "C", "SQLITE", "PYTHON", "TESTS", "EXAMPLES"):
            toolchain.cache_variables[f"BLOOMERY_BUILD_{part}"] = False
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, folder))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "bloomery")
        library = self.cpp_info.components["bloomery"]
        library.libs = ["bloomery"]
        library.set_property("cmake_target_name", "bloomery::bloomery")
        library.set_property("pkg_config_name", "bloomery")
        library.system_libs = ["m", "pthread"]
        if self.options.with_redis:
            redis = self.cpp_info.components["redis"]
            redis.libs = ["bloomery_redis"]
            redis.requires = ["bloomery", "hiredis::hiredis", "openssl::ssl"]
            redis.set_property("cmake_target_name", "bloomery::redis")
            redis.set_property("pkg_config_name", "bloomery-redis")
