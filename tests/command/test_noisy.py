"""bloomery noisy: copies that each err every other time and err little together."""

import itertools
import math
import os
import resource
import signal
import stat
import unittest

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

    def test_absent_keys_pass_a_copy_half_of_the_time_and_all_of_them_seldom(self) -> None:
        strangers = keys(ABSENT, "absent")

        alone = [self.passed(f"m.{i}", lines=strangers) for i in range(1, 6)]
        together = self.passed("m", lines=strangers)

        for copy, rate in zip(alone, self.made["rates"]):
            self.assert_chance(len(copy), ABSENT, rate)
        self.assert_chance(len(together), ABSENT, math.prod(self.made["rates"]))
        self.assert_chance(len(together), ABSENT, self.made["rate_together"])
        self.assertEqual(together, set.intersection(*alone))

    def test_any_copies_err_as_often_as_their_rates_multiply(self) -> None:
        strangers = keys(ABSENT, "absent")
        for chosen in itertools.chain(itertools.combinations(range(5), 2), [(0, 2, 4), (1, 2, 3, 4)]):
            passed = self.passed(*[f"m.{i + 1}" for i in chosen], lines=strangers)

            self.assert_chance(len(passed), ABSENT, math.prod(self.made["rates"][i] for i in chosen))

    def test_a_copy_named_twice_counts_once(self) -> None:
        found = self.bloomery("noisy", "check", "--json", "m.3", "m", "m.3", stdin=b"key-1\n").json

        self.assertEqual(found["copies"], ["m.3", "m.1", "m.2", "m.4", "m.5"])
        self.assertAlmostEqual(found["rate"] / self.made["rate_together"], 1, delta=1e-9)

    def test_a_filter_of_the_same_name_as_the_prefix_is_not_taken_for_a_copy(self) -> None:
        self.make_filter("m.bloom", self.members, "-n", 2000)

        self.assertEqual(self.bloomery("noisy", "check", "--json", "m", stdin=b"x\n", status=None).json["copies"][0], "m.1")

    def test_it_selects_lines_as_check_does(self) -> None:
        mixed = [line for pair in zip(self.members, keys(2000, "absent")) for line in pair]
        passed = self.passed("m", lines=mixed)

        selected = self.bloomery("noisy", "check", "m", stdin=text(mixed)).lines
        inverted = self.bloomery("noisy", "check", "-v", "m", stdin=text(mixed)).lines
        count = self.bloomery("noisy", "check", "-c", "m", stdin=text(mixed)).out
        quiet = self.bloomery("noisy", "check", "-q", "m", stdin=text(mixed))
        found = self.bloomery("noisy", "check", "--json", "m", stdin=text(mixed)).json

        self.assertEqual(selected, [line for line in mixed if line in passed])
        self.assertEqual(inverted, [line for line in mixed if line not in passed])
        self.assertEqual(count, b"%d\n" % len(passed))
        self.assertEqual((quiet.out, quiet.err), (b"", ""))
        self.assertEqual(list(found), ["copies", "rate", "keys", "maybe_present"])
        self.assertEqual((found["keys"], found["maybe_present"]), (4000, len(passed)))
        self.bloomery("noisy", "check", "-v", "-q", "m", stdin=text(self.members), status=1)

    def test_keys_come_from_files_and_fields_too(self) -> None:
        self.write("table", [b"1,key-1", b"2,key-2"])

        found = self.bloomery("noisy", "check", "m", "-d", ",", "-f", 2, "-i", "table")

        self.assertEqual(found.lines, [b"1,key-1", b"2,key-2"])
        self.refused("noisy", "check", "m", "-i", "missing", says="missing: cannot (read|open)")

    def test_any_number_of_threads_gives_the_same_output(self) -> None:
        many = keys(100_000, "absent") + self.members
        self.write("many", many)

        outputs = [self.bloomery("noisy", "check", "-j", threads, "m", "-i", "many").out for threads in (1, 4)]

        self.assertEqual(outputs[0], outputs[1])

    def test_copies_that_are_not_there_are_told(self) -> None:
        self.refused("noisy", "check", "x", says=r"x: no copies with this name: expected x\.1\.bloom and so on.*PREFIX")
        self.refused("noisy", "check", "m", "m.9", says=r"m\.9: no copies with this name")
        self.refused("noisy", "check", says="PREFIX")

    def test_a_missing_key_is_told_with_the_way_out(self) -> None:
        os.unlink(self.path("m.3.key"))

        self.refused("noisy", "check", "m", says=r"m\.3\.bloom: the secret key of this copy is missing: expected m\.3\.key.*; ")
        self.assertEqual(self.passed("m.1", "m.2", lines=self.members), set(self.members))

    def test_keys_that_were_swapped_are_noticed(self) -> None:
        one, two = self.read("m.1.key"), self.read("m.2.key")
        self.write("m.1.key", two)
        self.write("m.2.key", one)

        said = self.refused("noisy", "check", "m", says=r"m\.1\.bloom.*check value.*restore the key of this copy as m\.1\.key").err
        self.assertNotIn("--secret", said)  # noisy check has unknown option

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
        strangers = keys(5000, "absent")
        self.assertEqual(self.passed("many", lines=strangers + self.members), set(self.members))
        for copies in 0, 65, "x", -1:
            self.refused("noisy", "split", f"--copies={copies}", "-o", "x", "members", says="--copies")

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

    def test_the_key_is_what_is_counted(self) -> None:
        self.write("table", [b"%d,key-%d" % (i, i // 10) for i in range(2000)])

        made = self.bloomery("noisy", "split", "--json", "-q", "-o", "m", "-d", ",", "-f", 2, "table").json

        self.assertEqual((made["capacity"], made["keys"]), (200, 2000))

    def test_nothing_at_all_is_a_set_too(self) -> None:
        made = self.bloomery("noisy", "split", "--json", "-q", "-o", "m").json

        self.assertEqual((made["capacity"], made["keys"]), (1, 0))
        self.assertEqual(self.passed("m", lines=self.members), set())

    def test_copies_beyond_memory_and_disk_are_refused_at_once(self) -> None:
        self.refused("noisy", "split", "--copies", 64, "-n", "100G", "-o", "m", "members", says="not enough (memory|disk)")
        self.assertEqual(self.files(), [])

    def test_a_missing_copy_is_noted(self) -> None:
        self.split()
        os.unlink(self.path("m.3.bloom"))

        run = self.bloomery("noisy", "check", "--json", "m", stdin=text(self.members))

        self.assertEqual(run.json["copies"], ["m.1", "m.2", "m.4", "m.5"])
        self.assertEqual(run.json["maybe_present"], 2000)
        self.assertRegex(run.err, r"\Abloomery: m: note: copy 3 is missing; without it there are more false positives\n\Z")

    def test_a_wrong_number_is_warned_of(self) -> None:
        self.write("repeated", self.members * 3)

        fewer = self.bloomery("noisy", "split", "-q", "-o", "fewer", "-n", 6000, "repeated").err
        more = self.bloomery("noisy", "split", "-q", "-o", "more", "-n", 1000, "members").err
        full = self.bloomery("noisy", "split", "-q", "-o", "full", "-n", 3, "members").err
        right = self.bloomery("noisy", "split", "-q", "-o", "right", "-n", 2000, "repeated").err

        self.assertRegex(fewer, r"fewer: warning: fewer distinct keys than the capacity of 6,000, .* with --capacity (1|2)\d\d\d")
        self.assertRegex(more, r"more: warning: more distinct keys than the capacity of 1,000, .* with --capacity (1|2)\d\d\d")
        self.assertRegex(full, r"full: warning: more distinct keys than the capacity of 3, .* with a larger --capacity")
        self.assertEqual(right, "")

    def test_places_where_nothing_can_be_written_are_errors(self) -> None:
        self.refused("noisy", "split", "-o", "missing/m", "members", says="missing")
        self.refused("noisy", "split", "-o", "m", "gone", says="gone: cannot (read|open)")
        self.refused("noisy", "split", "members", says="--output")
        self.assertEqual(self.files(), [])

    def test_a_disk_that_is_full_halfway_leaves_no_copy(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))  # enough for a key, not for a filter

        self.refused("noisy", "split", "-q", "-o", "m", "members", preexec_fn=limit, says="File too large")

        self.assertEqual(self.files(), [])

    def test_an_interrupted_split_leaves_nothing_or_all(self) -> None:
        self.write("members", keys(300_000))
        outcomes = set()
        for wait in 0.02, 0.05, 0.1, 0.2, 0.4:
            process = self.start("noisy", "split", "-q", "--copies", 8, "-o", "m", "members", stdin=None)
            try:
                process.wait(wait)
            except Exception:
                process.send_signal(signal.SIGINT)
            status = process.wait(60)

            made = self.files()
            outcomes.add(len(made))
            self.assertIn(status, (0, -signal.SIGINT))
            self.assertIn(len(made), (0, 16) if status else (16,), made)
            for name in made:
                os.unlink(self.path(name))
        self.assertIn(0, outcomes)

    def test_a_split_that_waits_for_its_input_can_be_interrupted(self) -> None:
        process = self.start("noisy", "split", "-q", "-o", "m", "-n", 100)
        process.stdin.write(text(keys(10)))
        process.stdin.flush()
        while "bloomery" not in os.readlink(f"/proc/{process.pid}/exe") or not self.handles_interrupts(process.pid):
            pass

        process.send_signal(signal.SIGINT)

        self.assertEqual(process.wait(60), -signal.SIGINT)
        self.assertEqual(self.files(), [])

    @staticmethod
    def handles_interrupts(pid: int) -> bool:
        with open(f"/proc/{pid}/status") as status:
            caught = next(line for line in status if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)


if __name__ == "__main__":
    unittest.main()
