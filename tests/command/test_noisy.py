"""bloomery noisy: copies that each err every other time and err little together."""

import math
import os
import signal
import stat
import unittest

from interrupts import wait_until_it_handles_interrupts
from support import CommandTest, keys, text

COPIES = 5
ABSENT = 20_000


def setUpModule() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells ignore it in background jobs


class NoisyTest(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.members = keys(2000)
        self.write("members", self.members)

    def split(self, *options: object) -> dict:
        return self.bloomery("noisy", "split", "--json", "-q", "-o", "m", *options, "members").json

    def passed(self, *copies: str, lines: list[bytes]) -> set[bytes]:
        return set(self.bloomery("noisy", "check", *copies, stdin=text(lines), status=None).lines)

    def files(self) -> list[str]:
        return sorted(name for name in os.listdir(self.folder) if name != "members")


class Noisy(NoisyTest):
    def setUp(self) -> None:
        super().setUp()
        self.made = self.split()

    def test_it_tells_what_it_made(self) -> None:
        self.assertEqual(list(self.made), "prefix copies keys capacity bytes_each rates rate_together".split())
        self.assertEqual((self.made["prefix"], self.made["copies"], self.made["keys"]), ("m", COPIES, 2000))
        bits_a_key = 8 * self.made["bytes_each"] / 2000
        self.assertAlmostEqual(bits_a_key, 1 / math.log(2), delta=0.02)
        self.assertAlmostEqual(self.made["rate_together"] / math.prod(self.made["rates"]), 1, delta=1e-9)
        for rate in self.made["rates"]:
            self.assertAlmostEqual(rate, 0.5, delta=0.06)

    def test_each_copy_is_a_filter_with_a_key_that_nobody_else_may_read(self) -> None:
        self.assertEqual(self.files(), sorted(f"m.{i}.{kind}" for i in range(1, 6) for kind in ("bloom", "key")))
        for i in range(1, 6):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(f"m.{i}.key")).st_mode), 0o600)
            fill = sum(byte.bit_count() for byte in self.bits_of(f"m.{i}.bloom")) / (8 * self.made["bytes_each"])
            self.assertAlmostEqual(fill, self.made["rates"][i - 1], delta=0.002)  # one bit a key
        self.assertEqual(len({self.read(f"m.{i}.key") for i in range(1, 6)}), 5)
        self.assertEqual(len({self.bits_of(f"m.{i}.bloom") for i in range(1, 6)}), 5)

    def test_every_member_passes_all_copies_and_each(self) -> None:
        for copies in ["m"], ["m.1"], ["m.2", "m.4"], ["m.5.bloom"]:
            self.assertEqual(self.passed(*copies, lines=self.members), set(self.members))

    def test_absent_keys_pass_copies_as_often_as_their_rates_multiply(self) -> None:
        strangers = keys(ABSENT, "absent")
        alone = [self.passed(f"m.{i}", lines=strangers) for i in range(1, 6)]
        for chosen in [(i,) for i in range(5)] + [(0, 1), (3, 4), (0, 2, 4), (1, 2, 3, 4), range(5)]:
            passed = self.passed(*[f"m.{i + 1}" for i in chosen], lines=strangers)

            self.assert_chance(len(passed), ABSENT, math.prod(self.made["rates"][i] for i in chosen))
            self.assertEqual(passed, set.intersection(*(alone[i] for i in chosen)))
        self.assertEqual(passed, self.passed("m", lines=strangers))

    def test_copies_are_chosen_by_their_names(self) -> None:
        self.make_filter("m.bloom", self.members, "-n", 2000)  # a prefix names copies, not a filter
        found = self.bloomery("noisy", "check", "--json", "m.3", "m", "m.3", stdin=b"key-1\n").json  # each copy counts once
        self.assertEqual(found["copies"], ["m.3", "m.1", "m.2", "m.4", "m.5"])
        self.assertAlmostEqual(found["rate"] / self.made["rate_together"], 1, delta=1e-9)
        self.refuse_all({
            "noisy check x": r"x: no copies with this name: expected x\.1\.bloom and so on.*PREFIX",
            "noisy check m m.9": r"m\.9: no copies with this name",
            "noisy check": "PREFIX",
            "noisy check m -i missing": "missing: cannot (read|open)",
        })  # fmt: skip

    def test_it_selects_lines_as_check_does(self) -> None:
        mixed = [line for pair in zip(self.members, keys(2000, "absent")) for line in pair]
        self.write("table", [b"1,%s" % line for line in mixed])
        passed = self.passed("m", lines=mixed)
        maybe, absent = [line for line in mixed if line in passed], [line for line in mixed if line not in passed]

        for options, out in (
            ([], text(maybe)),
            (["-j", 4], text(maybe)),
            (["-v"], text(absent)),
            (["-c"], b"%d\n" % len(passed)),
            (["-q"], b""),
            (["-d", ",", "-f", 2, "-i", "table"], text(b"1," + line for line in maybe)),
        ):
            run = self.bloomery("noisy", "check", *options, "m", stdin=text(mixed))
            self.assertEqual((run.out, run.err), (out, ""), options)
        found = self.bloomery("noisy", "check", "--json", "m", stdin=text(mixed)).json
        self.assertEqual(list(found), ["copies", "rate", "keys", "maybe_present"])
        self.assertEqual((found["keys"], found["maybe_present"]), (4000, len(passed)))
        self.bloomery("noisy", "check", "-v", "-q", "m", stdin=text(self.members), status=1)

    def test_a_missing_or_swapped_key_is_an_error_with_advice(self) -> None:
        one, two, three = (self.read(f"m.{i}.key") for i in (1, 2, 3))
        os.unlink(self.path("m.3.key"))
        self.refused("noisy", "check", "m", says=r"m\.3\.bloom: the secret key of this copy is missing: expected m\.3\.key.*; ")
        self.assertEqual(self.passed("m.1", "m.2", lines=self.members), set(self.members))
        for name, key in ("m.3.key", three), ("m.1.key", two), ("m.2.key", one):
            self.write(name, key)
        said = self.refused("noisy", "check", "m", says=r"m\.1\.bloom.*check value.*restore the key of this copy as m\.1\.key").err
        self.assertNotIn("--secret", said)  # noisy check has no such option

    def test_old_copies_are_never_replaced(self) -> None:
        for left in "m.1.bloom", "m.5.key", "m.3.bloom":
            for name in self.files():
                if name != left:
                    os.unlink(self.path(name))
            before = self.read(left)

            self.refused("noisy", "split", "-o", "m", "members", says=f"{left}: a copy with this name exists already; ")

            self.assertEqual((self.files(), self.read(left)), ([left], before))
            os.unlink(self.path(left))
            self.split()


class Making(NoisyTest):
    def test_one_copy_and_sixty_four_are_possible_and_no_more(self) -> None:
        one = self.bloomery("noisy", "split", "--copies", 1, "-o", "one", "members").err
        self.bloomery("noisy", "split", "-q", "--copies", 64, "-o", "many", "members")

        self.assertRegex(one, r"one\.1: 2,000 lines, .* in total")
        self.assertNotRegex(one, "all 1 copies|one.1 to one.1")
        self.assertEqual(self.passed("many", lines=keys(5000, "absent") + self.members), set(self.members))
        before = self.files()
        self.refuse_all({f"noisy split --copies={copies} -o x members": "--copies" for copies in (0, 65, "x", -1)} | {
            "noisy split --copies 64 -n 100G -o m members": "not enough (memory|disk)",
            "noisy split -o missing/m members": "missing",
            "noisy split -o m gone": "gone: cannot (read|open)",
            "noisy split members": "--output",
        })  # fmt: skip
        self.assertEqual(self.files(), before)

    def test_what_it_says_warns_of_what_a_copy_gives_away(self) -> None:
        said = self.bloomery("noisy", "split", "-o", "m", "members")

        self.assertEqual(said.out, b"")
        self.assertRegex(said.err, r"m\.1 to m\.5: 2,000 lines, .*B each, .*B in total; the secret of each \.bloom file")
        self.assertRegex(said.err, r"FPR of one copy: (4|5)\d(\.\d)?%")
        self.assertRegex(said.err, r"FPR of all 5 copies together: [23]\.\d+%")
        self.assertRegex(said.err, "this is not differential privacy")

    def test_distinct_keys_are_counted_exactly_also_from_a_pipe(self) -> None:
        repeated = [line for line in self.members for _ in range(3)] + self.members
        self.write("repeated", repeated)
        os.mkdir(self.path("temporary"))
        elsewhere = dict(os.environ, TMPDIR=self.path("temporary"))
        for prefix, *inputs in ["file", "repeated"], ["pipe"], ["both", "-", "members"]:
            stdin = b"" if prefix == "file" else text(repeated)

            run = self.bloomery("noisy", "split", "--json", "-q", "-o", prefix, *inputs, stdin=stdin, env=elsewhere)

            self.assertEqual((run.json["capacity"], run.err), (2000, ""))
            self.assertEqual(run.json["keys"], len(repeated) + (2000 if prefix == "both" else 0))
            for i, rate in enumerate(run.json["rates"], 1):
                self.assertAlmostEqual(rate, 0.5, delta=0.06)
                self.assert_chance(len(self.passed(f"{prefix}.{i}", lines=keys(ABSENT, "absent"))), ABSENT, rate)
            self.assertEqual(self.passed(prefix, lines=self.members), set(self.members))
        self.assertEqual(os.listdir(self.path("temporary")), [])

    def test_a_missing_copy_is_noted(self) -> None:
        self.split()
        os.unlink(self.path("m.3.bloom"))

        run = self.bloomery("noisy", "check", "--json", "m", stdin=text(self.members))

        self.assertEqual(run.json["copies"], ["m.1", "m.2", "m.4", "m.5"])
        self.assertEqual(run.json["maybe_present"], 2000)
        self.assertRegex(run.err, r"\Abloomery: m: note: copy 3 is missing; without it there are more false positives\n\Z")

    def test_a_wrong_number_of_keys_is_a_warning(self) -> None:
        self.write("repeated", self.members * 3)
        for line, says in (
            ("-n 6000 repeated", r"m: warning: fewer distinct keys than the capacity of 6,000, .* with --capacity (1|2)\d\d\d"),
            ("-n 1000 members", r"m: warning: more distinct keys than the capacity of 1,000, .* with --capacity (1|2)\d\d\d"),
            ("-n 3 members", r"m: warning: more distinct keys than the capacity of 3, .* with a larger --capacity"),
            ("-n 2000 repeated", r"\A\Z"),
        ):
            self.check_runs([(f"noisy split -q -o m {line}", says)], status=0)
            for name in self.files():
                if name.startswith("m."):
                    os.unlink(self.path(name))
        self.write("members", [b"%d,key-%d" % (i, i // 10) for i in range(2000)])
        fields, nothing = self.split("-d", ",", "-f", 2), self.bloomery("noisy", "split", "--json", "-q", "-o", "none").json
        self.assertEqual((fields["capacity"], fields["keys"], nothing["capacity"], nothing["keys"]), (200, 2000, 1, 0))
        self.assertEqual(self.passed("none", lines=self.members), set())

    def test_a_split_that_waits_for_its_input_can_be_interrupted(self) -> None:
        process = self.start("noisy", "split", "-q", "-o", "m", "-n", 100)
        process.stdin.write(text(keys(10)))
        process.stdin.flush()
        wait_until_it_handles_interrupts(process)

        process.send_signal(signal.SIGINT)

        self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main()
