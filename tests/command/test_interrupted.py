"""Ctrl-C and its kin: no partial result, a clean file, and the shell sees which signal it was."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import termios
import time
import unittest

from support import CommandTest, cut, keys, text

STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def setUpModule() -> None:
    # Shells ignore these signals in background jobs, and child processes inherit that.
    for stop in STOPS:
        signal.signal(stop, signal.SIG_DFL)


class WhileAsking(CommandTest):
    """The signal comes while a server is silent."""

    def test_it_ends_before_the_time_is_over_and_by_the_signal(self) -> None:
        for scheme in "redis", "redis+cluster":
            with socket.create_server(("127.0.0.1", 0)) as silent:
                address = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/f"
                process = self.start("info", "--timeout", "5min", address)
                with silent.accept()[0] as asked:
                    self.assertTrue(asked.recv(1))

                    process.send_signal(signal.SIGINT)

                    self.assertEqual(process.wait(60), -signal.SIGINT)
                self.assertIn(b"stopped", process.stderr.read())


class WhileWaiting(CommandTest):
    """The signal comes while standard input is silent."""

    def stop(self, process: subprocess.Popen, number: signal.Signals = signal.SIGINT) -> str:
        """Returns what it said."""
        process.send_signal(number)
        self.assertEqual(process.wait(60), -number)
        return process.stderr.read().decode()

    def feed(self, process: subprocess.Popen, lines: bytes) -> None:
        """Writes lines, and waits until they are read and, probably, worked on."""
        process.stdin.write(lines)
        process.stdin.flush()
        until = time.monotonic() + 10
        while struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)))[0] and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)

    def test_a_build_leaves_no_file_or_the_old_one(self) -> None:
        for old in b"", b"old\n":
            if old:
                self.bloomery("build", "-q", "-o", "f", stdin=old)
            before = {name: self.read(name) for name in os.listdir(self.folder)}
            for number in STOPS:
                for options in ["-n", 100], [], ["--scheme", "guava"]:
                    process = self.start("build", "-o", "f", *options)
                    self.feed(process, text(keys(10)))

                    self.stop(process, number)

                    self.assertEqual({name: self.read(name) for name in os.listdir(self.folder)}, before)

    def test_an_add_leaves_a_clean_file_with_the_keys_it_reports(self) -> None:
        for number in STOPS:
            self.bloomery("build", "-q", "--allow-empty", "-o", "f", "-n", 10_000)
            process = self.start("add", "--json", "f")
            self.feed(process, text(keys(5000)) + b"a line without its en")

            self.stop(process, number)

            report = process.stdout.read()
            self.assertIn(b'"keys":5000', report)
            self.assertIn(b'"complete":false', report)
            self.assert_has_all("f", keys(5000))
            self.assertEqual(self.count("f", [b"a line without its en"]), 0)
            self.assertTrue(self.info("f")["clean"])
            self.bloomery("info", "--check", "f")

    def test_a_writer_that_waits_for_another_gives_up(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10)
        first = self.start("add", "f")
        self.wait_for_a_writer("f")
        for _ in range(20):  # the signal comes at the very moment when it falls asleep
            second = self.start("add", "f")
            second.stderr.readline()

            self.stop(second)
        first.communicate(b"key\n", timeout=60)

        self.assertEqual(first.returncode, 0)
        self.assertTrue(self.info("f")["clean"])

    def test_check_and_dedup_have_shown_what_they_knew(self) -> None:
        self.bloomery("build", "-q", "-o", "f", stdin=text(keys(10)))
        for command in ["check", "f"], ["dedup", "-n", 100], ["dedup", "-n", 100, "--state", "state"]:
            process = self.start(*command)
            self.feed(process, text(keys(10)) + b"key")

            said = self.stop(process)

            self.assertEqual(cut(process.stdout.read()), keys(10), command)
            if command[0] == "dedup":
                self.assertIn("interrupted: 10 lines in", said)
        self.assertEqual(self.info("state")["inserted"], 10)

    def test_an_exact_dedup_says_nothing_half(self) -> None:
        os.mkdir(self.path("temporary"))
        process = self.start("dedup", "-q", "--exact", env=dict(os.environ, TMPDIR=self.path("temporary")))
        self.feed(process, text(keys(10)))

        self.stop(process)

        self.assertEqual((process.stdout.read(), os.listdir(self.path("temporary"))), (b"", []))

    def test_signals_that_are_ignored_by_inheritance_stay_so(self) -> None:
        def ignore() -> None:
            for number in STOPS:
                signal.signal(number, signal.SIG_IGN)

        process = self.start("dedup", "-q", "-n", 10, preexec_fn=ignore)
        self.feed(process, b"one\n")
        for number in STOPS:
            process.send_signal(number)

        out, err = process.communicate(b"two\n", timeout=60)

        self.assertEqual((process.returncode, out, err), (0, b"one\ntwo\n", b""))


class WithoutInput(CommandTest):
    """The signal comes while something long is worked out, of files that are there already."""

    def assert_ends_soon(self, after: float, *arguments: object) -> None:
        before = sorted(os.listdir(self.folder))
        process = self.start(*arguments, stdin=subprocess.DEVNULL)
        with self.assertRaises(subprocess.TimeoutExpired, msg=f"{arguments}: too quick to be interrupted"):
            process.wait(after)
        process.send_signal(signal.SIGTERM)

        self.assertEqual(process.wait(10), -signal.SIGTERM, arguments)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(process.stdout.read(), b"")

    def test_long_work_ends_soon(self) -> None:
        self.make_filter("f", keys(1000), "-n", 1000, "--scheme", "perl")
        self.make_filter("large", keys(1000), "-m", "128MiB", "-n", "100M", "--layout", "classic", "-k", 7)
        self.write("lines", keys(1_000_000))
        for after, line in (
            (0.3, "verify -j 1 --queries 100M f"),
            (0.3, "verify -j 4 --queries 100M f"),
            (0.3, "info --queries 100M f"),
            (0.1, "fold large -o u --times 19"),
            (0.1, "union -o u" + 40 * " large"),
            (0.1, "intersect -o u" + 40 * " large"),
            (0.05, "noisy split --copies 64 -o m lines"),
            (0.3, "noisy split --copies 64 -o m lines"),
        ):
            self.assert_ends_soon(after, *line.split())


if __name__ == "__main__":
    unittest.main()
