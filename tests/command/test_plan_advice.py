"""bloomery plan with requirements: the kind of filter that is chosen, its figures, and a command line that makes just that."""

import math
import os
import re
import shlex
import unittest

from support import CommandTest, keys

OPTION = ["take", "ok", "layout", "bits_a_key", "worst_bits_a_key", "lower_bound_bits_a_key", "keys", "bytes", "disk_bytes", "rate", "lines", "reason"]
CHANGE = ["what", "take", "layout", "bits_a_key", "worst_bits_a_key", "text"]
STRUCTURES = {"plain", "counting", "quotient", "windowed", "sealed", "growing", "logged"}
COUNT = 20_000
CHOOSING = os.path.join(os.environ["BLOOMERY_SOURCE"], "docs", "choosing.md")


class PlanAdvice(CommandTest):
    def plan(self, *arguments: object) -> dict:
        return self.bloomery("plan", "--json", *arguments).json

    def taken(self, *arguments: object) -> dict:
        return self.plan(*arguments)["taken"]

    def test_each_need_takes_what_serves_it(self) -> None:
        for needs, structure in {
            "-n 1M --no-log": "plain",
            "-n 1M --threat": "plain",
            "-n 1M --log": "plain",
            "-n 1M --memory 1GiB": "plain",
            "-n 1M --deletes": "quotient",
            "-n 1M --sealed": "sealed",
            "-n 1M --never-for 99M": "sealed",
            "-n 1M --window 24h": "windowed",
            "--window-keys 1M": "windowed",
            "--grow": "growing",
            "--no-log": "growing",
            "--grow --log": "logged",
            "-n 1M --grow --log": "logged",
            "-n 1M --max-keys 2M": "plain",
            "-n 1M --max-keys 100M": "growing",
            "-n 1M --max-keys 100M --log": "logged",
        }.items():
            self.assertEqual(self.taken(*needs.split())["take"], structure, needs)

    def test_the_figures_are_those_that_were_promised(self) -> None:
        quotient, sealed, growing, logged = (
            self.taken("-p", "1%", *needs.split()) for needs in ("-n 1M --deletes", "-n 1M --sealed", "--grow", "--grow --log")
        )

        self.assertLessEqual(quotient["bits_a_key"], 11.5)
        self.assertAlmostEqual(sealed["bits_a_key"], 7.9, delta=0.06)
        self.assertAlmostEqual(sealed["rate"], 1 / 128, delta=1e-6)
        self.assertLessEqual(growing["bits_a_key"], 17)
        self.assertLessEqual(growing["worst_bits_a_key"], 33)
        self.assertLessEqual(logged["bits_a_key"], 13)
        self.assertLessEqual(logged["worst_bits_a_key"], 23)
        self.assertEqual((quotient["lines"], sealed["lines"], logged["lines"]), (2, 3, 1))
        self.assertGreaterEqual(logged["disk_bytes"], 8 * logged["keys"])

    def test_the_command_line_makes_the_filter_of_the_plan(self) -> None:
        lines = keys(COUNT)
        self.write("INPUT", lines)
        for needs in (
            "--no-log",
            "-p 0.1% --prefer memory --no-log",
            "-p 1e-6 --no-log",
            "--memory 24KiB",
            "--threat",
            "--deletes",
            "--sealed",
            "--sealed -p 0.01%",
            "--window 90min",
            "--grow --log",
        ):
            with self.subTest(needs=needs):
                self.make(["-n", COUNT, *needs.split()], lines)
        self.make(["--window-keys", COUNT], lines)
        (command,) = self.plan("--grow")["commands"]  # of dedup
        out = self.bloomery(*shlex.split(command)[1:]).lines
        self.assertGreater(len(out), 0.95 * COUNT)
        self.assertLessEqual(set(out), set(lines))

    def make(self, needs: list, lines: list[bytes]) -> None:
        plan = self.plan(*needs)

        for command in plan["commands"]:
            words = shlex.split(command)
            self.assertEqual(words.pop(0), "bloomery")
            self.bloomery(*words, "-q") if words[0] != "keygen" else self.bloomery(*words)
        info = self.info("FILTER")
        taken = plan["taken"]
        self.assertEqual((info["layout"], info["hash"]), (taken["layout"], plan["hash"]))
        if taken["take"] != "logged":  # whose size follows from the keys that came
            self.assertEqual(info["bytes"], taken["bytes"])
        secret = ["--secret", "KEY"] if plan["needs_secret"] else []
        self.assert_has_all("FILTER", lines, *secret)

    def test_json_has_a_stable_shape(self) -> None:
        for needs in ["-n", "1M", "--deletes"], ["--grow", "--memory", "1MiB"], ["-n", "1M", "--max-keys", "1.5M"]:
            plan = self.plan(*needs)

            self.assertEqual(
                list(plan),
                ["taken", "hash", "needs_secret", "most_keys_in_memory", "commands", "warnings", "changes", "passed_over"],
            )
            self.assertEqual(list(plan["taken"]), OPTION)
            self.assertEqual({row["take"] for row in plan["passed_over"]} | {plan["taken"]["take"]}, STRUCTURES)
            for row in plan["passed_over"]:
                self.assertEqual(list(row), OPTION if row["ok"] else ["take", "ok", "reason"])
                self.assertTrue(row["reason"])
            for change in plan["changes"]:
                self.assertEqual(list(change), CHANGE)
        self.assertIsNone(self.plan("-n", "1M", "--deletes")["most_keys_in_memory"])

    def test_what_would_change_it_is_what_it_would_be(self) -> None:
        base = ["-n", "1M", "-p", "1%"]
        asked = {
            "without deletes": (["--deletes"], ["--no-log"]),
            "if no key is added later": (["--no-log"], ["--sealed"]),
            "if keys may be added later": (["--sealed"], ["--no-log"]),
            "with a log on disk": (["--grow"], ["--grow", "--log"]),
            "if no key expires": (["--window", "7d"], ["--no-log"]),
            "with less memory preferred to speed": (["--no-log"], ["--no-log", "--prefer", "memory"]),
        }
        for what, (now, then) in asked.items():
            with self.subTest(what=what):
                (change,) = [change for change in self.plan(*base, *now)["changes"] if change["what"] == what]
                taken = self.taken(*base, *then)
                for figure in "take", "layout", "bits_a_key", "worst_bits_a_key":
                    self.assertEqual(change[figure], taken[figure])
                self.assertIn(f"{taken['bits_a_key']:.2f} bits per key", change["text"])

    def test_the_text_says_what_json_says(self) -> None:
        for needs in ["-n", "1M", "--deletes", "--threat"], ["--grow", "--memory", "4MiB"]:
            out = self.bloomery("plan", *needs).out.decode()

            plan = self.plan(*needs)
            taken = plan["taken"]
            self.assertRegex(out, rf"choice +{taken['take']}.*: {taken['bits_a_key']:.2f} bits per key")
            bound = math.log2(1 / taken["rate"])
            self.assertAlmostEqual(taken["lower_bound_bits_a_key"], bound)
            self.assertRegex(out, rf"memory +{taken['bits_a_key'] / bound:.2f} times the lower bound of {bound:.2f} bits per key\n")
            self.assertRegex(out, rf"lookup +{taken['lines']} cache line")
            for said in [taken["reason"], *plan["commands"], *plan["warnings"], *(c["text"] for c in plan["changes"])]:
                self.assertIn(said, out)
            for row in plan["passed_over"]:
                self.assertRegex(out, rf"{row['take']} +{re.escape(row['reason'])}")

    def test_a_list_of_absent_keys_takes_the_filter_that_seal_builds(self) -> None:
        self.write("present", keys(3000))
        self.write("absent", keys(97_000, "absent"))
        plan = self.plan("-n", 3000, "--never-for", 97_000)
        (command,) = plan["commands"]
        self.assertEqual(command, "bloomery seal --width 5 --never-for ABSENT -o FILTER INPUT")
        words = [{"ABSENT": "absent", "FILTER": "f.bloom", "INPUT": "present"}.get(word, word) for word in shlex.split(command)[1:]]

        built = self.bloomery(*words, "--json").json

        taken = plan["taken"]
        self.assertEqual((built["layout"], built["rate"]), (taken["layout"], taken["rate"]))
        self.assertAlmostEqual(built["bytes"] / taken["bytes"], 1, delta=0.02)
        bound = (math.lgamma(100_001) - math.lgamma(3001) - math.lgamma(97_001)) / math.log(2) / 3000
        self.assertAlmostEqual(taken["lower_bound_bits_a_key"], max(bound, math.log2(1 / taken["rate"])))
        out = self.bloomery("plan", "-n", 3000, "--never-for", 97_000).out.decode()
        self.assertRegex(out, r"FPR +1\.56% with 3,000 keys, but 0 for 97,000 known absent keys\n")
        self.assertRegex(out, r"if known absent keys may be reported: sealed fuse")
        self.assertRegex(out, r"plain +it may report some of the known absent keys\n")

    def test_a_threat_wants_a_secret_and_warns_of_deletes(self) -> None:
        plan = self.plan("-n", "1M", "--threat", "--deletes")

        self.assertTrue(plan["needs_secret"])
        self.assertEqual(plan["hash"], "siphash")
        self.assertEqual(plan["commands"][0], "bloomery keygen -o KEY")
        self.assertTrue(any("Removal helps attackers" in warning for warning in plan["warnings"]))

    def test_contradictions_are_refused_with_the_way_out(self) -> None:
        for needs, says in {
            "-n 9 --sealed --deletes": "sealed and deletes .*; .*again",
            "-n 9 --sealed --window 1h": "sealed and a window",
            "--sealed": "sealed and an unknown number of keys .*count them",
            "-n 9 --sealed --grow": "sealed and an unknown number",
            "-n 9 --never-for 9 --deletes": "known absent keys and deletes",
            "--never-for 9": "known absent keys and an unknown number",
            "-n 10G --never-for 1G": "so long that a key of one",
            "-n 9 --never-for 0": "--never-for: invalid value",
            "-n 9 --deletes --window 1h": "deletes and a window",
            "--deletes": "deletes and an unknown number of keys .*maximum number of keys",
            "-n 9 --deletes --grow": "deletes and an unknown number",
            "--window 1h": "a window of time and an unknown number of keys .*give the maximum number",
            "--window-keys 9 -n 9": "a window of keys and a number of keys",
            "-n 9 --window 1h --grow": "a window and growth",
            "--window 1h --window-keys 9": "exclude each other",
            "--grow --max-keys 9": "exclude each other",
            "--log --no-log": "exclude each other",
            "-n 9 --max-keys 8": "below the minimum",
            "-n 0 --deletes": "--capacity: invalid value",
            "--grow -m 1MiB": "--bits: .*--memory",
            "--grow -k 4": "--probes: cannot be combined",
            "--grow --table": "--table",
            "-n 9 --window 0h": "--window",
            "--window-keys 0": "--window-keys",
        }.items():
            self.refused("plan", *needs.split(), says=says)
        self.refused("plan", "-p", "1%", says="two of --capacity, --rate and --bits")

    def test_what_does_not_fit_the_memory_is_refused_with_what_would(self) -> None:
        refused = self.refused("plan", "-n", "1M", "-p", "1%", "--memory", "1MiB", says="at least 1.14 MiB .plain classic.")
        rate, most = re.search(r"a false-positive rate of ([0-9.]+%), or with at most ([0-9,]+) keys", refused.err).groups()

        for fits in ["-n", "1M", "-p", rate], ["-n", most.replace(",", ""), "-p", "1%"]:
            self.assertLessEqual(self.taken(*fits, "--memory", "1MiB")["bytes"], 1 << 20)
        self.assertLessEqual(self.taken("-n", "1M", "--memory", "1.15MiB")["bytes"], 1.15 * (1 << 20))

    def test_the_table_of_the_documentation_has_the_planned_figures(self) -> None:
        needs = {
            "plain": "-n 1M --no-log",
            "quotient": "-n 1M --deletes",
            "logged": "--grow --log",
            "growing": "--grow",
            "windowed": "-n 1M --window 24h",
            "sealed": "-n 1M --sealed",
        }
        with open(CHOOSING, encoding="utf-8") as file:
            page = file.read()

        for structure, options in needs.items():
            taken = self.taken("-p", "1%", *options.split())
            self.assertEqual(taken["take"], structure)
            bits, touches = re.search(rf"^\| [^|]+ \| {structure} \| ([0-9.]+) \| ([^|]+) \|", page, re.MULTILINE).groups()
            self.assertEqual(bits, f"{taken['bits_a_key']:.2f}")
            self.assertIn(str(taken["lines"]), touches)
            if structure == "quotient":
                counting = next(row for row in self.plan("-p", "1%", *options.split())["passed_over"] if row["take"] == "counting")
                self.assertRegex(page, rf"(?m)^\| [^|]+ \| counting \| {counting['bits_a_key']:.2f} \| {counting['lines']} cache line \|")
            if taken["worst_bits_a_key"] != taken["bits_a_key"]:
                self.assertIn(f"{taken['worst_bits_a_key']:.2f}", page)


if __name__ == "__main__":
    unittest.main()
