"""bloomery installed is found by find_package and pkg-config; its source serves add_subdirectory."""

import glob
import os
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["BLOOMERY_BUILD"]
SOURCE = os.environ["BLOOMERY_SOURCE"]
CONSUMERS = os.path.join(SOURCE, "tests", "consumers")


def run(*command: str, **environment: str) -> str:
    ended = subprocess.run(
        command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.prefix = os.path.join(cls.directory, "prefix")
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    def build_with_cmake(self, consumer: str, *options: str) -> str:
        build = os.path.join(self.directory, consumer)
        run(
            "cmake", "-G", "Ninja", "-S", os.path.join(CONSUMERS, consumer), "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_CXX_FLAGS_DEBUG=-O0", *options,
        )  # fmt: skip
        run("cmake", "--build", build)
        return os.path.join(build, "consumer")

    def test_find_package_finds_it(self) -> None:
        consumer = self.build_with_cmake("find_package", f"-DCMAKE_PREFIX_PATH={self.prefix}")

        run(consumer)

    def test_pkg_config_finds_it(self) -> None:
        (pc,) = glob.glob(os.path.join(self.prefix, "**", "bloomery.pc"), recursive=True)
        build = os.path.join(self.directory, "pkg_config")
        os.mkdir(build)
        makefile = os.path.join(CONSUMERS, "pkg_config", "Makefile")

        run("make", "-C", build, "-f", makefile, f"VPATH={os.path.dirname(makefile)}", PKG_CONFIG_PATH=os.path.dirname(pc))
        # Only a shared build needs to be told where its library is.
        run(os.path.join(build, "consumer"), LD_LIBRARY_PATH=os.path.dirname(os.path.dirname(pc)))

    def test_a_subdirectory_gives_the_shared_library_and_nothing_else(self) -> None:
        consumer = self.build_with_cmake("add_subdirectory", f"-DBLOOMERY_SOURCE={SOURCE}", "-DBUILD_SHARED_LIBS=ON")

        self.assertIn("libbloomery.so", run("ldd", consumer))
        run(consumer)

    def test_every_public_header_is_installed(self) -> None:
        def headers(include: str) -> list[str]:
            return sorted(glob.glob("bloomery/**/*.hpp", root_dir=include, recursive=True))

        self.assertTrue(headers(os.path.join(SOURCE, "include")))
        self.assertEqual(headers(os.path.join(self.prefix, "include")), headers(os.path.join(SOURCE, "include")))

    def test_the_command_is_installed_and_runs(self) -> None:
        run(os.path.join(self.prefix, "bin", "bloomery"), "--help")


if __name__ == "__main__":
    unittest.main()
