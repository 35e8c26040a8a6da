"""`pip install ./python` into an empty environment, and the wheel. Compiles the library again: the long form of the tests."""

import importlib.util
import os
import subprocess
import sys
import unittest
import zipfile

from package import SOURCE, PackageTest, bloomery

LONG = os.environ.get("BLOOMERY_LONG", "") not in ("", "0")
PROGRAM = "import bloomery, sys; f = bloomery.Filter(1000, 0.01); f.update(['Madrid']); sys.stdout.write(bloomery.__file__ + '|' + f.to_bytes().hex())"
TOOLS = all(importlib.util.find_spec(name) for name in ("pip", "venv", "setuptools", "wheel"))


@unittest.skipUnless(LONG and TOOLS, "needs BLOOMERY_LONG=1, pip, venv, setuptools and wheel")
class Install(PackageTest):
    def run_in(self, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_an_installed_package_works_and_writes_the_same_bytes(self) -> None:
        filter = bloomery.Filter(1000, 0.01)
        filter.add("Madrid")
        self.run_in(sys.executable, "-m", "venv", "--system-site-packages", "environment")
        python = self.path("environment/bin/python")

        self.run_in(python, "-m", "pip", "install", "--no-build-isolation", "--no-index", str(SOURCE / "python"))

        place, data = self.run_in(python, "-c", PROGRAM).split("|")
        self.assertTrue(place.startswith(str(self.folder)), place)
        self.assertEqual(bytes.fromhex(data), filter.to_bytes())

    def test_the_wheel_has_the_module_the_files_and_the_types(self) -> None:
        self.run_in(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", "wheel", str(SOURCE / "python"))

        [wheel] = (self.folder / "wheel").glob("bloomery_filters-*.whl")
        names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("bloomery/")}
        sources = {f"bloomery/{path.name}" for path in (SOURCE / "python/bloomery").iterdir() if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
        self.assertEqual({name for name in names if not name.endswith(".so")}, sources)
        self.assertEqual(len(names - sources), 1)


if __name__ == "__main__":
    unittest.main()
