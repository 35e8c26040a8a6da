"""kill -9 at any moment: files open, and what was reported complete is there; a rerun of dedup --state loses no line."""

import os
import subprocess
import unittest
from signal import SIGKILL

from support import LONG, MidwayTest, cut, keys, text

ROUNDS = [34, 33, 33] if LONG else [7, 7, 6]


class Killed(MidwayTest):
    def moments(self, rounds: int) -> list[float]:
        return [(number + self.chance.random()) / rounds for number in range(rounds)]

    def test_a_killed_build_leaves_the_old_file_or_the_new_one_or_none(self) -> None:
        build = ["build", "-m", "64MiB", "-k", 8, "-n", self.COUNT]  # large, so that saving is a good part of it
        self.bloomery(*build, "-q", "-o", "new", "lines")
        self.bloomery(*build, "-q", "-o", "old", stdin=b"old\n")
        old, new = self.read("old"), self.read("new")

        for number, moment in enumerate(self.moments(ROUNDS[0])):
            before = old if number % 2 else None

            def start() -> subprocess.Popen:
                self.remove("f")
                if before:
                    self.write("f", before)
                return self.start_slow(*build, "-o", "f")

            self.end_midway(moment, SIGKILL, start)

            left = self.read("f") if os.path.exists(self.path("f")) else None
            self.assertTrue(left in (before, new), f"round {number}: neither the old file nor the new one")

    def test_after_a_killed_add_the_file_opens_and_has_all_keys_added_before(self) -> None:
        self.bloomery("build", "-q", "-o", "f", *self.SLOW)
        complete: list[bytes] = []
        dirty = 0

        for number, moment in enumerate(self.moments(ROUNDS[1])):
            more = keys(1000, f"round-{number}")
            self.bloomery("add", "-q", "f", stdin=text(more), status=None)
            complete += more

            self.end_midway(moment, SIGKILL, lambda: self.start_slow("add", "f"))

            dirty += not self.info("f")["clean"]
            self.assert_has_all("f", complete)
        self.bloomery("add", "-q", "f", "lines", status=None)

        self.assertGreater(dirty, ROUNDS[1] / 2, "it was hardly ever killed at work")
        self.assert_has_all("f", self.lines + complete)
        self.bloomery("info", "--check", "f")

    def test_a_killed_dedup_and_its_rerun_together_have_every_line(self) -> None:
        dedup = ["dedup", "--state", "state", *self.SLOW]
        spared = 0

        for number, moment in enumerate(self.moments(ROUNDS[2])):
            appends = number % 2 == 1  # to a file that the rerun appends to; else into a pipe

            def start() -> subprocess.Popen:
                self.remove("state", "out")
                if not appends:
                    return self.start_slow(*dedup)
                with open(self.path("out"), "ab") as out:
                    return self.start_slow(*dedup, stdout=out)

            first = self.end_midway(moment, SIGKILL, start)
            if appends:
                first = self.read("out")
                with open(self.path("out"), "ab") as out:
                    self.bloomery(*dedup, "-q", "lines", stdout=out)
                second = self.read("out")[len(first) :]
            else:
                second = self.bloomery(*dedup, "-q", "lines").out

            whole = first[: first.rfind(b"\n") + 1]  # the last line may be torn
            missing = set(self.lines).difference(cut(whole), cut(second))
            self.assertEqual(len(missing), 0, f"round {number}, of {len(cut(whole))} lines: {sorted(missing)[:5]}")
            spared += self.COUNT - len(cut(second))

        self.assertGreater(spared, 0, "no killed run left anything in the state")


if __name__ == "__main__":
    unittest.main()
