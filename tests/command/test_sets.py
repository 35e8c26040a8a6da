"""bloomery union, intersect and overlap: sets without their keys, bit by bit."""

import os
import re
import unittest

from support import LAYOUTS, PAYLOAD_AT, CommandTest, certified_rate, keys, ones_of, split_block_rate, text


def joined(payloads: list[bytes], how) -> bytes:
    numbers = [int.from_bytes(payload, "little") for payload in payloads]
    result = numbers[0]
    for number in numbers[1:]:
        result = how(result, number)
    return result.to_bytes(len(payloads[0]), "little")


def union_of(payloads: list[bytes]) -> bytes:
    return joined(payloads, int.__or__)


def intersection_of(payloads: list[bytes]) -> bytes:
    return joined(payloads, int.__and__)


class Combining(CommandTest):
    """Three filters of 600 keys, two neighbors of which have 300 in common; none is in all three."""

    def make_three(self, *options: object) -> list[bytes]:
        """Returns their bits."""
        every = keys(1200)
        for name, first in ("a", 0), ("b", 300), ("c", 600):
            self.make_filter(name, every[first : first + 600], "-n", 1200, *options)
        return [self.bits_of(name) for name in "abc"]

    def facts(self, name: str) -> dict:
        return self.bloomery("info", "--json", "--queries", 0, name).json

    def test_a_union_is_the_or_of_the_bits_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            a, b, c = self.make_three("--layout", layout)

            two = self.bloomery("union", "--json", "-o", "two", "a", "b").json
            three = self.bloomery("union", "--json", "-o", "three", "a", "b", "c").json

            bits, probes = self.facts("a")["bits"], self.facts("a")["probes"]
            with self.subTest(layout=layout):
                self.assertEqual(self.bits_of("two"), union_of([a, b]))
                self.assertEqual(self.bits_of("three"), union_of([a, b, c]))
                self.assertLessEqual(abs(two["keys"] - 900), 4 * two["keys_sigma"] + 1)
                self.assertLessEqual(abs(three["keys"] - 1200), 4 * three["keys_sigma"] + 1)
                exact = certified_rate(layout, bits, probes, union_of([a, b, c]), 1200)
                self.assertAlmostEqual(three["rate"] / exact, 1, delta=1e-5)
                self.assertAlmostEqual(three["fill"], ones_of(union_of([a, b, c])) / bits)
                self.assert_has_all("three", keys(1200))
                self.bloomery("info", "--check", "three")

    def test_an_intersection_is_the_and_of_the_bits_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            a, b, c = self.make_three("--layout", layout)

            two = self.bloomery("intersect", "--json", "-o", "two", "a", "b").json
            three = self.bloomery("intersect", "--json", "-o", "three", "a", "b", "c").json

            with self.subTest(layout=layout):
                self.assertEqual(self.bits_of("two"), intersection_of([a, b]))
                self.assertEqual(self.bits_of("three"), intersection_of([a, b, c]))
                self.assertLessEqual(abs(two["keys"] - 300), 4 * two["keys_sigma"] + 1)
                self.assertEqual((two["keys_at_most"], two["keys_noise"], three["keys_at_most"]), (False, False, True))
                exact = certified_rate(layout, self.facts("a")["bits"], self.facts("a")["probes"], intersection_of([a, b]), 300)
                self.assertAlmostEqual(two["rate"], exact, delta=1e-5 * exact + 1e-9)
                self.assert_has_all("two", keys(600)[300:])

    def test_schemes_and_filters_of_integers_are_joined_too(self) -> None:
        for options in ["--scheme", "guava"], ["--scheme", "perl"], ["--u64"]:
            some, others = (keys(400), keys(600)[200:]) if options != ["--u64"] else ([b"1", b"22"], [b"22", b"333"])
            self.make_filter("a", some, "-n", 600, *options)
            self.make_filter("b", others, "-n", 600, *options)

            self.bloomery("union", "-q", "-o", "u", "a", "b")
            self.bloomery("intersect", "-q", "-o", "i", "a", "b")

            self.assertEqual(self.bits_of("u"), union_of([self.bits_of("a"), self.bits_of("b")]))
            self.assertEqual(self.bits_of("i"), intersection_of([self.bits_of("a"), self.bits_of("b")]))

    def test_the_result_keeps_the_parameters_and_can_be_worked_with(self) -> None:
        self.make_three("--seed", 5, "--note", "hello")

        self.bloomery("union", "-q", "-o", "u", "a", "b")

        before, after = self.facts("a"), self.facts("u")
        for name in "layout", "hash", "keys", "seed", "bits", "probes", "capacity", "target_rate", "note":
            self.assertEqual(after[name], before[name], name)
        self.assertEqual((after["count_is_estimate"], after["clean"], after["alarm"]), (True, True, False))
        self.bloomery("add", "-q", "u", stdin=b"another\n")
        self.assert_has_all("u", [b"another"])

    def test_what_it_says_is_on_standard_error(self) -> None:
        self.make_three()

        union = self.bloomery("union", "-o", "u", "a", "b")
        intersection = self.bloomery("intersect", "-o", "i", "a", "b")
        three = self.bloomery("intersect", "-o", "i", "a", "a", "b")
        quiet = self.bloomery("union", "-q", "-o", "u", "a", "b")

        self.assertRegex(union.err, r"\Abloomery: u: union of 2 filters: \d+ \+- \d+ keys; current FPR \S+\n\Z")
        self.assertRegex(intersection.err, r"\Abloomery: i: intersection of 2 filters: \d+ \+- \d+ common keys; current FPR .*\n\Z")
        self.assertRegex(three.err, r"intersection of 3 filters: at most \d+ \+- \d+ common keys")
        self.assertEqual((union.out, quiet.out, quiet.err), (b"", b"", ""))

    def test_a_result_that_breaks_its_target_ends_with_3(self) -> None:
        self.make_filter("a", keys(1000, "a"), "-n", 1000)
        self.make_filter("b", keys(1000, "b"), "-n", 1000)

        for command, output in ("union", "u"), ("intersect", "i"):
            inputs = ["a", "b"] if output == "u" else ["u", "u"]
            for quiet in [], ["-q"]:
                run = self.bloomery(command, "--json", *quiet, "-o", output, *inputs, status=3)

                self.assertAlmostEqual(run.json["rate"] / split_block_rate(self.info(output)["bits"], 2000), 1, delta=0.2)
                self.assertEqual(run.json["fpr_verdict"], "broken")
                self.assertRegex(run.err.splitlines()[-1], f"{output}: warning: the filter exceeds its target FPR: current FPR .*, target 1%; its capacity is 1,000 keys")
            self.assert_has_all(output, [*keys(1000, "a"), *keys(1000, "b")])
        kept = self.bloomery("union", "--json", "-o", "u", "a", "a")
        self.assertIn(kept.json["fpr_verdict"], ("kept", "within_chance"))

    def test_disjoint_sets_have_no_number_of_common_keys(self) -> None:
        self.make_filter("a", keys(1000, "a"), "-n", 2000)
        self.make_filter("b", keys(1000, "b"), "-n", 2000)

        run = self.bloomery("intersect", "--json", "-o", "i", "a", "b")

        self.assertTrue(run.json["keys_noise"])
        self.assertRegex(run.err, "intersection of 2 filters: too few common keys to estimate their number")

    def test_filters_that_do_not_fit_name_the_field_and_both_values(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        make = ["-n", 1000, "-p", "1%"]
        self.make_filter("a", keys(10), *make, "--layout", "split_block512")
        differences = {
            "layout: split_block512 and split_block": [*make, "--layout", "split_block"],
            "hash: xxh3_64 and murmur3": [*make, "--layout", "split_block512", "--hash", "murmur3"],
            "seed: 0 and 9": [*make, "--layout", "split_block512", "--seed", 9],
            "bits: [0-9]+ and [0-9]+": ["-n", 3333, "--layout", "split_block512"],
            "hash: xxh3_64 and siphash": [*make, "--layout", "split_block512", "--secret", "key"],
            "scheme: none and guava": [*make, "--scheme", "guava"],
        }
        for difference, options in differences.items():
            self.make_filter("b", keys(10), *options)
            for command in ["union", "-o", "x"], ["intersect", "-o", "x"], ["overlap"]:
                self.refused(*command, "a", "b", says=f"a and b: these filters cannot be combined: found {difference}; ")
        self.make_filter("earlier", keys(10), *make, "--layout", "split_block512", "--hash", "xxh3")
        self.refused("union", "-o", "x", "a", "earlier", says="found hash: xxh3_64 and xxh3; build one of them again.*--hash xxh3_64 or --hash xxh3")
        self.make_filter("numbers", [b"1"], *make, "--layout", "split_block512", "--hash", "xxh3_64", "--u64")
        self.refused("union", "-o", "x", "a", "numbers", says="keys: bytes and u64")
        self.make_filter("k", keys(10), *make, "--secret", "key")
        self.make_filter("o", keys(10), *make, "--secret", "other")
        self.refused("union", "-o", "x", "k", "o", says="secret: [0-9A-F]{16} and [0-9A-F]{16}")
        self.make_filter("p", keys(10), "-n", 10, "-m", 4096, "-k", 3, "--layout", "classic")
        self.make_filter("q", keys(10), "-n", 10, "-m", 4096, "-k", 4, "--layout", "classic")
        self.refused("union", "-o", "x", "p", "q", says="probes: 3 and 4")
        self.refused("union", "-o", "x", "a", "a", "b", says="a and b: .*scheme")
        self.assertFalse(os.path.exists(self.path("x")))

    def test_the_fold_that_is_proposed_works_as_printed(self) -> None:
        self.make_filter("large", keys(100), "-m", 64 * 512, "-n", 1000, "--layout", "split_block512")
        self.make_filter("small", keys(200)[100:], "-m", 16 * 512, "-n", 1000, "--layout", "split_block512")

        for pair in ["large", "small"], ["small", "large"]:
            said = self.refused("union", "-o", "u", *pair, says="makes the sizes equal").err
            proposed = re.search(r"'bloomery ([^']+)' makes the sizes equal", said)[1].replace("NAME", "folded").split()
            self.bloomery(*proposed)
            self.bloomery("union", "-q", "-o", "u", "folded", "small")

            self.assert_has_all("u", keys(200))

    def test_keyed_filters_are_joined_without_their_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("a", keys(500), "-n", 1000, "--secret", "key")
        self.make_filter("b", keys(800)[300:], "-n", 1000, "--secret", "key")

        self.bloomery("union", "-q", "-o", "u", "a", "b")
        both = self.bloomery("overlap", "--json", "a", "b").json["keys_both"]

        self.assertEqual(self.bits_of("u"), union_of([self.bits_of("a"), self.bits_of("b")]))
        self.assertEqual(self.facts("u")["key_check"], self.facts("a")["key_check"])
        self.assert_has_all("u", keys(800), "--secret", "key")
        self.assertLessEqual(abs(both["value"] - 200), 4 * both["sigma"] + 1)
        self.refused("check", "u", stdin=b"x\n", says="--secret")

    def test_the_result_may_replace_one_of_the_inputs(self) -> None:
        for name in "a", "b", "c":
            a, b, c = self.make_three()

            self.bloomery("union", "-q", "-o", name, "a", "b", "c")

            self.assertEqual(self.bits_of(name), union_of([a, b, c]))

    def test_a_file_that_is_no_filter_is_not_replaced(self) -> None:
        self.make_three()
        self.bloomery("keygen", "-o", "key")
        self.write("text", keys(10))
        self.write("empty", b"")
        for command in "union", "intersect":
            for name in "key", "text":
                before = self.read(name)

                self.refused(command, "-o", name, "a", "b", says=f"the output would replace a file that is not a filter: {name}")

                self.assertEqual(self.read(name), before)
            self.bloomery(command, "-q", "-o", "c", "a", "b")
            self.bloomery(command, "-q", "-o", "empty", "a", "b")
            self.assertEqual(self.bits_of("empty"), self.bits_of("c"))
            self.write("empty", b"")

    def test_an_intersection_of_full_filters_has_a_count_that_is_not_zero(self) -> None:
        self.make_filter("full", keys(5000), "-n", 10, status=3)
        self.make_filter("too", keys(5000, "other"), "-n", 10, status=3)

        run = self.bloomery("intersect", "--json", "-o", "i", "full", "too", status=3)

        self.assertIsNone(run.json["keys_sigma"])
        self.assertGreater(self.facts("i")["inserted"], 0)
        self.assertTrue(self.facts("i")["count_is_estimate"])

    def test_a_place_where_nothing_can_be_written_is_an_error(self) -> None:
        self.make_three()

        for command in "union", "intersect":
            self.refused(command, "-o", "missing/u", "a", "b", says="missing.*No such file")
            self.refused(command, "-o", ".", "a", "b", says="directory")
            self.refused(command, "-o", "u", "a", "gone", says="gone: cannot open")
            self.refused(command, "-o", "u", "a", says="FILTER")
            self.refused(command, "a", "b", says="--output")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a", "b", "c"])

    def test_a_damaged_page_of_any_input_is_noticed(self) -> None:
        self.make_three()
        for name in "a", "b", "c":
            whole = self.read(name)
            damaged = bytearray(whole)
            damaged[PAYLOAD_AT + 100] ^= 1
            self.write(name, bytes(damaged))

            for command in "union", "intersect":
                self.refused(command, "-o", "u", "a", "b", "c", says=f"{name}: .*(checksum|damaged)")
            self.write(name, whole)

    def test_the_count_that_a_killed_writer_left_is_estimated(self) -> None:
        self.make_filter("a", [], "-n", 10_000)
        self.make_filter("b", keys(7000)[5000:], "-n", 10_000)
        writer = self.start("add", "a")
        writer.stdin.write(text(keys(5000)))
        writer.stdin.flush()
        while len(self.bloomery("check", "a", stdin=text(keys(5000)), status=None).lines) < 4500:
            pass  # the last lines may wait in the pipe for their end
        writer.kill()
        writer.wait()
        self.assertEqual(self.facts("a")["inserted"], 0)

        for command, pair in ("union", "ab"), ("union", "ba"), ("intersect", "aa"):
            run = self.bloomery(command, "-q", "-o", "u", *pair)

            there = len(self.bloomery("check", "u", stdin=text(keys(7000)), status=None).lines)
            self.assertRegex(run.err, r"\A(bloomery: a: note: not closed cleanly[^\n]*\n)+\Z")
            self.assertAlmostEqual(self.facts("u")["inserted"], there, delta=200)
            self.assertEqual((self.facts("u")["count_is_estimate"], self.facts("u")["clean"]), (True, True))

    def test_full_and_empty_filters_are_joined(self) -> None:
        self.make_filter("full", keys(20_000), "-n", 100, status=3)
        self.make_filter("empty", [], "-n", 100)

        full = self.bloomery("union", "--json", "-o", "u", "full", "empty", status=3)
        empty = self.bloomery("intersect", "--json", "-o", "i", "full", "empty")

        self.assertEqual((full.json["keys"], full.json["rate"], full.json["fill"]), (None, 1, 1))
        self.assertRegex(full.err, "union of 2 filters: all bits are set; current FPR 100%")
        self.assertEqual((empty.json["rate"], empty.json["fill"]), (0, 0))
        self.assertEqual(self.facts("i")["predicted_for_keys"], 0)

    def test_a_filter_with_itself_is_itself(self) -> None:
        a, _, _ = self.make_three()

        self.bloomery("union", "-q", "-o", "u", "a", "a")
        self.bloomery("intersect", "-q", "-o", "i", "a", "a")

        self.assertEqual((self.bits_of("u"), self.bits_of("i")), (a, a))


class Overlap(CommandTest):
    def overlap(self, a: str, b: str, status: int = 0) -> dict:
        return self.bloomery("overlap", "--json", a, b, status=status).json

    def test_estimates_are_within_four_sigma_of_the_true_sets(self) -> None:
        for layout in LAYOUTS:
            for n, common in (3000, 1500), (3000, 300), (3000, 2990), (800, 800):
                self.make_filter("a", keys(n), "-n", 4000, "--layout", layout)
                self.make_filter("b", keys(2 * n - common)[n - common :], "-n", 4000, "--layout", layout)

                found = self.overlap("a", "b")

                truth = {"keys_a": n, "keys_b": n, "keys_either": 2 * n - common, "keys_both": common}
                with self.subTest(layout=layout, n=n, common=common):
                    for name, size in truth.items():
                        self.assertLessEqual(abs(found[name]["value"] - size), 4 * found[name]["sigma"] + 1e-6, name)
                    jaccard = common / (2 * n - common)
                    self.assertLessEqual(abs(found["jaccard"]["value"] - jaccard), 4 * found["jaccard"]["sigma"] + 1e-9)

    def test_its_bits_are_counted_exactly(self) -> None:
        self.make_filter("a", keys(500), "-n", 1000)
        self.make_filter("b", keys(700)[300:], "-n", 1000)
        a, b = self.bits_of("a"), self.bits_of("b")

        found = self.overlap("a", "b")

        shared = ones_of(intersection_of([a, b]))
        self.assertEqual((found["ones_a"], found["ones_b"], found["ones_shared"]), (ones_of(a), ones_of(b), shared))
        self.assertAlmostEqual(found["ones_shared_by_chance"], ones_of(a) * ones_of(b) / found["bits"], delta=1)
        self.assertEqual(
            list(found),
            "a b bits ones_a ones_b ones_shared ones_shared_by_chance keys_a keys_b keys_either keys_both jaccard".split(),
        )

    def test_what_chance_would_share_is_not_told_as_an_overlap(self) -> None:
        told = 0
        for seed in range(10):
            self.make_filter("a", keys(2000, "a"), "-n", 2000, "--seed", seed)
            self.make_filter("b", keys(2000, "b"), "-n", 2000, "--seed", seed)

            run = self.bloomery("overlap", "a", "b", status=None)

            said = run.out.decode()
            told += run.status == 0
            if run.status == 1:
                self.assertRegex(said, r"both +not detectable: fewer than \d+ common keys are within chance")
                self.assertNotIn("Jaccard", said)
        self.assertLessEqual(told, 1)

    def test_in_words_it_has_error_bars(self) -> None:
        self.make_filter("a", keys(1000), "-n", 2000)
        self.make_filter("b", keys(1500)[500:], "-n", 2000)

        said = self.bloomery("overlap", "a", "b").out.decode()

        self.assertRegex(said, r"(?m)^A +a: [0-9,]+ \+- \d+ keys$")
        self.assertRegex(said, r"(?m)^shared bits +[0-9,]+; expected without common keys: [0-9,]+$")
        self.assertRegex(said, r"(?m)^both +\d+ \+- \d+ keys$")
        self.assertRegex(said, r"(?m)^Jaccard +0\.3\d\d\d \+- 0\.0\d\d\d$")

    def test_empty_filters_have_nothing_in_common(self) -> None:
        self.make_filter("empty", [], "-n", 100)
        self.make_filter("none", [], "-n", 100)
        self.make_filter("some", keys(50), "-n", 100)

        for a, b, why in ("empty", "none", "both filters are"), ("some", "none", "B is"), ("none", "some", "A is"):
            found = self.bloomery("overlap", a, b, status=1).out.decode()

            self.assertRegex(found, f"both +none: {why} empty")

    def test_of_full_filters_nothing_is_known(self) -> None:
        self.make_filter("full", keys(20_000), "-n", 100, status=3)
        self.make_filter("some", keys(50), "-n", 100)

        found = self.overlap("full", "some", status=1)
        said = self.bloomery("overlap", "some", "full", status=1).out.decode()

        for name in "keys_a", "keys_either":
            self.assertEqual((found[name]["value"], found[name]["sigma"]), (None, None))
        for name in "keys_both", "jaccard":  # 0, give or take infinity
            self.assertEqual(found[name], {"value": 0, "sigma": None, "noise": True})
        self.assertRegex(said, "B +full: unknown: all bits are set")
        self.assertRegex(said, "both +unknown: all bits are set")


if __name__ == "__main__":
    unittest.main()
