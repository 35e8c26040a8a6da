"""The progress bar: on standard error when it is a terminal and the work is long, and nowhere else."""

import os
import pty
import re
import subprocess
import threading
import time
import unittest

from support import CommandTest, keys, text

BAR = r"\r(\x1b\[K\x1b\[36m)?{verb}: [\d,]+ keys, [\d,]+/s, \d+% full, current FPR [\d.e-]+%?"


class Terminal(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 1000, stdin=text(keys(10)))

    def seen(
        self, *arguments: object, stdout: int | None = None, wait: float = 0.15, until: str = "", **environment: str
    ) -> str:
        """What a terminal gets on standard error while input comes slowly; stdout=-1: on standard output too.

        With `until` input comes for as long as a busy machine takes to show that, up to a minute.
        """
        ours, theirs = pty.openpty()
        got = bytearray()

        def listen() -> None:
            try:
                while piece := os.read(ours, 65536):
                    got.extend(piece)
            except OSError:  # the other side is closed
                pass

        process = self.start(
            *arguments,
            stdout=theirs if stdout == -1 else subprocess.PIPE,
            stderr=theirs,
            env={name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | environment,
        )
        os.close(theirs)
        listener = threading.Thread(target=listen)
        listener.start()
        for part in range(400):
            if part >= 3 and (not until or re.search(until, got.decode(errors="replace"))):
                break
            process.stdin.write(text(keys(10)))
            process.stdin.flush()
            time.sleep(wait)
        process.communicate(timeout=60)
        listener.join()
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        return got.decode()

    def test_commands_that_read_keys_show_how_far_they_are(self) -> None:
        for verb, command in (
            ("build", ["build", "-o", "g", "-n", 1000]),
            ("add", ["add", "f"]),
            ("check", ["check", "f"]),
            ("dedup", ["dedup", "-n", 1000, "-p", "1%"]),
            ("dedup", ["dedup", "-n", 1000, "--state", "state"]),
            ("read", ["build", "-o", "h"]),
        ):
            with self.subTest(command=command):
                bar = BAR.replace("{verb}", verb)
                self.assertRegex(self.seen(*command, until=bar), bar)

    def test_the_bar_is_wiped_before_the_last_word(self) -> None:
        lines = self.seen("add", "f").split("\r\x1b[K")

        self.assertRegex(lines[-1], r"\Abloomery: f: 30 keys read, .*\r\n\Z")

    def test_a_file_shows_its_share_and_the_time_left(self) -> None:
        self.write("lines", keys(2_000_000))

        seen = self.seen("build", "-o", "g", "--layout", "classic", "-p", "1e-12", "-j", 1, "lines")

        self.assertRegex(seen, BAR.replace("{verb}", "build") + r"  \[#*\.+\] \d+%, \d+ s left")

    def test_a_second_look_shows_which_pass_it_is_in(self) -> None:
        self.write("lines", keys(2_000_000))

        seen = self.seen("dedup", "--exact", "-j", 1, "lines")

        self.assertRegex(seen, "dedup, [12] of 2: ")

    def test_colour_is_left_out_if_asked_or_unknown(self) -> None:
        self.assertIn("\x1b[36m", self.seen("add", "f", NO_COLOR=""))
        for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
            seen = self.seen("add", "f", **environment)
            self.assertRegex(seen, BAR.replace("{verb}", "add"))
            self.assertNotIn("\x1b", seen)

    def test_no_progress_and_quiet_show_no_bar(self) -> None:
        plain = self.seen("add", "--no-progress", "f")
        quiet = self.seen("add", "-q", "f")

        self.assertEqual(plain.count("\n"), 1)
        self.assertNotIn("\r", plain.replace("\r\n", ""))
        self.assertEqual(quiet, "")

    def typed(self, *arguments: object) -> str:
        """Standard error of a command whose standard input is a terminal: a user types a key and Ctrl-D."""
        ours, theirs = pty.openpty()
        try:
            process = self.start(*arguments, stdin=theirs)
            os.write(ours, b"key-1\n\x04")
            _, err = process.communicate(timeout=60)
        finally:
            os.close(theirs)
            os.close(ours)
        self.assertEqual(process.returncode, 0, err)
        return err.decode()

    def test_on_a_terminal_it_tells_once_that_it_reads_keys(self) -> None:
        hint = "bloomery: reading keys from standard input, one per line; end with Ctrl-D\n"
        self.write("lines", keys(10))
        for command in ["build", "-o", "g"], ["build", "-n", 9, "-o", "h"], ["add", "f"], ["check", "f"], ["dedup", "-n", 9], ["dedup", "--exact"]:
            with self.subTest(command=command):
                self.assertEqual(self.typed(*command).count(hint), 1)
                self.assertNotIn(hint, self.typed(*command, "-q"))
                self.assertNotIn(hint, self.typed(*command, "lines"))
                self.assertNotIn(hint, self.bloomery(*command, stdin=b"key-1\n").err)

    def test_short_work_shows_no_bar(self) -> None:
        self.assertNotIn("\r", self.seen("add", "f", wait=0).replace("\r\n", ""))

    def test_results_on_the_same_terminal_are_not_disturbed_by_a_bar(self) -> None:
        seen = self.seen("check", "f", stdout=-1)

        self.assertEqual(seen, text(keys(10), b"\r\n").decode() * 3)

    def test_a_pipe_gets_no_bar(self) -> None:
        process = self.start("add", "f")
        for part in range(3):
            process.stdin.write(text(keys(10)))
            process.stdin.flush()
            time.sleep(0.15)

        _, err = process.communicate(timeout=60)

        self.assertRegex(err.decode(), re.compile(r"\Abloomery: f: 30 keys read[^\r\x1b]*\n\Z"))


if __name__ == "__main__":
    unittest.main()
