"""bloomery dedup --state: tomorrow's file against today's."""

import os
import re
import subprocess
import unittest

from support import COMMAND, CommandTest, keys, text


class DedupState(CommandTest):
    def dedup(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", "--state", "state", *arguments, **options).lines

    def test_the_second_day_brings_only_new_lines(self) -> None:
        self.write("today", keys(50_000) * 2)
        self.write("tomorrow", keys(10_000, "new") + keys(50_000) + keys(10_000, "new"))

        for options in ["-n", "100k", "-p", "1e-9"], ["-n", "100k"], [], ["--grow"]:
            first, second, third = (self.dedup(*given) for given in ([*options, "today"], ["tomorrow"], ["tomorrow"]))
            self.assertEqual((first, second, third), (keys(50_000), keys(10_000, "new"), []), options)
            self.remove("state", "state.log")

    def test_it_is_the_filter_that_a_build_of_its_lines_makes(self) -> None:
        self.write("lines", keys(3000))
        options = ["-n", 10_000, "-p", "1e-6", "--layout", "classic", "--hash", "murmur3", "--seed", 5]

        self.dedup(*options, "lines")
        self.bloomery("build", "-q", "-o", "built", *options, "lines")

        facts = self.info("state")
        self.assertEqual((facts["layout"], facts["hash"], facts["seed"], facts["capacity"]), ("classic", "murmur3", 5, 10_000))
        self.assertEqual((facts["inserted"], facts["clean"]), (3000, True))
        self.assertEqual(self.bits_of("state"), self.bits_of("built"))
        self.bloomery("info", "--check", "state")

    def test_a_filter_that_was_built_can_be_the_state_and_suspects_are_lines_that_it_has(self) -> None:
        self.bloomery("build", "-q", "-o", "state", "-n", 1000, stdin=text(keys(10)))

        out = self.dedup("--suspects", "suspects", stdin=text([b"a", *keys(5), b"a", b"b"]))

        self.assertEqual((out, self.read("suspects")), ([b"a", b"b"], text([*keys(5), b"a"])))

    def test_its_size_keeps_the_expected_losses_below_a_hundredth_of_a_line(self) -> None:
        run = self.bloomery("dedup", "--state", "state", "-n", 50_000, stdin=b"line\n")
        losses = float(re.search(r"expected false drops until it is full: ([\d.e-]+) line", run.err)[1])
        self.assertTrue(0.009 < losses <= 0.01001, losses)
        self.write("lines", keys(3000))
        self.bloomery("dedup", "-q", "--layout", "classic", "--state", "counted", "lines")
        self.assertEqual((self.info("counted")["capacity"], self.info("counted")["layout"]), (3000, "classic"))

        grown = self.bloomery("dedup", "--state", "grown", stdin=text(keys(20_000)))
        before = self.info("grown")
        for part in range(1, 8):
            lines = text(keys(60_000, f"part{part}-"))
            self.bloomery("dedup", "-q", "--state", "grown", stdin=lines)
            self.bloomery("dedup", "-q", "--state", "rated", "-p", "1e-3", stdin=lines)
        after = self.info("grown")

        self.assertIn("fewer than 0.01 lines", grown.err)
        self.assertGreater(after["capacity"], before["capacity"])
        for facts in before, after:
            self.assertAlmostEqual(facts["target_rate"] * facts["capacity"], 0.01 / 8 + facts["capacity"] ** 2 / 2**64, delta=2e-5)
        self.assertEqual(self.bloomery("dedup", "-q", "--state", "grown", stdin=text(keys(60_000, "part3-"))).out, b"")
        self.assertEqual(self.info("rated")["target_rate"], 1e-3)

    def test_it_says_what_is_taken_and_counts_only_this_run(self) -> None:
        self.dedup("-n", 10_000, stdin=text(keys(4000)))
        self.write("copy", self.read("state"))

        run = self.bloomery("dedup", "--state", "state", stdin=text(keys(5000)))
        json = self.bloomery("dedup", "--state", "copy", "--json", stdin=text(keys(5000)))

        self.assertIn("4,000 keys present", run.err)
        self.assertIn("5,000 lines in, 1,000 out, 4,000 dropped", run.err)
        self.assertEqual(json.err.count("\n"), 1)  # the report and nothing else
        self.assertEqual((json.report["lines_in"], json.report["lines_out"], json.report["dropped"]), (5000, 1000, 4000))

    def test_first_runs_at_once_make_one_state(self) -> None:
        lists = [keys(20_000, f"list{i}") for i in range(3)]
        for options in [[]] * 4 + [["--grow", "-p", "1e-6"]] * 4:
            self.remove("state", "state.log")
            runs = [
                self.start("dedup", "-q", *options, "--state", "state", self.write(f"in{i}", lines), stdout=subprocess.DEVNULL)
                for i, lines in enumerate(lists)
            ]
            for run in runs:
                _, err = run.communicate()
                self.assertEqual(run.returncode, 0, err)

            self.assertEqual(self.dedup("in0", "in1", "in2"), [])

    def test_a_state_that_is_full_warns_and_does_not_pretend_to_know_what_it_drops(self) -> None:
        self.bloomery("dedup", "-q", "--state", "small", "-n", 1000, stdin=text(keys(900)))
        small = self.bloomery("dedup", "--state", "small", stdin=text(keys(2000)))
        self.dedup("-p", "20%", "-n", 1000, stdin=text(keys(900)))
        passed = self.bloomery("dedup", "--state", "state", stdin=text(keys(50_000)), status=3)
        run = self.bloomery("dedup", "--state", "state", stdin=text(keys(5000, "other")), status=3)
        again = self.bloomery("dedup", "--state", "state", "--json", stdin=text(keys(5000, "third")), status=3)

        self.assertEqual(small.err.count("warning"), 1)
        self.assertIn("warning: current FPR", passed.err)
        self.assertIn("it is full", run.err)
        self.assertIn("unknown", run.err)
        self.assertIsNone(again.report["expected_wrongly_dropped"])

    def test_no_other_file_is_replaced(self) -> None:
        self.dedup("-n", 100, stdin=b"line\n")
        self.bloomery("build", "-q", "--grow", "-o", "growing", stdin=b"a\n")
        self.bloomery("build", "-q", "-o", "guava", "--scheme", "guava", "-n", 10, stdin=b"x\n")
        self.write("text", b"not a filter\n")
        self.write("both", b"")
        os.link(self.path("state"), self.path("linked"))
        os.symlink("nowhere", self.path("link"))
        names = sorted(os.listdir(self.folder))
        unchanged = ["both", "growing", "growing.log", "linked", "state", "text"]
        before = [self.read(name) for name in unchanged]

        self.refuse_all({
            "--state state --suspects ./state": "would overwrite",
            "--state state --suspects linked": "would overwrite",
            "--state growing --suspects growing.log": "would overwrite",
            "-n 10 --state link": "already",
            "--state guava": "layout",
            "--state text": "not a bloomery filter",
            "--state other --layout classic": "pipe cannot be counted.* --capacity 100M",
        }, before="dedup -q ", stdin=b"a\n")  # fmt: skip
        with open(self.path("state"), "ab") as appended:
            self.refused("dedup", "-q", "--state", "state", stdin=b"a\n", stdout=appended)
        with open(self.path("both"), "ab") as both:
            self.refused("dedup", "-q", "-n", 10, "--suspects", "both", stdin=b"a\na\n", stdout=both, says="the file would overwrite the output")

        self.assertEqual(sorted(os.listdir(self.folder)), names)
        self.assertEqual([self.read(name) for name in unchanged], before)

    def test_a_closed_standard_stream_is_not_replaced_by_the_state(self) -> None:
        self.dedup("-n", 1000, stdin=b"line\n")
        self.write("in", text(keys(2000)))

        for closed in ("<&- >&- 2>&-", "<&- >&-", ">&-", "<&-"):
            code = subprocess.run(
                ["sh", "-c", f'"{COMMAND}" dedup --state state in {closed}'], cwd=self.folder, capture_output=True, timeout=60
            ).returncode

            self.assertEqual(code, 2 if ">&-" in closed.replace("2>&-", "") else 0, closed)
            self.assertEqual(self.bloomery("info", "state").status, 0)
        self.assertEqual(self.info("state")["capacity"], 1000)

    def test_two_runs_at_once_take_turns(self) -> None:
        self.dedup("-n", 1000, stdin=b"old\n")
        first = self.start("dedup", "-q", "--state", "state")
        self.wait_for_a_writer("state")

        second = self.start("dedup", "-q", "--state", "state")
        second.stdin.write(b"one\ntwo\n")
        second.stdin.close()
        waiting = second.stderr.readline()
        out, _ = first.communicate(b"old\none\n", timeout=60)

        self.assertIn(b"waiting for another process", waiting)
        self.assertEqual((out, second.stdout.read(), second.wait(60)), (b"one\n", b"two\n", 0))

    def test_an_output_that_ended_within_a_line_is_completed_when_appended_to(self) -> None:
        self.write("out", b"whole\nto")

        with open(self.path("out"), "ab") as out:
            run = self.bloomery("dedup", "--state", "state", "-n", 10, stdin=b"torn\n", stdout=out)

        self.assertEqual(self.read("out"), b"whole\nto\ntorn\n")
        self.assertIn("ended with an incomplete line", run.err)

    def test_when_the_output_fails_the_state_has_not_run_ahead(self) -> None:
        self.write("lines", keys(600_000))

        with open("/dev/full", "wb") as full:
            self.bloomery("dedup", "-q", "--state", "state", "-p", "1e-9", "lines", stdout=full, status=2)

        self.assertEqual(len(self.dedup("lines")), 600_000)

    def test_other_parameters_than_those_of_the_state_are_not_silently_ignored(self) -> None:
        self.dedup("-n", 1000, stdin=b"x\n")

        for option in ["-n", 5000], ["-p", "1e-9"], ["--layout", "classic"], ["--hash", "murmur3"], ["--seed", 1]:
            run = self.bloomery("dedup", "--state", "state", *option, stdin=b"y\n", status=None)
            self.assertRegex(run.err, r"state.*(already|keeps|has|made)", option)


if __name__ == "__main__":
    unittest.main()
