"""bloomery dedup without a state: the first occurrence of each line comes out, in order, or nearly so with a filter."""

import os
import re
import subprocess
import unittest

from support import (
    LAYOUTS, LONG, CommandTest, classic_rate, cut, first_occurrences, integral, keys, packed, split_block_rate, text, zstd,
)  # fmt: skip

BROKEN = 3

# How lines can be remembered without losing any of these tests' lines: for files, and for a pipe.
OF_FILES = ["", "-j 1", "-j 7", "--memory 1B", "-n 10", "-n 10 --memory 1B", "--hash murmur3", "--exact --seed 3", "-p 1e-9", "-p 1e-9 -n 10",
            "--grow -p 1e-9"]  # fmt: skip
OF_A_PIPE = ["", "-n 10", "--hash xxh3", "--exact", "--exact -n 10", "--exact --hash murmur3", "-p 1e-9", "-p 1e-9 -n 100k"]


def repeated(count: int, distinct: int) -> list[bytes]:
    """This many lines; repetitions are near and far."""
    return [b"line-%d" % (i if i < distinct else (i * 48271 + i // 7) % distinct) for i in range(count)]


def said(err: str, pattern: str) -> float:
    match = re.search(pattern, err)
    assert match, err
    return float(match[1].replace(",", ""))


class Dedup(CommandTest):
    def dedup(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", *arguments, **options).lines

    # ---- lines

    def test_the_first_occurrence_of_each_line_comes_out_in_order_and_the_others_are_suspects(self) -> None:
        count = 1_000_000 if LONG else 100_000
        for distinct in 1, count // 300, count // 2, count - 100, count:
            lines = repeated(count, distinct)
            expected = first_occurrences(lines)
            self.write("lines", lines)
            for options, piped in [(way, False) for way in OF_FILES] + [(way, True) for way in OF_A_PIPE]:
                with self.subTest(distinct=distinct, options=options, piped=piped):
                    source = {"stdin": text(lines)} if piped else {}
                    out = self.dedup("--suspects", "suspects", *options.split(), *([] if piped else ["lines"]), **source)

                    self.assertEqual(out, expected)
                    self.assertEqual(sorted(cut(self.read("suspects")) + expected), sorted(lines))

    def test_lines_and_keys_are_cut_as_asked(self) -> None:
        odd = [b"", b"\0", b"\0\0", b"a\0b", b"a\0c", b"\xff\xfe", b"\r", b"tail \r", b"tail ", b"\xc3\xa9", b"e\xcc\x81", b"x" * 300_000, b"x" * 300_001]
        rows = [b"%d;%s;%d" % (i, key, i % 3) for i, key in enumerate(keys(500) + keys(1000))]
        for ways in "", "--exact", "-p 1e-9 -n 1000":
            for options, given, expected in (
                ("--text", text(odd * 2) + b"last", text(odd) + b"last\n"),
                ("-0", b"a\n\0b\0a\n\0a", b"a\n\0b\0a\0"),
                ("--crlf", b"a\r\na\nb\nb\r\n", b"a\r\nb\n"),
                ("-d ; -f 2", text(rows), text(first_occurrences(rows, key=lambda row: row.split(b";")[1]))),
            ):
                with self.subTest(ways=ways, options=options):
                    self.assertEqual(self.bloomery("dedup", "-q", *ways.split(), *options.split(), stdin=given).out, expected)

    def test_all_inputs_compressed_or_not_are_one_list(self) -> None:
        a, b, c = repeated(20_000, 9000), repeated(30_000, 12_000), keys(10)
        self.write("a", a)
        self.write("b.gz", packed(text(b)))
        self.write("c.zst", zstd(text(c)))
        expected = first_occurrences([*a, *b, b"new", *c])

        for options in "", "--exact", "-n 20k -p 1e-9", "--grow -p 1e-9":
            self.assertEqual(self.dedup(*options.split(), "a", "b.gz", "-", "c.zst", "a", stdin=b"new\n"), expected, options)
        self.assertEqual(self.dedup("--exact", stdin=packed(text(b))), first_occurrences(b))

    def test_nothing_in_nothing_out(self) -> None:
        self.write("empty", b"")
        for options in "", "-p 1%", "--exact", "empty", "--exact empty", "-p 1% empty":
            with self.subTest(options=options):
                run = self.bloomery("dedup", "--json", *options.split())
                self.assertEqual((run.out, run.report["lines_in"], run.report["rate"]), (b"", 0, 0))

    def test_standard_input_that_was_read_halfway_is_read_from_there(self) -> None:
        self.write("lines", b"header\nheader\na\nb\na\n")

        for options in [], ["--exact"], ["-p", "1e-9"]:
            with open(self.path("lines"), "rb", buffering=0) as file:
                file.seek(len(b"header\n"))
                self.assertEqual(self.dedup(*options, stdin=file), [b"header", b"a", b"b"])

    def test_lines_come_out_as_soon_as_they_are_known(self) -> None:
        for options in [], ["-p", "1%"], ["-p", "1%", "-n", 100]:
            process = self.start("dedup", "-q", *options)
            for line in b"one\n", b"two\n":
                process.stdin.write(b"one\n" + line)
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), line)

    def test_a_reader_that_has_enough_ends_it_quietly(self) -> None:
        self.write("lines", keys(500_000))
        process = self.start("dedup", "-q", "lines")

        first = process.stdout.readline()
        process.stdout.close()

        self.assertEqual((first, process.stderr.read()), (b"key-0\n", b""))
        self.assertEqual(process.wait(60), -13)  # SIGPIPE

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

    # ---- lines that a filter drops

    def test_a_filter_drops_as_many_distinct_lines_as_it_expects_and_they_are_suspects(self) -> None:
        n = 200_000
        lines = keys(n) + keys(1000)
        self.write("lines", lines)
        fixed = [f"-p 1% -n {n} --layout {layout} lines" for layout in LAYOUTS]
        for options, most in *((row, 0.01) for row in fixed), ("-p 10%", 0.1), ("-p 1%", 0.01), ("--max-loss 2%", 0.02):
            with self.subTest(options=options):
                run = self.bloomery("dedup", "-q", "--json", "--suspects", "suspects", *options.split(), stdin=b"" if "lines" in options else text(lines))

                lost, report = n - len(run.lines), run.report
                self.assert_chance(lost, n, report["expected_wrongly_dropped"] / n)
                self.assertTrue(10 < lost < most * n, lost)
                self.assertEqual(set(run.lines) - set(lines), set())
                self.assertEqual(sorted(run.lines + cut(self.read("suspects"))), sorted(lines))
                self.assertEqual((report["lines_out"], report["dropped"], report["exact"]), (len(run.lines), lost + 1000, False))
                if "lines" not in options:
                    self.assertLess(report["rate"], most)
                    self.assertGreaterEqual(report["layers"], 3)
        self.assert_chance(n - len(self.dedup("--max-loss", "0.5%", "-n", n, stdin=text(keys(n)))), n, 0.005)

    def test_the_expected_losses_are_unbiased_and_their_interval_holds(self) -> None:
        n, seeds = 40_000, 200
        self.write("lines", keys(n))
        lost = expected = inside = 0
        for seed in range(seeds):
            report = self.bloomery("dedup", "-q", "--json", "-p", "1e-4", "--seed", seed, "lines").report
            low, high = report["wrongly_dropped_interval"]
            lost += report["dropped"]
            expected += report["expected_wrongly_dropped"]
            inside += low <= report["dropped"] <= high

        # Over all seeds the losses are Poisson distributed around the expectation.
        self.assertGreater(expected, 50)
        self.assertLess(abs(lost - expected), 4 * expected**0.5)
        self.assertGreaterEqual(inside, 0.92 * seeds)

    def test_threads_do_not_change_which_lines_are_dropped_but_layout_hash_and_seed_do(self) -> None:
        self.write("lines", [b"%d" % (i * 7 % 200_003) for i in range(400_000)])
        for others, source in (["--layout", "classic"], ["lines"]), (["--layout", "split_block512", "--seed", 2], []):
            outputs = []
            for options in ["-j", 1], ["-j", 4], ["-j", 64], ["--seed", 1], ["--hash", "murmur3"], others:
                stdin = b"" if source else self.read("lines")
                outputs.append(self.bloomery("dedup", "-q", "-p", "5%", *options, *source, stdin=stdin).out)

            self.assertEqual(outputs[1:3], outputs[:1] * 2)
            self.assertEqual(len(set(outputs)), 4)

    def test_the_losses_expected_before_are_the_integral_over_the_fill(self) -> None:
        n = 100_000_000
        classic = self.bloomery("dedup", "-n", "100M", "-p", "1e-4", "--layout", "classic", stdin=b"x\n").err
        block = self.bloomery("dedup", "-n", "1M", "-p", "1e-2", "--layout", "split_block", stdin=b"x\n").err

        pattern = r"expected false drops until it is full: ([\d,.]+) lines"
        self.assertAlmostEqual(said(classic, pattern), 963.5, delta=1)
        self.assertAlmostEqual(said(classic, pattern), integral(lambda i: classic_rate(1_917_295_753, 13, i), n), delta=1)
        expected = integral(lambda i: split_block_rate(10_526_976, i), 1_000_000, 100)
        self.assertAlmostEqual(said(block, pattern) / expected, 1, delta=0.01)

    def test_max_loss_takes_the_highest_rate_that_keeps_it(self) -> None:
        # With another number of probes the losses jump, so that they may stay below the share by some percent.
        for choice in *(["--layout", layout] for layout in LAYOUTS), ["--prefer", "speed"], ["--prefer", "memory"]:
            for share in 1e-2, 1e-3, 1e-4, 1e-5:
                with self.subTest(choice=choice, share=share):
                    run = self.bloomery("dedup", "--max-loss", share, "-n", "1M", *choice, stdin=b"x\n")
                    kept = re.search(r"at ([\d.e-]+)(%|): .* \((\w+), .*until it is full: ([\d,.]+) ", run.err)
                    rate = float(kept[1]) / (100 if kept[2] == "%" else 1)

                    higher = self.bloomery("dedup", "-p", rate * 1.02, "-n", "1M", "--layout", kept[3], stdin=b"x\n")

                    self.assertLessEqual(float(kept[4].replace(",", "")), share * 1e6 * 1.001)
                    self.assertGreater(said(higher.err, r"until it is full: ([\d,.]+) "), share * 1e6)

    # ---- promises

    def test_a_filter_that_is_too_small_is_no_success(self) -> None:
        dedup = ["dedup", "-q", "-n", 1000, "-p", "1e-4"]
        run = self.bloomery(*dedup, stdin=text(keys(100_000) * 2), status=BROKEN)

        self.assertLess(len(run.lines), 50_000)
        kept = set(run.lines)
        self.assertEqual(run.lines, [key for key in keys(100_000) if key in kept])
        self.assertRegex(run.err, "warning: current FPR .*; the capacity is 1,000 keys")
        self.assertRegex(run.err.splitlines()[-1], "target missed")
        self.assertFalse(self.bloomery(*dedup, "--json", stdin=text(keys(100_000)), status=BROKEN).report["kept"])
        self.bloomery("dedup", "-q", "-p", "1e-6", "-n", 10_000, stdin=text(keys(12_000)))  # hardly too small

    def test_max_loss_that_is_not_kept_is_no_success(self) -> None:
        kept = self.bloomery("dedup", "-q", "--max-loss", "1e-3", "-n", 20_000, stdin=text(keys(20_000)))
        broken = self.bloomery("dedup", "-q", "--max-loss", "1e-3", "-n", 20_000, stdin=text(keys(40_000)), status=BROKEN)

        self.assertEqual(kept.err, "")
        self.assertRegex(broken.err.splitlines()[-1], "--max-loss allows 0.1 ?%")

    # ---- reports

    def test_the_report_tells_how_lines_were_remembered(self) -> None:
        lines = text(keys(200_000) + keys(1000))
        self.write("lines", lines)
        counts = {"lines_in": 201_000, "complete": True, "kept": True}
        exact = {"lines_out": 200_000, "dropped": 1000, "exact": True, "expected_wrongly_dropped": 0}
        for options, stdin, expected in (
            (["lines"], b"", exact),
            (["--memory", "1B", "lines"], b"", exact),
            (["--exact"], lines, exact),
            ([], lines, {"lines_out": 200_000, "exact": False}),
            (["-n", 1000, "-p", "1e-6", "lines"], b"", {"exact": False}),
        ):
            with self.subTest(options=options):
                report = self.bloomery("dedup", "--json", *options, stdin=stdin).report
                self.assertEqual(report | counts | expected, report)
                if options == ["--exact"]:
                    self.assertGreater(report["rescued"], 20)  # the false positives of its filter
                if options == []:
                    self.assertAlmostEqual(report["expected_wrongly_dropped"] / (200_000**2 / 2**71), 1, places=6)
                if "-p" in options:  # a file with more lines than the capacity
                    self.assertGreaterEqual(report["lines_out"], 199_998)
                    self.assertGreater(report["layers"], 0)

        report = self.bloomery("dedup", "--json", "-n", 10_000, stdin=b"").report
        self.assertEqual(
            list(report),
            ["lines_in", "lines_out", "dropped", "expected_wrongly_dropped", "wrongly_dropped_interval", "rate", "rescued", "exact", "kept", "complete"],
        )

    def test_a_growing_filter_takes_memory_for_its_input(self) -> None:
        n = 400_000
        reports = [self.bloomery("dedup", "-q", "--json", "-p", "1%", stdin=text(keys(m))).report for m in (10, n)]

        self.assertEqual([report["layers"] for report in reports], [1, 4])  # 65,536 and as many, twice, four times as many
        self.assertLess(reports[0]["bytes"], 140_000)
        self.assertLess(reports[1]["bytes"] * 8, 33 * n)

    def test_it_says_what_it_does_unless_quiet(self) -> None:
        lines = text(keys(1000) * 3)
        self.write("lines", lines)
        summary = r"bloomery: 3,000 lines in, 1,000 out, 2,000 dropped; "
        grows = r"\Abloomery: the filter grows with the input; false drops: at most 1e-06 of the distinct lines\n" + summary + r".*; [\d.]+ KiB in 1 layer\n\Z"
        for options, stdin, says in (
            (["-n", 10_000, "-p", "1e-4"], lines, rf"\Abloomery: capacity 10,000 keys at 0.01%: .*\n{summary}expected false drops: .*\n\Z"),
            (["-p", "1e-4", "lines"], b"", "^bloomery: capacity 3,000 keys at 0.01%"),
            (["-p", "1e-4"], "lines", "^bloomery: capacity 3,000 keys at 0.01%"),
            (["-p", "1e-6"], lines, grows),
            (["-p", "1e-6", "--grow", "lines"], b"", grows),
            ([], lines, r"\A[^\n]*70 bits[^\n]*fewer than 0.01 for up to 4 billion distinct lines[^\n]*\n" + summary),
        ):
            with self.subTest(options=options), open(self.path("lines"), "rb") as file:
                run = self.bloomery("dedup", *options, stdin=file if stdin == "lines" else stdin)
                quiet = self.bloomery("dedup", "-q", *options, stdin=lines if stdin == "lines" else stdin)
                self.assertRegex(run.err, says)
                self.assertEqual((quiet.err, quiet.out, run.lines), ("", run.out, keys(1000)))

    def test_a_capacity_without_a_filter_is_said_to_be_unused(self) -> None:
        self.write("lines", keys(10))
        for arguments, why in ([], "hash of each line"), (["lines"], "compared exactly"), (["--exact"], "compared exactly"):
            run = self.bloomery("dedup", "-n", 10, *arguments, stdin=text(keys(10)))
            self.assertEqual(len(re.findall(f"note: --capacity is ignored, because .*{why}.*; it applies to a filter", run.err)), 1, arguments)
            self.assertEqual(self.bloomery("dedup", "-q", "-n", 10, *arguments, stdin=text(keys(10))).err, "")
        for arguments in [], ["lines"]:
            self.assertNotIn("note", self.bloomery("dedup", "-n", 100, "-p", "1e-4", *arguments, stdin=text(keys(10))).err)

    # ---- temporary files

    def test_it_says_beforehand_where_temporary_files_are(self) -> None:
        self.write("lines", keys(1000))
        os.mkdir(self.path("temporary"))

        elsewhere = dict(os.environ, TMPDIR=self.path("temporary"))
        run = self.bloomery("dedup", "--exact", "--memory", "1KiB", "lines", env=elsewhere)
        piped = self.bloomery("dedup", "--exact", stdin=text(keys(10)), env=elsewhere)

        self.assertRegex(run.err.splitlines()[0], rf"comparing repeated lines in {self.path('temporary')} \(.* free\)")
        self.assertIn(f"copying the input to {self.path('temporary')} (", piped.err)
        self.assertEqual(os.listdir(self.path("temporary")), [])
        self.refused("dedup", "-q", "--exact", stdin=b"x\n", env=dict(os.environ, TMPDIR="/nowhere"), says="/nowhere.*TMPDIR")

    def test_too_little_temporary_space_is_said_before_the_first_line(self) -> None:
        small = self.path("small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        try:
            self.write("lines", keys(40_000) * 2)
            run = self.bloomery("dedup", "-q", "--memory", "1B", "lines", env=dict(os.environ, TMPDIR=small), status=2)
        finally:
            subprocess.run(["umount", small], check=True)

        self.assertEqual(run.out, b"")
        self.assertRegex(run.err, r"temporary disk space.*expected [\d.]+ MiB.*found [\d.]+ KiB free")

    # ---- refusals

    def test_options_that_do_not_fit_together_are_refused(self) -> None:
        self.write("lines", keys(10))
        exact = {"-p 50%": "--rate", "--layout classic": "--layout", "--prefer memory": "--prefer", "--max-loss 1%": "(--max-loss|one of the two)",
                 "--grow": "--grow", "--window 24h": "--window", "-n 10 --state state": "--state"}  # fmt: skip
        at_servers = "--max-keys 10", "--ttl 1h", "--shards 4", "--wait-replicas 1", "--timeout 1s"
        scalable = "layers of a scalable filter have layout split_block512"
        self.refuse_all(
            {f"--exact {options}": f"leave out ({name} or --exact|one of the two)" for options, name in exact.items()}
            | {options: rf"needs a filter on Redis; leave out {options.split()[0]}, or add --state redis://HOST/NAME$" for options in at_servers}
            | {
                "missing": "missing: cannot (open|read): No such file",
                "-q --exact missing": "missing: cannot (open|read): No such file",
                "--hash xxh3_64": "70 bits.*this hash has 64.*leave out --hash",
                "--max-loss 1% -p 1%": "--rate and --max-loss exclude each other",
                "-n 10 --max-loss 1% -p 1%": "--rate and --max-loss exclude each other",
                "--grow -n 5 -p 1% lines": "needs no capacity.* --capacity or --grow",
                "--grow --layout blocked_page lines": scalable,
                "--grow --prefer memory lines": scalable,
                "--layout classic": scalable,
                "--grow -p 1e-30 lines": "keeps the target FPR",
                "--suspects lines lines": "would replace the input lines",
                "-q --exact --suspects ./lines lines": "would replace the input ./lines",
            },
            before="dedup ",
            stdin=b"x\n",
        )
        self.assertEqual((os.listdir(self.folder), self.read("lines")), (["lines"], text(keys(10))))


if __name__ == "__main__":
    unittest.main()
