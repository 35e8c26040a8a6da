"""The types of the package, checked by mypy: the package itself, programs that use it, and the stub of the module."""

import importlib.util
import os
import subprocess
import sys
import unittest

from package import PACKAGE, PackageTest

GOOD = """
import bloomery
import numpy
cities: bloomery.Filter = bloomery.Filter(1000, 0.01, keys=bytes)
new: bool = cities.add("Madrid")
count: int = cities.update(["a", b"b", 3])
count = cities.update(numpy.arange(5))
both: bloomery.Filter = cities | cities.copy()
some: bloomery.BaseFilter = bloomery.open("a.bloom", "r+")
here: bloomery.CountingFilter = bloomery.CountingFilter.open("a.bloom")
removed: bool = here.remove("a")
lines: list[str] = list(bloomery.dedup(["a", "b"]))
name: str = bloomery.plan(1000).structure
"""
BAD = {
    "cities = bloomery.Filter('1000', 0.01)": "arg-type",
    "bloomery.Filter(1000).add(1.5)": "arg-type",
    "bloomery.Filter(1000).remove('a')": "attr-defined",
    "x: int = bloomery.Filter(1000).to_bytes()": "assignment",
    "bloomery.open('a', 'r', None)": "misc|call-arg",
}


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(PackageTest):
    def mypy(self, *arguments: str, module: str = "mypy") -> "tuple[int, str]":
        done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env=dict(os.environ, MYPYPATH=PACKAGE, PYTHONPATH=PACKAGE, MYPY_CACHE_DIR=self.path("cache")))  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def test_the_package_is_typed(self) -> None:
        status, text = self.mypy("--strict", "-p", "bloomery")
        self.assertEqual(status, 0, text)

    def test_the_stub_is_that_of_the_module(self) -> None:
        # pybind11 gives its classes a metaclass, and an initializer that throws.
        (self.folder / "allowed").write_text("bloomery\\._bloomery\\.Params(\\.__init__)?\n")
        status, text = self.mypy("bloomery._bloomery", "--ignore-missing-stub", "--allowlist", "allowed", module="mypy.stubtest")
        self.assertEqual(status, 0, text)

    def test_programs_are_checked(self) -> None:
        (self.folder / "good.py").write_text(GOOD)
        status, text = self.mypy("--strict", "good.py")
        self.assertEqual(status, 0, text)
        for line, code in BAD.items():
            (self.folder / "bad.py").write_text("import bloomery\n" + line + "\n")
            status, text = self.mypy("bad.py")
            self.assertEqual(status, 1, line)
            self.assertRegex(text, code)


if __name__ == "__main__":
    unittest.main()
