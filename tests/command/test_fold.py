"""bloomery fold: a filter made smaller has the bits of one that was built small."""

import math
import unittest

from support import BLOCK_BITS, LAYOUTS, CommandTest, certified_rate, keys, text


class Fold(CommandTest):
    def facts(self, name: str) -> dict:
        return self.bloomery("info", "--json", "--queries", 0, name).json

    def test_a_folded_filter_has_the_bits_of_one_built_small(self) -> None:
        for layout in LAYOUTS:
            block = BLOCK_BITS[layout] if layout != "classic" else 129
            for times in 1, 2, 4:
                options = ["-n", 300, "-k", 5] if layout not in ("split_block", "split_block512") else ["-n", 300]
                self.make_filter("large", keys(300), "-m", block * 48, "--layout", layout, *options)
                self.make_filter("small", keys(300), "-m", block * 48 >> times, "--layout", layout, *options)

                self.bloomery("fold", "-q", "large", "-o", "folded", "--times", times)

                with self.subTest(layout=layout, times=times):
                    self.assertEqual(self.bits_of("folded"), self.bits_of("small"))
                    self.assertEqual(self.facts("folded")["bits"], block * 48 >> times)
                    self.assertFalse(self.facts("folded")["alarm"])
                    self.assert_has_all("folded", keys(300))
                    self.bloomery("info", "--check", "folded")

    def test_it_goes_as_far_as_the_certified_rate_allows(self) -> None:
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
            self.assertEqual((facts["alarm"], facts["target_rate"]), (False, rate if times else 0.0001))
            self.assertAlmostEqual(facts["predicted_for_keys"], 1000, delta=40)
            self.assertEqual(facts["bytes"], run.json["bytes"])

    def test_no_folded_filter_raises_an_alarm(self) -> None:
        for layout in LAYOUTS:
            multiple = 1 if layout == "blocked_page" else 64
            n = 20_000 if layout == "blocked_page" else 4000
            self.make_filter("large", keys(n // 2), "-n", n, "--layout", layout, "--foldable")
            for times in range(1, 6):
                self.bloomery("fold", "-q", "large", "-o", "folded", "--times", times)

                facts = self.facts("folded")

                self.assertFalse(facts["alarm"], (layout, times, multiple, facts["rate_now"], facts["bits_deviation"]))

    def test_its_own_promise_holds_if_no_rate_is_given(self) -> None:
        self.make_filter("large", keys(500), "-n", 4000, "-p", "1%", "--foldable")

        run = self.bloomery("fold", "large", "-o", "folded")

        facts = self.facts("folded")
        self.assertLessEqual(facts["rate_now"], 0.01)
        self.assertEqual(facts["target_rate"], 0.01)
        self.assertRegex(
            run.err, r"\Abloomery: folded: halved .*: .*B, was .*B; current FPR .* \(maximum 1%: halving once more would exceed it\)\n\Z"
        )

    def test_foldable_filters_have_a_multiple_of_64_blocks(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(100), "-n", 5000, "--layout", layout, "--foldable")
            self.make_filter("plain", keys(100), "-n", 5000, "--layout", layout)

            facts, plain = self.facts("f"), self.facts("plain")

            self.assertEqual(facts["bits"] % (64 * BLOCK_BITS[layout]), 0)
            self.assertEqual(facts["bits"], math.ceil(plain["bits"] / (64 * BLOCK_BITS[layout])) * 64 * BLOCK_BITS[layout])
            self.assertGreaterEqual(facts["times_foldable"], 6)
            self.assertRegex(self.bloomery("info", "f").out.decode(), r"foldable +can be halved \d+ times")
        self.refused("build", "-o", "g", "-n", 10, "--scheme", "guava", "--foldable", says="fold.*scheme")

    def test_a_filter_may_be_folded_in_place(self) -> None:
        self.make_filter("f", keys(100), "-m", 64 * 512, "-n", 100, "--layout", "split_block512")
        self.make_filter("small", keys(100), "-m", 16 * 512, "-n", 100, "--layout", "split_block512")

        self.bloomery("fold", "-q", "f", "-o", "f", "--times", 2)

        self.assertEqual(self.bits_of("f"), self.bits_of("small"))

    def test_a_size_that_cannot_be_halved_is_told(self) -> None:
        self.make_filter("odd", keys(10), "-m", 7 * 512, "-n", 100, "--layout", "split_block512")
        before = self.bits_of("odd")

        self.refused("fold", "odd", "-o", "x", "--times", 1, says="odd: .* this many times: .*at most 0, found 1; .*--foldable")
        run = self.bloomery("fold", "odd", "-o", "copy")

        self.assertRegex(run.err, "copy: not halved: .*the size cannot be halved further")
        self.assertRegex(run.err, "odd: note: 'bloomery build --foldable'")
        self.assertEqual(self.bits_of("copy"), before)

    def test_a_filter_above_the_rate_already_is_told(self) -> None:
        self.make_filter("f", keys(1000), "-m", 16 * 512, "-n", 1000, "--layout", "split_block512")

        run = self.bloomery("fold", "f", "-o", "copy", "-p", "1%")

        self.assertRegex(run.err, r"copy: not halved: .*\(maximum 1%: the filter exceeds it already\)")

    def test_a_file_that_is_no_filter_is_not_replaced(self) -> None:
        self.make_filter("f", keys(100), "-n", 4000, "--foldable")
        self.bloomery("keygen", "-o", "key")
        self.write("text", keys(10))
        for name in "key", "text":
            before = self.read(name)

            self.refused("fold", "f", "-o", name, says=f"the output would replace a file that is not a filter: {name}")

            self.assertEqual(self.read(name), before)

    def test_a_size_that_is_given_is_not_made_foldable(self) -> None:
        self.refused("build", "-o", "g", "-n", 10, "-m", 4096, "--foldable", says="--foldable: .* not rounded up: found --bits; ")

    def test_schemes_are_not_folded(self) -> None:
        self.make_filter("s", keys(10), "-n", 1000, "--scheme", "guava")

        self.refused("fold", "s", "-o", "x", "--times", 1, says="s: .*; the size of a scheme is defined by its library")
        self.assertNotIn("--foldable", self.bloomery("fold", "s", "-o", "x").err)

    def test_the_two_ways_to_say_how_far_exclude_each_other(self) -> None:
        self.make_filter("f", keys(10), "-n", 10)

        self.refused("fold", "f", "-o", "x", "--times", 1, "-p", "1%", says="--times and --rate exclude each other")
        self.refused("fold", "f", says="--output")
        self.refused("fold", "f", "-o", "missing/x", says="missing")
        self.refused("fold", "f", "-o", "x", "-p", "2", says="--rate")
        self.refused("fold", "gone", "-o", "x", says="gone: cannot open")

    def test_a_keyed_filter_is_folded_without_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("k", keys(100), "-n", 4000, "--secret", "key", "--foldable", "--note", "hello")

        self.bloomery("fold", "-q", "k", "-o", "folded", "--times", 3)

        self.assert_has_all("folded", keys(100), "--secret", "key")
        self.assertEqual(self.facts("folded")["note"], "hello")

    def test_more_keys_can_be_added_afterwards(self) -> None:
        self.make_filter("f", keys(1000), "-n", 8000, "--foldable")
        self.bloomery("fold", "-q", "f", "-o", "f", "-p", "20%")

        self.bloomery("add", "-q", "f", stdin=text(keys(300, "more")))

        facts = self.facts("f")
        self.assertFalse(facts["alarm"])
        self.assertAlmostEqual(facts["predicted_for_keys"], 1300, delta=100)
        self.assert_has_all("f", keys(1000) + keys(300, "more"))

    def test_a_filter_with_a_log_is_not_replaced(self) -> None:
        self.bloomery("build", "--grow", "-q", "-o", "g", stdin=text(keys(100)))
        self.make_filter("other", keys(100))
        before = self.read("g")

        for command in ["fold", "g"], ["union", "g", "g"], ["intersect", "g", "g"], ["seal", "other-keys"]:
            self.write("other-keys", text(keys(100)))
            self.refused(*command, "-o", "g", says="a filter with a key log: .*g.log")

        self.assertEqual(self.read("g"), before)
        self.assert_has_all("g", keys(100))

    def test_json_is_one_object(self) -> None:
        self.make_filter("f", keys(100), "-m", 64 * 512, "-n", 100, "--layout", "split_block512")

        found = self.bloomery("fold", "--json", "-q", "f", "-o", "x", "--times", 2)

        self.assertEqual(
            list(found.json), "filter times bytes_before bytes bits rate capacity target_rate times_foldable".split()
        )
        self.assertEqual((found.json["times"], found.json["bytes_before"], found.json["bytes"]), (2, 4096, 1024))
        self.assertEqual((found.json["times_foldable"], found.err), (4, ""))


if __name__ == "__main__":
    unittest.main()
