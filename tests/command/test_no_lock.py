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

    READ = ["build -q -o new", "build -q --grow -o new", "add -q f", "add -q grown", "add -q counting", "remove -q counting",
            "dedup -q --state new -n 1000", "dedup -q --state new --grow", "dedup -q --state f", "seal -q -o new"]  # fmt: skip
    READ_NOTHING = ["union -q -o new f f", "fold -q f --times 0 -o new", "rebuild -q grown"]

    def without_locks(self, number: int = ENOLCK) -> dict:
        return {"env": os.environ | {"LD_PRELOAD": self.path("shim.so"), "FLOCK_ERRNO": str(number)}}

    def test_it_is_found_out_before_the_input_is_read(self) -> None:
        before = sorted(os.listdir(self.folder))
        for command in self.READ + self.READ_NOTHING:
            for number in ENOLCK, EOPNOTSUPP, ENOSYS:
                with self.subTest(command=command, number=number):
                    process = self.start(*command.split(), **self.without_locks(number))
                    if command in self.READ_NOTHING:
                        process.stdin.close()
                    process.wait(20)  # though its input has not ended
                    said = process.stderr.read().decode()

                    self.assertEqual(process.returncode, 2, said)
                    self.assertRegex(said, "this file system does not support locks.*--no-lock")
                    self.assertNotIn("wait", said)
                    self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_with_no_lock_it_goes_on_with_one_warning(self) -> None:
        for command in self.READ + self.READ_NOTHING:
            with self.subTest(command=command):
                self.remove("new", "new.log")
                done = self.bloomery(*command.split(), "--no-lock", stdin=text(self.lines), **self.without_locks())

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
