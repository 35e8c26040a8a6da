"""How bloomery dedup remembers lines: files exactly, pipes by hashes, and a filter if asked; and what its exit status promises."""

import os
import re
import subprocess
import unittest

from support import CommandTest, first_occurrences, keys, packed, text, zstd

BROKEN = 3


def repeated(count: int, distinct: int) -> list[bytes]:
    return [b"line-%d" % (i if i < distinct else (i * 48271 + i // 7) % distinct) for i in range(count)]


class DedupModes(CommandTest):
    # ---- exact by default

    def test_a_file_loses_nothing_unless_a_filter_is_asked_for(self) -> None:
        n = 500_000  # at 1e-4, a filter would drop a dozen of them
        self.write("lines", keys(n))

        run = self.bloomery("dedup", "--json", "lines")
        lossy = self.bloomery("dedup", "--json", "-p", "1e-3", "lines")

        self.assertEqual(run.lines, keys(n))
        self.assertEqual((run.report["exact"], run.report["expected_wrongly_dropped"], run.report["kept"]), (True, 0, True))
        self.assertLess(lossy.report["lines_out"], n)
        self.assertFalse(lossy.report["exact"])

    def test_files_of_every_share_of_repetitions_are_exact_in_memory_and_on_disk(self) -> None:
        for distinct in 1, 300, 30_000, 99_000, 100_000:
            lines = repeated(100_000, distinct)
            self.write("lines", lines)
            expected = first_occurrences(lines)
            for options in [], ["-j", 1], ["-j", 7], ["--memory", "1B"], ["-n", 10], ["-n", 10, "--memory", "1B"], ["--hash", "murmur3"]:
                with self.subTest(distinct=distinct, options=options):
                    run = self.bloomery("dedup", "-q", "--suspects", "dropped", *options, "lines")

                    self.assertEqual(run.lines, expected)
                    dropped = self.read("dropped").split(b"\n")[:-1]
                    self.assertEqual(sorted(dropped + expected), sorted(lines))

    def test_several_files_compressed_or_not_are_one_list(self) -> None:
        self.write("a", text(repeated(20_000, 9000)))
        self.write("b.gz", packed(text(repeated(30_000, 12_000))))
        self.write("c.zst", zstd(text(keys(10))))

        run = self.bloomery("dedup", "-q", "a", "b.gz", "c.zst", "a")

        self.assertEqual(run.lines, first_occurrences(repeated(20_000, 9000) + repeated(30_000, 12_000) + keys(10)))

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

    # ---- pipes

    def test_a_pipe_is_remembered_by_hashes_and_that_is_said_once(self) -> None:
        lines = repeated(300_000, 200_000)

        run = self.bloomery("dedup", stdin=text(lines))
        report = self.bloomery("dedup", "--json", stdin=text(lines)).report

        self.assertEqual(run.lines, first_occurrences(lines))
        self.assertEqual(run.err.count("70 bits"), 1)
        self.assertRegex(run.err, "fewer than 0.01 for up to 4 billion distinct lines")
        self.assertFalse(report["exact"])
        self.assertAlmostEqual(report["expected_wrongly_dropped"] / (200_000**2 / 2**71), 1, places=6)

    def test_n_is_no_limit_for_a_pipe(self) -> None:
        run = self.bloomery("dedup", "-q", "-n", 10, stdin=text(keys(50_000)))

        self.assertEqual(run.lines, keys(50_000))

    def test_n_without_a_filter_is_said_to_be_unused(self) -> None:
        self.write("lines", keys(10))
        for arguments, why in ([], "hash of each line"), (["lines"], "compared exactly"), (["--exact"], "compared exactly"):
            run = self.bloomery("dedup", "-n", 10, *arguments, stdin=text(keys(10)))
            self.assertEqual(len(re.findall(f"note: --capacity is ignored, because .*{why}.*; it applies to a filter", run.err)), 1, arguments)
            self.assertEqual(self.bloomery("dedup", "-q", "-n", 10, *arguments, stdin=text(keys(10))).err, "")
        for arguments in [], ["lines"]:
            self.assertNotIn("note", self.bloomery("dedup", "-n", 100, "-p", "1e-4", *arguments, stdin=text(keys(10))).err)

    # ---- a filter that was asked for

    def test_a_file_with_more_lines_than_n_makes_the_filter_grow(self) -> None:
        self.write("lines", keys(100_000))

        run = self.bloomery("dedup", "--json", "-n", 1000, "-p", "1e-6", "lines")

        self.assertGreaterEqual(run.report["lines_out"], 99_998)
        self.assertGreater(run.report["layers"], 0)

    def test_a_filter_that_is_too_small_is_no_success(self) -> None:
        run = self.bloomery("dedup", "-q", "-n", 1000, "-p", "1e-4", stdin=text(keys(100_000)), status=BROKEN)

        self.assertLess(len(run.lines), 50_000)
        self.assertRegex(run.err, "warning: current FPR .*; the capacity is 1,000 keys")
        self.assertRegex(run.err.splitlines()[-1], "target missed")

        report = self.bloomery("dedup", "--json", "-q", "-n", 1000, "-p", "1e-4", stdin=text(keys(100_000)), status=BROKEN).report
        self.assertFalse(report["kept"])

    def test_warnings_come_at_each_doubling_of_the_rate(self) -> None:
        err = self.bloomery("dedup", "-n", 200_000, "-p", "1e-6", stdin=text(keys(900_000)), status=None).err

        rates = []
        for number, percent in re.findall(r"warning: current FPR ([\d.e-]+)(%)?,", err):
            rates.append(float(number) / (100 if percent else 1))
        self.assertGreater(len(rates), 5)
        for earlier, later in zip(rates, rates[1:]):
            self.assertGreaterEqual(later, 1.98 * earlier)
            self.assertLess(later, 6 * earlier)  # a batch of lines at a time

    def test_max_loss_that_is_not_kept_is_no_success(self) -> None:
        kept = self.bloomery("dedup", "-q", "--max-loss", "1e-3", "-n", 20_000, stdin=text(keys(20_000)))
        broken = self.bloomery("dedup", "-q", "--max-loss", "1e-3", "-n", 20_000, stdin=text(keys(40_000)), status=BROKEN)

        self.assertEqual(kept.err, "")
        self.assertRegex(broken.err.splitlines()[-1], "--max-loss allows 0.1 ?%")

    def test_a_few_lines_too_many_are_no_failure(self) -> None:
        self.bloomery("dedup", "-q", "-p", "1e-6", "-n", 10_000, stdin=text(keys(12_000)))

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

    # ---- a state

    def test_a_state_without_n_grows_and_loses_less_as_it_grows(self) -> None:
        first = self.bloomery("dedup", "--state", "seen", stdin=text(keys(20_000)))
        before = self.info("seen")
        for part in range(1, 8):
            self.bloomery("dedup", "-q", "--state", "seen", stdin=text(keys(60_000, f"part{part}-")))
        after = self.info("seen")

        self.assertIn("fewer than 0.01 lines", first.err)
        self.assertGreater(after["capacity"], before["capacity"])
        for facts in before, after:
            self.assertAlmostEqual(facts["target_rate"] * facts["capacity"], 0.01 / 8 + facts["capacity"] ** 2 / 2**64, delta=2e-5)
        self.assertEqual(self.bloomery("dedup", "-q", "--state", "seen", stdin=text(keys(60_000, "part3-"))).out, b"")

    def test_a_state_with_a_rate_keeps_it_as_it_grows(self) -> None:
        for part in range(5):
            self.bloomery("dedup", "-q", "-p", "1e-3", "--state", "seen", stdin=text(keys(60_000, f"part{part}-")))

        self.assertEqual(self.info("seen")["target_rate"], 1e-3)


if __name__ == "__main__":
    unittest.main()
