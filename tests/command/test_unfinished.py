"""kill -9 at system calls that name, write or lock a file: nothing is lost, and the next run leaves no litter.

strace delivers the signal when the call begins. Without strace, or where it may not trace, these tests are skipped.
"""

import os
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


def can_trace() -> bool:
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "-f", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


@unittest.skipUnless(can_trace(), "SKIPPED: kills at each system call need strace, and the right to trace")
class Unfinished(CommandTest):
    def trace(self, inject: str, *arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess:
        log = ["-o", os.path.join(self.folder, "..", os.path.basename(self.folder) + ".trace")]
        self.addCleanup(lambda: os.path.exists(log[1]) and os.unlink(log[1]))
        return subprocess.run(
            ["strace", "-f", "-qq", *log, "-e", "trace=" + CALLS, "-e", inject, COMMAND, *map(str, arguments)],
            input=stdin, capture_output=True, cwd=self.folder, timeout=60,
        )  # fmt: skip

    def count_calls(self, *arguments: object, stdin: bytes = b"") -> dict[str, int]:
        """How often the command makes each system call."""
        log = os.path.join(self.folder, "..", os.path.basename(self.folder) + ".count")
        subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", "trace=" + CALLS, COMMAND, *map(str, arguments)],
                       input=stdin, capture_output=True, cwd=self.folder, timeout=60, check=True)  # fmt: skip
        counts: dict[str, int] = {}
        with open(log, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if len(parts := line.split(None, 1)) == 2 and "(" in parts[1]:
                    name = parts[1].split("(")[0]
                    counts[name] = counts.get(name, 0) + 1
        os.unlink(log)
        return counts

    def clear(self) -> None:
        for name in os.listdir(self.folder):
            os.unlink(self.path(name))

    def each_kill(self, prepare, *command: object, stdin: bytes = b""):
        """Runs the command once for each system call at which it can be killed, and yields after each kill."""
        self.clear()
        prepare()
        before = {name: self.read(name) for name in self.files()}
        counts = self.count_calls(*command, stdin=stdin)
        kills = 0
        for call, times in counts.items():
            for number in sample(range(1, times + 1), MOST_OF_A_CALL):
                self.clear()
                for name, data in before.items():
                    self.write(name, data)
                ended = self.trace(f"inject={call}:signal=KILL:when={number}", *command, stdin=stdin)
                if ended.returncode not in (KILLED, 137):
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    continue
                kills += 1
                with self.subTest(call=call, number=number, left=sorted(os.listdir(self.folder))):
                    yield
        self.assertGreater(kills, 2)

    def files(self) -> list[str]:
        return sorted(os.listdir(self.folder))

    # ---- creation

    def test_the_first_dedup_with_growth_heals_by_itself(self) -> None:
        lines = keys(50)
        dedup = ["dedup", "-q", "--grow", "--state", "s"]
        for _ in self.each_kill(lambda: None, *dedup, stdin=text(lines)):
            again = self.bloomery(*dedup, stdin=text(lines), status=None)

            self.assertEqual((again.status, self.files()), (0, ["s", "s.log"]), again.err)
            self.assert_has_all("s", lines)
            self.assertEqual(self.bloomery(*dedup, stdin=text(lines)).out, b"")

    def test_a_killed_build_with_growth_leaves_the_old_filter_or_the_new_one(self) -> None:
        old, new = keys(300, "old"), keys(2000)
        build = ["build", "-q", "--grow", "-o", "f"]
        for begin in "nothing", "a filter":
            prepare = (lambda: None) if begin == "nothing" else lambda: self.bloomery(*build, stdin=text(old))
            for _ in self.each_kill(prepare, *build, stdin=text(new)):
                if begin != "nothing":
                    self.assertTrue(os.path.exists(self.path("f")))
                    found = self.count("f", old), self.count("f", new)
                    self.assertTrue(found[0] == len(old) or found[1] == len(new), found)
                if os.path.exists(self.path("f")):
                    self.bloomery("add", "-q", "f", stdin=b"more\n")
                    self.assertEqual(self.files(), ["f", "f.log"])
                    self.assertTrue(self.count("f", old) == len(old) or self.count("f", new) == len(new))

                self.bloomery(*build, stdin=text(new))

                self.assertEqual(self.files(), ["f", "f.log"])
                self.assert_has_all("f", new)
                self.bloomery("add", "-q", "f", stdin=b"more\n")

    # ---- growth

    def test_a_filter_that_was_killed_while_it_grew_has_all_its_keys(self) -> None:
        old, more = keys(900), keys(4000, "more")
        for verb in ["add", "-q", "f"], ["rebuild", "-q", "f", "-p", "0.1%"]:
            for _ in self.each_kill(lambda: self.bloomery("build", "-q", "--grow", "-o", "f", stdin=text(old * 9)), *verb, stdin=text(more)):
                self.assert_has_all("f", old)

                self.bloomery("add", "-q", "f", stdin=text(more))

                self.assertEqual(self.files(), ["f", "f.log"])
                self.assert_has_all("f", old + more)
                self.bloomery("info", "--check", "f")

    # ---- other verbs

    def test_a_killed_writer_of_a_whole_file_leaves_the_old_one_or_the_new_one(self) -> None:
        members = keys(300)

        def prepare() -> None:
            self.make_filter("c", members, "--counting")
            self.make_filter("f", members)
            self.make_filter("out", keys(10, "out"))

        for command in (
            ["build", "-q", "-o", "out", "-n", 300],
            ["add", "-q", "c"],
            ["remove", "-q", "c"],
            ["union", "-q", "-o", "out", "f", "f"],
            ["fold", "-q", "f", "--times", 0, "-o", "out"],
            ["seal", "-q", "-o", "out"],
        ):
            for _ in self.each_kill(prepare, *command, stdin=text(members)):
                for name in "c", "f", "out":
                    self.bloomery("info", "--check", name)

                self.bloomery(*command, stdin=text(members), status=None)

                self.assertEqual(self.files(), ["c", "f", "out"])

    def test_a_plain_filter_that_replaces_one_with_a_log_leaves_no_log(self) -> None:
        lines = keys(100)
        build = ["build", "-q", "-o", "f"]
        for _ in self.each_kill(lambda: self.bloomery(*build, "--grow", stdin=text(lines)), *build, stdin=text(lines)):
            self.assert_has_all("f", lines)
            self.bloomery("add", "-q", "f", stdin=b"more\n")
            self.assertIn(self.files(), (["f"], ["f", "f.log"]))

            self.bloomery(*build, stdin=text(lines))

            self.assertEqual(self.files(), ["f"])

    def test_a_killed_keygen_leaves_a_whole_key_or_none(self) -> None:
        for _ in self.each_kill(lambda: None, "keygen", "-o", "key"):
            self.assertIn(self.files(), ([], ["key"]))
            if self.files():
                self.assertEqual(len(self.read("key")), 33)

    def test_all_copies_of_a_set_are_made_or_none(self) -> None:
        lines = keys(100)
        split = ["noisy", "split", "-q", "--copies", 3, "-o", "m", "-n", 100]
        for _ in self.each_kill(lambda: None, *split, stdin=text(lines)):
            made = [name for name in self.files() if name.endswith((".key", ".bloom"))]
            if len(made) == 6 and "m.unfinished" not in self.files():
                self.assertEqual(len(self.bloomery("noisy", "check", "m", stdin=text(lines)).lines), 100)
                continue
            self.refused("noisy", "check", "m", stdin=text(lines))

            self.bloomery(*split, stdin=text(lines))

            self.assertEqual(len(self.files()), 6)
            self.assertEqual(len(self.bloomery("noisy", "check", "m", stdin=text(lines)).lines), 100)


if __name__ == "__main__":
    unittest.main()
