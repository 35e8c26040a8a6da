"""bloomery verify: three error rates side by side, the user's own keys, and a verdict by exit status."""

import math
import re
import unittest

from support import LAYOUTS, CommandTest, certified_rate, keys, rate_of, text

FACTS = """filter predicted predicted_for_keys certified measured queries_to_resolve target_rate count_is_estimate bits_set
bits_set_expected bits_set_sigma present absent complaints fpr_verdict""".split()


class VerifyTest(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.make_filter("f", keys(2000), "-n", 2000, "-p", "2%")
        self.write("present", keys(2000))
        self.write("absent", keys(5000, "absent"))

    def verify(self, *arguments: object, status: int = 0, **options) -> dict:
        return self.bloomery("verify", "--json", "--queries", "100k", *arguments, status=status, **options).json

    def said(self, *arguments: object, status: int = 0, **options) -> str:
        return self.bloomery("verify", "--queries", "100k", *arguments, status=status, **options).out.decode()


class Verify(VerifyTest):
    def test_a_sound_filter_is_told_so(self) -> None:
        said = self.said("f", "--present", "present", "--absent", "absent")

        self.assertRegex(said, r"(?m)^filter +f: capacity 2,000 keys at 2%")
        self.assertRegex(said, r"(?m)^present +2,000 keys, all found$")
        self.assertRegex(said, r"(?m)^absent +.* of 5,000 absent keys$")
        self.assertRegex(said, r"(?m)^verdict +sound: all rates agree within chance$")

    def test_its_rates_are_the_exact_ones_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("g", keys(2000), "-n", 2000, "-p", "2%", "--layout", layout)
            facts = self.bloomery("info", "--json", "g").json

            found = self.verify("g", "--present", "present", "--absent", "absent")

            exact = certified_rate(layout, facts["bits"], facts["probes"], self.bits_of("g"), 2000)
            formula = rate_of(layout, facts["bits"], facts["probes"], found["predicted_for_keys"])
            with self.subTest(layout=layout):
                self.assertEqual(list(found), FACTS)
                self.assertAlmostEqual(found["certified"] / exact, 1, delta=1e-6)
                self.assertAlmostEqual(found["predicted"] / formula, 1, delta=0.005)
                self.assertAlmostEqual(found["predicted_for_keys"], 2000, delta=10)
                self.assertEqual(found["present"], {"keys": 2000, "missing": 0, "first_missing": None})
                self.assert_chance(found["measured"]["hits"], 100_000, exact)
                self.assert_chance(found["absent"]["hits"], 5000, exact)
                self.assertEqual((found["absent"]["queries"], found["complaints"]), (5000, []))
                self.assertEqual(found["bits_set"], int.from_bytes(self.bits_of("g"), "little").bit_count())

    def test_the_hits_among_absent_keys_are_those_that_check_reports(self) -> None:
        found = self.verify("f", "--absent", "absent")

        self.assertEqual(found["absent"]["hits"], self.count("f", keys(5000, "absent")))

    def test_a_missing_present_key_is_named_and_is_a_failure(self) -> None:
        lines = keys(2000)
        self.write("one", lines[:700] + [b"never put in\x1b[2J"] + lines[700:])
        self.write("several", lines + keys(500, "absent"))
        absent = 500 - self.count("f", keys(500, "absent"))

        one = self.said("f", "--present", "one", status=1)
        several = self.verify("f", "--present", "several", status=1)

        self.assertRegex(one, r"present +2,001 keys, 1 MISSING, the first: 'never put in\\x1B\[2J'")
        self.assertRegex(one, "verdict +1 of 2,001 present keys is missing")
        self.assertEqual((several["present"]["keys"], several["present"]["missing"]), (2500, absent))
        self.assertEqual(len(several["complaints"]), 1)
        self.assertRegex(several["present"]["first_missing"], r"\Aabsent-\d+\Z")

    def test_keys_that_are_among_the_present_ones_are_not_counted_as_absent(self) -> None:
        self.write("mixed", keys(300) + keys(1000, "absent") + keys(300))

        found = self.verify("f", "--present", "present", "--absent", "mixed")
        said = self.said("f", "--present", "present", "--absent", "mixed")

        self.assertEqual((found["absent"]["queries"], found["absent"]["present_too"]), (1000, 300))
        self.assertEqual(found["complaints"], [])
        self.assertRegex(said, "300 more are also in the file of present keys and not counted")

    def test_an_absent_key_that_is_repeated_counts_once(self) -> None:
        false_positive = self.bloomery("check", "f", stdin=text(keys(1000, "other"))).lines[0]
        self.write("log", keys(1000, "absent") * 3 + [false_positive] * 5000)

        found = self.verify("f", "--absent", "log")

        self.assertEqual((found["absent"]["queries"], found["complaints"]), (1001, []))

    def test_absent_keys_that_were_chosen_for_being_reported_are_noticed(self) -> None:
        self.write("chosen", self.bloomery("check", "f", stdin=text(keys(20_000, "other"))).lines)
        self.write("unchosen", self.bloomery("check", "-v", "f", stdin=text(keys(20_000, "other"))).lines)

        chosen = self.said("f", "--absent", "chosen", status=1)
        unchosen = self.said("f", "--absent", "unchosen", status=1)

        self.assertRegex(chosen, "verdict +the keys of --absent are reported more often than random keys: .*chosen")
        self.assertRegex(unchosen, "verdict +the keys of --absent are reported less often than random keys: .*chosen")

    def test_either_of_the_two_may_come_by_standard_input_but_not_both(self) -> None:
        present = self.verify("f", "--present", "-", stdin=text(keys(2000)))
        absent = self.verify("f", "--present", "present", "--absent", "-", stdin=text(keys(10, "absent")))

        self.assertEqual((present["present"]["keys"], absent["absent"]["queries"]), (2000, 10))
        self.refused("verify", "f", "--present", "-", "--absent", "-", says="standard input can be read only once.*use a file")

    def test_both_files_are_cut_into_keys_alike(self) -> None:
        self.write("table", [b"x,key-%d,y\r" % i for i in range(2000)])
        self.write("strangers", [b"x,absent-%d,y\r" % i for i in range(1000)] + [b"z,key-7,z\r"])
        self.write("nul", text(keys(2000), b"\0"))

        cut = ["--crlf", "-d", ",", "-f", 2]
        found = self.verify("f", *cut, "--present", "table", "--absent", "strangers")
        whole_lines = self.verify("f", "--present", "table", status=1)
        nul = self.verify("f", "-0", "--present", "nul")

        self.assertEqual((found["present"]["missing"], found["absent"]["queries"], found["absent"]["present_too"]), (0, 1000, 1))
        self.assertGreater(whole_lines["present"]["missing"], 1900)
        self.assertEqual(nul["present"], {"keys": 2000, "missing": 0, "first_missing": None})

    def test_several_files_are_one_list(self) -> None:
        self.write("a", keys(1000))
        self.write("b", keys(2000)[1000:])

        self.assertEqual(self.verify("--present", "a", "--present", "b", "f")["present"]["keys"], 2000)
        self.refused("verify", "f", "--present", "a", "b", says="unexpected argument: found 'b'")
        self.refused("verify", "f", "--present", "a", "--present", "missing", says="missing: cannot (read|open)")

    def test_quiet_says_nothing_but_by_the_exit_status(self) -> None:
        good = self.bloomery("verify", "-q", "--queries", 1000, "f", "--present", "present")
        bad = self.bloomery("verify", "-q", "--queries", 1000, "f", "--present", "absent", status=1)

        self.assertEqual((good.out, good.err, bad.out, bad.err), (b"", "", b"", ""))

    def test_filters_of_integers_are_verified_by_value(self) -> None:
        self.make_filter("numbers", [b"%d" % i for i in range(2000)], "--u64", "-n", 2000)
        self.write("numbers.txt", [b"%04d" % i for i in range(2000)])
        self.write("others", [b"%d" % i for i in range(1990, 5000)])

        found = self.verify("numbers", "--present", "numbers.txt", "--absent", "others")

        self.assertEqual((found["present"]["missing"], found["absent"]["queries"]), (0, 3000))
        self.assertEqual(found["absent"]["present_too"], 10)
        self.refused("verify", "numbers", "--present", "present", says="present: the filter's keys are integers")

    def test_schemes_are_verified_with_their_own_hashes(self) -> None:
        for scheme in "guava", "python", "perl", "pharo":
            self.make_filter("s", keys(500), "-n", 500, "-p", "2%", "--scheme", scheme)
            self.write("some", keys(500))

            found = self.verify("s", "--present", "some", "--absent", "absent")

            with self.subTest(scheme=scheme):
                self.assertEqual((found["present"]["missing"], found["complaints"]), (0, []))
                self.assert_chance(found["measured"]["hits"], 100_000, found["certified"])

    def test_a_keyed_filter_takes_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        self.make_filter("k", keys(2000), "-n", 2000, "--secret", "key")

        found = self.verify("k", "--secret", "key", "--present", "present", "--absent", "absent")

        self.assertEqual((found["present"]["missing"], found["complaints"]), (0, []))
        self.refused("verify", "k", says="--secret")
        self.refused("verify", "k", "--secret", "other", says="check value")


class Verdicts(VerifyTest):
    def test_what_was_not_compared_is_told(self) -> None:
        self.make_filter("other", keys(3000)[1000:], "-n", 2000, "-p", "2%")
        self.bloomery("union", "-q", "-o", "u", "f", "f")
        self.make_filter("s", keys(100), "-n", 1000, "--scheme", "guava")

        estimated = self.said("u", "--present", "present")
        unmeasured = self.bloomery("verify", "--queries", 0, "u").out.decode()
        scheme = self.said("s")

        agrees = "the measured FPR agrees with the bits, but the key count "
        self.assertRegex(estimated, f"verdict +no problem found: {agrees}is an estimate\n")
        self.assertRegex(unmeasured, "verdict +no problem found, but the key count is an estimate\n")
        self.assertRegex(scheme, f"verdict +no problem found: {agrees}of a scheme cannot be compared\n")

    def test_one_false_positive_in_a_short_list_is_no_complaint(self) -> None:
        self.make_filter("rare", keys(2000), "-n", 2000, "-p", "1e-5")
        strangers = keys(500_000, "absent")
        reported = self.bloomery("check", "rare", stdin=text(strangers)).lines
        self.write("short", reported[:1] + strangers[:99])
        self.write("chosen", reported)

        one = self.verify("rare", "--absent", "short")
        several = self.verify("rare", "--absent", "chosen", status=1)

        self.assertEqual((one["absent"]["hits"], one["absent"]["queries"], one["complaints"]), (1, 100, []))
        self.assertRegex(several["complaints"][0], "the keys of --absent are reported more often than random keys")

    def test_an_empty_filter_keeps_its_word(self) -> None:
        self.make_filter("empty", [], "-n", 100)

        found = self.verify("empty", "--absent", "absent")
        said = self.said("empty")

        self.assertEqual((found["predicted"], found["certified"], found["measured"]["hits"]), (0, 0, 0))
        self.assertEqual((found["queries_to_resolve"], found["complaints"]), (0, []))
        self.assertRegex(said, "verdict +sound")

    def test_an_overfull_filter_breaks_its_target(self) -> None:
        self.make_filter("over", keys(2000), "-n", 1000, "-p", "1%", status=3)
        self.make_filter("full", keys(50_000), "-n", 100, "-p", "1%", status=3)

        over = self.said("over", "--present", "present", status=1)
        full = self.said("full", "--present", "present", status=1)
        found = self.verify("over", status=1)

        self.assertRegex(over, r"verdict +above target: current FPR [0-9.]+%, target 1%")
        self.assertRegex(full, "expected FPR +100% for an uncountable number of keys")
        self.assertRegex(full, "exact FPR +100%")
        self.assertRegex(full, "verdict +above target: current FPR 100%, target 1%")
        self.assertEqual((found["fpr_verdict"], len(found["complaints"])), ("broken", 1))

    def test_a_filter_with_exactly_its_capacity_is_not_accused_by_chance(self) -> None:
        for seed in range(20):
            self.make_filter("g", keys(15_000), "-n", 15_000, "-p", "1%", "--seed", seed)

            found = self.bloomery("verify", "--json", "--queries", 1000, "g").json

            self.assertEqual(found["complaints"], [])
            self.assertEqual(found["fpr_verdict"], "kept" if found["certified"] <= 0.01 else "within_chance")

    def test_more_bits_than_the_count_explains_are_pollution(self) -> None:
        self.patch("f", inserted=1500)

        found = self.verify("f", status=1)
        said = self.said("f", status=1)

        self.assertEqual(len(found["complaints"]), 1)
        self.assertGreater(found["bits_set"], found["bits_set_expected"] + 6 * found["bits_set_sigma"])
        self.assertRegex(said, r"verdict +more bits are set than expected for 1,5\d\d keys.*pollution")
        self.assertRegex(said, r"expected FPR +\d.* for (2,0|1,9)\d\d keys, estimated from the bits")

    def test_a_giant_count_of_no_bits_is_no_count(self) -> None:
        self.make_filter("empty", [], "-n", 1000)
        for count in 100_000, 1 << 63, (1 << 64) - 1:
            self.patch("empty", inserted=count)

            said = self.said("empty", status=1)

            self.assertRegex(said, "verdict +fewer bits are set than expected for .* keys.*the key count is too high")
            self.assertTrue(self.info("empty")["alarm"])

    def test_fewer_bits_than_the_count_explains_are_damage(self) -> None:
        self.patch("f", payload=bytes(1024) + self.bits_of("f")[1024:])

        said = self.said("f", "--present", "present", status=1)

        self.assertRegex(said, "fewer bits are set than expected for .* keys.*damaged")
        self.assertRegex(said, r"verdict +\d+ of 2,000 present keys are missing.* 'bloomery info --check'")

    def test_a_count_of_one_key_is_told_in_the_singular(self) -> None:
        self.patch("f", inserted=1)

        said = self.said("f", status=1)

        self.assertRegex(said, "than expected for 1 key")

    def test_a_rate_too_low_to_measure_says_how_many_queries_it_would_take(self) -> None:
        self.make_filter("rare", keys(1000), "-n", 1000, "-p", "1e-7", "--layout", "classic")

        found = self.verify("rare")
        said = self.said("rare")

        needed = (2 / 0.05) ** 2 * (1 - found["certified"]) / found["certified"]
        self.assertAlmostEqual(found["queries_to_resolve"] / needed, 1, delta=1e-6)
        self.assertIn(f"--queries {found['queries_to_resolve']} would measure it", said)
        self.assertEqual(found["complaints"], [])

    def test_without_queries_nothing_is_measured(self) -> None:
        found = self.bloomery("verify", "--json", "--queries", 0, "f").json
        said = self.bloomery("verify", "--queries", 0, "f").out.decode()

        self.assertEqual((found["measured"]["queries"], found["complaints"]), (0, []))
        self.assertNotIn("measured", said)

    def test_enough_queries_are_asked_if_no_number_is_given(self) -> None:
        found = self.bloomery("verify", "--json", "f").json

        expected = 1600 * (1 - found["certified"]) / found["certified"]
        self.assertEqual(found["measured"]["queries"], max(round(expected), 100_000))
        self.assertAlmostEqual(found["measured"]["rate"] / found["certified"], 1, delta=0.15)

    def test_a_file_that_was_not_closed_is_judged_by_its_bits(self) -> None:
        writer = self.start("add", "f")
        while self.info("f")["clean"]:
            pass
        writer.stdin.write(text(keys(2000, "late")))
        writer.stdin.flush()
        while self.count("f", keys(2000, "late")) < 2000:
            pass
        writer.kill()
        writer.wait()

        run = self.bloomery("verify", "--json", "--queries", "100k", "f", "--present", "present", status=1)

        self.assertRegex(run.err, "f: note: not closed cleanly")
        self.assertEqual((run.json["count_is_estimate"], run.json["fpr_verdict"], len(run.json["complaints"])), (True, "broken", 1))
        self.assertAlmostEqual(run.json["predicted_for_keys"], 4000, delta=200)

    def test_no_honest_filter_is_accused(self) -> None:
        for layout in LAYOUTS:
            for seed, (n, fill) in enumerate([(n, fill) for n in (3, 50, 2000) for fill in (0.3, 1, 2.5)]):
                count = math.ceil(n * fill)
                self.make_filter("g", keys(count), "-n", n, "-p", "3%", "--layout", layout, "--seed", seed, status=None)
                self.write("own", keys(count))

                found = self.bloomery("verify", "--json", "--queries", "30k", "g", "--present", "own", "--absent", "absent", status=None).json

                others = [said for said in found["complaints"] if not said.startswith("above target")]
                self.assertEqual(others, [], (layout, n, fill))
                self.assertEqual(len(found["complaints"]), 1 if found["fpr_verdict"] == "broken" else 0)
                if fill <= 1 or n == 2000:
                    self.assertEqual(found["fpr_verdict"] == "broken", fill > 1, (layout, n, fill, found["certified"]))

    def test_help_says_what_the_exit_status_means(self) -> None:
        said = self.bloomery("verify", "--help").out.decode()

        self.assertTrue(re.search("(?s)Exit status: 0 .* 1 .* 2", said))
        self.refused("verify", says="FILTER")
        self.refused("verify", "missing", says="missing: cannot open")


if __name__ == "__main__":
    unittest.main()
