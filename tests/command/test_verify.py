"""bloomery verify: three error rates side by side, the user's own keys, and a verdict by exit status."""

import math
import os
import unittest

from support import LAYOUTS, CommandTest, certified_rate, keys, rate_of, text

FACTS = """filter predicted predicted_for_keys certified certified_within measured queries_to_resolve target_rate count_is_estimate bits_set
bits_set_expected bits_set_sigma present absent complaints fpr_verdict""".split()


class VerifyTest(CommandTest):
    """A filter f of 2,000 keys at 2%, a file of its keys and a file of 5,000 others."""

    def setUp(self) -> None:
        super().setUp()
        self.make_filter("f", keys(2000), "-n", 2000, "-p", "2%")
        self.write("present", keys(2000))
        self.write("absent", keys(5000, "absent"))

    def verify(self, line: str, status: int = 0, **options) -> dict:
        return self.bloomery("verify", "--json", "--queries", "100k", *line.split(), status=status, **options).json


class Verify(VerifyTest):
    def test_its_rates_are_the_exact_ones_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("g", keys(2000), "-n", 2000, "-p", "2%", "--layout", layout)
            facts = self.bloomery("info", "--json", "g").json

            found = self.verify("g --present present --absent absent")

            exact = certified_rate(layout, facts["bits"], facts["probes"], self.bits_of("g"), 2000)
            formula = rate_of(layout, facts["bits"], facts["probes"], found["predicted_for_keys"])
            with self.subTest(layout=layout):
                self.assertEqual(list(found), FACTS)
                self.assertAlmostEqual(found["certified"] / exact, 1, delta=1e-6)
                self.assertAlmostEqual(found["predicted"] / formula, 1, delta=0.005)
                self.assertAlmostEqual(found["predicted_for_keys"], 2000, delta=10)
                self.assertEqual(found["present"], {"keys": 2000, "missing": 0, "first_missing": None})
                self.assert_chance(found["measured"]["hits"], 100_000, exact)
                self.assertEqual(found["absent"]["hits"], self.count("g", keys(5000, "absent")))
                self.assertEqual((found["absent"]["queries"], found["complaints"]), (5000, []))
                self.assertEqual(found["bits_set"], int.from_bytes(self.bits_of("g"), "little").bit_count())

    def test_tiny_filters_of_other_systems_are_not_called_wrong(self) -> None:
        for scheme in ("guava", "guava32", "spark2", "redisbloom", "valkey_bloom", "datasketches", "bloom_filters", "bits_and_blooms"):
            for n in (3, 8, 20):
                with self.subTest(scheme=scheme, n=n):
                    self.make_filter("tiny", keys(n, scheme), "-n", n, "-p", "3%", "--scheme", scheme)
                    found = self.verify("tiny")
                    self.assertEqual(found["complaints"], [])
                    self.assertGreater(found["certified_within"], 1)

    def test_a_missing_present_key_is_named_and_is_a_failure(self) -> None:
        lines = keys(2000)
        self.write("one", lines[:700] + [b"never put in\x1b[2J"] + lines[700:])
        self.write("several", lines + keys(500, "absent"))

        one = self.bloomery("verify", "f", "--present", "one", status=1).out.decode()
        several = self.verify("f --present several", status=1)

        self.assertRegex(one, r"present +2,001 keys, 1 MISSING, the first: 'never put in\\x1B\[2J'")
        self.assertRegex(one, "verdict +1 of 2,001 present keys is missing")
        self.assertEqual((several["present"]["keys"], several["present"]["missing"]), (2500, 500 - self.count("f", keys(500, "absent"))))
        self.assertEqual(len(several["complaints"]), 1)
        self.assertRegex(several["present"]["first_missing"], r"\Aabsent-\d+\Z")

    def test_absent_keys_count_once_and_not_if_they_are_present(self) -> None:
        false_positive = self.bloomery("check", "f", stdin=text(keys(1000, "other"))).lines[0]
        self.write("log", keys(300) + keys(1000, "absent") * 3 + [false_positive] * 5000 + keys(300))

        found = self.verify("f --present present --absent log")

        self.assertEqual((found["absent"]["queries"], found["absent"]["present_too"], found["complaints"]), (1001, 300, []))
        self.check_runs([("verify f --present present --absent log", "300 more are also in the file of present keys and not counted")], status=0)

    def test_keys_come_from_standard_input_or_several_files_and_both_lists_are_cut_alike(self) -> None:
        self.write("a", keys(1000))
        self.write("b", keys(2000)[1000:])
        self.write("table", [b"x,key-%d,y\r" % i for i in range(2000)])
        self.write("others", [b"x,absent-%d,y\r" % i for i in range(1000)] + [b"z,key-7,z\r"])
        self.write("nul", text(keys(2000), b"\0"))
        for line, stdin, present, absent in (
            ("f --present -", keys(2000), (2000, 0), (0, 0)),
            ("f --present present --absent -", keys(10, "absent"), (2000, 0), (10, 0)),
            ("--present a --present b f", [], (2000, 0), (0, 0)),
            ("f --crlf -d , -f 2 --present table --absent others", [], (2000, 0), (1000, 1)),
            ("f -0 --present nul", [], (2000, 0), (0, 0)),
        ):
            with self.subTest(line):
                found = self.verify(line, stdin=text(stdin))
                self.assertEqual((found["present"]["keys"], found["present"]["missing"]), present)
                if absent != (0, 0):
                    self.assertEqual((found["absent"]["queries"], found["absent"]["present_too"]), absent)
        self.assertGreater(self.verify("f --present table", status=1)["present"]["missing"], 1900, "whole lines are no keys")
        self.refuse_all({
            "verify f --present - --absent -": "standard input can be read only once.*use a file",
            "verify f --present a b": "unexpected argument: found 'b'",
            "verify f --present a --present missing": "missing: cannot (read|open)",
            "verify": "FILTER",
            "verify missing": "missing: cannot open",
        })  # fmt: skip

    def test_quiet_reports_by_the_exit_status_alone(self) -> None:
        for name, status in ("present", 0), ("absent", 1):
            run = self.bloomery("verify", "-q", "--queries", 1000, "f", "--present", name, status=status)
            self.assertEqual((run.out, run.err), (b"", ""))

    def test_integers_are_verified_by_value(self) -> None:
        self.make_filter("numbers", [b"%d" % i for i in range(2000)], "--u64", "-n", 2000)
        self.write("numbers.txt", [b"%04d" % i for i in range(2000)])
        self.write("others", [b"%d" % i for i in range(1990, 5000)])

        found = self.verify("numbers --present numbers.txt --absent others")

        self.assertEqual((found["present"]["missing"], found["absent"]["queries"], found["absent"]["present_too"]), (0, 3000, 10))
        self.refused("verify", "numbers", "--present", "present", says="present: the filter's keys are integers")

    def test_schemes_and_keyed_filters_are_verified_with_their_own_hashes(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        for options, asking in [*((f"--scheme {scheme}", "") for scheme in ("guava", "python", "perl", "pharo")), ("--secret key", "--secret key")]:
            self.make_filter("s", keys(2000), "-n", 2000, "-p", "2%", *options.split())

            found = self.verify(f"s --present present --absent absent {asking}")

            with self.subTest(options):
                self.assertEqual((found["present"]["missing"], found["complaints"]), (0, []))
                self.assert_chance(found["measured"]["hits"], 100_000, found["certified"])
        self.refuse_all({"verify s": "--secret", "verify s --secret other": "check value"})


class Verdicts(VerifyTest):
    def test_the_messages(self) -> None:
        self.bloomery("union", "-q", "-o", "u", "f", "f")
        self.make_filter("s", keys(100), "-n", 1000, "--scheme", "guava")
        self.make_filter("empty", [], "-n", 100)
        self.make_filter("over", keys(2000), "-n", 1000, "-p", "1%", status=3)
        self.make_filter("full", keys(50_000), "-n", 100, "-p", "1%", status=3)
        self.make_filter("rare", keys(1000), "-n", 1000, "-p", "1e-7", "--layout", "classic")
        for count in 1, 1500:
            self.write(f"f{count}", self.read("f"))
            self.patch(f"f{count}", inserted=count)
        self.write("holed", self.read("f"))
        self.patch("holed", payload=bytes(1024) + self.bits_of("f")[1024:])
        # Keys that were chosen because the filter reports them, or does not.
        self.write("chosen", self.bloomery("check", "f", stdin=text(keys(20_000, "other"))).lines)
        self.write("unchosen", self.bloomery("check", "-v", "f", stdin=text(keys(20_000, "other"))).lines)
        agrees = "verdict +no problem found: the measured FPR agrees with the bits, but the key count"
        for line, status, *shown in (
            ("f --present present --absent absent", 0, r"filter +f: capacity 2,000 keys at 2%", r"present +2,000 keys, all found$", r"absent +.* of 5,000 absent keys$", r"verdict +sound: all rates agree within chance$"),
            ("u --present present", 0, f"{agrees} is an estimate$"),
            ("--queries 0 u", 0, "verdict +no problem found, but the key count is an estimate$"),
            ("s", 0, f"{agrees} of a scheme cannot be compared$"),
            ("empty", 0, "verdict +sound"),
            ("over --present present", 1, r"verdict +above target: current FPR [0-9.]+%, target 1%"),
            ("full --present present", 1, "expected FPR +100% for an uncountable number of keys", "exact FPR +100%", "verdict +above target: current FPR 100%, target 1%"),
            ("f1500", 1, r"verdict +more bits are set than expected for 1,5\d\d keys.*pollution", r"expected FPR +\d.* for (2,0|1,9)\d\d keys, estimated from the bits"),
            ("f1", 1, "than expected for 1 key"),
            ("holed --present present", 1, "fewer bits are set than expected for .* keys.*damaged", r"verdict +\d+ of 2,000 present keys are missing.* 'bloomery info --check'"),
            ("f --absent chosen", 1, "verdict +the keys of --absent are reported more often than random keys: .*chosen"),
            ("f --absent unchosen", 1, "verdict +the keys of --absent are reported less often than random keys: .*chosen"),
            ("--queries 100k rare", 0, r"--queries \d+ would measure it"),
        ):  # fmt: skip
            self.check_runs([(f"verify {line}", *(f"(?m){expression}" for expression in shown))], status=status)
        self.assertNotIn(b"measured", self.bloomery("verify", "--queries", 0, "f").out)
        self.assertRegex(self.bloomery("verify", "--help").out.decode(), "(?s)Exit status: 0 .* 1 .* 2")

    def test_the_number_of_queries(self) -> None:
        self.make_filter("rare", keys(1000), "-n", 1000, "-p", "1e-7", "--layout", "classic")

        by_default = self.bloomery("verify", "--json", "f").json
        none = self.bloomery("verify", "--json", "--queries", 0, "f").json
        rare = self.verify("rare")

        self.assertEqual(by_default["measured"]["queries"], max(round(1600 * (1 - by_default["certified"]) / by_default["certified"]), 100_000))
        self.assertAlmostEqual(by_default["measured"]["rate"] / by_default["certified"], 1, delta=0.15)
        self.assertEqual((none["measured"]["queries"], none["complaints"]), (0, []))
        self.assertAlmostEqual(rare["queries_to_resolve"] / ((2 / 0.05) ** 2 * (1 - rare["certified"]) / rare["certified"]), 1, delta=1e-6)
        self.assertEqual(rare["complaints"], [])

    def test_one_false_positive_in_a_short_list_is_no_complaint(self) -> None:
        self.make_filter("rare", keys(2000), "-n", 2000, "-p", "1e-5")
        strangers = keys(500_000, "absent")
        reported = self.bloomery("check", "rare", stdin=text(strangers)).lines
        self.write("short", reported[:1] + strangers[:99])
        self.write("chosen", reported)

        one = self.verify("rare --absent short")
        several = self.verify("rare --absent chosen", status=1)

        self.assertEqual((one["absent"]["hits"], one["absent"]["queries"], one["complaints"]), (1, 100, []))
        self.assertRegex(several["complaints"][0], "the keys of --absent are reported more often than random keys")

    def test_an_empty_filter_keeps_its_target_unless_its_count_is_wrong(self) -> None:
        self.make_filter("empty", [], "-n", 100)
        found = self.verify("empty --absent absent")
        self.assertEqual((found["predicted"], found["certified"], found["measured"]["hits"], found["queries_to_resolve"], found["complaints"]), (0, 0, 0, 0, []))
        for count in 100_000, 1 << 63, (1 << 64) - 1:
            self.patch("empty", inserted=count)
            [complaint] = self.verify("empty", status=1)["complaints"]
            self.assertRegex(complaint, "fewer bits are set than expected for .* keys.*the key count is too high")
            self.assertTrue(self.info("empty")["alarm"])

    def test_more_bits_than_the_count_explains_are_a_complaint(self) -> None:
        self.patch("f", inserted=1500)
        found = self.verify("f", status=1)
        self.assertEqual(len(found["complaints"]), 1)
        self.assertGreater(found["bits_set"], found["bits_set_expected"] + 6 * found["bits_set_sigma"])

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

    def test_keys_that_another_process_adds_meanwhile_are_no_fault(self) -> None:
        self.bloomery("build", "-q", "-o", "g", "-n", 10_000, stdin=text(keys(10)))
        self.write("absent", keys(50_000, "absent"))
        os.mkfifo(self.path("pipe"))
        for count, said in (0, "agree"), (9000, "no problem found, but another process changed the filter meanwhile"):
            run = self.start("verify", "g", "--present", "pipe", "--absent", "absent")
            with open(self.path("pipe"), "wb") as present:  # opened after the rates are computed and measured
                self.bloomery("add", "-q", "g", stdin=text(keys(count)))
                present.write(text(keys(10)))
            out, err = run.communicate()
            self.assertEqual(run.returncode, 0, out + err)
            self.assertRegex(out.decode(), said)

    def test_a_correct_filter_has_no_complaint_but_its_rate(self) -> None:
        self.write("absent", keys(5000, "absent"))
        rows = [(layout, n, fill, "3%") for layout in LAYOUTS for n in (3, 50, 2000) for fill in (0.3, 1, 2.5)]
        for seed, (layout, n, fill, p) in enumerate([*rows, *[("split_block", 15_000, 1, "1%")] * 20]):  # exactly its capacity: kept, or within chance
            self.write("own", keys(math.ceil(n * fill)))
            self.bloomery("build", "-q", "-o", "g", "-n", n, "-p", p, "--layout", layout, "--seed", seed, "own", status=None)

            found = self.bloomery("verify", "--json", "--queries", "30k", "g", "--present", "own", "--absent", "absent", status=None).json

            with self.subTest(layout=layout, n=n, fill=fill, seed=seed):
                broken = found["fpr_verdict"] == "broken"
                self.assertEqual([said.startswith("above target") for said in found["complaints"]], [True] if broken else [])
                if fill <= 1 or n == 2000:
                    self.assertEqual(broken, fill > 1, found["certified"])
                if fill <= 1:
                    self.assertEqual(found["fpr_verdict"], "kept" if found["certified"] <= float(p[:-1]) / 100 else "within_chance")


if __name__ == "__main__":
    unittest.main()
