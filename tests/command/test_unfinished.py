"""kill -9 at system calls that name, write or lock a file: nothing is lost, and the next run leaves no litter.

tests/faults also kills at random moments, and lets system calls fail.

strace delivers the signal when the call begins. Without strace, or where it may not trace, these tests are skipped.
"""

import os
import re
import shutil
import subprocess
import unittest

from support import COMMAND, LONG, CommandTest, keys, sample, text

# Calls that change a file or its name.
CALLS = "linkat,link,rename,renameat2,unlink,fdatasync,fsync,msync,ftruncate,fallocate,pwrite64"
if LONG:
    CALLS += ",openat,write,fchmod,flock"
MOST_OF_A_CALL = 6  # kills at calls of one name, except in a long run
KILLED = -9
OLD, NEW = keys(300, "old"), keys(2000)


def input_of(line: str) -> bytes:
    return text(OLD if line.startswith("remove") else NEW)


def can_trace() -> bool:
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "-f", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(can_trace(), "SKIPPED: kills at each system call need strace, and the right to trace")
class Unfinished(CommandTest):
    def traced(self, log: str, *options: str, line: str) -> subprocess.CompletedProcess:
        command = ["strace", "-f", "-qq", "-o", log, "-e", "trace=" + CALLS, *options, COMMAND, *line.split()]
        return subprocess.run(command, input=input_of(line), capture_output=True, cwd=self.folder, timeout=60)

    def count_calls(self, line: str) -> dict[str, int]:
        """The number of system calls of each name that the command makes."""
        log = self.folder + ".count"
        self.assertEqual(self.traced(log, line=line).returncode, 0)
        counts: dict[str, int] = {}
        with open(log, encoding="utf-8", errors="replace") as trace:
            for name in re.findall(r"(?m)^\d+ +(\w+)\(", trace.read()):
                counts[name] = counts.get(name, 0) + 1
        os.unlink(log)
        return counts

    def files(self) -> list[str]:
        return sorted(os.listdir(self.folder))

    def each_kill(self, prepare: list[str], line: str):
        """Runs the command once for each system call at which it can be killed, and yields after each kill."""
        self.remove(*self.files())
        for step in prepare:
            self.bloomery(*step.split(), stdin=text(OLD))
        before = {name: self.read(name) for name in self.files()}
        kills = 0
        for call, times in self.count_calls(line).items():
            for number in sample(range(1, times + 1), MOST_OF_A_CALL):
                self.remove(*self.files())
                for name, data in before.items():
                    self.write(name, data)
                ended = self.traced("/dev/null", "-e", f"inject={call}:signal=KILL:when={number}", line=line)
                if ended.returncode not in (KILLED, 137):
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    continue
                kills += 1
                with self.subTest(line=line, call=call, number=number, left=self.files()):
                    yield
        self.assertGreater(kills, 2)

    def has_all(self, lines: list[bytes]) -> bool:
        return self.count("f", lines) == len(lines)

    def test_a_filter_with_a_log_has_the_old_keys_or_the_new_ones_and_the_next_run_succeeds(self) -> None:
        make = "build -q --grow -o f"
        for prepare, line, replaces in (
            ([], "dedup -q --grow --state f", False),
            ([], make, False),
            ([make], make, True),
            ([make], "build -q -o f", True),
            ([make, "add -q f", "add -q f"], "add -q f", False),
            ([make, "add -q f", "add -q f"], "rebuild -q f -p 0.1%", False),
        ):
            for _ in self.each_kill(prepare, line):
                if prepare:
                    self.assertTrue(self.has_all(OLD) or replaces and self.has_all(NEW))
                if os.path.exists(self.path("f")):
                    self.bloomery("add", "-q", "f", stdin=b"more\n")
                    self.assertIn(self.files(), [["f", "f.log"], *([["f"]] if line == "build -q -o f" else [])])

                again = self.bloomery(*line.split(), stdin=text(NEW))
                if line.startswith("rebuild"):
                    self.bloomery("add", "-q", "f", stdin=text(NEW))

                self.assertEqual(self.files(), ["f"] if line == "build -q -o f" else ["f", "f.log"], again.err)
                self.assertTrue(self.has_all(NEW) and (replaces or not prepare or self.has_all(OLD)))
                self.bloomery("add", "-q", "f", stdin=b"more\n")
                self.bloomery("info", "--check", "f")

    def test_a_file_that_is_replaced_whole_is_the_old_one_or_the_new_one(self) -> None:
        prepare = ["build -q --counting -o c -n 3000", "build -q -o f", "build -q -o out"]
        for line in ("build -q -o out -n 2000", "add -q c", "remove -q c", "union -q -o out f f", "fold -q f --times 0 -o out", "seal -q -o out"):
            for _ in self.each_kill(prepare, line):
                for name in "c", "f", "out":
                    self.bloomery("info", "--check", name)

                self.bloomery(*line.split(), stdin=input_of(line), status=None)

                self.assertEqual(self.files(), ["c", "f", "out"])

    def test_a_killed_keygen_leaves_a_whole_key_or_none(self) -> None:
        for _ in self.each_kill([], "keygen -o key"):
            self.assertIn(self.files(), ([], ["key"]))
            if self.files():
                self.assertEqual(len(self.read("key")), 33)

    def test_all_copies_of_a_set_are_made_or_none(self) -> None:
        split = "noisy split -q --copies 3 -o m -n 2000"
        for _ in self.each_kill([], split):
            made = [name for name in self.files() if name.endswith((".key", ".bloom"))]
            if len(made) != 6 or "m.unfinished" in self.files():
                self.refused("noisy", "check", "m", stdin=text(NEW))
                self.bloomery(*split.split(), stdin=text(NEW))
                self.assertEqual(len(self.files()), 6)
            self.assertEqual(self.bloomery("noisy", "check", "m", stdin=text(NEW)).lines, NEW)


if __name__ == "__main__":
    unittest.main()
