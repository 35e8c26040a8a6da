"""bloomery info: what a file knows and what follows from it, as text and as JSON; --check finds damage."""

import math
import os
import re
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

FACTS = """filter layout scheme hash keys seed key_check bits bytes file_bytes probes capacity target_rate inserted
count_is_estimate estimated_keys estimated_keys_sigma fill rate_now predicted_rate predicted_for_keys measured_rate fpr_verdict keys_left
forecast times_foldable alarm bits_deviation clean note""".split()


class Info(CommandTest):
    def build(self, count: int, *options: object, status: int = 0) -> None:
        self.bloomery("build", "-q", "-o", "f", *options, stdin=text(keys(count)), status=status)

    def test_json_has_every_fact(self) -> None:
        self.build(5000, "-n", 10_000, "-p", "2%", "--seed", 7, "--note", "hello")

        facts = self.info("f")
        bits = int.from_bytes(self.payload("f", facts["bytes"]), "little").bit_count()

        self.assertEqual(list(facts), FACTS)
        named = {name: facts[name] for name in ("filter", "layout", "scheme", "hash", "keys", "seed", "clean", "note")}
        self.assertEqual(
            named,
            {"filter": "f", "layout": "split_block", "scheme": None, "hash": "xxh3_64", "keys": "bytes", "seed": 7, "clean": True,
             "note": "hello"},
        )  # fmt: skip
        self.assertEqual((facts["key_check"], facts["count_is_estimate"], facts["alarm"]), (None, False, False))
        self.assertEqual((facts["capacity"], facts["target_rate"], facts["probes"]), (10_000, 0.02, 8))
        self.assertEqual((facts["bytes"], facts["file_bytes"]), (facts["bits"] // 8, os.path.getsize(self.path("f"))))
        self.assertAlmostEqual(facts["fill"], bits / facts["bits"])

    def test_what_follows_from_the_bits_is_right(self) -> None:
        self.build(5000, "-n", 10_000)

        facts = self.info("f")

        self.assertAlmostEqual(facts["estimated_keys"], 5000, delta=100)
        self.assert_chance(facts["inserted"], 5000, 0.9995)
        self.assertAlmostEqual(facts["predicted_rate"] / split_block_rate(facts["bits"], 5000), 1, delta=0.01)
        self.assertAlmostEqual(facts["rate_now"] / split_block_rate(facts["bits"], 5000), 1, delta=0.2)
        self.assertLessEqual(split_block_rate(facts["bits"], 5000 + facts["keys_left"] - 5), 0.01)
        self.assertGreater(split_block_rate(facts["bits"], 5000 + facts["keys_left"] + 5), 0.01)

    def test_the_text_says_what_json_says(self) -> None:
        self.build(5000, "-n", 10_000, "--seed", 7, "--note", "hello")

        facts = self.info("f")
        said = {line[:14].strip(): line[14:] for line in self.bloomery("info", "f").out.decode().splitlines()}

        self.assertEqual((said["filter"], said["seed"], said["state"], said["note"]), ("f", "7", "clean", "hello"))
        self.assertEqual(said["kind"], "split_block, hash xxh3_64, keys bytes")
        self.assertEqual(said["capacity"], "10,000 keys at 1%")
        self.assertIn(f"({facts['bits']:,} bits, 8 probes per key)", said["size"])
        self.assertEqual(said["inserted"], f"at least {facts['inserted']:,} keys (the certainly new ones)")
        self.assertEqual(
            said["estimated"],
            f"{round(facts['estimated_keys']):,} +- {math.ceil(2 * facts['estimated_keys_sigma'])} distinct keys, from the bits",
        )
        self.assertEqual(said["fill"], f"{facts['fill'] * 100:.1f}% of the bits")
        self.assertEqual(said["keys left"], f"{facts['keys_left']:,} until the FPR exceeds 1%")
        self.assertEqual(said["exact FPR"], f"{facts['rate_now'] * 100:.3g}%, from the bits")
        self.assertEqual(
            said["expected FPR"], f"{facts['predicted_rate'] * 100:.3g}% for {facts['predicted_for_keys']:,} keys"
        )
        hits = facts["measured_rate"]["hits"]
        self.assertRegex(said["measured FPR"], rf"{hits / 1e4:.3g}% \(.*% to .*%\): {hits:,} of 1,000,000 absent keys")
        ahead = [f"{step['rate'] * 100:.3g}%" for step in facts["forecast"]]
        self.assertEqual(said["forecast"], f"{ahead[0]} with 10% more keys, {ahead[1]} with 50%, {ahead[2]} with 100%")
        times = {0: None, 1: "once", 2: "twice"}.get(facts["times_foldable"], f"{facts['times_foldable']} times")
        self.assertEqual(said.get("foldable"), times and f"can be halved {times}")
        self.assertEqual({"WARNING", "secret"} & set(said), set())

    def test_an_overfull_filter_says_that_its_promise_is_broken(self) -> None:
        self.build(200, "-n", 100, status=3)
        twice = self.info("f")
        self.build(100_000, "-n", 100, status=3)
        full = self.info("f")

        said = self.bloomery("info", "f").out.decode()

        self.assertEqual((twice["keys_left"], full["keys_left"]), (0, 0))
        self.assertAlmostEqual(twice["rate_now"] / split_block_rate(twice["bits"], 200), 1, delta=0.1)
        self.assertEqual((full["fill"], full["estimated_keys"]), (1, None))
        self.assertEqual(full["rate_now"], 1)
        self.assertNotRegex(said, "4,611,686")
        self.assertRegex(said, "expected FPR +100% for an uncountable number of keys")
        self.assertRegex(said, "target FPR +above target: current FPR 100%, target 1%")
        self.assertRegex(said, "keys left +none: the filter is overfull")
        self.assertEqual((twice["fpr_verdict"], full["fpr_verdict"]), ("broken", "broken"))

    def test_check_finds_a_flipped_byte_of_the_bits_anywhere(self) -> None:
        self.build(10_000, "-n", 10_000)
        whole = self.read("f")
        size = self.info("f")["bytes"]
        self.assertIn("all match", self.bloomery("info", "--check", "f").out.decode())
        for at in 0, 1, 4095, 4096, size // 2, size - 1:
            damaged = bytearray(whole)
            damaged[PAYLOAD_AT + at] ^= 0x10
            self.write("f", bytes(damaged))

            said = self.bloomery("info", "--check", "f", status=1).out.decode()
            found = self.bloomery("info", "--check", "--json", "f", status=1).json
            unverified = self.bloomery("info", "--json", "--no-verify", "f").json
            self.refused("info", "f", says=rf"page {at // 4096} .*does not match its checksum: expected 0x\w+, found 0x\w+; ")

            page = PAYLOAD_AT + at // 4096 * 4096
            self.assertRegex(said, rf"page {at // 4096} \(bytes {page} to {page + 4095}\) does not match its checksum")
            self.assertEqual(len(found["problems"]), 1)
            self.assertNotIn("problems", unverified)

    def test_check_of_a_whole_file_has_no_problems(self) -> None:
        self.build(100)

        self.assertEqual(self.bloomery("info", "--check", "--json", "f").json["problems"], [])

    def test_a_file_whose_writer_was_killed_is_not_clean(self) -> None:
        self.build(100, "-n", 1000)
        writer = self.start("add", "f")
        while self.info("f")["clean"]:
            pass
        writer.kill()
        writer.wait()

        self.assertRegex(self.bloomery("info", "f").out.decode(), r"(?s)inserted +100 keys, when last closed\n.*state +not closed cleanly")
        problems = self.bloomery("info", "--check", "--json", "f", status=1).json["problems"]
        self.assertRegex(problems[0], "not closed cleanly")

    def test_a_count_that_a_killed_writer_lost_is_said_to_be_estimated(self) -> None:
        self.build(10_000, "-n", 10_000, "-p", "10%")
        counted = self.info("f")
        writer = self.start("add", "f")
        while self.info("f")["clean"]:
            pass
        writer.kill()
        writer.wait()
        self.bloomery("add", "-q", "f", stdin=b"one more\n")

        facts = self.info("f")

        self.assertFalse(counted["count_is_estimate"])
        self.assertEqual((facts["clean"], facts["count_is_estimate"]), (True, True))
        self.assertAlmostEqual(facts["rate_now"] / split_block_rate(facts["bits"], 10_001), 1, delta=0.05)
        self.assertIn(f"inserted      {facts['inserted']:,} keys, estimated\n", self.bloomery("info", "f").out.decode())

    def test_a_note_has_no_control_characters_of_two_bytes(self) -> None:
        self.make_filter("f", keys(3), "-n", 100, "--note", "\u009b31m caf\u00e9 \u00a0")

        said = self.bloomery("info", "f").out.decode()

        self.assertRegex(said, r"(?m)^note +\\xC2\\x9B31m caf\u00e9 \u00a0$")

    def test_a_note_that_is_no_text_is_shown_all_the_same(self) -> None:
        self.build(1, "--note", os.fsdecode(b"\xff\xfe"))

        self.assertIn("\ufffd", self.info("f")["note"])

    def test_a_note_cannot_write_lines_of_its_own(self) -> None:
        self.build(1, "--note", "one\nstate         clean\x1b[2J")

        said = self.bloomery("info", "f").out.decode()

        self.assertEqual(len(re.findall("^state", said, re.MULTILINE)), 1)
        self.assertNotIn("\x1b", said)
        self.assertEqual(self.info("f")["note"], "one\nstate         clean\x1b[2J")


class Rates(CommandTest):
    """What the filter's error is: by its bits, by its count, by trying."""

    COUNT = 3000

    def facts(self, name: str, *options: object) -> dict:
        return self.bloomery("info", "--json", *options, name).json

    def assert_close(self, found: float, expected: float, relative: float) -> None:
        self.assertLessEqual(abs(found - expected), relative * expected, f"{found}, expected {expected}")

    def test_the_certified_rate_is_that_of_the_bits_in_every_layout(self) -> None:
        for layout in LAYOUTS:
            for rate, count in ("1%", 3000), ("30%", 3000), ("0.1%", 1000), ("10%", 8000):
                self.make_filter("f", keys(count), "-n", self.COUNT, "-p", rate, "--layout", layout, status=None)

                facts = self.facts("f", "--queries", 0)

                exact = certified_rate(layout, facts["bits"], facts["probes"], self.bits_of("f"), count)
                collisions = count / (facts["bits"] // 256 * 2**32) if layout == "split_block" else 0  # expected number of colliding keys
                with self.subTest(layout=layout, rate=rate, count=count):
                    self.assertAlmostEqual(facts["rate_now"], exact, delta=1e-6 * exact + 0.01 * collisions)

    def test_the_certified_rate_of_bits_that_no_keys_have_set_is_theirs(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", [], "-n", self.COUNT, "-p", "1%", "--layout", layout)
            bits, probes = self.facts("f")["bits"], self.facts("f")["probes"]
            uneven = bytearray(len(self.bits_of("f")))
            uneven[: len(uneven) // 3] = b"\xb7" * (len(uneven) // 3)  # a third of it very full
            self.patch("f", bytes(uneven))

            found = self.facts("f", "--queries", 0)

            with self.subTest(layout=layout):
                self.assert_close(found["rate_now"], certified_rate(layout, bits, probes, bytes(uneven), 0), 1e-4)
                self.assertEqual(found["fill"], ones_of(uneven) / bits)

    def test_the_certified_rate_of_schemes_follows_their_remainders(self) -> None:
        for scheme, first, flip in ("python", -(2**31), 7), ("perl", 0, 0):
            self.make_filter("f", keys(1000), "-n", 1000, "-p", "1%", "--scheme", scheme)

            facts = self.facts("f", "--queries", 0)

            exact = remainder_current_fpr(facts["bits"], facts["probes"], self.bits_of("f"), first, flip)
            self.assert_close(facts["rate_now"], exact, 1e-6)
            self.assertEqual((facts["alarm"], facts["bits_deviation"], facts["times_foldable"]), (False, None, 0))

    def test_the_prediction_is_the_formula_at_the_number_of_keys(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(2000), "-n", self.COUNT, "-p", "1%", "--layout", layout)

            facts = self.facts("f", "--queries", 0)

            bits, probes = facts["bits"], facts["probes"]
            with self.subTest(layout=layout):
                self.assertAlmostEqual(facts["predicted_for_keys"], 2000, delta=10)
                here = rate_of(layout, bits, probes, facts["predicted_for_keys"])
                self.assert_close(facts["predicted_rate"], here, 0.005)
                self.assertEqual([step["more_percent"] for step in facts["forecast"]], [10, 50, 100])
                for step in facts["forecast"]:
                    keys_then = round(facts["predicted_for_keys"] * (1 + step["more_percent"] / 100))
                    self.assert_close(step["rate"], rate_of(layout, bits, probes, keys_then), 0.005)

    def test_the_measured_interval_holds_the_certified_rate(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(self.COUNT), "-n", self.COUNT, "-p", "2%", "--layout", layout)

            facts = self.facts("f", "--queries", "300k")

            measured = facts["measured_rate"]
            half = 1.96 * math.sqrt(facts["rate_now"] / 300_000)
            self.assertEqual(list(measured), ["queries", "hits", "rate", "low", "high"])
            self.assertEqual((measured["queries"], measured["rate"]), (300_000, measured["hits"] / 300_000))
            self.assert_chance(measured["hits"], 300_000, facts["rate_now"])
            self.assertAlmostEqual(measured["low"], measured["rate"] - half, delta=half * 0.1)
            self.assertAlmostEqual(measured["high"], measured["rate"] + half, delta=half * 0.1)

    def test_without_queries_nothing_is_measured(self) -> None:
        self.make_filter("f", keys(10), "-n", 10)

        said = self.bloomery("info", "--queries", 0, "f").out.decode()

        self.assertIsNone(self.facts("f", "--queries", 0)["measured_rate"])
        self.assertNotIn("measured", said)
        self.refused("info", "--queries", "x", "f", says="--queries.*count")

    def test_an_empty_filter_has_no_errors(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", [], "-n", 1000, "--layout", layout)

            facts = self.facts("f")
            said = self.bloomery("info", "f").out.decode()

            rates = facts["rate_now"], facts["predicted_rate"], facts["measured_rate"]["hits"], facts["estimated_keys"]
            self.assertEqual(rates, (0, 0, 0, 0))
            self.assertFalse(facts["alarm"])
            self.assertRegex(said, "exact FPR +0%, from the bits")
            self.assertNotIn("forecast", said)

    def test_one_key_is_a_key_and_not_keys(self) -> None:
        self.make_filter("f", keys(1), "-n", 1)

        said = self.bloomery("info", "f").out.decode()

        self.assertRegex(said, "capacity +1 key at 1%")
        self.assertRegex(said, "inserted +1 key, counted")
        self.assertRegex(said, "expected FPR .* for 1 key\n")
        self.assertNotIn("1 keys", said)

    def test_a_full_filter_says_yes_to_everything(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(100), "-n", 100, "--layout", layout)
            bits = self.facts("f")["bits"]
            full = ((1 << bits) - 1).to_bytes(len(self.bits_of("f")), "little")
            self.patch("f", full, inserted=bits)

            facts = self.facts("f")
            said = self.bloomery("info", "f").out.decode()

            rates = facts["rate_now"], facts["fill"], facts["predicted_rate"], facts["measured_rate"]["rate"]
            self.assertEqual(rates, (1, 1, 1, 1))
            self.assertIsNone(facts["estimated_keys"])
            self.assertRegex(said, "exact FPR +100%, from the bits")
            self.assertRegex(said, "estimated +impossible, because all bits are set")
            self.assertNotIn("forecast", said)

    def test_a_keyed_filter_tells_its_rates_without_its_secret_but_for_the_measured_one(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("f", keys(1000), "-n", 1000, "--layout", "split_block512", "--secret", "key")

        without = self.facts("f")
        with_secret = self.facts("f", "--secret", "key")
        said = self.bloomery("info", "f").out.decode()

        exact = certified_rate("split_block512", without["bits"], 8, self.bits_of("f"), 1000)
        self.assert_close(without["rate_now"], exact, 1e-6)
        self.assertRegex(without["key_check"], r"\A[0-9A-F]{16}\Z")
        self.assertIsNone(without["measured_rate"])
        self.assertEqual(with_secret["measured_rate"]["queries"], 1_000_000)
        self.assert_chance(with_secret["measured_rate"]["hits"], 1_000_000, exact)
        self.assertEqual(with_secret | {"measured_rate": None}, without)
        self.assertRegex(said, "measured FPR +unknown without the secret; add --secret KEYFILE")
        self.assertRegex(said, f"secret +check value {without['key_check']}")

    def test_the_wrong_secret_is_refused(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        self.make_filter("f", keys(10), "-n", 10, "--secret", "key")

        self.refused("info", "--secret", "other", "f", says="secret.*check value")


class Alarms(CommandTest):
    """Consistency checks: the count and the bits of a filter agree unless keys were chosen or one of the two was changed."""

    def facts(self, name: str) -> dict:
        return self.bloomery("info", "--json", "--queries", 0, name).json

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
        self.fail("not so many keys are fresh")

    def test_keys_chosen_to_fill_the_filter_are_an_alarm(self) -> None:
        for layout in LAYOUTS:
            n, count = (3400, 1500) if layout == "blocked_page" else (1000, 450)
            self.make_filter("f", [], "-n", n, "-p", "1%", "--layout", layout)
            geometry = self.facts("f")
            chosen = self.fresh_keys(layout, geometry["bits"], geometry["probes"], count)
            self.make_filter("f", chosen, "-n", n, "-p", "1%", "--layout", layout)

            facts = self.facts("f")
            said = self.bloomery("info", "f").out.decode()

            with self.subTest(layout=layout):
                self.assertEqual((facts["inserted"], facts["alarm"]), (count, True))
                self.assertGreater(facts["bits_deviation"], 6)
                self.assertRegex(said, "WARNING +more bits are set than the key count explains, by .* see 'bloomery verify'")

    def test_a_count_that_is_too_low_or_too_high_is_an_alarm(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(3000), "-n", 3000, "--layout", layout)
            for wrong, said in (2400, "more"), (3800, "fewer"):
                self.patch("f", inserted=wrong)

                facts = self.facts("f")

                with self.subTest(layout=layout, wrong=wrong):
                    self.assertEqual((facts["inserted"], facts["alarm"]), (wrong, True))
                    self.assertAlmostEqual(facts["predicted_for_keys"], 3000, delta=150)
                    self.assertRegex(self.bloomery("info", "f").out.decode(), f"WARNING +{said} bits are set")

    def test_honest_filters_raise_no_alarm_however_full(self) -> None:
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

    def test_a_filter_that_was_added_to_again_and_again_raises_none(self) -> None:
        self.make_filter("f", [], "-n", 5000)
        for round in range(10):
            lines = keys(600 * (round + 1))

            self.bloomery("add", "-q", "f", stdin=text(lines), status=3 if len(lines) > 5000 else 0)

            self.assertFalse(self.facts("f")["alarm"], round)

    def test_an_estimated_count_raises_none(self) -> None:
        self.make_filter("a", keys(3000, "a"), "-n", 3000)
        self.make_filter("b", keys(3000, "b"), "-n", 3000)

        self.bloomery("union", "-q", "-o", "u", "a", "b", status=3)
        self.bloomery("intersect", "-q", "-o", "i", "a", "b")

        for name in "u", "i":
            self.assertEqual((self.facts(name)["alarm"], self.facts(name)["count_is_estimate"]), (False, True))
            self.assertRegex(self.bloomery("info", name).out.decode(), "inserted .*, estimated")


if __name__ == "__main__":
    unittest.main()
