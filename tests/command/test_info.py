"""bloomery info: the facts of a file and what follows from them, as text and as JSON; --check finds damage."""

import math
import os
import unittest

from support import (
    LAYOUTS,
    PAYLOAD_AT,
    CommandTest,
    cells_of,
    certified_rate,
    default_hash,
    keys,
    ones_of,
    rate_of,
    remainder_current_fpr,
    split_block_rate,
    text,
    xxh3,
)

FACTS = """filter layout scheme salts hash keys seed key_check bits bytes file_bytes probes capacity target_rate inserted
count_is_estimate estimated_keys estimated_keys_sigma fill rate_now rate_now_within predicted_rate predicted_for_keys measured_rate fpr_verdict keys_left
forecast times_foldable alarm bits_deviation format clean note""".split()


class InfoTest(CommandTest):
    def facts(self, name: str, *options: object) -> dict:
        return self.bloomery("info", "--json", *(options or ["--queries", 0]), name).json

    def assert_close(self, found: float, expected: float, relative: float) -> None:
        self.assertLessEqual(abs(found - expected), relative * expected, f"{found}, expected {expected}")

    def leave_by_a_killed_writer(self, name: str) -> None:
        writer = self.start("add", name)
        while self.info(name)["clean"]:
            pass
        writer.kill()
        writer.wait()


class Info(InfoTest):
    def test_json_has_every_fact(self) -> None:
        self.make_filter("f", keys(5000), "-n", 10_000, "-p", "2%", "--seed", 7, "--note", "hello")

        facts = self.info("f")

        expected = {"filter": "f", "layout": "split_block", "scheme": None, "hash": "xxh3_64", "keys": "bytes", "seed": 7, "key_check": None, "probes": 8}
        expected |= {"capacity": 10_000, "target_rate": 0.02, "count_is_estimate": False, "alarm": False, "format": None, "clean": True, "note": "hello"}
        expected |= {"bytes": facts["bits"] // 8, "file_bytes": os.path.getsize(self.path("f")), "fill": ones_of(self.bits_of("f")) / facts["bits"]}
        self.assertEqual(list(facts), FACTS)
        self.assertEqual({name: facts[name] for name in expected}, expected)
        self.assertAlmostEqual(facts["estimated_keys"], 5000, delta=100)
        self.assert_chance(facts["inserted"], 5000, 0.9995)
        self.assertLessEqual(split_block_rate(facts["bits"], 5000 + facts["keys_left"] - 5), 0.02)
        self.assertGreater(split_block_rate(facts["bits"], 5000 + facts["keys_left"] + 5), 0.02)

    def test_the_text_says_what_json_says(self) -> None:
        self.make_filter("f", keys(5000), "-n", 10_000, "--seed", 7, "--note", "hello")

        facts = self.info("f")
        said = {line[:14].strip(): line[14:] for line in self.bloomery("info", "f").out.decode().splitlines()}

        ahead = [f"{step['rate'] * 100:.3g}%" for step in facts["forecast"]]
        times = {0: None, 1: "once", 2: "twice"}.get(facts["times_foldable"], f"{facts['times_foldable']} times")
        measured = said.pop("measured FPR")
        self.assertIn(f"({facts['bits']:,} bits, 8 probes per key)", said.pop("size"))
        expected = {
            "filter": "f",
            "seed": "7",
            "state": "clean",
            "note": "hello",
            "kind": "split_block, hash xxh3_64, keys bytes",
            "capacity": "10,000 keys at 1%",
            "inserted": f"at least {facts['inserted']:,} keys (the certainly new ones)",
            "estimated": f"{round(facts['estimated_keys']):,} +- {math.ceil(2 * facts['estimated_keys_sigma'])} distinct keys, from the bits",
            "fill": f"{facts['fill'] * 100:.1f}% of the bits",
            "target FPR": f"met: current FPR {facts['rate_now'] * 100:.3g}%, target 1%",
            "keys left": f"{facts['keys_left']:,} until the FPR exceeds 1%",
            "exact FPR": f"{facts['rate_now'] * 100:.3g}%, from the bits",
            "expected FPR": f"{facts['predicted_rate'] * 100:.3g}% for {facts['predicted_for_keys']:,} keys",
            "forecast": f"{ahead[0]} with 10% more keys, {ahead[1]} with 50%, {ahead[2]} with 100%",
        }
        self.assertEqual(facts["rate_now_within"], 1)  # it is exact
        self.assertEqual(said, expected | ({"foldable": f"can be halved {times}"} if times else {}))
        hits = facts["measured_rate"]["hits"]
        self.assertRegex(measured, rf"{hits / 1e4:.3g}% \(.*% to .*%\): {hits:,} of 1,000,000 absent keys")

    def test_salts_that_are_not_utf_8_are_whole_in_json(self) -> None:
        salted = os.path.join(os.environ["BLOOMERY_SOURCE"], "tests/golden/perl-salts.bloom")
        salts = ["0.482176318740254", "0.0913", "", "9.87e-05", "7", {"base64": "AP8="}, "x" * 20]

        self.assertEqual(self.bloomery("info", "--json", salted).json["salts"], salts)
        self.assertEqual(self.bloomery("info", "--header", "--json", salted).json["salts"], salts)

    def test_other_words(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("one", keys(1), "-n", 1)
        self.make_filter("full", keys(100_000), "-n", 100, status=3)
        self.make_filter("empty", [], "-n", 100)
        self.make_filter("keyed", keys(100), "-n", 100, "--secret", "key")
        self.make_filter("killed", keys(100), "-n", 1000)
        self.leave_by_a_killed_writer("killed")
        self.make_filter("other", keys(100, "other"), "-n", 1000)
        self.bloomery("union", "-q", "-o", "estimated", "other", "other")
        self.make_filter("digits", keys(3), "-n", 100, "--note", "\u009b31m caf\u00e9 \u00a0")
        self.make_filter("lines", keys(3), "-n", 100, "--note", "one\nstate         clean\x1b[2J")
        self.check_runs([
            ("info one", r"capacity +1 key at 1%\n", r"inserted +1 key, counted\n", "expected FPR .* for 1 key\n"),
            (
                "info full",
                "expected FPR +100% for an uncountable number of keys",
                "exact FPR +100%, from the bits",
                "target FPR +above target: current FPR 100%, target 1%",
                "keys left +none: the filter is overfull",
                "estimated +impossible, because all bits are set",
            ),
            ("info empty", "exact FPR +0%, from the bits"),
            ("info keyed", r"measured FPR +unknown without the secret; add --secret KEYFILE", f"secret +check value {self.info('keyed')['key_check']}"),
            ("info killed", r"inserted +100 keys, when last closed\n(.*\n)*state +not closed cleanly"),
            ("info estimated", "inserted .*, estimated\n"),
            ("info digits", "(?m)^note +\\\\xC2\\\\x9B31m caf\u00e9 \u00a0$"),
        ], status=0)  # fmt: skip
        for line, lacks in (("one", "1 keys"), ("full", "forecast|4,611,686"), ("empty", "forecast"), ("--queries 0 one", "measured"), ("lines", r"\x1b|\nstate[\s\S]*\nstate")):
            self.assertNotRegex(self.bloomery("info", *line.split()).out.decode(), lacks)
        self.assertEqual(self.info("lines")["note"], "one\nstate         clean\x1b[2J")
        self.make_filter("f", keys(1), "--note", os.fsdecode(b"\xff\xfe"))
        self.assertIn("\ufffd", self.info("f")["note"])
        self.refuse_all({"info --queries x f": "--queries.*count", "info": "FILTER or --build"})

    def test_check_finds_a_flipped_byte_of_the_bits_anywhere(self) -> None:
        self.make_filter("f", keys(10_000), "-n", 10_000)
        whole = self.read("f")
        size = self.info("f")["bytes"]
        self.assertIn("all match", self.bloomery("info", "--check", "f").out.decode())
        self.assertEqual(self.bloomery("info", "--check", "--json", "f").json["problems"], [])
        for at in 0, 1, 4095, 4096, size // 2, size - 1:
            damaged = bytearray(whole)
            damaged[PAYLOAD_AT + at] ^= 0x10
            self.write("f", bytes(damaged))

            said = self.bloomery("info", "--check", "f", status=1).out.decode()
            found = self.bloomery("info", "--check", "--json", "f", status=1).json
            self.refused("info", "f", says=rf"page {at // 4096} .*does not match its checksum: expected 0x\w+, found 0x\w+; ")

            page = PAYLOAD_AT + at // 4096 * 4096
            self.assertRegex(said, rf"page {at // 4096} \(bytes {page} to {page + 4095}\) does not match its checksum")
            self.assertEqual(len(found["problems"]), 1)
            self.assertNotIn("problems", self.bloomery("info", "--json", "--no-verify", "f").json)

    def test_a_count_that_a_killed_writer_lost_is_estimated(self) -> None:
        self.make_filter("f", keys(10_000), "-n", 10_000, "-p", "10%")
        counted = self.info("f")
        self.leave_by_a_killed_writer("f")
        self.assertRegex(self.bloomery("info", "--check", "--json", "f", status=1).json["problems"][0], "not closed cleanly")
        self.bloomery("add", "-q", "f", stdin=b"one more\n")

        facts = self.info("f")

        self.assertFalse(counted["count_is_estimate"])
        self.assertEqual((facts["clean"], facts["count_is_estimate"]), (True, True))
        self.assertAlmostEqual(facts["rate_now"] / split_block_rate(facts["bits"], 10_001), 1, delta=0.05)
        self.assertIn(f"inserted      {facts['inserted']:,} keys, estimated\n", self.bloomery("info", "f").out.decode())


class Rates(InfoTest):
    """The FPR by the bits, by the number of keys, and by lookups."""

    def test_the_three_rates_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            for p, count in ("1%", 2000), ("2%", 3000), ("30%", 3000), ("0.1%", 1000), ("10%", 8000):
                self.make_filter("f", keys(count), "-n", 3000, "-p", p, "--layout", layout, status=None)
                queries = 300_000 if p == "2%" else 1000

                facts = self.facts("f", "--queries", queries)

                bits, probes, measured = facts["bits"], facts["probes"], facts["measured_rate"]
                exact = certified_rate(layout, bits, probes, self.bits_of("f"), count)
                collisions = count / (bits // 256 * 2**32) if layout == "split_block" else 0  # expected number of colliding keys
                with self.subTest(layout=layout, rate=p, count=count):
                    self.assertAlmostEqual(facts["rate_now"], exact, delta=1e-6 * exact + 0.01 * collisions)
                    self.assertEqual(list(measured), ["queries", "hits", "rate", "low", "high"])
                    self.assertEqual((measured["queries"], measured["rate"]), (queries, measured["hits"] / queries))
                    self.assert_chance(measured["hits"], queries, exact)
                    if p == "1%":
                        self.assertAlmostEqual(facts["predicted_for_keys"], count, delta=10)
                        self.assert_close(facts["predicted_rate"], rate_of(layout, bits, probes, facts["predicted_for_keys"]), 0.005)
                        self.assertEqual([step["more_percent"] for step in facts["forecast"]], [10, 50, 100])
                        for step in facts["forecast"]:
                            then = round(facts["predicted_for_keys"] * (1 + step["more_percent"] / 100))
                            self.assert_close(step["rate"], rate_of(layout, bits, probes, then), 0.005)
                    if p == "2%":
                        half = 1.96 * math.sqrt(exact / queries)
                        self.assertAlmostEqual(measured["low"], measured["rate"] - half, delta=half * 0.1)
                        self.assertAlmostEqual(measured["high"], measured["rate"] + half, delta=half * 0.1)

    def test_bits_that_no_keys_have_set_no_bits_and_all_bits(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", [], "-n", 3000, "-p", "1%", "--layout", layout)
            with self.subTest(layout=layout):
                empty = self.facts("f", "--queries", 1000)
                self.assertEqual([empty["rate_now"], empty["predicted_rate"], empty["measured_rate"]["hits"], empty["estimated_keys"]], [0] * 4)
                self.assertFalse(empty["alarm"])

                size, bits = len(self.bits_of("f")), empty["bits"]
                uneven = bytes(b"\xb7" * (size // 3)).ljust(size, b"\0")  # a third of it very full
                self.patch("f", uneven)
                found = self.facts("f")
                self.assert_close(found["rate_now"], certified_rate(layout, bits, empty["probes"], uneven, 0), 1e-4)
                self.assertEqual(found["fill"], ones_of(uneven) / bits)

                self.patch("f", ((1 << bits) - 1).to_bytes(size, "little"), inserted=bits)
                full = self.facts("f", "--queries", 1000)
                self.assertEqual([full["rate_now"], full["fill"], full["predicted_rate"], full["measured_rate"]["rate"]], [1] * 4)
                self.assertEqual((full["estimated_keys"], full["keys_left"], full["fpr_verdict"]), (None, 0, "broken"))

    def test_the_rate_of_schemes_follows_their_remainders(self) -> None:
        for scheme, first, flip in ("python", -(2**31), 7), ("perl", 0, 0):
            self.make_filter("f", keys(1000), "-n", 1000, "-p", "1%", "--scheme", scheme)

            facts = self.facts("f")

            self.assert_close(facts["rate_now"], remainder_current_fpr(facts["bits"], facts["probes"], self.bits_of("f"), first, flip), 1e-6)
            self.assertEqual((facts["alarm"], facts["bits_deviation"], facts["times_foldable"]), (False, None, 0))

    def test_a_keyed_filter_reports_all_but_the_measured_rate_without_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        self.make_filter("f", keys(1000), "-n", 1000, "--layout", "split_block512", "--secret", "key")

        without = self.info("f")
        with_secret = self.facts("f", "--secret", "key")

        exact = certified_rate("split_block512", without["bits"], 8, self.bits_of("f"), 1000)
        self.assert_close(without["rate_now"], exact, 1e-6)
        self.assertRegex(without["key_check"], r"\A[0-9A-F]{16}\Z")
        self.assertEqual(with_secret["measured_rate"]["queries"], 1_000_000)
        self.assert_chance(with_secret["measured_rate"]["hits"], 1_000_000, exact)
        self.assertEqual(with_secret | {"measured_rate": None}, without)
        self.refused("info", "--secret", "other", "f", says="secret.*check value")


class Alarms(InfoTest):
    """Consistency checks: the count and the bits of a filter agree unless keys were chosen or one of the two was changed."""

    def fresh_keys(self, layout: str, bits: int, probes: int, count: int) -> list[bytes]:
        """Keys that each set bits that no other key has set, as an attacker would choose them to fill the filter."""
        taken: set[int] = set()
        chosen = []
        for key in keys(1_000_000, "chosen"):
            cells = set(cells_of(layout, bits, probes, *default_hash(layout, key)))
            if len(cells) == probes and taken.isdisjoint(cells):
                taken |= cells
                chosen.append(key)
                if len(chosen) == count:
                    return chosen
        self.fail("too few keys have bits of their own")

    def test_keys_chosen_to_fill_the_filter_and_a_wrong_count_are_alarms(self) -> None:
        for layout in LAYOUTS:
            n, count = (3400, 1500) if layout == "blocked_page" else (1000, 450)
            self.make_filter("f", [], "-n", n, "-p", "1%", "--layout", layout)
            geometry = self.facts("f")
            chosen = self.fresh_keys(layout, geometry["bits"], geometry["probes"], count)
            self.make_filter("chosen", chosen, "-n", n, "-p", "1%", "--layout", layout)
            self.make_filter("few", keys(3000), "-n", 3000, "--layout", layout)
            self.patch("few", inserted=2400)
            self.make_filter("many", keys(3000), "-n", 3000, "--layout", layout)
            self.patch("many", inserted=3800)
            for name, inserted, word in ("chosen", count, "more"), ("few", 2400, "more"), ("many", 3800, "fewer"):
                with self.subTest(layout=layout, name=name):
                    facts = self.facts(name)
                    self.assertEqual((facts["inserted"], facts["alarm"], facts["bits_deviation"] > 0), (inserted, True, word == "more"))
                    self.assertGreater(abs(facts["bits_deviation"]), 6)
                    self.assertRegex(self.bloomery("info", name).out.decode(), f"WARNING +{word} bits are set than the key count explains, by .* see 'bloomery verify'")
                    if name != "chosen":
                        self.assertAlmostEqual(facts["predicted_for_keys"], 3000, delta=150)

    def test_correct_filters_raise_no_alarm_at_any_fill(self) -> None:
        alarms, deviations = [], []
        for layout in LAYOUTS:
            for seed, (n, fill) in enumerate([(n, fill) for n in (200, 3000) for fill in (0.1, 0.5, 1, 1.5, 2, 3)]):
                self.make_filter("f", keys(int(n * fill)), "-n", n, "-p", "2%", "--layout", layout, "--seed", seed, status=None if fill > 1 else 0)

                facts = self.facts("f")

                if facts["alarm"]:
                    alarms.append((layout, n, fill, facts["bits_deviation"]))
                if facts["bits_deviation"] is not None:
                    deviations.append(facts["bits_deviation"])
        self.assertEqual(alarms, [])
        self.assertGreater(len(deviations), 30)
        self.assertLess(max(map(abs, deviations)), 4.5)

    def test_a_key_whose_probes_meet_is_no_alarm_in_a_filter_of_few(self) -> None:
        meeting = [key for key in keys(1000) if len(set(cells_of("classic", 1000, 7, *xxh3(key)))) < 7]
        self.assertGreater(len(meeting), 5)  # one key in fifty, whose lost bit is seven standard deviations
        for key in meeting[:8]:
            self.make_filter("f", [key], "-n", 100, "-m", 1000, "-k", 7, "--layout", "classic")
            self.assertFalse(self.facts("f")["alarm"], key)

    def test_a_filter_with_many_additions_or_an_estimated_count_raises_none(self) -> None:
        self.make_filter("f", [], "-n", 5000)
        for round in range(10):
            lines = keys(600 * (round + 1))
            self.bloomery("add", "-q", "f", stdin=text(lines), status=3 if len(lines) > 5000 else 0)
            self.assertFalse(self.facts("f")["alarm"], round)
        for name in "a", "b":
            self.make_filter(name, keys(3000, name), "-n", 3000)
        for verb, status in ("union", 3), ("intersect", 0):
            self.bloomery(verb, "-q", "-o", "u", "a", "b", status=status)
            self.assertEqual((self.facts("u")["alarm"], self.facts("u")["count_is_estimate"]), (False, True))


if __name__ == "__main__":
    unittest.main()
