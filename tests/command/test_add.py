"""bloomery add: keys come to a file in place; two writers take turns; the file says when a writer was killed."""

import os
import re
import resource
import threading
import unittest

from support import CommandTest, keys, split_block_rate, text


class Add(CommandTest):
    def build(self, lines: list[bytes], *options: object) -> None:
        self.bloomery("build", "-q", "-o", "f", *options, stdin=text(lines))

    def add(self, lines: list[bytes], *options: object) -> dict:
        return self.bloomery("add", "--json", *options, "f", stdin=text(lines)).json

    def test_old_and_new_keys_are_in_the_same_file_which_has_the_bits_of_one_build(self) -> None:
        every = keys(500) + keys(500, "new")
        self.build(every, "-n", 1000)
        whole = self.bits_of("f")
        self.build(every[:500], "-n", 1000)
        before = os.stat(self.path("f"))

        added = self.add(every[500:])

        after = os.stat(self.path("f"))
        self.assertEqual((added["keys"], added["complete"]), (500, True))
        self.assertEqual((after.st_ino, after.st_size, self.bits_of("f")), (before.st_ino, before.st_size, whole))
        self.assert_has_all("f", every)
        self.bloomery("info", "--check", "f")

    def test_new_keys_are_counted_and_old_ones_are_not(self) -> None:
        self.build(keys(10_000), "-n", 20_000)
        old = self.info("f")["inserted"]

        again = self.add(keys(10_000))
        mixed = self.add(keys(5000) + keys(10_000, "new"))

        self.assertEqual((again["keys"], again["new"], again["size"]), (10_000, 0, old))
        self.assertEqual((mixed["keys"], mixed["size"]), (15_000, old + mixed["new"]))
        bits = self.info("f")["bits"]
        self.assert_chance(10_000 - mixed["new"], 10_000, split_block_rate(bits, 15_000))
        self.assertEqual(self.info("f")["inserted"], mixed["size"])
        self.assertEqual(list(mixed), ["filter", "keys", "new", "size", "rate", "complete", "fpr_verdict"])
        self.assertAlmostEqual(mixed["rate"] / split_block_rate(bits, 20_000), 1, delta=0.02)

    def test_of_two_failures_the_first_is_the_result(self) -> None:
        self.bloomery("build", "-q", "--u64", "-n", 100_000, "-o", "f", stdin=b"1\n")

        def limit() -> None:  # the checksums at the end of the file cannot be written
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        numbers = b"".join(b"%d\n" % i for i in range(60_000))  # more than is read at once
        failed = self.bloomery("add", "f", stdin=numbers + b"three\n", preexec_fn=limit, status=2)
        with open("/dev/full", "wb") as full:
            alone = self.bloomery("add", "--json", "f", stdin=b"2\nno number\n", stdout=full, status=2).err
            unwritten = self.bloomery("add", "--json", "f", stdin=b"3\n", stdout=full, status=2).err

        *_, second, first = failed.err.splitlines()
        self.assertRegex(second, "warning: .*cannot write: File too large")
        self.assertRegex(first, "'three'")
        self.assertRegex(alone, r"bloomery: [^\n]*integer[^\n]*no number[^\n]*\n\Z")
        self.assertIn("No space left", unwritten)

    def test_a_broken_target_is_the_last_line_and_the_exit_status(self) -> None:
        for options in [], ["-q"], ["--json"]:
            self.build(keys(90), "-n", 100)

            below = self.bloomery("add", *options, "f", stdin=text(keys(5, "a")))
            above = self.bloomery("add", *options, "f", stdin=text(keys(100_000, "b")), status=3)
            still = self.bloomery("add", *options, "f", stdin=b"one more\n", status=3)

            self.assertNotIn("warning", below.err)
            for run in above, still:
                last = run.err.splitlines()[-1]
                self.assertRegex(last, r"f: warning: the filter exceeds its target FPR: current FPR (9\d(\.\d)?|100)%, target 1%, with .*keys; the capacity is 100 keys")
            if options == ["--json"]:
                self.assertEqual([(run.json["fpr_verdict"], run.json["complete"]) for run in (below, above)], [("kept", True), ("broken", True)])
            self.assertEqual(self.info("f")["fpr_verdict"], "broken")
            self.assert_has_all("f", keys(90) + keys(5, "a") + keys(1000, "b"))

    def test_while_it_fills_it_warns_at_each_doubling_of_the_rate(self) -> None:
        self.build([], "-n", 200_000, "-p", "1%", "--layout", "split_block")

        said = self.bloomery("add", "f", stdin=text(keys(800_000)), status=3).err.splitlines()

        *warnings, report, last = said
        rates = [float(re.search("warning: current FPR ([0-9.]+)%", line)[1]) / 100 for line in warnings]
        self.assertGreater(len(rates), 4)
        self.assertTrue(0.01 < rates[0] < 0.02, rates)
        for before, after in zip(rates, rates[1:]):
            self.assertTrue(1.99 * before <= after < 3 * before, rates)
        self.assertRegex(report, "800,000 keys read")
        now = split_block_rate(self.info("f")["bits"], 800_000)
        self.assertRegex(last, "the filter exceeds its target FPR: current FPR")
        self.assertAlmostEqual(float(re.search("current FPR ([0-9.]+)%", last)[1]) / 100 / now, 1, delta=0.02)

    def test_a_number_of_keys_that_is_an_estimate_is_said_to_be_one(self) -> None:
        self.build(keys(10), "-n", 400_000, "-p", "1%")

        few = self.bloomery("add", "f", stdin=text(keys(10, "few"))).err
        many = self.bloomery("add", "f", stdin=text(keys(380_000, "many"))).err

        self.assertIn(", 20 in total,", few)
        about = int(re.search("about ([0-9,]+) in total", many)[1].replace(",", ""))
        self.assertAlmostEqual(about, 380_020, delta=120)  # of them, some 300 were false positives when they came

    def test_it_reports_on_standard_error_unless_quiet(self) -> None:
        self.build([b"alice"], "-n", 10)

        said = self.bloomery("add", "f", stdin=b"bob\n")
        quiet = self.bloomery("add", "--quiet", "f", stdin=b"carol\n")

        self.assertRegex(said.err, r"\Abloomery: f: 1 key read, 1 added, 2 in total, current FPR .*\n\Z")
        self.assertEqual((said.out, quiet.out, quiet.err), (b"", b"", ""))

    def test_any_number_of_threads_gives_the_same_file(self) -> None:
        self.write("more", keys(300_000, "more"))
        files = []
        for threads in 1, 4:
            self.build(keys(100), "-n", 300_100)
            self.bloomery("add", "-j", threads, "f", "more")
            files.append(self.read("f"))

        self.assertEqual(files[0], files[1])

    def test_while_a_file_is_written_readers_are_served_writers_wait_and_no_build_replaces_it(self) -> None:
        self.build(keys(10), "-n", 1000)
        first = self.start("add", "f")
        first.stdin.write(text(keys(100, "first")))
        first.stdin.flush()
        self.wait_for_a_writer("f")

        read = self.bloomery("check", "f", stdin=text(keys(10)))
        self.refused("build", "-q", "-o", "f", stdin=b"other\n", says="open for writing")
        second = self.start("add", "f")
        second.stdin.write(text(keys(100, "second")))
        second.stdin.close()
        waiting = second.stderr.readline().decode()
        still_waiting = second.poll() is None
        first.communicate(timeout=60)

        self.assertEqual(read.lines, keys(10))
        self.assertIn("a writer is active", read.err)
        self.assertIn("waiting for another process", waiting)
        self.assertTrue(still_waiting)
        self.assertEqual((first.returncode, second.wait(60)), (0, 0))
        self.assert_has_all("f", keys(10) + keys(100, "first") + keys(100, "second"))
        self.assertTrue(self.info("f")["clean"])

    def test_many_writers_at_once_lose_no_key(self) -> None:
        self.build([], "-n", 80_000)
        lists = [keys(10_000, f"writer{i}") for i in range(8)]
        writers = [threading.Thread(target=self.add, args=(lines,)) for lines in lists]

        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

        self.assert_has_all("f", sum(lists, []))
        self.bloomery("info", "--check", "f")

    def test_after_kill_9_the_file_opens_with_a_note_until_the_next_add_which_estimates_the_count(self) -> None:
        self.build([], "-n", 10_000)
        writer = self.start("add", "f")
        writer.stdin.write(text(keys(5000)))
        writer.stdin.flush()
        while self.count("f", keys(5000)) < 4500:  # the last lines may wait in the pipe for their end
            pass
        writer.kill()
        writer.wait()

        noted = self.bloomery("check", "f", stdin=text(keys(4500)))
        fixed = self.bloomery("add", "--json", "f", stdin=b"more\n")
        silent = self.bloomery("check", "f", stdin=text([*keys(4500), b"more"]))

        self.assertEqual(len(noted.lines), 4500)
        self.assertRegex(noted.err, r"\Abloomery: f: note: not closed cleanly.*\n\Z")
        self.assertIn("note: not closed cleanly", fixed.err)
        self.assert_chance(fixed.json["size"], 10_000, 0.5)
        self.assertEqual((len(silent.lines), silent.err), (4501, ""))
        self.bloomery("info", "--check", "f")


if __name__ == "__main__":
    unittest.main()
