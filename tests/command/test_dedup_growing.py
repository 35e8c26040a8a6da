"""bloomery dedup of a pipe without -n, and with --grow: the filter grows, which cannot be changeds promise for the whole."""

import unittest

from support import LONG, CommandTest, first_occurrences, keys, packed, text


class DedupGrowing(CommandTest):
    def test_a_pipe_without_n_comes_out_without_its_repetitions_in_order(self) -> None:
        lines = [b"%d" % (i * i % 150_001) for i in range(400_000)]

        run = self.bloomery("dedup", "-p", "1e-9", stdin=text(lines))

        self.assertEqual(run.lines, first_occurrences(lines))
        self.assertRegex(run.err, r"\Abloomery: the filter grows with the input; false drops: at most 1e-09 of the distinct lines\n"
                         r"bloomery: 400,000 lines in, [\d,]+ out, .*; [\d.]+ [KM]iB in 2 layers\n\Z")  # fmt: skip

    def test_the_rate_holds_and_the_expected_losses_are_those_that_happen(self) -> None:
        n = 2_000_000 if LONG else 500_000
        for rate in 0.1, 0.01:
            with self.subTest(rate=rate):
                run = self.bloomery("dedup", "--json", "-p", rate, stdin=text(keys(n)))

                lost = n - run.report["lines_out"]
                self.assert_chance(lost, n, run.report["expected_wrongly_dropped"] / n)
                self.assertGreater(lost, 100)
                self.assertLess(lost, n * rate)
                self.assertLess(run.report["rate"], rate)
                self.assertGreater(run.report["layers"], 3)
                self.assertEqual(set(run.lines) - set(keys(n)), set())

    def test_its_memory_follows_its_input(self) -> None:
        n = 400_000
        reports = [self.bloomery("dedup", "-q", "--json", "-p", "1%", stdin=text(keys(m))).report for m in (10, n)]

        self.assertEqual(reports[0]["layers"], 1)
        self.assertLess(reports[0]["bytes"], 140_000)
        self.assertLess(reports[1]["bytes"] * 8, 33 * n)
        self.assertEqual(reports[1]["layers"], 4)  # 65,536 and as many, twice, four times as many

    def test_files_are_not_counted_if_it_is_to_grow(self) -> None:
        self.write("a.gz", packed(text(keys(1000))))
        self.write("b", text(keys(2000)))

        run = self.bloomery("dedup", "--grow", "-p", "1e-6", "a.gz", "b")

        self.assertEqual(run.lines, keys(2000))
        self.assertRegex(run.err, "^bloomery: the filter grows with the input; false drops: at most 1e-06 of the distinct lines")

    def test_the_output_does_not_depend_on_threads(self) -> None:
        lines = text([b"%d" % (i * 7 % 200_003) for i in range(400_000)])

        outputs = [self.bloomery("dedup", "-q", "-j", threads, "-p", "5%", stdin=lines).out for threads in (1, 4)]

        self.assertEqual(outputs[0], outputs[1])

    def test_hash_and_seed_are_honoured(self) -> None:
        lost = set()
        for options in [], ["--seed", 1], ["--hash", "murmur3"], ["--layout", "split_block512", "--seed", 2]:
            out = self.bloomery("dedup", "-q", "-p", "20%", *options, stdin=text(keys(200_000))).lines
            lost.add(frozenset(set(keys(200_000)) - set(out)))

        self.assertEqual(len(lost), 4)

    def test_a_share_that_may_be_lost_is_kept(self) -> None:
        n = 300_000
        out = self.bloomery("dedup", "-q", "--max-loss", "2%", stdin=text(keys(n))).lines

        self.assertLess(n - len(out), n * 0.02)
        self.refused("dedup", "--max-loss", "1%", "-p", "1%", stdin=b"x\n", says="--rate and --max-loss exclude each other")

    def test_suspects_are_the_lines_that_did_not_come_out(self) -> None:
        lines = keys(100_000) + keys(1000)

        out = self.bloomery("dedup", "-q", "-p", "5%", "--suspects", "suspects", stdin=text(lines)).lines

        suspects = self.read("suspects").split(b"\n")[:-1]
        self.assertEqual(sorted(out + suspects), sorted(lines))
        self.assertGreater(len(suspects), 1000)

    def test_lines_come_out_as_soon_as_they_are_known(self) -> None:
        process = self.start("dedup", "-q")

        for line in b"one\n", b"two\n":
            process.stdin.write(b"one\n" + line)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), line)

    def test_nothing_in_nothing_out(self) -> None:
        run = self.bloomery("dedup", "--json", stdin=b"")

        self.assertEqual((run.out, run.report["lines_in"], run.report["rate"]), (b"", 0, 0))

    def test_exact_of_a_pipe_loses_nothing_as_before(self) -> None:
        run = self.bloomery("dedup", "--exact", stdin=text(keys(5000) * 2))

        self.assertEqual(run.lines, keys(5000))
        self.assertNotIn("grows", run.err)

    def test_what_a_growing_filter_cannot_honour_is_refused(self) -> None:
        self.write("lines", text(keys(10)))

        for options, says in [
            (["--grow", "-n", 5, "-p", "1%", "lines"], "needs no capacity.* --capacity or --grow"),
            (["--grow", "--layout", "blocked_page", "lines"], "layers of a scalable filter have layout split_block512"),
            (["--grow", "--prefer", "memory", "lines"], "layers of a scalable filter have layout split_block512"),
            (["--grow", "--exact", "lines"], "leave out --grow or --exact"),
            (["--grow", "-p", "1e-30", "lines"], "keeps the target FPR"),
        ]:
            with self.subTest(options=options):
                self.refused("dedup", *options, says=says)
        self.refused("dedup", "--layout", "classic", stdin=b"x\n", says="layers of a scalable filter have layout split_block512")


if __name__ == "__main__":
    unittest.main()
