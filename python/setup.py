"""Compiles the extension module with CMake, from the checkout around this folder.

Environment:

    BLOOMERY_PREFIX=/usr/local    use a bloomery that is installed there, and do not compile the library
    BLOOMERY_BUILD_REDIS=OFF      leave out servers; without it, they are left out if hiredis or OpenSSL is missing
    CMAKE_ARGS, CMAKE_BUILD_PARALLEL_LEVEL
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
BUILD = CHECKOUT / "build" / "python-package"


def version() -> str:
    return re.search(r"^  VERSION (\S+)", (CHECKOUT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]


def has_servers() -> bool:
    try:
        return subprocess.run(["pkg-config", "--exists", "hiredis", "openssl"]).returncode == 0
    except OSError:
        return False


class CMakeBuild(build_ext):
    def build_extension(self, extension: Extension) -> None:
        prefix = os.environ.get("BLOOMERY_PREFIX")
        options = {"CMAKE_BUILD_TYPE": "Release", "BLOOMERY_PYTHON": sys.executable, "PYTHON_EXECUTABLE": sys.executable}
        if prefix:
            options["CMAKE_PREFIX_PATH"] = prefix
        else:
            options |= {f"BLOOMERY_BUILD_{part}": "OFF" for part in ("CLI", "TESTS", "C", "SQLITE", "EXAMPLES")}
            options |= {"BLOOMERY_INSTALL": "OFF", "BLOOMERY_BUILD_PYTHON": "ON"}
            options["BLOOMERY_BUILD_REDIS"] = os.environ.get("BLOOMERY_BUILD_REDIS", "ON" if has_servers() else "OFF")
        build = BUILD / f"{'installed' if prefix else 'checkout'}-{sys.implementation.cache_tag}"
        defines = [f"-D{name}={value}" for name, value in options.items()]
        subprocess.run(["cmake", "-S", HERE if prefix else CHECKOUT, "-B", build, *defines, *shlex.split(os.environ.get("CMAKE_ARGS", ""))], check=True)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        subprocess.run(["cmake", "--build", build, "--target", "bloomery_python", "--parallel", jobs], check=True)
        [module] = (build if prefix else build / "python").glob("bloomery/_bloomery.*.so")
        self.mkpath(os.path.dirname(self.get_ext_fullpath(extension.name)))
        self.copy_file(str(module), self.get_ext_fullpath(extension.name))


BUILD.mkdir(parents=True, exist_ok=True)
setup(
    version=version(),
    ext_modules=[Extension("bloomery._bloomery", [])],
    cmdclass={"build_ext": CMakeBuild},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)}},
)
