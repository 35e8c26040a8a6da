"""What the tests of the Python package share: importing the built package, a folder of files, and the command."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["BLOOMERY_SOURCE"])
PACKAGE = os.path.realpath(os.environ["BLOOMERY_PACKAGE"])
COMMAND = os.environ["BLOOMERY"]
sys.path.insert(0, PACKAGE)

import bloomery  # noqa: E402

assert os.path.realpath(bloomery.__file__).startswith(PACKAGE), bloomery.__file__


class PackageTest(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def command(self, *arguments: str, keys: "list[str] | list[bytes]" = [], status: int = 0) -> bytes:
        """Runs the command with these lines as its standard input. Returns its standard output."""
        lines = b"".join((key.encode() if isinstance(key, str) else key) + b"\n" for key in keys)
        done = subprocess.run([COMMAND, *arguments], input=lines, cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout

    def built(self, name: str, keys: "list[str] | list[bytes]", *options: str) -> bytes:
        """The bytes of the file that the command builds."""
        self.command("build", "-q", "-o", name, *options, *([] if keys else ["--allow-empty"]), keys=keys)
        return (self.folder / name).read_bytes()
