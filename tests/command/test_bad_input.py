"""Bad input gets one clear line and status 2, and nothing is lost; odd input that is not bad gets through."""

import gzip
import os
import resource
import signal
import subprocess
import unittest

from support import LAYOUTS, LONG, PAYLOAD_AT, CommandTest, keys, sample, sample_if_sanitized, text

COMMANDS = """plan build seal add check dedup remove info verify explain union intersect overlap fold pull push redis playground analyze keygen
    noisy rebuild completion help""".split()


def given(option: str, value: str) -> list[str]:
    """Words that give an option this value, even if it begins with a dash or is empty."""
    if option.startswith("--"):
        return [f"{option}={value}"]
    return [option + value] if value else [option, ""]


class BadNumbers(CommandTest):
    def test_keys_are_a_whole_number_above_zero(self) -> None:
        for command in ["build", "-o", "f"], ["dedup"], ["plan", "-p", "1%"]:
            for n in sample_if_sanitized(("0", "-1", "1.5", "x", "", "nan", "1e19", "1e400", "0x10", "1K5", "1%", "inf"), 4):
                self.refused(*command, *given("-n", n), stdin=b"key\n", says="--capacity")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_rate_lies_between_zero_and_one(self) -> None:
        for option in "-p", "--max-loss":
            rates = "0", "1", "NaN", "nan", "-1", "2", "100%", "0%", "inf", "1e-400", "1 in 0", "1 in 1", "1/0", "x", "1 %%"
            for p in sample_if_sanitized(rates, 5):
                self.refused("dedup", "-n", 10, *given(option, p), stdin=b"key\n", says="--rate" if option == "-p" else option)
        for p in "0", "1", "NaN", "-1", "2":
            self.refused("build", "-o", "f", "-n", 10, *given("-p", p), stdin=b"key\n", says="--rate.*above 0 and below 1")
            self.refused("plan", "-n", 10, *given("-p", p), says="--rate.*above 0 and below 1")

    def test_size_and_probes_are_above_zero_and_size_excludes_a_rate(self) -> None:
        build = ["build", "-o", "f", "-n", 10]
        self.refused(*build, "-m", 0, says="--bits")
        self.refused(*build, "-m", "12 apples", says="--bits.*bits such as")
        self.refused(*build, "-m", 1000, "-k", 0, says="--probes.*1 to 255")
        self.refused(*build, "-m", 1000, "-k", 256, says="--probes.*1 to 255")
        self.refused(*build, "-k", 3, says="add --bits")
        self.refused(*build, "-m", 1000, "-p", "1%", says="--bits or --rate")
        for layout, least in ("split_block", 256), ("split_block512", 512), ("blocked", 512), ("blocked_page", 32_768):
            self.refused(*build, "-m", least - 1, "--layout", layout, says=f"{least} or more, found {least - 1}; .*classic")
        for layout in "split_block", "split_block512":
            self.refused(*build, "-m", "8KiB", "-k", 5, "--layout", layout, says=f"--probes: {layout} always has 8 probes.*; .+")
        self.refused(*build, "-m", "1e30", says="--bits")

    def test_sizes_beyond_memory_or_disk_are_refused_before_anything_is_read(self) -> None:
        for n in "1e18", "1e15", "1e12":
            for command in ["build", "-o", "f"], ["dedup"]:
                process = self.start(*command, "-q", "-n", n, "-p", "1%", "--layout", "classic")

                status = process.wait(60)  # while standard input is still open

                said = process.stderr.read().decode()
                self.assertEqual(status, 2, said)
                self.assertRegex(said, r"\Abloomery: .*(memory|disk space|bits).*; .+\n\Z")

    def test_sizes_beyond_a_layout_name_another_layout(self) -> None:
        for layout in "split_block", "split_block512", "blocked", "blocked_page":
            self.refused("build", "-o", "f", "-n", "1e18", "--layout", layout, says="use the classic layout")


class BadWords(CommandTest):
    def test_a_mistyped_command_suggests_the_right_one(self) -> None:
        mistyped = {"chekc": "check", "biuld": "build", "dedupe": "dedup", "ad": "add", "inof": "info", "paln": "plan"}
        for typed, meant in mistyped.items():
            self.refused(typed, "x", says=f"did you mean 'bloomery {meant}'")

    def test_a_word_that_is_like_no_command_gets_the_list(self) -> None:
        self.refused("frobnicate", says="one of " + ", ".join(COMMANDS))

    def test_unknown_options_point_to_the_help_of_the_command(self) -> None:
        for command in COMMANDS:
            self.refused(command, "--frobnicate", says=f"--frobnicate.*bloomery {command} --help")
        self.refused("--frobnicate", says="bloomery --help")

    def test_help_and_version_go_to_standard_output(self) -> None:
        for arguments in ["--help"], ["--version"], *[[command, "--help"] for command in COMMANDS]:
            run = self.bloomery(*arguments)
            self.assertIn(b"bloomery", run.out)
            self.assertEqual(run.err, "")

    def test_names_of_layouts_hashes_and_schemes_are_listed(self) -> None:
        build = ["build", "-o", "f", "-n", 10]
        self.refused(*build, "--layout", "x", says=", ".join(LAYOUTS))
        self.refused(*build, "-m", 1000, "--layout", "x", says=", ".join(LAYOUTS))
        self.refused(*build, "--hash", "x", says="xxh3_64, xxh3,.*murmur3")
        self.refused(*build, "--scheme", "x", says="guava, pharo, python, perl")
        self.refused(*build, "--hash", "mix", says="integer")
        self.refused(*build, "--seed", "x", says="seed")
        self.refused(*build, "--scheme", "guava", "--seed", 1, says="seed")

    def test_contradictions_about_lines_are_refused(self) -> None:
        for command in ["build", "-o", "f", "-n", 10], ["dedup", "-n", 10]:
            self.refused(*command, "-0", "--crlf", says="--crlf and --null exclude each other")
            self.refused(*command, "-d", ",", says="--field 1")
            self.refused(*command, "-d", "a\\q", "-f", 1, says="invalid field separator")
            self.refused(*command, "-f", 0, says="field")
            self.refused(*command, "-f", "x", says="only CSV has column names")
            self.refused(*command, "-j", 0, says="threads")
            self.refused(*command, "-j", 1000, says="threads")

    def test_what_must_be_named_is_asked_for(self) -> None:
        self.refused("build", says="--output")
        for command in "add", "check", "info", "verify", "explain", "fold":
            self.refused(command, says="FILTER|--output")
        for command in "union", "intersect", "keygen":
            self.refused(command, says="--output")
        self.refused("info", says="FILTER or --build")

    def test_an_error_is_one_line_whatever_it_quotes(self) -> None:
        self.refused("check", "two\nlines\x1b[2J", says=r"two\\x0Alines\\x1B")
        self.refused("two\nlines", says="unknown command")
        self.bloomery("build", "-q", "-o", "f", "--u64", "-n", 1)
        self.refused("check", "-0", "f", stdin=b"a\nb\0", says=r"a\\x0Ab")


class BadFiles(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 5000, "--note", "note", stdin=text(keys(5000)))
        self.whole = self.read("f")

    def test_missing_files_and_directories_are_named(self) -> None:
        for command in ["add"], ["check"], ["info"], ["verify"], ["fold", "-o", "g"], ["overlap", "f"], ["union", "-o", "g", "f"]:
            self.refused(*command, "missing", says="missing: cannot open: No such file")
            self.refused(*command, ".", says="expected a regular file, found a directory")
        for command in ["add", "f"], ["check", "f"], ["build", "-o", "g"], ["dedup", "-q", "-n", 10], ["dedup", "-q", "--exact"]:
            self.refused(*command, "missing", says="missing: cannot (read|open): No such file")
            self.refused(*command, ".", says=r"\.: cannot read: Is a directory")
        self.refused("build", "-o", ".", says="expected the name of a file, found a directory")
        self.refused("build", "-o", "missing/f", stdin=b"x\n", says="missing.*No such file")

    def test_what_is_no_filter_says_how_to_make_one(self) -> None:
        self.write("text", keys(10))
        self.write("empty", b"")
        os.mkfifo(self.path("pipe"))
        for command in ["add"], ["check"], ["info"], ["verify"], ["fold", "-o", "g"], ["overlap", "f"], ["union", "-o", "g", "f"]:
            self.refused(*command, "text", says="not a bloomery filter.*bloomery build")
            self.refused(*command, "empty", says="an empty file")
            self.refused(*command, "/dev/null", says="a regular file")
            self.refused(*command, "pipe", says="a regular file")

    def test_a_file_cut_short_anywhere_is_refused_and_left_alone(self) -> None:
        # The library's tests cut at many more places (DamagedFile.CutShortAnywhereIsRefused).
        size = len(self.whole)
        for length in sample([0, 7, 511, 575, 4095, 4097, PAYLOAD_AT + 4096, size - 1], 4):
            self.write("cut", self.whole[:length])
            for command in ["info"], ["check"], ["add"], ["dedup", "-q", "--state"], ["verify"], ["fold", "-o", "g"]:
                self.refused(*command, "cut", stdin=b"key-1\n")
            self.assertEqual(self.read("cut"), self.whole[:length])

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

    def test_a_file_that_grew_is_refused(self) -> None:
        self.write("longer", self.whole + b"\0")

        self.refused("check", "longer", stdin=b"key-1\n", says="too long")

    def test_a_flipped_byte_of_the_header_is_refused_or_harmless(self) -> None:
        # The library's tests flip every bit, in
        # DamagedFile.WithAnyBitOfItsHeaderFlippedIsRefusedOrServedFromTheOtherSlot.
        fields, zeros, slots = range(184), [*range(184, 504), *range(576, 1024), *range(1088, 4096)], [range(512, 576), range(1024, 1088)]
        for at in [*sample(fields, 12), *sample(zeros, 4), *sample(slots[0], 2), *sample(slots[1], 2)]:
            flipped = bytearray(self.whole)
            flipped[at] ^= 0xFF
            self.write("flipped", bytes(flipped))
            if any(at in slot for slot in slots):  # each of the two replaces the other
                self.assertEqual(self.count("flipped", keys(5000)), 5000, at)
            else:
                self.refused("check", "flipped", stdin=b"key-1\n")

    def test_a_file_of_another_version_is_told_apart(self) -> None:
        other = bytearray(self.whole)
        other[8] = 2
        self.write("other", bytes(other))

        self.refused("check", "other", says="unsupported file version: expected version 1, found 2")

    def test_damaged_compressed_input_is_an_error_and_builds_nothing(self) -> None:
        packed = gzip.compress(text(keys(5000)))
        broken = bytearray(packed)
        broken[len(packed) // 2] ^= 0xFF
        for name, data in ("cut.gz", packed[:-9]), ("broken.gz", bytes(broken)), ("cut.zst", b"\x28\xb5\x2f\xfd\x20"):
            self.write(name, data)
            self.refused("build", "-q", "-o", "g", name, says=f"{name}: compressed data is (damaged|truncated)")
            self.refused("dedup", "-q", "--exact", name, says=f"{name}: compressed data is (damaged|truncated)")
        self.assertFalse(os.path.exists(self.path("g")))


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
        for command in (
            ["plan", "-n", 10, "-p", 0.1],
            ["plan", "--table"],
            ["info", "f"],
            ["info", "--json", "f"],
            ["info", "--build"],
            ["plan", "--table", "--prefer", "memory"],
            ["check", "f", "lines"],
            ["check", "-c", "f", "lines"],
            ["check", "--json", "f", "lines"],
            ["verify", "f", "--queries", 10],
            ["verify", "f", "--queries", 10, "--json"],
            ["explain", "f", "key-1"],
            ["explain", "--json", "f", "key-1"],
            ["overlap", "f", "f"],
            ["overlap", "--json", "f", "f"],
            ["union", "-q", "--json", "-o", "u", "f", "f"],
            ["fold", "-q", "--json", "-o", "g", "f"],
            ["build", "-o", "g", "--json", "lines"],
            ["add", "--json", "f", "lines"],
            ["dedup", "-q", "lines"],
            ["dedup", "-q", "--exact", "lines"],
        ):
            with self.subTest(command=command), open("/dev/full", "wb") as full:
                self.refused(*command, stdout=full, says="standard output: cannot write: No space left")

    def test_files_that_cannot_be_written_are_an_error(self) -> None:
        self.refused("build", "-o", "/dev/full", "lines", says="/dev/full: cannot write: No space left")
        run = self.bloomery("dedup", "-q", "--suspects", "/dev/full", "-n", 10, "lines", "lines", status=2)
        self.assertRegex(run.err, r"/dev/full: cannot write: No space left")

    def test_a_build_beyond_a_limit_leaves_no_file_or_the_old_one(self) -> None:
        old = self.read("f")

        self.limited("build", "-o", "new", "lines", says="File too large.*ulimit")
        self.limited("build", "-o", "f", "lines", says="File too large.*ulimit")

        self.assertEqual(self.read("f"), old)
        self.assertEqual(sorted(os.listdir(self.folder)), ["f", "lines"])

    def test_a_state_beyond_a_limit_is_not_made(self) -> None:
        self.limited("dedup", "-q", "--state", "new", "lines", says="new.*: .*File too large")

        self.assertFalse(os.path.exists(self.path("new")))

    def test_temporary_files_beyond_a_limit_are_an_error(self) -> None:
        for command in ["build", "-q", "-o", "new"], ["dedup", "-q", "--exact"]:
            self.limited(*command, most=1000, stdin=text(keys(100_000)), says="temporary file: File too large.*TMPDIR")

        self.assertEqual(sorted(os.listdir(self.folder)), ["f", "lines"])

    def test_output_beyond_a_limit_is_an_error(self) -> None:
        with open(self.path("out"), "wb") as out:
            self.limited("dedup", "-q", "lines", stdout=out, says="standard output: cannot write: File too large")

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

    def test_empty_lines_are_keys(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10, stdin=b"\n\n\n")
        self.bloomery("build", "-q", "-o", "none", "-n", 10, stdin=b"")

        self.assertEqual(self.bloomery("check", "f", stdin=b"\n\nx\n").out, b"\n\n")
        self.assertEqual(self.bloomery("check", "none", stdin=b"\n", status=1).out, b"")
        self.assertEqual(self.bloomery("dedup", "-q", "-n", 10, stdin=b"\n\nx\n\n").out, b"\nx\n")

    def test_a_key_is_the_same_with_and_without_a_final_newline(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10, stdin=b"one\ntwo")

        self.assertEqual(self.bloomery("check", "f", stdin=b"two\none").out, b"two\none\n")

    def test_nul_bytes_within_lines_of_text_count(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10, "-p", "1e-9", "--text", stdin=b"a\0b\n\0\n")

        self.assertEqual(self.bloomery("check", "f", "--text", stdin=b"a\0c\na\na\0b\n\0\n\0\0\n").out, b"a\0b\n\0\n")

    def test_without_the_option_cr_is_part_of_the_key(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10, stdin=b"a\r\n")

        self.assertEqual(self.bloomery("check", "f", stdin=b"a\na\r\n").out, b"a\r\n")

    def test_names_with_spaces_and_dashes_are_names(self) -> None:
        self.write("a b", b"one\n")
        self.write("-n", b"two\n")

        self.bloomery("build", "-q", "-o", "the filter", "a b", "./-n")
        self.bloomery("build", "-q", "-o", "other", "--", "-n")

        self.assertEqual(self.bloomery("check", "the filter", stdin=b"one\ntwo\n").out, b"one\ntwo\n")
        self.assertEqual(self.bloomery("check", "other", stdin=b"one\ntwo\n").out, b"two\n")


class NoName(CommandTest):
    def test_an_empty_name_is_refused_as_such_everywhere(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10)
        for arguments in (
            ["build", "-o", ""],
            ["build", "-o", "g", ""],
            ["union", "-o", "", "f", "f"],
            ["union", "-o", "g", "f", ""],
            ["intersect", "-o", "g", "", "f"],
            ["overlap", "f", ""],
            ["fold", "f", "-o", ""],
            ["verify", "f", "--present", ""],
            ["verify", "f", "--absent", ""],
            ["explain", "f", "a", "--keys", ""],
            ["noisy", "check", ""],
            ["noisy", "check", "f", "-i", ""],
        ):
            self.refused(*arguments, says="empty value: expected a name, found ''; see bloomery [a-z ]+ --help")

    def test_help_that_cannot_be_written_is_an_error(self) -> None:
        for arguments in ["--help"], ["--version"], ["verify", "--help"]:
            with open("/dev/full", "wb") as full:
                run = self.bloomery(*arguments, stdout=full, status=2)

            self.assertIn("standard output: cannot write", run.err)


if __name__ == "__main__":
    unittest.main()
