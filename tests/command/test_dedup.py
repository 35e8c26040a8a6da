"""bloomery dedup: the first occurrence of each line, in order; false drops follow the formula and are reported."""

import os
import re
import subprocess
import unittest

from support import LAYOUTS, CommandTest, classic_rate, first_occurrences, integral, keys, packed, split_block_rate, text, zstd


def said(err: str, pattern: str) -> float:
    match = re.search(pattern, err)
    assert match, err
    return float(match[1].replace(",", ""))


class Dedup(CommandTest):
    def dedup(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", *arguments, **options).lines

    # ---- what comes out

    def test_the_first_occurrence_of_each_line_comes_out_in_order(self) -> None:
        lines = [b"%d" % (i * i % 50_021) for i in range(200_000)]

        out = self.dedup("-n", "100k", "-p", "1e-9", stdin=text(lines))

        self.assertEqual(out, first_occurrences(lines))

    def test_few_distinct_lines_are_dropped_and_the_expectation_tells_how_many(self) -> None:
        n = 200_000
        self.write("lines", keys(n))
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                run = self.bloomery("dedup", "-q", "--json", "-p", "1%", "-n", n, "--layout", layout, "lines")

                lost = n - run.report["lines_out"]
                expected = run.report["expected_wrongly_dropped"]
                self.assertEqual(set(run.lines) - set(keys(n)), set())
                self.assert_chance(lost, n, expected / n)
                self.assertGreater(lost, 10)

    def test_no_line_comes_out_twice_however_full_the_filter_is(self) -> None:
        out = self.dedup("-n", 10, stdin=text(keys(10_000) * 2))

        self.assertEqual(len(out), len(set(out)))
        self.assertEqual(out, [key for key in keys(10_000) if key in set(out)])

    def test_any_number_of_threads_gives_the_same_output(self) -> None:
        self.write("lines", [b"%d" % (i * 7 % 300_007) for i in range(600_000)])

        outputs = [self.dedup("-j", threads, "-p", "1%", "lines") for threads in (1, 4, 64)]

        self.assertEqual(outputs[1:], outputs[:1] * 2)

    def test_layout_hash_and_seed_choose_which_lines_are_wrongly_dropped(self) -> None:
        self.write("lines", keys(50_000))
        lost = set()
        for options in [], ["--seed", 1], ["--hash", "murmur3"], ["--layout", "classic"]:
            out = self.dedup("-p", "2%", *options, "lines")
            lost.add(frozenset(set(keys(50_000)) - set(out)))

        self.assertEqual(len(lost), 4)

    # ---- how lines are cut

    def test_lines_are_bytes_and_the_last_one_gets_its_end(self) -> None:
        odd = [b"\xff\xfe", b"", b"a\0b", b"a\0c", b"tail \r", b"tail ", b"\xc3\xa9", b"e\xcc\x81"]

        out = self.bloomery("dedup", "-q", "--text", "-n", 100, stdin=text(odd + odd) + b"last")

        self.assertEqual(out.out, text(odd) + b"last\n")

    def test_lines_can_end_with_nul(self) -> None:
        self.assertEqual(self.bloomery("dedup", "-q", "-0", "-n", 9, stdin=b"a\n\0b\0a\n\0a").out, b"a\n\0b\0a\0")

    def test_lines_that_differ_in_their_line_ends_are_the_same_if_asked(self) -> None:
        self.assertEqual(self.bloomery("dedup", "-q", "--crlf", "-n", 9, stdin=b"a\r\na\nb\nb\r\n").out, b"a\r\nb\n")

    def test_a_field_can_be_the_key(self) -> None:
        lines = [b"%d;%s;%d" % (i, key, i % 3) for i, key in enumerate(keys(500) + keys(1000))]

        out = self.dedup("-d", ";", "-f", 2, "-p", "1e-9", "-n", 1000, stdin=text(lines))

        self.assertEqual(out, first_occurrences(lines, key=lambda line: line.split(b";")[1]))

    def test_all_inputs_are_one_list(self) -> None:
        self.write("a.gz", packed(text(keys(100))))
        self.write("b.zst", zstd(text(keys(200))))

        out = self.dedup("-n", 1000, "b.zst", "-", "a.gz", stdin=text([b"new", *keys(3)]))

        self.assertEqual(out, keys(200) + [b"new"])

    def test_lines_come_out_as_soon_as_they_are_known(self) -> None:
        process = self.start("dedup", "-q", "-n", 100)

        for line in b"one\n", b"two\n":
            process.stdin.write(b"one\n" + line)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), line)

    # ---- how large the filter is

    def test_a_file_is_counted_and_standard_input_too_if_it_is_one(self) -> None:
        self.write("lines", keys(700) * 2)

        named = self.bloomery("dedup", "-p", "1e-4", "lines")
        with open(self.path("lines"), "rb") as file:
            redirected = self.bloomery("dedup", "-p", "1e-4", stdin=file)

        for run in named, redirected:
            self.assertEqual(run.lines, keys(700))
            self.assertRegex(run.err, "^bloomery: capacity 1,400 keys at 0.01%")

    def test_a_missing_file_is_not_taken_for_a_pipe(self) -> None:
        self.refused("dedup", "missing", says="missing: cannot (open|read): No such file")
        self.refused("dedup", "-q", "--exact", "missing", says="missing: cannot (open|read): No such file")

    def test_the_losses_expected_before_are_the_integral_over_the_fill(self) -> None:
        n = 100_000_000
        classic = self.bloomery("dedup", "-n", "100M", "-p", "1e-4", "--layout", "classic", stdin=b"x\n").err
        block = self.bloomery("dedup", "-n", "1M", "-p", "1e-2", "--layout", "split_block", stdin=b"x\n").err

        pattern = r"expected false drops until it is full: ([\d,.]+) lines"
        self.assertAlmostEqual(said(classic, pattern), 963.5, delta=1)  # DESIGN: 964
        self.assertAlmostEqual(said(classic, pattern), integral(lambda i: classic_rate(1_917_295_753, 13, i), n), delta=1)
        expected = integral(lambda i: split_block_rate(10_526_976, i), 1_000_000, 100)
        self.assertAlmostEqual(said(block, pattern) / expected, 1, delta=0.01)

    def test_max_loss_is_the_share_of_distinct_lines_expected_to_be_dropped(self) -> None:
        for layout in [], ["--layout", "classic"]:
            for share in 1e-2, 1e-3, 1e-4:
                run = self.bloomery("dedup", "--max-loss", share, "-n", "1M", *layout, stdin=b"x\n")

                losses = said(run.err, r"expected false drops until it is full: ([\d,.]+) lines")
                self.assertLessEqual(losses, share * 1e6 * 1.001)
                self.assertGreater(losses, share * 1e6 * 0.98)

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

    def test_max_loss_is_kept(self) -> None:
        self.write("lines", keys(200_000))

        out = self.dedup("--max-loss", "0.5%", "lines")

        self.assert_chance(200_000 - len(out), 200_000, 0.005)

    def test_lines_are_not_remembered_by_a_hash_of_64_bits(self) -> None:
        self.refused("dedup", "--hash", "xxh3_64", stdin=b"a\na\n", says="70 bits.*this hash has 64.*leave out --hash")
        for options in ["-p", "1%", "--hash", "xxh3_64"], ["--hash", "xxh3"]:
            self.assertEqual(self.bloomery("dedup", "-q", *options, stdin=b"a\na\nb\n").lines, [b"a", b"b"])

    def test_max_loss_and_p_are_two_promises(self) -> None:
        self.refused("dedup", "-n", 10, "--max-loss", "1%", "-p", "1%", says="--rate and --max-loss exclude each other")

    def test_options_of_servers_need_a_state_there(self) -> None:
        for option in ["--max-keys", 10], ["--ttl", "1h"], ["--shards", 4], ["--wait-replicas", 1], ["--timeout", "1s"]:
            run = self.refused("dedup", *option, stdin=b"x\n", says=f"needs a filter on Redis; leave out {option[0]}, or add --state redis://HOST/NAME")
            self.assertNotIn("found", run.err)

    def test_more_distinct_lines_than_n_give_a_warning(self) -> None:
        run = self.bloomery("dedup", "-n", 100, "-p", "1e-4", stdin=text(keys(1000)), status=3)

        self.assertRegex(run.err, "warning: current FPR .*; the capacity is 100 keys")

    # ---- what it says

    def test_it_says_lines_in_out_and_dropped_unless_quiet(self) -> None:
        spoken = self.bloomery("dedup", "-n", 10_000, "-p", "1e-4", stdin=text(keys(1000) * 3))
        quiet = self.bloomery("dedup", "-q", "-n", 10_000, "-p", "1e-4", stdin=text(keys(1000) * 3))

        self.assertRegex(spoken.err, r"\Abloomery: capacity 10,000 keys at 0.01%: .*\n"
                         r"bloomery: 3,000 lines in, 1,000 out, 2,000 dropped; expected false drops: .*\n\Z")  # fmt: skip
        self.assertEqual((quiet.err, quiet.out), ("", spoken.out))

    def test_json_ends_standard_error(self) -> None:
        report = self.bloomery("dedup", "--json", "-n", 10_000, stdin=text(keys(1000) * 3)).report

        self.assertEqual(
            list(report),
            ["lines_in", "lines_out", "dropped", "expected_wrongly_dropped", "wrongly_dropped_interval", "rate", "rescued", "exact", "kept", "complete"],
        )
        self.assertEqual((report["lines_in"], report["lines_out"], report["dropped"]), (3000, 1000, 2000))
        self.assertEqual((report["exact"], report["complete"]), (False, True))

    def test_suspects_are_all_lines_that_did_not_come_out(self) -> None:
        lines = keys(50_000) + keys(1000)

        out = self.dedup("-p", "1%", "-n", 50_000, "--suspects", "suspects", stdin=text(lines))

        suspects = self.read("suspects").split(b"\n")[:-1]
        self.assertEqual(sorted(out + suspects), sorted(lines))
        self.assertGreaterEqual(len(suspects), 1000)

    def test_suspects_do_not_replace_an_input(self) -> None:
        self.write("lines", keys(10))

        self.refused("dedup", "-q", "--suspects", "lines", "lines")
        self.refused("dedup", "-q", "--exact", "--suspects", "./lines", "lines")

        self.assertEqual(self.read("lines"), text(keys(10)))

    def test_a_reader_that_has_enough_ends_it_quietly(self) -> None:
        self.write("lines", keys(500_000))
        process = self.start("dedup", "-q", "lines")

        first = process.stdout.readline()
        process.stdout.close()

        self.assertEqual((first, process.stderr.read()), (b"key-0\n", b""))
        self.assertEqual(process.wait(60), -13)  # SIGPIPE, as everybody

    def test_it_stands_in_a_shell_pipeline(self) -> None:
        self.write("lines", keys(500_000))
        script = 'set -o pipefail; "$BLOOMERY" dedup -q lines | head -1; "$BLOOMERY" dedup -q -p 1e-9 < lines | wc -l'

        ended = subprocess.run(["bash", "-c", script], cwd=self.folder, env=dict(os.environ), capture_output=True, check=True)

        self.assertEqual((ended.stdout, ended.stderr), (b"key-0\n500000\n", b""))


if __name__ == "__main__":
    unittest.main()
