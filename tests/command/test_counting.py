"""Counting filters: build --counting, add, remove, and what the other commands make of them, beside a twin in Python."""

import os
import unittest

from removals import Removals
from support import CommandTest, Counters, counters_of, counting_rate, keys, text


class Counting(Removals, CommandTest):
    option = "--counting"

    def twin_of(self, name: str) -> Counters:
        """An empty twin of the filter's size."""
        facts = self.info(name)
        self.assertEqual(facts["layout"], "counting")
        return Counters(facts["bits"], facts["probes"])

    def assert_is(self, name: str, twin: Counters) -> dict:
        facts = self.bloomery("info", "--json", "--check", name).json
        self.assertEqual(counters_of(self.bits_of(name)), twin.counters)
        self.assertEqual((facts["inserted"], facts["refused_removals"]), (twin.size, twin.refused))
        self.assertEqual((facts["tainted"], facts["clean"], facts["problems"]), (twin.refused > 0, True, []))
        self.assertEqual(facts["counters_full"], twin.counters.count(15))
        self.assertEqual(facts["counters"], len(twin.counters))
        self.assertAlmostEqual(facts["rate_now"], twin.certified_rate, delta=1e-9 + 1e-9 * twin.certified_rate)
        return facts

    def test_build_add_and_remove_change_the_counters_of_the_twin(self) -> None:
        lines = keys(3000)
        self.bloomery("build", "--counting", "-q", "-o", "f", "-p", "2%", self.write("lines", lines))
        twin = self.twin_of("f")
        twin.add(lines)
        self.assert_is("f", twin)

        added = self.bloomery("add", "--json", "f", stdin=text(lines[:500] + keys(100, "more")), status=None).json
        twin.add(lines[:500] + keys(100, "more"))
        self.assert_is("f", twin)
        removed = self.bloomery("remove", "--json", "f", stdin=text(lines[:1000])).json
        self.assertEqual(twin.remove(lines[:1000]), 0)

        self.assert_is("f", twin)
        self.assertEqual((added["keys"], added["size"], added["complete"]), (600, 3600, True))
        self.assertLessEqual(added["new"], 100)
        self.assertGreater(added["new"], 85)
        self.assertEqual((removed["keys"], removed["removed"], removed["not_found"]), (1000, 1000, 0))
        self.assertEqual((removed["size"], removed["tainted"], removed["unnoticed_removals"]), (2600, False, 0))
        self.assertAlmostEqual(removed["rate"], twin.certified_rate, delta=1e-9)
        self.assert_has_all("f", lines[:500] + lines[1000:])

    def test_a_filter_has_the_size_and_the_rate_that_its_formula_asks_for(self) -> None:
        self.bloomery("build", "--counting", "-q", "-o", "f", "-n", 5000, "-p", "1%", stdin=text(keys(5000)))
        facts = self.info("f")

        self.assertLessEqual(counting_rate(facts["bits"], facts["probes"], 5000), 0.01)
        for probes in range(1, 15):
            self.assertGreater(counting_rate(facts["bits"] - 512, probes, 5000), 0.01)
        self.assertAlmostEqual(facts["predicted_rate"], counting_rate(facts["bits"], facts["probes"], 5000), delta=1e-9)
        self.assert_chance(facts["measured_rate"]["hits"], facts["measured_rate"]["queries"], facts["rate_now"])

        self.bloomery("build", "--counting", "-q", "-o", "f", "-m", "64KiB", "-k", 4, "-n", 1000, stdin=text(keys(10)))
        facts = self.info("f")
        self.assertEqual((facts["bytes"], facts["probes"], facts["counters"]), (65536, 4, 131072))

    def test_removing_what_is_not_there_is_said_counted_and_marked(self) -> None:
        self.make_filter("f", keys(1000), "--counting", "-n", 1000)
        twin = self.twin_of("f")
        twin.add(keys(1000))
        self.assertNotIn("TAINTED", self.bloomery("info", "f").out.decode().upper())

        wrong = keys(5) + keys(300, "stranger")
        result = self.bloomery("remove", "f", status=1, stdin=text(wrong))
        not_found = twin.remove(wrong)

        facts = self.assert_is("f", twin)
        self.assertGreater(not_found, 280)
        self.assertRegex(result.err, rf"warning: {not_found} of 305 keys were not present")
        self.assertRegex(result.err, r"tainted: .*about [\d.]+ more such removals probably went unnoticed")
        self.assertEqual(result.out, b"")
        rate = max(0.01, twin.certified_rate)
        expected = not_found * rate / (1 - rate)
        self.assertAlmostEqual(facts["unnoticed_removals"], expected, delta=1e-6)
        self.assertIn(b"tainted: ", self.bloomery("info", "f").out)
        quiet = self.bloomery("remove", "-q", "f", status=1, stdin=b"nobody\n")
        self.assertIn("warning: the key was not present", quiet.err)
        twin.remove([b"nobody"])
        rest = keys(1000)[5:]  # removals of absent keys removed some of them
        missing = twin.remove(rest)
        last = self.bloomery("remove", "--json", "f", status=1 if missing else 0, stdin=text(rest)).json
        self.assertEqual((last["removed"], last["not_found"]), (995 - missing, missing))
        self.assert_is("f", twin)
        # The rate is next to nothing now, which it was not when they came.
        self.assertAlmostEqual(last["unnoticed_removals"], twin.refused * 0.01 / 0.99, delta=1e-6)

    def test_copies_are_removed_one_by_one_and_full_counters_stay(self) -> None:
        self.make_filter("f", [b"twice"] * 2 + [b"often"] * 20, "--counting", "-n", 100)
        self.assertGreaterEqual(self.info("f")["counters_full"], 3)

        self.bloomery("remove", "-q", "f", stdin=b"twice\n")
        self.assertEqual(self.count("f", [b"twice"]), 1)
        self.bloomery("remove", "-q", "f", stdin=b"twice\n")
        self.bloomery("remove", "-q", "f", stdin=text([b"often"] * 20))

        self.assertEqual(self.count("f", [b"twice"]), 0)
        self.assertEqual(self.count("f", [b"often"]), 1)
        facts = self.info("f")
        self.assertEqual((facts["inserted"], facts["tainted"], facts["alarm"]), (0, False, False))
        self.assertIn(b"full (removals no longer change these)", self.bloomery("info", "f").out)
        added = self.bloomery("add", "--json", "f", stdin=b"one\n").json
        self.assertGreater(self.info("f")["rate_now"], 0)
        self.assertGreaterEqual(added["rate"], self.info("f")["rate_now"], "full counters count")

    def test_repeated_keys_are_no_reason_for_an_alarm_or_a_warning(self) -> None:
        lines = keys(1000) * 3
        built = self.bloomery("build", "--counting", "-o", "f", "-n", 1000, "-p", "1%", stdin=text(lines))
        more = self.bloomery("add", "f", stdin=text(lines))

        self.assertNotIn("warning", built.err + more.err)
        self.assertRegex(built.err, "3,000 lines, about (99\\d|1,000) keys")
        facts = self.info("f")
        self.assertEqual((facts["inserted"], facts["alarm"]), (6000, False))
        self.assertAlmostEqual(facts["predicted_for_keys"], 1000, delta=60)
        self.assertEqual(self.bloomery("verify", "f", "--present", "-", stdin=text(keys(1000))).status, 0)
        over = self.bloomery("add", "f", stdin=text(keys(2000, "more")), status=3)
        self.assertIn("warning: the filter exceeds its target FPR: current FPR", over.err)

    def test_verify_finds_the_keys_and_says_if_some_were_taken_along(self) -> None:
        self.write("lines", keys(2000))
        self.bloomery("build", "--counting", "-q", "-o", "f", "-p", "20%", "lines")
        sound = self.bloomery("verify", "--json", "f", "--present", "lines").json
        self.assertEqual((sound["present"]["missing"], sound["complaints"]), (0, []))
        self.assertIn(b"sound", self.bloomery("verify", "f").out)

        self.bloomery("remove", "-q", "f", status=1, stdin=text(keys(300, "stranger")))

        twin = self.twin_of("f")
        twin.add(keys(2000))
        twin.remove(keys(300, "stranger"))
        missing = sum(not twin.has(key) for key in keys(2000))
        self.assertGreater(missing, 0)
        damaged = self.bloomery("verify", "--json", "f", "--present", "lines", status=1).json
        self.assertEqual(damaged["present"]["missing"], missing)
        self.assertIn("tainted", " ".join(damaged["complaints"]))

    def test_explain_shows_the_counters_and_whose_copies_they_are(self) -> None:
        lines = [b"Madrid", b"Madrid", b"Berlin"] + [b"Roma"] * 20
        self.write("lines", lines)
        self.bloomery("build", "--counting", "-q", "-o", "f", "-n", 100, "lines")
        twin = self.twin_of("f")
        twin.add(lines)

        found = self.bloomery("explain", "--json", "--keys", "lines", "f", "Madrid", "Roma", "Paris").json["keys"]

        for entry in found:
            key = entry["key"].encode()
            self.assertEqual(entry["maybe_present"], twin.has(key))
            self.assertEqual({bit["bit"] for bit in entry["bits"]}, twin.cells(key))
            for bit in entry["bits"]:
                owners = {line.decode() for line in lines if bit["bit"] in twin.cells(line)}
                self.assertEqual(bit["counter"], twin.counters[bit["bit"]])
                self.assertEqual((bit["set"], set(bit["owners"])), (bit["counter"] > 0, owners))
            self.assertEqual(entry["block"], min(twin.cells(key)) // 128)
        words = self.bloomery("explain", "--keys", "lines", "f", "Madrid", "Roma").out.decode()
        self.assertRegex(words, r"counter [\d,]+ +2 copies, set by Madrid\n")
        self.assertRegex(words, r"counter [\d,]+ +full \(15 copies or more\), set by Roma\n")

    def test_a_union_adds_the_copies(self) -> None:
        for name, lines in ("a", keys(600)), ("b", keys(900)[300:]), ("c", keys(100)):
            self.make_filter(name, lines, "--counting", "-n", 1000)
        self.bloomery("remove", "-q", "b", status=1, stdin=b"stranger\n")
        twin = self.twin_of("a")
        for lines in keys(600), keys(900)[300:], keys(100):
            twin.add(lines)
        twin.refused = 1

        result = self.bloomery("union", "--json", "-o", "u", "a", "b", "c").json

        facts = self.assert_is("u", twin)
        self.assertFalse(facts["count_is_estimate"])
        self.assertAlmostEqual(result["keys"], 900, delta=60)
        self.assertAlmostEqual(result["rate"], twin.certified_rate, delta=1e-9)
        self.assertAlmostEqual(result["fill"], 1 - twin.counters.count(0) / len(twin.counters), delta=1e-9)
        self.bloomery("remove", "-q", "u", stdin=text(keys(900)))

    def test_contradictions_are_refused_with_the_reason(self) -> None:
        self.make_filter("f", keys(100), "--counting")
        self.make_filter("bits", keys(100))
        before = self.read("f"), self.read("bits")

        build = "build --counting -o new"
        self.refuse_all({
            f"{build} --layout split_block512": "--layout split_block512",
            f"{build} --scheme guava": "--scheme guava",
            f"{build} --prefer memory": "--prefer",
            f"{build} --grow": "--grow",
            f"{build} --window 24h": "--window",
            f"{build} --window-keys 100": "--window",
            f"{build} --foldable": "--foldable",
            "build --layout counting -o new": "--counting",
            "analyze --layout counting -n 100": "--counting",
            "dedup --layout counting -n 100": "--counting",
            "remove bits": "cannot be removed.*split_block.*--counting",
            "remove none": "no such file",
            "remove f f": "choose another name",
            "intersect -o new f f": "intersection is not possible",
            "overlap f f": "overlap is not possible for counting filters",
            "fold f -o new": "fold is not possible for counting filters",
            "dedup --state f -n 10": "filter with removal",
            "union -o new f bits": "layout: counting and",
        }, stdin=b"x\n")  # fmt: skip
        self.assertFalse(os.path.exists(self.path("new")))
        self.assertEqual((self.read("f"), self.read("bits")), before)

    def test_a_refused_change_leaves_the_file_as_it_was(self) -> None:
        self.make_filter("f", [b"1"], "--counting", "--u64", "-n", 100_000)
        numbers = b"".join(b"%d\n" % i for i in range(1, 60_001))
        whole = self.read("f")
        damaged = bytearray(whole)
        damaged[4096 + 77] ^= 8
        for data, stdin, says in (bytes(damaged), b"1\n", "checksum"), (whole, numbers + b"none\n", "'none'; the filter is unchanged"):
            self.write("f", data)
            for verb in "add", "remove":
                self.assertNotIn("keys 1 to", self.refused(verb, "f", stdin=stdin, says=says).err)
                self.assertEqual(self.read("f"), data)

    def test_a_link_stays_one_and_the_file_keeps_its_mode(self) -> None:
        self.make_filter("real", keys(100), "--counting")
        os.chmod(self.path("real"), 0o640)
        os.symlink("real", self.path("link"))

        self.bloomery("remove", "-q", "link", stdin=text(keys(40)))

        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual((self.info("real")["inserted"], os.stat(self.path("real")).st_mode & 0o777), (60, 0o640))

    def test_of_two_writers_one_waits_for_the_other(self) -> None:
        self.make_filter("f", keys(100), "--counting", "-n", 1000)
        first = self.start("remove", "f")
        while not self.is_locked("f"):
            pass
        self.write("more", keys(50, "more"))
        self.write("gone", keys(20)[10:])
        others = self.start("add", "f", "more"), self.start("remove", "f", "gone")
        for process in others:
            self.assertIn(b"waiting for another process", process.stderr.readline())
        for process, lines in (first, keys(10)), (others[0], []), (others[1], []):
            _, err = process.communicate(text(lines), timeout=60)
            self.assertEqual(process.returncode, 0, err)

        twin = self.twin_of("f")
        twin.add(keys(100)[20:] + keys(50, "more"))
        self.assert_is("f", twin)


if __name__ == "__main__":
    unittest.main()
