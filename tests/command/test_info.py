"""bloomery info: what a file knows and what follows from it, as text and as JSON; --check finds damage."""

import os
import re
import unittest

from support import PAYLOAD_AT, CommandTest, keys, split_block_rate, text

FACTS = """filter layout scheme hash keys seed bits bytes file_bytes probes capacity target_rate inserted estimated_keys fill
rate_now keys_left clean note""".split()


class Info(CommandTest):
    def build(self, count: int, *options: object) -> None:
        self.bloomery("build", "-q", "-o", "f", *options, stdin=text(keys(count)))

    def test_json_has_every_fact(self) -> None:
        self.build(5000, "-n", 10_000, "-p", "2%", "--seed", 7, "--note", "hello")

        facts = self.info("f")
        bits = int.from_bytes(self.payload("f", facts["bytes"]), "little").bit_count()

        self.assertEqual(list(facts), FACTS)
        named = {name: facts[name] for name in ("filter", "layout", "scheme", "hash", "keys", "seed", "clean", "note")}
        self.assertEqual(
            named,
            {"filter": "f", "layout": "split_block", "scheme": None, "hash": "xxh3", "keys": "bytes", "seed": 7, "clean": True,
             "note": "hello"},
        )  # fmt: skip
        self.assertEqual((facts["capacity"], facts["target_rate"], facts["probes"]), (10_000, 0.02, 8))
        self.assertEqual((facts["bytes"], facts["file_bytes"]), (facts["bits"] // 8, os.path.getsize(self.path("f"))))
        self.assertAlmostEqual(facts["fill"], bits / facts["bits"])

    def test_what_follows_from_the_bits_is_right(self) -> None:
        self.build(5000, "-n", 10_000)

        facts = self.info("f")

        self.assertAlmostEqual(facts["estimated_keys"], 5000, delta=100)
        self.assert_chance(facts["inserted"], 5000, 0.9995)
        self.assertAlmostEqual(facts["rate_now"] / split_block_rate(facts["bits"], 5000), 1, delta=0.01)
        self.assertLessEqual(split_block_rate(facts["bits"], 5000 + facts["keys_left"] - 5), 0.01)
        self.assertGreater(split_block_rate(facts["bits"], 5000 + facts["keys_left"] + 5), 0.01)

    def test_the_text_says_what_json_says(self) -> None:
        self.build(5000, "-n", 10_000, "--seed", 7, "--note", "hello")

        facts = self.info("f")
        said = {line[:14].strip(): line[14:] for line in self.bloomery("info", "f").out.decode().splitlines()}

        self.assertEqual((said["filter"], said["seed"], said["state"], said["note"]), ("f", "7", "clean", "hello"))
        self.assertEqual(said["kind"], "split_block, hash xxh3, keys bytes")
        self.assertEqual(said["made for"], "10,000 keys at 1 %")
        self.assertIn(f"({facts['bits']:,} bits, 8 probes a key)", said["size"])
        self.assertEqual(said["inserted"], f"{facts['inserted']:,} keys, as counted")
        self.assertEqual(said["estimated"], f"{round(facts['estimated_keys']):,} distinct keys, from the bits")
        self.assertEqual(said["fill"], f"{facts['fill'] * 100:.1f} % of the bits")
        self.assertEqual(said["keys left"], f"{facts['keys_left']:,} until the error passes 1 %")
        self.assertIn("error now", said)

    def test_an_overfull_filter_says_that_its_promise_is_broken(self) -> None:
        self.build(200, "-n", 100)
        twice = self.info("f")
        self.build(100_000, "-n", 100)
        full = self.info("f")

        said = self.bloomery("info", "f").out.decode()

        self.assertEqual((twice["keys_left"], full["keys_left"]), (0, 0))
        self.assertAlmostEqual(twice["rate_now"] / split_block_rate(twice["bits"], 200), 1, delta=0.1)
        self.assertEqual((full["fill"], full["estimated_keys"]), (1, None))
        self.assertAlmostEqual(full["rate_now"], 1)
        self.assertRegex(said, "keys left +none: the promise of 1 % is broken")

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
            unasked = self.bloomery("info", "--json", "f").json

            page = PAYLOAD_AT + at // 4096 * 4096
            self.assertRegex(said, rf"1 page, the first at byte {page}\b")
            self.assertEqual(len(found["problems"]), 1)
            self.assertNotIn("problems", unasked)

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

        self.assertRegex(self.bloomery("info", "f").out.decode(), "state +not closed cleanly")
        problems = self.bloomery("info", "--check", "--json", "f", status=1).json["problems"]
        self.assertRegex(problems[0], "not closed cleanly")

    def test_a_note_that_is_no_text_is_shown_all_the_same(self) -> None:
        self.build(1, "--note", os.fsdecode(b"\xff\xfe"))

        self.assertIn("\ufffd", self.info("f")["note"])

    def test_a_note_cannot_write_lines_of_its_own(self) -> None:
        self.build(1, "--note", "one\nstate         clean\x1b[2J")

        said = self.bloomery("info", "f").out.decode()

        self.assertEqual(len(re.findall("^state", said, re.MULTILINE)), 1)
        self.assertNotIn("\x1b", said)
        self.assertEqual(self.info("f")["note"], "one\nstate         clean\x1b[2J")


if __name__ == "__main__":
    unittest.main()
