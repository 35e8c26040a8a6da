"""File systems without locks: refused before the input is read, written with --no-lock, and never taken for a busy filter.

A library that is loaded before the C library lets every flock fail. It is compiled here, with the C compiler.
"""

import os
import shutil
import subprocess
import unittest

from support import CommandTest, keys, text

SHIM = """
#include <errno.h>
#include <stdlib.h>
int flock(int fd, int operation) {
  (void)fd, (void)operation;
  errno = atoi(getenv("FLOCK_ERRNO"));
  return -1;
}
"""
ENOLCK, EOPNOTSUPP, ENOSYS, EWOULDBLOCK = 37, 95, 38, 11


@unittest.skipUnless(shutil.which("cc"), "SKIPPED: failing locks need a C compiler, cc")
class NoLock(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.lines = keys(300)
        self.make_filter("f", self.lines)
        self.make_filter("counting", self.lines, "--counting")
        self.bloomery("build", "-q", "--grow", "-o", "grown", stdin=text(self.lines))
        source = self.write("shim.c", SHIM.encode())
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "shim.so", source], cwd=self.folder, check=True)
        self.commands = [
            (["build", "-q", "-o", "new"], True),
            (["build", "-q", "--grow", "-o", "new"], True),
            (["add", "-q", "f"], True),
            (["add", "-q", "grown"], True),
            (["add", "-q", "counting"], True),
            (["remove", "-q", "counting"], True),
            (["dedup", "-q", "--state", "new", "-n", 1000], True),
            (["dedup", "-q", "--state", "new", "--grow"], True),
            (["dedup", "-q", "--state", "f"], True),
            (["seal", "-q", "-o", "new"], True),
            (["union", "-q", "-o", "new", "f", "f"], False),
            (["fold", "-q", "f", "--times", 0, "-o", "new"], False),
            (["rebuild", "-q", "grown"], False),
        ]

    def without_locks(self, number: int = ENOLCK) -> dict:
        return {"env": os.environ | {"LD_PRELOAD": self.path("shim.so"), "FLOCK_ERRNO": str(number)}}

    def remove_new(self) -> None:
        for name in os.listdir(self.folder):
            if name.startswith("new"):
                os.unlink(self.path(name))

    def test_it_is_found_out_before_the_input_is_read(self) -> None:
        for command, reads in self.commands:
            for number in ENOLCK, EOPNOTSUPP, ENOSYS:
                with self.subTest(command=command, number=number):
                    before = sorted(os.listdir(self.folder))
                    process = self.start(*command, **self.without_locks(number))
                    if not reads:
                        process.stdin.close()
                    process.wait(20)  # though its input has not ended
                    said = process.stderr.read().decode()

                    self.assertEqual(process.returncode, 2, said)
                    self.assertRegex(said, "this file system does not support locks.*--no-lock")
                    self.assertNotIn("wait", said)
                    self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_with_no_lock_it_goes_on_with_one_warning(self) -> None:
        for command, _ in self.commands:
            with self.subTest(command=command):
                self.remove_new()
                done = self.bloomery(*command, "--no-lock", stdin=text(self.lines), **self.without_locks())

                self.assertEqual(done.err.count("warning: this file system does not support locks"), 1, done.err)
                self.assertEqual([name for name in os.listdir(self.folder) if "unfinished" in name], [])
        self.assert_has_all("f", self.lines)
        self.assert_has_all("grown", self.lines)

    def test_with_locks_the_option_says_nothing(self) -> None:
        self.assertEqual(self.bloomery("add", "-q", "--no-lock", "f", stdin=text(keys(5))).err, "")

    def test_a_busy_filter_is_waited_for(self) -> None:
        process = self.start("add", "-q", "f", **self.without_locks(EWOULDBLOCK))

        said = process.stderr.readline().decode()

        self.assertIn("waiting for another process", said)
        process.kill()


if __name__ == "__main__":
    unittest.main()
