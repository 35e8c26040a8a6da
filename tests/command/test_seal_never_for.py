"""bloomery seal --never-for: each key of two lists is answered right, read here by docs/format.md alone."""

import math
import os
import signal
import struct
import subprocess
import time
import unittest

from support import CommandTest, keys, text, xxh3_64
from test_seal import GOLDEN, Cascade, payload_of


class SealNeverFor(CommandTest):
    def seal(self, present: list[bytes], absent: list[bytes], *options: object) -> dict:
        self.write("present", present)
        self.write("absent", absent)
        return self.bloomery("seal", "--json", "present", "--never-for", "absent", "-o", "f", *options).json

    def test_each_key_of_both_lists_is_answered_right(self) -> None:
        for n, others, options in (20_000, 60_000, []), (300, 100_000, []), (5000, 300, []), (1, 1, []), (2000, 50_000, ["--width", 3]), (2000, 0, ["-p", "1%"]), (0, 500, []):
            with self.subTest(present=n, absent=others, options=options):
                present, absent = keys(n), keys(others, "absent")
                made = self.seal(present + present[: n // 3], absent + absent[: others // 4], *options)

                self.assertEqual((made["lines"], made["keys"]), (n + n // 3, n))
                self.assertEqual(made["never_for"]["lines"], others + others // 4)
                self.assert_has_all("f", present)
                self.assertEqual(self.bloomery("check", "f", "absent", status=None).out, b"")

    def test_the_file_follows_the_documented_rule(self) -> None:
        present, absent, others = keys(2500), keys(40_000, "absent"), keys(30_000, "other")
        made = self.seal(present, absent)
        cascade = Cascade(payload_of(self.read("f")))

        self.assertEqual((cascade.first.keys, made["layout"]), (2500, f"cascade{cascade.first.width}"))
        self.assertEqual(struct.unpack_from("<I", self.read("f"), 116)[0], 1)
        self.assertTrue(all(cascade.has(xxh3_64(key)[0]) for key in present))
        self.assertFalse(any(cascade.has(xxh3_64(key)[0]) for key in absent[:4000]))
        kept = sum(cascade.first.has(xxh3_64(key)[0]) for key in absent)
        self.assertEqual((cascade.second.keys, made["never_for"]["false_positives"]), (2500 + kept, kept))
        expected = [key for key in others[:4000] if cascade.has(xxh3_64(key)[0])]
        found = self.bloomery("check", "f", stdin=text(others), status=None).out.splitlines()
        self.assertEqual([key for key in found if key in set(others[:4000])], expected)
        self.assert_chance(len(found), 30_000, self.info("f")["rate_now"])

    def test_the_golden_file_is_read_and_written(self) -> None:
        with open(os.path.join(GOLDEN, "cascade4-bytes-xxh3_64.bloom"), "rb") as file:
            golden = file.read()
        present, absent = [b"key %d" % i for i in range(3000)], [b"absent %d" % i for i in range(60_000)]
        cascade = Cascade(payload_of(golden))
        self.assertTrue(all(cascade.has(xxh3_64(key)[0]) for key in present))
        self.assertFalse(any(cascade.has(xxh3_64(key)[0]) for key in absent[:3000]))

        self.seal(present, absent)

        self.assertEqual(self.read("f"), golden)

    def test_the_width_gives_the_smallest_filter(self) -> None:
        present, absent = keys(3000), keys(120_000, "absent")
        chosen = self.seal(present, absent)
        sizes = {width: self.seal(present, absent, "--width", width)["bytes"] for width in range(1, 12)}

        self.assertEqual(chosen["bytes"], min(sizes.values()))
        self.assertEqual(self.seal(present * 30, absent)["bytes"], chosen["bytes"])

    def test_the_size_is_close_to_the_lower_bound(self) -> None:
        made = self.seal(keys(20_000), keys(480_000, "absent"))

        self.assertLess(made["bytes"] * 8, 1.13 * math.log2(math.comb(500_000, 20_000)))

    def test_a_target_rate_is_that_of_other_keys(self) -> None:
        present, absent = keys(3000), keys(1000, "absent")
        for rate, width in ("25%", 1), ("24%", 2), ("0.4%", 7), ("0.1%", 9):
            made = self.seal(present, absent, "-p", rate)

            self.assertEqual(made["layout"], f"cascade{width}")
            self.assertAlmostEqual(made["rate"] * 2 ** (width + 1), 1, delta=1e-6)
        self.refused("seal", "present", "--never-for", "absent", "-o", "g", "-p", "1e-11", says="no fingerprint is long enough")

    def test_other_commands_take_the_file(self) -> None:
        present, absent = keys(3000), keys(60_000, "absent")
        self.seal(present, absent, "--note", "two lists")

        facts = self.info("f")
        self.assertEqual((facts["note"], facts["inserted"], facts["fpr_verdict"]), ("two lists", 3000, "kept"))
        self.assertTrue(facts["absent_list"])
        self.assertRegex(self.bloomery("info", "f").out, rb"(?s)64 slots of 4 bits, then 64 slots of 1 bit.*for keys of neither list")
        self.assertEqual(self.bloomery("verify", "--json", "f", "--present", "present").json["present"]["missing"], 0)
        verified = self.bloomery("verify", "--json", "f", "--present", "present", "--absent", "absent").json
        self.assertEqual((verified["present"]["missing"], verified["absent"]["hits"]), (0, 0))
        self.assertIn(b"proves", self.bloomery("explain", "f", "absent-key-1", status=None).out)
        self.bloomery("explain", "f", present[0].decode())
        self.refused("add", "f", stdin=b"x\n", says="static")
        damaged = bytearray(self.read("f"))
        damaged[-100] ^= 1
        with open(self.path("f"), "wb") as file:
            file.write(damaged)
        self.refused("check", "f", "absent", says="checksum")

    def test_keys_are_selected_and_hashed_as_those_of_the_input(self) -> None:
        self.write("present", [b"%d,x" % i for i in range(2000)])
        self.write("absent", [b"%d,y" % i for i in range(2000, 30_000)])

        self.bloomery("seal", "-q", "-d", ",", "-f", 1, "--u64", "--seed", 7, "present", "--never-for", "absent", "-o", "f")

        self.assert_has_all("f", [b"%d" % i for i in range(2000)])
        self.assertEqual(self.bloomery("check", "f", stdin=text(b"%d" % i for i in range(2000, 30_000)), status=None).out, b"")

    def test_a_secret_key(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.seal(keys(2000), keys(9000, "absent"), "--secret", "key")

        self.assert_has_all("f", keys(2000), "--secret", "key")
        self.assertEqual(self.bloomery("check", "f", "absent", "--secret", "key", status=None).out, b"")

    def test_a_signal_leaves_nothing(self) -> None:
        self.write("present", keys(1000))
        with open(self.path("absent"), "wb") as file:
            subprocess.run(["seq", "-f", "absent-%.0f", "4000000"], stdout=file, check=True)
        process = self.start("seal", "-q", "-j", 1, "present", "--never-for", "absent", "-o", "f")
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)

        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        self.assertEqual(sorted(os.listdir(self.folder)), ["absent", "present"])

    def test_the_log_of_a_filter(self) -> None:
        self.bloomery("build", "--grow", "-q", "-o", "logged", stdin=text(keys(4000)))
        self.write("absent", keys(50_000, "absent"))

        self.bloomery("seal", "-q", "logged", "--never-for", "absent", "-o", "f")

        self.assert_has_all("f", keys(4000))
        self.assertEqual(self.bloomery("check", "f", "absent", status=None).out, b"")

    def test_a_key_in_both_lists_is_named(self) -> None:
        self.write("present", keys(3000))
        self.write("absent", keys(10_000, "absent") + [keys(3000)[17]] + keys(5, "more"))

        self.refused("seal", "present", "--never-for", "absent", "-o", "f", says=f"(?s)a key is in both lists.*key 10,001: {keys(3000)[17].decode()}.*remove it from one list")

        self.assertFalse(os.path.exists(self.path("f")))

    def test_errors_say_what_is_wrong(self) -> None:
        self.write("present", keys(10))
        self.write("absent", keys(10, "absent"))
        os.mkfifo(self.path("pipe"))
        self.bloomery("keygen", "-o", "key")
        for line, says in {
            "seal present --never-for missing -o f": "missing.*No such file",
            "seal present --never-for pipe -o f": "(?s)more than once.*a regular file",
            "seal present --never-for . -o f": "more than once",
            "seal present --never-for - -o f": "more than once",
            "seal present --never-for key --secret key -o f": "not a list of keys",
            "seal present --never-for absent -o absent": "absent",
            "seal present --never-for absent --ribbon -o f": "--ribbon",
            "seal present --never-for absent --memory 1GiB -o f": "--memory",
            "seal present --never-for absent --width 33 -o f": "1 to 32",
        }.items():
            with self.subTest(line=line):
                self.refused(*line.split(), says=says)
        self.assertFalse(os.path.exists(self.path("f")))


if __name__ == "__main__":
    unittest.main()
