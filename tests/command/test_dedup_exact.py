"""bloomery dedup --exact: not one line is lost or repeated, whatever the hash, the input and its share of duplicates."""

import os
import unittest

from support import LONG, CommandTest, cut, first_occurrences, keys, packed, text, zstd

COUNT = 3_000_000 if LONG else 200_000


def with_duplicates(share: float) -> list[bytes]:
    """Lines of which this share is a repetition, near and far ones."""
    distinct = max(1, round(COUNT * (1 - share)))
    return [b"line-%d" % (i if i < distinct else (i * 48271 + i // 7) % distinct) for i in range(COUNT)]


class DedupExact(CommandTest):
    def exact(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", "--exact", *arguments, **options).lines

    def test_it_equals_a_set_for_every_share_of_duplicates_and_every_hash(self) -> None:
        for share in 0, 0.001, 0.5, 0.99, 1:
            lines = with_duplicates(share)
            self.write("lines", lines)
            expected = first_occurrences(lines)
            for options in [], ["-n", 10], ["-j", 1], ["--seed", 3], ["--hash", "murmur3"]:
                with self.subTest(share=share, options=options):
                    self.assertEqual(self.exact(*options, "lines"), expected)

    def test_it_equals_a_set_however_the_input_comes(self) -> None:
        lines = with_duplicates(0.3)
        expected = first_occurrences(lines)
        plain = text(lines)
        self.write("lines", plain)
        self.write("lines.gz", packed(plain))
        self.write("lines.zst", zstd(plain))

        with open(self.path("lines"), "rb") as file:
            self.assertEqual(self.exact("-n", 100, stdin=file), expected, "standard input, a file")
        self.assertEqual(self.exact("-n", 100, stdin=plain), expected, "pipe")
        self.assertEqual(self.exact(stdin=packed(plain)), expected, "compressed pipe without -n")
        self.assertEqual(self.exact("-n", 100, "lines.gz"), expected, "gzip")
        self.assertEqual(self.exact("-n", 100, "lines.zst"), expected, "zstd")
        self.assertEqual(self.exact("-n", 100, "lines", "lines.gz", "-", stdin=b"new\n"), [*expected, b"new"], "several")

    def test_standard_input_that_was_read_halfway_is_read_from_there(self) -> None:
        self.write("lines", b"header\nheader\na\nb\na\n")

        with open(self.path("lines"), "rb", buffering=0) as file:
            file.seek(len(b"header\n"))
            out = self.exact(stdin=file)

        self.assertEqual(out, [b"header", b"a", b"b"])

    def test_bytes_of_all_kinds_are_lines(self) -> None:
        odd = [b"", b"\0", b"\0\0", b"\r", b"a\0b", b"a\0c", b"\xff", b"x" * 300_000, b"x" * 300_001]

        out = self.bloomery("dedup", "-q", "--text", "--exact", "-n", 1, stdin=text(odd * 3) + b"last")

        self.assertEqual(out.out, text(odd) + b"last\n")

    def test_lines_can_end_with_nul_or_crlf_and_keys_can_be_fields(self) -> None:
        names = [b"%d\n" % (i % 700) for i in range(2000)]
        rows = [b"%d,%d,x" % (i, i * i % 701) for i in range(2000)]
        ends = [b"%d%s" % (i % 300, b"\r" * (i % 2)) for i in range(1500)]

        by_nul = cut(self.bloomery("dedup", "-q", "--exact", "-0", "-n", 1, stdin=text(names, b"\0")).out, b"\0")
        by_field = self.exact("-d", ",", "-f", 2, "-n", 1, stdin=text(rows))
        by_crlf = self.exact("--crlf", "-n", 1, stdin=text(ends))

        self.assertEqual(by_nul, first_occurrences(names))
        self.assertEqual(by_field, first_occurrences(rows, key=lambda row: row.split(b",")[1]))
        self.assertEqual(by_crlf, first_occurrences(ends, key=lambda line: line.rstrip(b"\r")))

    def test_empty_inputs_give_empty_outputs(self) -> None:
        self.write("empty", b"")

        self.assertEqual(self.exact("empty"), [])
        self.assertEqual(self.exact(stdin=b""), [])

    def test_the_filter_s_false_alarms_are_counted(self) -> None:
        run = self.bloomery("dedup", "--exact", "--json", stdin=text(keys(200_000) + keys(1000)))

        report = run.report
        self.assertEqual((report["lines_in"], report["lines_out"], report["dropped"]), (201_000, 200_000, 1000))
        self.assertEqual((report["exact"], report["expected_wrongly_dropped"]), (True, 0))
        self.assertGreater(report["rescued"], 20)

    def test_a_file_that_grows_or_shrinks_while_it_is_read_is_an_error(self) -> None:
        def grow(path: str) -> None:
            with open(path, "ab") as file:
                file.write(text(keys(1000, "late") * 3))

        def shrink(path: str) -> None:
            os.truncate(path, os.path.getsize(path) - len(keys(1_000_000)[-1]) - 1)

        for change in grow, shrink:
            for options in [], ["--memory", "1B"]:
                with self.subTest(change=change.__name__, options=options):
                    self.write("lines", keys(1_000_000))
                    process = self.start("dedup", "-q", *options, "lines")
                    first = process.stdout.read(1)  # the last pass has begun, and waits for its reader
                    change(self.path("lines"))

                    out, err = process.communicate(timeout=60)

                    self.assertEqual(process.returncode, 2)
                    self.assertIn(b"the input changed while it was read", err)
                    lines = cut(first + out)
                    self.assertEqual(len(lines), len(set(lines)))

    def test_suspects_are_the_dropped_lines(self) -> None:
        self.write("lines", keys(5000) + keys(2000))

        for options in [], ["--memory", "1B"]:
            self.exact("-n", 100, *options, "--suspects", "suspects", "lines")

            self.assertEqual(cut(self.read("suspects")), keys(2000))

    def test_it_says_beforehand_where_temporary_files_are(self) -> None:
        self.write("lines", keys(1000))
        os.mkdir(self.path("temporary"))

        elsewhere = dict(os.environ, TMPDIR=self.path("temporary"))
        run = self.bloomery("dedup", "--exact", "--memory", "1KiB", "lines", env=elsewhere)
        piped = self.bloomery("dedup", "--exact", stdin=text(keys(10)), env=elsewhere)

        self.assertRegex(run.err.splitlines()[0], rf"comparing repeated lines in {self.path('temporary')} \(.* free\)")
        self.assertIn(f"copying the input to {self.path('temporary')} (", piped.err)
        self.assertEqual(os.listdir(self.path("temporary")), [])

    def test_a_folder_for_temporary_files_that_is_missing_is_named(self) -> None:
        self.refused("dedup", "-q", "--exact", stdin=b"x\n", env=dict(os.environ, TMPDIR="/nowhere"), says="/nowhere.*TMPDIR")

    def test_what_exact_mode_would_ignore_is_refused(self) -> None:
        for option in ["-p", "50%"], ["--layout", "classic"], ["--prefer", "memory"], ["--max-loss", "1%"], ["--grow"], ["--window", "24h"]:
            with self.subTest(option=option):
                self.refused("dedup", "--exact", *option, stdin=b"x\n", says=rf"leave out (--rate or --exact|{option[0]} or --exact|one of the two)")

    def test_a_state_cannot_be_exact(self) -> None:
        self.refused("dedup", "-q", "--exact", "--state", "state", "-n", 10, stdin=b"x\n", says="leave out --state or --exact")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
