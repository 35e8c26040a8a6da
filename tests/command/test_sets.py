"""bloomery union, intersect and overlap: sets without their keys, bit by bit."""

import functools
import operator
import os
import re
import shlex
import unittest

from support import LAYOUTS, CommandTest, certified_rate, keys, ones_of, split_block_rate, text

VERBS = {"union": operator.or_, "intersect": operator.and_}


def combined(how, *payloads: bytes) -> bytes:
    return functools.reduce(how, (int.from_bytes(payload, "little") for payload in payloads)).to_bytes(len(payloads[0]), "little")


class Combining(CommandTest):
    """Three filters of 600 keys, two neighbors of which have 300 in common; none is in all three."""

    def make_three(self, *options: object) -> list[bytes]:
        """Returns their bits."""
        every = [b"%d" % i for i in range(1200)] if "--u64" in options else keys(1200)
        for name, first in ("a", 0), ("b", 300), ("c", 600):
            self.make_filter(name, every[first : first + 600], "-n", 1200, *options)
        return [self.bits_of(name) for name in "abc"]

    def facts(self, name: str) -> dict:
        return self.bloomery("info", "--json", "--queries", 0, name).json

    def test_the_result_has_the_bits_of_either_or_of_both_in_every_layout_and_scheme(self) -> None:
        for options in [*(["--layout", layout] for layout in LAYOUTS), ["--scheme", "guava"], ["--scheme", "perl"], ["--u64"]]:
            a, b, c = self.make_three(*options)
            for verb, how in VERBS.items():
                with self.subTest(options=options, verb=verb):
                    two = self.bloomery(verb, "--json", "-o", "two", "a", "b").json
                    three = self.bloomery(verb, "--json", "-o", "three", "a", "b", "c").json

                    self.assertEqual(self.bits_of("two"), combined(how, a, b))
                    self.assertEqual(self.bits_of("three"), combined(how, a, b, c))
                    self.assertAlmostEqual(three["fill"], ones_of(combined(how, a, b, c)) / self.facts("a")["bits"])
                    self.assertEqual((two["keys_at_most"], two["keys_noise"], three["keys_at_most"]), (False, False, verb == "intersect"))
                    self.assertLessEqual(abs(two["keys"] - (900 if verb == "union" else 300)), 4 * two["keys_sigma"] + 1)
                    if verb == "union":
                        self.assertLessEqual(abs(three["keys"] - 1200), 4 * three["keys_sigma"] + 1)
                    if options[0] == "--layout":
                        exact = certified_rate(options[1], self.facts("a")["bits"], self.facts("a")["probes"], self.bits_of("two"), round(two["keys"]))
                        self.assertAlmostEqual(two["rate"], exact, delta=1e-5 * exact + 1e-9)
                    self.bloomery("info", "--check", "three")

    def test_the_result_keeps_the_parameters_and_takes_keys(self) -> None:
        self.make_three("--seed", 5, "--note", "hello")

        self.bloomery("union", "-q", "-o", "u", "a", "b")

        before, after = self.facts("a"), self.facts("u")
        for name in "layout", "hash", "keys", "seed", "bits", "probes", "capacity", "target_rate", "note":
            self.assertEqual(after[name], before[name], name)
        self.assertEqual((after["count_is_estimate"], after["clean"], after["alarm"]), (True, True, False))
        self.bloomery("add", "-q", "u", stdin=b"another\n")
        self.assert_has_all("u", [b"another", *keys(900)])

    def test_the_messages(self) -> None:
        self.make_three()
        self.make_filter("other", keys(600, "other"), "-n", 1200)
        self.make_filter("full", keys(20_000), "-n", 10, status=3)
        self.make_filter("some", [b"one"], "-n", 10)
        self.make_filter("empty", [], "-n", 10)
        self.check_runs([
            ("union -o u a b", r"\Abloomery: u: union of 2 filters: \d+ \+- \d+ keys; current FPR \S+\n\Z"),
            ("intersect -o i a b", r"\Abloomery: i: intersection of 2 filters: \d+ \+- \d+ common keys; current FPR .*\n\Z"),
            ("intersect -o i a a b", r"\Abloomery: i: intersection of 3 filters: at most \d+ \+- \d+ common keys; current FPR .*\n\Z"),
            ("intersect -o i a other", r"\Abloomery: i: intersection of 2 filters: too few common keys to estimate their number; current FPR .*\n\Z"),
            ("union -o u full empty", r"\Abloomery: u: union of 2 filters: all bits are set; current FPR 100%\n.*warning: .*\n\Z"),
            ("union -q -o u a b", r"\A\Z"),
            ("overlap a b", r"(?ms)^A +a: [0-9,]+ \+- \d+ keys$.*^shared bits +[0-9,]+; expected without common keys: [0-9,]+$.*^both +\d+ \+- \d+ keys$.*^Jaccard +0\.3\d\d\d \+- 0\.0\d\d\d$"),
            ("overlap a other", r"both +not detectable: fewer than \d+ common keys are within chance\n\Z"),
            ("overlap a empty", "cannot be combined"),
            ("overlap empty empty", "both +none: both filters are empty"),
            ("overlap some empty", "both +none: B is empty"),
            ("overlap empty some", "both +none: A is empty"),
            ("overlap full full", "(?s)B +full: unknown: all bits are set.*both +unknown: all bits are set"),
        ])  # fmt: skip

    def test_a_result_that_breaks_its_target_ends_with_3(self) -> None:
        both = keys(1000, "a") + keys(1000, "b")
        self.make_filter("a", both[:1000], "-n", 1000)
        self.make_filter("b", both[1000:], "-n", 1000)
        for line in "union -o u a b", "union -q -o u a b", "intersect -o i u u", "intersect -q -o i u u":
            run = self.bloomery(*line.split(), "--json", status=3)

            name = run.json["filter"]
            self.assertAlmostEqual(run.json["rate"] / split_block_rate(self.info(name)["bits"], 2000), 1, delta=0.2)
            self.assertEqual(run.json["fpr_verdict"], "broken")
            self.assertRegex(run.err.splitlines()[-1], f"{name}: warning: the filter exceeds its target FPR: current FPR .*, target 1%; its capacity is 1,000 keys")
            self.assert_has_all(name, both)
        self.assertIn(self.bloomery("union", "--json", "-o", "u", "a", "a").json["fpr_verdict"], ("kept", "within_chance"))

    def test_filters_that_do_not_fit_name_the_field_and_both_values(self) -> None:
        for secret in "key", "other":
            self.bloomery("keygen", "-o", secret)
        usual = "-n 1000 -p 1% --layout split_block512"
        four = "-n 10 -m 4096 --layout classic -k"
        for a, b, difference in (
            (usual, "-n 1000 -p 1% --layout split_block", "layout: split_block512 and split_block"),
            (usual, f"{usual} --hash murmur3", "hash: xxh3_64 and murmur3"),
            (usual, f"{usual} --hash xxh3", "hash: xxh3_64 and xxh3; build one of them again.*--hash xxh3_64 or --hash xxh3"),
            (usual, f"{usual} --seed 9", "seed: 0 and 9"),
            (usual, "-n 3333 --layout split_block512", "bits: [0-9]+ and [0-9]+"),
            (usual, f"{usual} --secret key", "hash: xxh3_64 and siphash"),
            (usual, "-n 1000 -p 1% --scheme guava", "scheme: none and guava"),
            (usual, f"{usual} --hash xxh3_64 --u64", "keys: bytes and u64"),
            (f"{usual} --secret key", f"{usual} --secret other", "secret: [0-9A-F]{16} and [0-9A-F]{16}"),
            (f"{four} 3", f"{four} 4", "probes: 3 and 4"),
        ):
            self.make_filter("a", [b"1"], *a.split())
            self.make_filter("b", [b"1"], *b.split())
            self.refuse_all({line: f"a and b: these filters cannot be combined: found {difference}" for line in ("union -o x a b", "intersect -o x a b", "overlap a b", "union -o x a a b")})
        self.assertFalse(os.path.exists(self.path("x")))

    def test_the_fold_that_is_proposed_works_as_printed(self) -> None:
        self.make_filter("large", keys(100), "-m", 64 * 512, "-n", 1000, "--layout", "split_block512")
        self.make_filter("small", keys(200)[100:], "-m", 16 * 512, "-n", 1000, "--layout", "split_block512")
        for pair in "large small", "small large":
            said = self.refused("union", "-o", "u", *pair.split(), says="makes the sizes equal").err
            self.bloomery(*shlex.split(re.search(r"'bloomery ([^']+)' makes the sizes equal", said)[1].replace("NAME", "folded")))
            self.bloomery("union", "-q", "-o", "u", "folded", "small")
            self.assert_has_all("u", keys(200))

    def test_keyed_filters_are_combined_without_their_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        a, b, _ = self.make_three("--secret", "key")

        self.bloomery("union", "-q", "-o", "u", "a", "b")
        both = self.bloomery("overlap", "--json", "a", "b").json["keys_both"]

        self.assertEqual(self.bits_of("u"), combined(operator.or_, a, b))
        self.assertEqual(self.facts("u")["key_check"], self.facts("a")["key_check"])
        self.assert_has_all("u", keys(900), "--secret", "key")
        self.assertLessEqual(abs(both["value"] - 300), 4 * both["sigma"] + 1)
        self.refused("union", "-o", "all", "a", "a", "--secret", "key", says="--secret.*leave out --secret")

    def test_the_result_may_replace_one_of_the_inputs(self) -> None:
        for name in "a", "b", "c":
            bits = self.make_three()
            self.bloomery("union", "-q", "-o", name, "a", "b", "c")
            self.assertEqual(self.bits_of(name), combined(operator.or_, *bits))

    def test_the_count_that_a_killed_writer_left_is_estimated(self) -> None:
        self.make_filter("a", [], "-n", 10_000)
        self.make_filter("b", keys(7000)[5000:], "-n", 10_000)
        writer = self.start("add", "a")
        writer.stdin.write(text(keys(5000)))
        writer.stdin.flush()
        while self.count("a", keys(5000)) < 4500:
            pass  # the last lines may wait in the pipe for their end
        writer.kill()
        writer.wait()
        self.assertEqual(self.facts("a")["inserted"], 0)

        for line in "union a b", "union b a", "intersect a a":
            run = self.bloomery(*line.split(), "-q", "-o", "u")

            self.assertRegex(run.err, r"\A(bloomery: a: note: not closed cleanly[^\n]*\n)+\Z")
            self.assertAlmostEqual(self.facts("u")["inserted"], self.count("u", keys(7000)), delta=200)
            self.assertEqual((self.facts("u")["count_is_estimate"], self.facts("u")["clean"]), (True, True))

    def test_full_and_empty_filters_are_combined(self) -> None:
        self.make_filter("full", keys(20_000), "-n", 100, status=3)
        self.make_filter("other", keys(20_000, "other"), "-n", 100, status=3)
        self.make_filter("empty", [], "-n", 100)

        full = self.bloomery("union", "--json", "-o", "u", "full", "empty", status=3).json
        empty = self.bloomery("intersect", "--json", "-o", "i", "full", "empty").json
        both_full = self.bloomery("intersect", "--json", "-o", "f", "full", "other", status=3).json

        self.assertEqual((full["keys"], full["rate"], full["fill"]), (None, 1, 1))
        self.assertEqual((empty["rate"], empty["fill"], self.facts("i")["predicted_for_keys"]), (0, 0, 0))
        self.assertIsNone(both_full["keys_sigma"])
        self.assertGreater(self.facts("f")["inserted"], 0, "a count of 0 would say that the filter is empty")
        self.assertTrue(self.facts("f")["count_is_estimate"])


class Overlap(CommandTest):
    def overlap(self, a: str, b: str, status: int = 0) -> dict:
        return self.bloomery("overlap", "--json", a, b, status=status).json

    def test_estimates_are_within_four_sigma_of_the_true_sets_and_bits_are_exact(self) -> None:
        for layout in LAYOUTS:
            for n, common in (3000, 1500), (3000, 300), (3000, 2990), (800, 800):
                self.make_filter("a", keys(n), "-n", 4000, "--layout", layout)
                self.make_filter("b", keys(2 * n - common)[n - common :], "-n", 4000, "--layout", layout)
                a, b = self.bits_of("a"), self.bits_of("b")

                found = self.overlap("a", "b")

                with self.subTest(layout=layout, n=n, common=common):
                    self.assertEqual(list(found), "a b bits ones_a ones_b ones_shared ones_shared_by_chance keys_a keys_b keys_either keys_both jaccard".split())
                    for name, size in {"keys_a": n, "keys_b": n, "keys_either": 2 * n - common, "keys_both": common, "jaccard": common / (2 * n - common)}.items():
                        self.assertLessEqual(abs(found[name]["value"] - size), 4 * found[name]["sigma"] + 1e-6, name)
                    self.assertEqual((found["ones_a"], found["ones_b"], found["ones_shared"]), (ones_of(a), ones_of(b), ones_of(combined(operator.and_, a, b))))
                    self.assertAlmostEqual(found["ones_shared_by_chance"], ones_of(a) * ones_of(b) / found["bits"], delta=1)

    def test_chance_alone_is_hardly_ever_reported_as_an_overlap(self) -> None:
        reported = 0
        for seed in range(10):
            for name in "a", "b":
                self.make_filter(name, keys(2000, name), "-n", 2000, "--seed", seed)
            run = self.bloomery("overlap", "a", "b", status=None)
            reported += run.status == 0
            self.assertEqual(run.status == 0, b"Jaccard" in run.out)
        self.assertLessEqual(reported, 1)

    def test_nothing_is_known_of_full_filters(self) -> None:
        self.make_filter("full", keys(20_000), "-n", 100, status=3)
        self.make_filter("some", keys(50), "-n", 100)

        found = self.overlap("full", "some", status=1)

        for name in "keys_a", "keys_either":
            self.assertEqual((found[name]["value"], found[name]["sigma"]), (None, None))
        for name in "keys_both", "jaccard":  # 0, give or take infinity
            self.assertEqual(found[name], {"value": 0, "sigma": None, "noise": True})


if __name__ == "__main__":
    unittest.main()
