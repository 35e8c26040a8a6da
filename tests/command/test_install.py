"""bloomery installed is found by find_package and pkg-config; its source serves add_subdirectory."""

import functools
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["BLOOMERY_BUILD"]
SOURCE = os.environ["BLOOMERY_SOURCE"]
LONG = os.environ.get("BLOOMERY_LONG", "") not in ("", "0")
CONSUMERS = os.path.join(SOURCE, "tests", "consumers")

DIRECTORY = tempfile.mkdtemp()
unittest.addModuleCleanup(shutil.rmtree, DIRECTORY)


def run(*command: str, status: int = 0, **environment: str) -> str:
    ended = subprocess.run(
        command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ended.returncode != status:
        raise AssertionError(f"{' '.join(command)}: exit status {ended.returncode}, not {status}\n{ended.stdout}")
    return ended.stdout


WITHOUT_BOTH = ("-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON")  # hiredis and OpenSSL


def new_directory() -> str:
    return tempfile.mkdtemp(dir=DIRECTORY)


def configuring(source: str, build: str, *options: str) -> list[str]:
    quickly = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
    return ["cmake", "-G", "Ninja", "-S", source, "-B", build, *quickly, *options]


def build_consumers(way: str, *options: str) -> str:
    """The folder of the built programs."""
    build = new_directory()
    run(*configuring(os.path.join(CONSUMERS, way), build, *options))
    run("cmake", "--build", build)
    return build


def installed(build: str) -> str:
    prefix = new_directory()
    run("cmake", "--install", build, "--prefix", prefix)
    return prefix


def headers(include: str) -> list[str]:
    return sorted(glob.glob("bloomery/**/*.hpp", root_dir=include, recursive=True))


def is_about_redis(header: str) -> bool:
    return header.startswith(("bloomery/redis.hpp", "bloomery/redis/"))


class Installed:
    """What holds of static and of shared libraries; build() says where they are built."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.prefix = installed(cls.build())

    def test_find_package_finds_both(self) -> None:
        consumers = build_consumers("find_package", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCOMPONENTS=redis", *self.FIND_OPTIONS)

        run(os.path.join(consumers, "consumer"))
        run(os.path.join(consumers, "redis_consumer"))

    def test_pkg_config_finds_both(self) -> None:
        (pc,) = glob.glob(os.path.join(self.prefix, "**", "bloomery.pc"), recursive=True)
        build = new_directory()
        makefile = os.path.join(CONSUMERS, "pkg_config", "Makefile")

        run("make", "-C", build, "-f", makefile, f"VPATH={os.path.dirname(makefile)}", PKG_CONFIG_PATH=os.path.dirname(pc))

        for consumer in ("consumer", "redis_consumer"):
            # Only a shared build needs the location of its libraries.
            run(os.path.join(build, consumer), LD_LIBRARY_PATH=os.path.dirname(os.path.dirname(pc)))

    def test_the_c_interface_is_found_by_pkg_config(self) -> None:
        (pc,) = glob.glob(os.path.join(self.prefix, "**", "bloomery-c.pc"), recursive=True)
        build = new_directory()
        program = os.path.join(build, "cities")
        flags = run("pkg-config", "--cflags", "--libs", "bloomery-c", PKG_CONFIG_PATH=os.path.dirname(pc)).split()

        run("cc", "-o", program, os.path.join(SOURCE, "examples", "languages", "cities.c"), *flags)

        printed = run("env", "-C", build, program, LD_LIBRARY_PATH=os.path.dirname(os.path.dirname(pc)))
        self.assertEqual(printed, "3 keys, 2 new\nMadrid: maybe present\nBerlin: certainly absent\n")

    def test_find_package_finds_the_c_interface(self) -> None:
        consumers = build_consumers("find_package_c", f"-DCMAKE_PREFIX_PATH={self.prefix}")

        printed = run("env", "-C", consumers, os.path.join(consumers, "cities"))
        self.assertEqual(printed, "3 keys, 2 new\nMadrid: maybe present\nBerlin: certainly absent\n")

    def test_every_public_header_is_installed(self) -> None:
        self.assertTrue(headers(os.path.join(SOURCE, "include")))
        self.assertEqual(headers(os.path.join(self.prefix, "include")), headers(os.path.join(SOURCE, "include")))


class Static(Installed, unittest.TestCase):
    """The default build."""

    FIND_OPTIONS = ()

    @staticmethod
    def build() -> str:
        return BUILD

    def test_find_package_finds_the_main_library_without_hiredis_and_openssl(self) -> None:
        consumers = build_consumers("find_package", f"-DCMAKE_PREFIX_PATH={self.prefix}", *WITHOUT_BOTH)

        run(os.path.join(consumers, "consumer"))

    def test_the_command_is_installed_and_runs(self) -> None:
        command = os.path.join(self.prefix, "bin", "bloomery")
        run(command, "--help")
        for shell, place in ("bash", "bash-completion/completions/bloomery"), ("zsh", "zsh/site-functions/_bloomery"), ("fish", "fish/vendor_completions.d/bloomery.fish"):
            with open(os.path.join(self.prefix, "share", place), encoding="utf-8") as script:
                self.assertEqual(script.read(), run(command, "completion", shell))

    def test_the_manual_pages_are_installed(self) -> None:
        installed = os.listdir(os.path.join(self.prefix, "share", "man", "man1"))

        self.assertIn("bloomery-build.1", installed)
        self.assertEqual(sorted(installed), sorted(os.listdir(os.path.join(SOURCE, "docs", "man"))))


class Shared(Installed, unittest.TestCase):
    """Made by a program that has bloomery's source beside its own and wants shared libraries, and their installation.

    Objects of the library come from BUILD where their options are the same: see reused_objects.py.
    """

    FIND_OPTIONS = WITHOUT_BOTH  # a shared library has its own

    @staticmethod
    @functools.cache
    def build() -> str:
        wanted = [f"-D{name}=ON" for name in ("BUILD_SHARED_LIBS", "BLOOMERY_BUILD_REDIS", "BLOOMERY_BUILD_C", "BLOOMERY_INSTALL")]
        if not LONG:
            launcher = os.path.join(SOURCE, "tests", "consumers", "reused_objects.py")
            wanted.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};-S;-E;{launcher};{BUILD}")
        return build_consumers("add_subdirectory", f"-DBLOOMERY_SOURCE={SOURCE}", *wanted)

    def test_a_subdirectory_gives_both(self) -> None:
        for name, library in (("consumer", "libbloomery.so"), ("redis_consumer", "libbloomery_redis.so")):
            consumer = os.path.join(self.build(), name)

            self.assertIn(library, run("ldd", consumer))
            run(consumer)

    def test_only_public_declarations_are_exported(self) -> None:
        (library,) = glob.glob(os.path.join(self.build(), "**", "libbloomery.so"), recursive=True)

        exported = run("nm", "--dynamic", "--defined-only", "--demangle", library)

        self.assertIn("bloomery::any_filter::open", exported)
        for hidden in ("kernels", "rates", "format", "free_probes"):
            self.assertNotIn(f"bloomery::{hidden}::", exported)


class WithoutRedis(unittest.TestCase):
    """Nothing is compiled: to ask what is installed, an empty file is library enough."""

    @classmethod
    def setUpClass(cls) -> None:
        build = new_directory()
        beside = os.path.join(CONSUMERS, "add_subdirectory")
        run(*configuring(beside, build, f"-DBLOOMERY_SOURCE={SOURCE}", "-DBLOOMERY_INSTALL=ON"))
        with open(os.path.join(build, "bloomery", "libbloomery.a"), "wb"):
            pass
        cls.prefix = installed(build)

    def test_its_headers_are_not_installed(self) -> None:
        every = headers(os.path.join(SOURCE, "include"))

        self.assertEqual(headers(os.path.join(self.prefix, "include")), [name for name in every if not is_about_redis(name)])

    def test_a_request_for_the_component_reports_why_it_is_missing(self) -> None:
        finding = os.path.join(CONSUMERS, "find_package")
        asking = configuring(finding, new_directory(), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCOMPONENTS=redis")

        self.assertIn("BLOOMERY_BUILD_REDIS=ON", " ".join(run(*asking, status=1).split()))


if __name__ == "__main__":
    unittest.main()
