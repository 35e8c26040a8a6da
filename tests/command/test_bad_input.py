"""Bad input gets one clear line and status 2, and nothing is lost; odd input that is not bad gets through."""

import os
import resource
import signal
import subprocess
import unittest

from support import LAYOUTS, LONG, PAYLOAD_AT, CommandTest, keys, sample, text

class BadNumbers(CommandTest):
    def test_numbers_out_of_range_are_refused_and_their_option_is_named(self) -> None:
        # The unit tests of ParseCount, ParseRate and ParseBits have many more.
        build, rate = "build -o f -n 10 ", "--rate.*above 0 and below 1"
        self.refuse_all(
            {f"{command} -n{n}": "--capacity" for command in ("build -o f", "dedup", "plan -p 1%") for n in ("0", "-1", "x", "1e400", "' '")}
            | {f"{command} -n 10 -p{p}": rate for command in ("build -o f", "dedup", "plan") for p in ("0", "1", "NaN", "-1", "2")}
            | {f"dedup -n 10 --max-loss={p}": "--max-loss" for p in ("0", "1", "NaN", "100%", "1/0", "")}
            | {build + f"-m {size} -k {probes}": "--probes.*1 to 255" for size in (1000, "8KiB") for probes in (0, 256)}
            | {build + f"-m 8KiB -k 5 --layout {layout}": f"--probes: {layout} always has 8 probes.*; .+" for layout in ("split_block", "split_block512")}
            | {build + f"-m {least - 1} --layout {layout}": f"{least} or more, found {least - 1}; .*classic"
               for layout, least in {"split_block": 256, "split_block512": 512, "blocked": 512, "blocked_page": 32_768}.items()}
            | {f"build -o f -n 1e18 --layout {layout}": "use the classic layout" for layout in LAYOUTS[:4]}
            | {
                build + "-m 0": "--bits",
                build + "-m 1e30": "--bits",
                build + "-m '12 apples'": "--bits.*bits such as",
                build + "-k 3": "add --bits",
                build + "-m 1000 -p 1%": "--bits or --rate",
            },
            stdin=b"key\n",
        )  # fmt: skip
        self.assertEqual(os.listdir(self.folder), [])

    def test_sizes_beyond_memory_or_disk_are_refused_before_anything_is_read(self) -> None:
        for n in "1e18", "1e15", "1e12":
            for command in ["build", "-o", "f"], ["dedup"]:
                process = self.start(*command, "-q", "-n", n, "-p", "1%", "--layout", "classic")

                status = process.wait(60)  # while standard input is still open

                said = process.stderr.read().decode()
                self.assertEqual(status, 2, said)
                self.assertRegex(said, r"\Abloomery: .*(memory|disk space|bits).*; .+\n\Z")


class BadFiles(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 5000, "--note", "note", stdin=text(keys(5000)))
        self.whole = self.read("f")

    def test_files_that_are_missing_or_of_another_kind_are_named(self) -> None:
        self.write("text", keys(10))
        self.write("empty", b"")
        self.write("longer", self.whole + b"\0")
        self.write("other", self.whole[:8] + b"\3" + self.whole[9:])
        os.mkfifo(self.path("pipe"))
        opens, reads = "cannot open: No such file", "cannot (read|open): No such file"
        filters = {"missing": opens, ".": "expected a regular file, found a directory", "text": "not a bloomery filter.*bloomery build",
                   "empty": "an empty file", "/dev/null": "a regular file", "pipe": "a regular file", "longer": "too long",
                   "other": "unsupported file version: expected version 1 or 2, found 3"}  # fmt: skip
        for command in "add", "check", "info", "verify", "fold -o g", "overlap f", "union -o g f":
            self.refuse_all({f"{command} {name}": f"{name}: .*{says}" for name, says in filters.items()})
        for command in "add f", "check f", "build -o g", "dedup -q -n 10", "dedup -q --exact":
            self.refuse_all({f"{command} missing": f"missing: {reads}", f"{command} .": r"\.: cannot read: Is a directory"})
        self.refuse_all({"build -o .": "expected the name of a file, found a directory", "build -o missing/f": "missing.*No such file"}, stdin=b"x\n")

    def test_a_file_cut_short_anywhere_is_refused_and_left_alone(self) -> None:
        # The library's tests cut at many more places (DamagedFile.CutShortAnywhereIsRefused).
        for length in sample([0, 7, 511, 575, 4095, 4097, PAYLOAD_AT + 4096, len(self.whole) - 1], 4):
            self.write("cut", self.whole[:length])
            self.refuse_all({f"{command} cut": "" for command in ("info", "check", "add", "dedup -q --state", "verify", "fold -o g")}, stdin=b"key-1\n")
            self.assertEqual(self.read("cut"), self.whole[:length])

    def test_a_flipped_byte_of_the_header_is_refused_or_harmless(self) -> None:
        # DamagedFile.WithAnyBitOfItsHeaderFlippedIsRefusedOrServedFromTheOtherSlot flips every bit.
        for at, found in (16, None), (130, None), (300, None), (700, None), (4000, None), (520, 5000), (1080, 5000):  # two slots
            flipped = bytearray(self.whole)
            flipped[at] ^= 0xFF
            self.write("flipped", bytes(flipped))
            if found:
                self.assertEqual(self.count("flipped", keys(5000)), found, at)
            else:
                self.refused("check", "flipped", stdin=b"key-1\n")

    def test_a_file_cut_short_while_it_is_mapped_ends_the_command_with_a_message(self) -> None:
        lost = "was truncated or became unreadable|truncated while it was read"
        self.bloomery("build", "-q", "--foldable", "-n", 100_000, "-o", "f", stdin=b"key-1\n")
        run = self.start("check", "f")
        self.wait_until_mapped(run, "f")
        os.truncate(self.path("f"), 4096)
        _, err = run.communicate(text(keys(100)), timeout=60)
        self.assertEqual(run.returncode, 2, err)
        self.assertRegex(err.decode(), lost)

        # fold waits for no input: it is stopped while it works, unless it was quicker.
        self.bloomery("build", "-q", "-m", "64MiB", "-o", "large", stdin=b"key-1\n")
        whole = self.read("large")
        for _ in range(20):
            self.write("large", whole)
            run = self.start("fold", "large", "--times", 3, "-o", "folded")
            if self.wait_until_mapped(run, "large"):
                run.send_signal(signal.SIGSTOP)
                os.truncate(self.path("large"), 4096)
                run.send_signal(signal.SIGCONT)
            _, err = run.communicate(timeout=60)
            if run.returncode == 0:
                continue
            self.assertEqual(run.returncode, 2, err)
            self.assertRegex(err.decode(), lost)
            return
        self.fail("fold was never cut short")

    def wait_until_mapped(self, run: subprocess.Popen, name: str) -> bool:
        while run.poll() is None:
            try:
                with open(f"/proc/{run.pid}/maps") as maps:
                    if any(line.rstrip().endswith("/" + name) for line in maps):
                        return True
            except OSError:
                return False
        return False


class FullDisks(CommandTest):
    """A disk is full at /dev/full; a limit on the size of files acts like one halfway."""

    def setUp(self) -> None:
        super().setUp()
        self.write("lines", keys(100_000))
        self.bloomery("build", "-q", "-o", "f", "lines")

    def limited(self, *arguments: object, most: int = 50_000, **options) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        self.refused(*arguments, preexec_fn=limit, **options)

    def test_results_that_cannot_be_written_are_an_error(self) -> None:
        lines = """plan -n 10 -p 0.1|plan --table|plan --table --prefer memory|info f|info --json f|info --build|check f lines|check -c f lines
            |check --json f lines|verify f --queries 10|verify f --queries 10 --json|explain f key-1|explain --json f key-1|overlap f f
            |overlap --json f f|union -q --json -o u f f|fold -q --json -o g f|build -o g --json lines|add --json f lines|dedup -q lines
            |dedup -q --exact lines"""
        with open("/dev/full", "wb") as full:
            self.refuse_all(dict.fromkeys(lines.split("|"), "standard output: cannot write: No space left"), stdout=full)

    def test_help_that_cannot_be_written_is_an_error(self) -> None:
        for arguments in ["--help"], ["--version"], ["verify", "--help"]:
            with open("/dev/full", "wb") as full:
                self.assertIn("standard output: cannot write", self.bloomery(*arguments, stdout=full, status=2).err)

    def test_files_beyond_a_limit_are_an_error_and_leave_the_old_ones(self) -> None:
        old = self.read("f")
        too_large = "File too large.*ulimit"
        for line, most, says in (
            ("build -o new lines", 50_000, too_large),
            ("build -o f lines", 50_000, too_large),
            ("dedup -q --state new lines", 50_000, "new.*: .*File too large"),
            ("build -q -o new", 1000, "temporary file: File too large.*TMPDIR"),
            ("dedup -q --exact", 1000, "temporary file: File too large.*TMPDIR"),
            ("build -o /dev/full lines", 50_000, "/dev/full: cannot write: No space left"),
        ):
            with self.subTest(line=line):
                self.limited(*line.split(), most=most, says=says, stdin=b"" if "lines" in line else text(keys(100_000)))
                self.assertEqual((self.read("f"), sorted(os.listdir(self.folder))), (old, ["f", "lines"]))
        with open(self.path("out"), "wb") as out:
            self.limited("dedup", "-q", "lines", stdout=out, says="standard output: cannot write: File too large")
        run = self.bloomery("dedup", "-q", "--suspects", "/dev/full", "-n", 10, "lines", "lines", status=2)
        self.assertRegex(run.err, r"/dev/full: cannot write: No space left")

    def test_adding_in_place_needs_no_room(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(self.read("f")), len(self.read("f"))))

        self.bloomery("add", "-q", "f", stdin=text(keys(1000, "new")), preexec_fn=limit, status=3)

        self.assert_has_all("f", keys(1000, "new"))

    def test_a_closed_standard_output_is_an_error(self) -> None:
        self.refused("check", "f", "lines", preexec_fn=lambda: os.close(1), says="standard output|write")


class OddInput(CommandTest):
    """Nothing is wrong with it."""

    def test_very_long_lines_are_lines(self) -> None:
        length = 1 << 30 if LONG else 16 << 20  # the command reads 256 KiB at a time
        with open(self.path("lines"), "wb") as file:
            for last in b"a", b"b", b"a", b"b":
                for _ in range(length >> 20):
                    file.write(b"x" * (1 << 20))
                file.write(last + b"\n")

        for options in [], ["--exact"], ["--state", "state"]:
            with open(self.path("out"), "wb") as out:
                self.bloomery("dedup", "-q", *options, "lines", stdout=out)
            self.assertEqual(os.path.getsize(self.path("out")), 2 * (length + 2), options)
        self.bloomery("build", "-q", "-o", "f", "lines")
        self.assertEqual(int(self.bloomery("check", "-c", "f", "lines").out), 4)

    def test_names_with_spaces_and_dashes_are_names(self) -> None:
        self.write("a b", b"one\n")
        self.write("-n", b"two\n")

        self.bloomery("build", "-q", "-o", "the filter", "a b", "./-n")
        self.bloomery("build", "-q", "-o", "other", "--", "-n")

        self.assertEqual(self.bloomery("check", "the filter", stdin=b"one\ntwo\n").out, b"one\ntwo\n")
        self.assertEqual(self.bloomery("check", "other", stdin=b"one\ntwo\n").out, b"two\n")


if __name__ == "__main__":
    unittest.main()
