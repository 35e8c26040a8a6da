"""bloomery fold: a filter made smaller has the bits of one that was built small."""

import math
import unittest

from support import BLOCK_BITS, LAYOUTS, CommandTest, certified_rate, keys, text

SMALL = ["-n", 100, "--layout", "split_block512", "-m"]  # and the number of bits


class Fold(CommandTest):
    def facts(self, name: str) -> dict:
        return self.bloomery("info", "--json", "--queries", 0, name).json

    def test_a_folded_filter_has_the_bits_of_one_built_small(self) -> None:
        for layout in LAYOUTS:
            block = BLOCK_BITS[layout] if layout != "classic" else 129
            options = ["-n", 300, "--layout", layout, *(["-k", 5] if layout not in ("split_block", "split_block512") else [])]
            for times in 1, 2, 4:
                self.make_filter("large", keys(300), "-m", block * 48, *options)
                self.make_filter("small", keys(300), "-m", block * 48 >> times, *options)

                self.bloomery("fold", "-q", "large", "-o", "folded", "--times", times)

                with self.subTest(layout=layout, times=times):
                    self.assertEqual(self.bits_of("folded"), self.bits_of("small"))
                    self.assertEqual(self.facts("folded")["bits"], block * 48 >> times)
                    self.assertFalse(self.facts("folded")["alarm"])
                    self.bloomery("info", "--check", "folded")
        self.make_filter("f", keys(100), *SMALL, 64 * 512)
        self.make_filter("small", keys(100), *SMALL, 16 * 512)
        found = self.bloomery("fold", "--json", "-q", "f", "-o", "f", "--times", 2)  # in place
        self.assertEqual(self.bits_of("f"), self.bits_of("small"))
        self.assertEqual(list(found.json), "filter times bytes_before bytes bits rate capacity target_rate times_foldable".split())
        self.assertEqual([found.json[name] for name in ("times", "bytes_before", "bytes", "times_foldable")], [2, 4096, 1024, 4])
        self.assertEqual(found.err, "")

    def test_it_goes_as_far_as_the_exact_rate_allows(self) -> None:
        self.make_filter("large", keys(1000), "-n", 10_000, "-p", "0.01%", "--layout", "split_block512", "--foldable")
        for rate in 0.0001, 0.001, 0.01, 0.1, 0.3, 0.9:
            run = self.bloomery("fold", "--json", "large", "-o", "folded", "-p", rate)

            times = run.json["times"]
            exact = certified_rate("split_block512", run.json["bits"], 8, self.bits_of("folded"), 1000)
            self.assertAlmostEqual(run.json["rate"] / exact, 1, delta=1e-6)
            self.assertLessEqual(exact, rate)
            if run.json["times_foldable"] > 0:
                self.bloomery("fold", "-q", "large", "-o", "further", "--times", times + 1)
                self.assertGreater(self.facts("further")["rate_now"], rate)
                self.assertRegex(run.err, "halving once more would exceed it")
            facts = self.facts("folded")
            self.assertEqual((facts["alarm"], facts["target_rate"], facts["bytes"]), (False, rate if times else 0.0001, run.json["bytes"]))
            self.assertAlmostEqual(facts["predicted_for_keys"], 1000, delta=40)

        by_default = self.bloomery("fold", "--json", "large", "-o", "folded").json
        self.assertLessEqual(by_default["rate"], 0.0001)
        self.assertEqual(by_default["target_rate"], 0.0001)

    def test_no_folded_filter_raises_an_alarm(self) -> None:
        for layout in LAYOUTS:
            n = 20_000 if layout == "blocked_page" else 4000
            self.make_filter("large", keys(n // 2), "-n", n, "--layout", layout, "--foldable")
            for times in range(1, 6):
                self.bloomery("fold", "-q", "large", "-o", "folded", "--times", times)
                facts = self.facts("folded")
                self.assertFalse(facts["alarm"], (layout, times, facts["rate_now"], facts["bits_deviation"]))

    def test_foldable_filters_have_a_multiple_of_64_blocks(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(100), "-n", 5000, "--layout", layout, "--foldable")
            self.make_filter("plain", keys(100), "-n", 5000, "--layout", layout)

            facts, unit = self.facts("f"), 64 * BLOCK_BITS[layout]

            self.assertEqual(facts["bits"], math.ceil(self.facts("plain")["bits"] / unit) * unit)
            self.assertGreaterEqual(facts["times_foldable"], 6)
            self.assertRegex(self.bloomery("info", "f").out.decode(), r"foldable +can be halved \d+ times")

    def test_the_messages(self) -> None:
        self.make_filter("f", keys(500), "-n", 4000, "-p", "1%", "--foldable")
        self.make_filter("odd", keys(10), *SMALL, 7 * 512)
        self.make_filter("full", keys(1000), "-n", 1000, "--layout", "split_block512", "-m", 16 * 512)
        self.make_filter("scheme", keys(10), "-n", 1000, "--scheme", "guava")
        cannot = "the size cannot be halved further"
        self.check_runs([
            ("fold f -o x", r"\Abloomery: x: halved .*: .*B, was .*B; current FPR .* \(maximum 1%: halving once more would exceed it\)\n\Z"),
            ("fold odd -o x", rf"\Abloomery: x: not halved: .*{cannot}\)\nbloomery: odd: note: 'bloomery build --foldable' .*\n\Z"),
            ("fold full -o x -p 1%", r"\Abloomery: x: not halved: .*\(maximum 1%: the filter exceeds it already\)\n\Z"),
            ("fold scheme -o x", rf"\Abloomery: x: not halved: .*{cannot}\)\nbloomery: scheme: note: the size of a scheme is defined by its library and cannot be halved\n\Z"),
        ], status=0)  # fmt: skip
        self.bloomery("fold", "-q", "odd", "-o", "copy")
        self.assertEqual(self.bits_of("copy"), self.bits_of("odd"))
        self.refuse_all({
            "fold odd -o x --times 1": "odd: .* this many times: .*at most 0, found 1; .*--foldable",
            "fold scheme -o x --times 1": "scheme: .*; the size of a scheme is defined by its library",
            "fold f -o x --times 1 -p 1%": "--times and --rate exclude each other",
            "fold f -o x -p 2": "--rate",
            "build -o g -n 10 --scheme guava --foldable": "fold.*scheme",
            "build -o g -n 10 -m 4096 --foldable": "--foldable: .* not rounded up: found --bits; ",
        })  # fmt: skip

    def test_a_keyed_filter_is_folded_without_its_secret_and_keeps_its_note(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("k", keys(100), "-n", 4000, "--secret", "key", "--foldable", "--note", "hello")

        self.bloomery("fold", "-q", "k", "-o", "folded", "--times", 3)

        self.assert_has_all("folded", keys(100), "--secret", "key")
        self.assertEqual(self.facts("folded")["note"], "hello")

    def test_more_keys_can_be_added_afterwards(self) -> None:
        self.make_filter("f", keys(1000), "-n", 8000, "--foldable")
        self.bloomery("fold", "-q", "f", "-o", "f", "-p", "20%")

        self.bloomery("add", "-q", "f", stdin=text(keys(300, "more")))

        self.assertFalse(self.facts("f")["alarm"])
        self.assertAlmostEqual(self.facts("f")["predicted_for_keys"], 1300, delta=100)
        self.assert_has_all("f", keys(1000) + keys(300, "more"))


if __name__ == "__main__":
    unittest.main()
