"""Terminals: colour, and the progress bar, which standard error has if it is a terminal and the work is long."""

import os
import pty
import re
import subprocess
import threading
import time
import unittest

from support import CommandTest, keys, text

BAR = r"\r(\x1b\[K\x1b\[36m)?{verb}: [\d,]+ keys, [\d,]+/s, \d+% full, current FPR [\d.e-]+%?"
RED, YELLOW, GREEN, PLAIN_RED, END = "\x1b[1;31m", "\x1b[33m", "\x1b[32m", "\x1b[31m", "\x1b[0m"


class Terminal(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 1000, stdin=text(keys(10)))

    def seen(
        self, *arguments: object, stdout: bool = False, parts: int = 3, wait: float = 0.15, until: str = "", status: int | None = 0,
        **environment: str,
    ) -> str:  # fmt: skip
        """What a terminal gets on standard error, or on both outputs, while input comes slowly.

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

        base = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        process = self.start(*arguments, stdout=theirs if stdout else subprocess.PIPE, stderr=theirs, env=base | {"TERM": "xterm"} | environment)
        os.close(theirs)
        listener = threading.Thread(target=listen)
        listener.start()
        for part in range(400 if until else parts):
            if part >= parts and re.search(until, got.decode(errors="replace")):
                break
            process.stdin.write(text(keys(10)))
            process.stdin.flush()
            time.sleep(wait)
        process.communicate(timeout=60)
        listener.join()
        os.close(ours)
        self.assertIn(process.returncode, (0, 1, 2, 3) if status is None else (status,))
        return got.decode()

    # ---- the progress bar

    def test_commands_that_read_keys_show_how_far_they_are(self) -> None:
        for verb, command in {
            "build -o g -n 1000": "build",
            "add f": "add",
            "check f": "check",
            "dedup -n 1000 -p 1%": "dedup",
            "dedup -n 1000 --state state": "dedup",
            "build -o h": "read",
        }.items():
            with self.subTest(verb=verb):
                bar = BAR.replace("{verb}", command)
                self.assertRegex(self.seen(*verb.split(), until=bar), bar)

    def test_the_bar_is_wiped_before_the_last_word(self) -> None:
        lines = self.seen("add", "f").split("\r\x1b[K")

        self.assertRegex(lines[-1], r"\Abloomery: f: 30 keys read, .*\r\n\Z")

    def test_a_file_shows_its_share_the_time_left_and_the_pass(self) -> None:
        self.write("lines", keys(2_000_000))

        built = self.seen("build", "-o", "g", "--layout", "classic", "-p", "1e-12", "-j", 1, "lines")
        self.assertRegex(built, BAR.replace("{verb}", "build") + r"  \[#*\.+\] \d+%, \d+ s left")
        self.assertRegex(self.seen("dedup", "--exact", "-j", 1, "lines"), "dedup, [12] of 2: ")

    def test_no_bar_is_shown_for_short_work_or_if_it_is_not_wanted(self) -> None:
        for options in ["--no-progress"], ["-q"], []:
            for _ in range(1 if options else 5):  # short work takes long on a busy machine
                seen = self.seen("add", *options, "f", wait=0.15 if options else 0)
                if "\r" not in seen.replace("\r\n", ""):
                    break
            self.assertEqual((seen.count("\n"), "\r" in seen.replace("\r\n", "")), (0 if "-q" in options else 1, False))
        seen = self.seen("check", "f", stdout=True)  # results on the same terminal
        self.assertEqual(seen, text(keys(10), b"\r\n").decode() * 3)

    def test_a_pipe_gets_no_bar(self) -> None:
        process = self.start("add", "f")
        for _ in range(3):
            process.stdin.write(text(keys(10)))
            process.stdin.flush()
            time.sleep(0.15)

        _, err = process.communicate(timeout=60)

        self.assertRegex(err.decode(), re.compile(r"\Abloomery: f: 30 keys read[^\r\x1b]*\n\Z"))

    # ---- standard input

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
        for line in "build -o g", "build -n 9 -o h", "add f", "check f", "dedup -n 9", "dedup --exact":
            with self.subTest(line=line):
                command = line.split()
                self.assertEqual(self.typed(*command).count(hint), 1)
                self.assertNotIn(hint, self.typed(*command, "-q"))
                self.assertNotIn(hint, self.typed(*command, "lines"))
                self.assertNotIn(hint, self.bloomery(*command, stdin=b"key-1\n").err)

    # ---- colour

    def make_full(self) -> None:
        self.bloomery("build", "-q", "-o", "sound", "-n", 1000, stdin=text(keys(1000)))
        self.bloomery("build", "-q", "-o", "full", "-n", 100, stdin=text(keys(2000)), status=3)

    def test_errors_warnings_and_judgements_are_coloured_on_a_terminal(self) -> None:
        self.make_full()
        for line, expected in {
            "info missing": re.escape(f"{RED}bloomery:{END} missing: "),
            "add full": re.escape(f"bloomery: full: {YELLOW}warning:{END} the filter exceeds"),
            "info full": re.escape(f"target FPR    {PLAIN_RED}above target{END}: current FPR"),
            "info sound": re.escape(f"target FPR    {GREEN}met") + "( within chance)?" + re.escape(f"{END}: current FPR"),
            "verify sound": re.escape(f"verdict       {GREEN}sound{END}: all rates agree"),
            "verify full": re.escape(f"{PLAIN_RED}above target{END}: current FPR"),
        }.items():
            self.assertRegex(self.seen(*line.split(), parts=0, stdout=True, status=None), expected)

    def test_no_colour_without_a_capable_terminal(self) -> None:
        self.make_full()
        for line in "info missing", "info full", "verify full", "add full":
            for option, environment in (
                ("--color=auto", {"NO_COLOR": "1"}),
                ("--color=auto", {"TERM": "dumb"}),
                ("--color=auto", {"TERM": ""}),
                ("--color=never", {}),
            ):
                with self.subTest(line=line, option=option, environment=environment):
                    self.assertNotIn("\x1b", self.seen(*line.split(), option, parts=0, stdout=True, status=None, **environment))
            piped = self.bloomery(*line.split(), status=None)
            self.assertNotIn("\x1b", piped.out.decode() + piped.err)
        self.assertIn(RED, self.seen("info", "missing", parts=0, status=2, NO_COLOR=""))  # empty: not set
        self.assertIn("\x1b[36m", self.seen("add", "f", until=r"\x1b\[36m", NO_COLOR=""))
        for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
            bar = BAR.replace("{verb}", "add")
            seen = self.seen("add", "f", until=bar, **environment)
            self.assertRegex(seen, bar)
            self.assertNotIn("\x1b", seen)

    def test_always_colours_a_pipe_too_and_adds_nothing_else(self) -> None:
        self.make_full()
        for line in "info missing", "info full", "verify --queries 1000 full", "info --json full":
            for color in ["--color", "always"], ["--color=always"]:
                with self.subTest(line=line, color=color):
                    plain = self.bloomery(*line.split(), status=None)
                    painted = self.bloomery(*line.split(), *color, status=None, env=dict(os.environ, NO_COLOR="1"))

                    self.assertEqual("\x1b" in painted.out.decode() + painted.err, "--json" not in line)
                    self.assertEqual(re.sub(r"\x1b\[[0-9;]*m", "", painted.out.decode() + painted.err), plain.out.decode() + plain.err)
                    self.assertEqual(painted.status, plain.status)
        self.refused("info", "full", "--color", "yes", says="--color: invalid value: expected auto, always or never, found 'yes'")

    def test_a_results_column_keeps_its_width(self) -> None:
        self.make_full()
        self.patch("sound", inserted=10)
        plain = self.bloomery("info", "sound").out.decode()
        painted = self.bloomery("info", "--color=always", "sound").out.decode()

        self.assertRegex(plain, "(?m)^WARNING       more bits are set than the key count explains, ")
        self.assertIn(f"{YELLOW}WARNING       {END}more bits", painted)


if __name__ == "__main__":
    unittest.main()
