"""Filters that keep a log: build --grow, add, dedup --grow, rebuild, info."""

import fcntl
import json
import os
import resource
import struct
import unittest

from support import CommandTest, checksum, keys, text, xxh3_64

HEADER = 256  # of a log


class Grow(CommandTest):
    def build(self, name: str, lines: list[bytes], *options: object) -> None:
        self.bloomery("build", "--grow", "-q", "-o", name, *options, stdin=text(lines))

    def logged(self, name: str) -> list[int]:
        """The hashes in a log, read as docs/format.md says."""
        data = self.read(name)
        self.assertEqual(data[:8], b"\x89BLML\r\n\x1a")
        self.assertEqual(struct.unpack_from("<Q", data, 248)[0], checksum(data[:248]))
        id = data[16:24]
        los, at = [], HEADER
        while at < len(data):
            marker, count, before, sum = struct.unpack_from("<4sIQQ", data, at)
            self.assertEqual((marker, before), (b"LOGR", len(los)))
            end = at + 24 + 8 * count
            self.assertEqual(sum, checksum(data[at : at + 16] + id + data[at + 24 : end]))
            los += struct.unpack_from(f"<{count}Q", data, at + 24)
            at = end
        return los

    # ---- building and adding

    def test_it_has_room_for_a_quarter_more_and_logs_every_key(self) -> None:
        lines = keys(10_000) + keys(3000)

        said = self.bloomery("build", "--grow", "-o", "f", stdin=text(lines)).err

        self.assertRegex(said, "13,000 lines, about (9,9..|10,0..) keys; capacity 12,4.. keys at 1%.*split_block512, 10.1. bits per key.*log")
        self.assertEqual(self.logged("f.log"), [xxh3_64(key)[0] for key in lines])
        self.assert_has_all("f", lines)
        self.assertLess(self.count("f", keys(20_000, "absent")), 20_000 * 0.01 + 100)
        self.assertEqual(sorted(os.listdir(self.folder)), ["f", "f.log"])
        facts = self.info("f")
        self.assertEqual((facts["log"]["keys"], facts["log"]["bytes"]), (13_000, os.path.getsize(self.path("f.log"))))
        self.assertAlmostEqual(facts["log"]["bits_a_key"], os.path.getsize(self.path("f")) * 8 / facts["predicted_for_keys"], 6)
        self.assertLess(facts["log"]["bits_a_key_while_growing"], 35)
        self.assertIn("13,000 keys including repetitions", self.bloomery("info", "f").out.decode())

    def test_adding_makes_it_larger_and_keeps_its_target(self) -> None:
        self.build("f", keys(1000), "-p", "0.1%")

        said = self.bloomery("add", "f", stdin=text(keys(60_000))).err

        self.assertRegex(said, r"60,000 keys read, .* in total, current FPR 0.0.*%; grew .* times, capacity now")
        facts = self.info("f")
        self.assertGreaterEqual(facts["capacity"], facts["inserted"])
        self.assertEqual((facts["target_rate"], facts["clean"]), (0.001, True))
        self.assert_has_all("f", keys(60_000))
        self.assert_chance(self.count("f", keys(100_000, "absent")), 100_000, facts["rate_now"])
        self.assertLessEqual(facts["rate_now"], 0.001)
        self.bloomery("info", "--check", "f")

    def test_a_disk_without_room_to_grow_takes_the_keys_and_is_an_error(self) -> None:
        self.build("f", keys(1000), "-p", "1e-7", "--layout", "split_block")
        before = self.info("f")["capacity"]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        failed = self.bloomery("add", "f", stdin=text(keys(8000)), preexec_fn=limit, status=2)

        self.assertRegex(failed.err, r"f: the filter has all keys but could not be enlarged.*File too large")
        facts = self.info("f")
        self.assertLess(facts["capacity"], max(8000, 8 * before))
        self.assertGreater(facts["rate_now"], 1e-7)
        self.assertTrue(facts["clean"])
        self.assert_has_all("f", keys(8000))
        self.bloomery("add", "-q", "f", stdin=b"more\n")  # there is room again
        self.assertLessEqual(self.info("f")["rate_now"], 1e-7)

    def test_integers_secrets_seeds_and_capacity(self) -> None:
        self.bloomery("keygen", "-o", "key")
        for options in [["--u64"], ["--secret", "key"], ["--seed", 5, "--hash", "murmur3"], ["-n", 50_000, "--layout", "blocked_page"]]:
            secret = options if "--secret" in options else []
            numbers = [b"%d" % i for i in range(3000)]
            with self.subTest(options=options):
                self.build("f", numbers[:2000], *options)
                if "-n" in options:
                    self.assertEqual(self.info("f")["capacity"], 50_000)
                self.bloomery("add", "-q", "f", *secret, stdin=text(numbers[2000:]))
                self.bloomery("rebuild", "-q", "f", "-p", "0.1%", *secret)
                self.assert_has_all("f", numbers, *secret)

    # ---- a filter and its log

    def test_a_log_goes_with_its_filter(self) -> None:
        self.make_filter("f", keys(100))
        self.build("f", keys(200, "other"))
        self.assert_has_all("f", keys(200, "other"))
        for command in (["union", "f", "f"], ["intersect", "f", "f"], ["fold", "f", "--times", 0]):
            self.bloomery(*command, "-q", "-o", "out")
            self.assertNotIn("log", self.info("out"))
            self.bloomery("add", "-q", "out", stdin=b"more\n")
        os.unlink(self.path("out"))

        self.make_filter("f", keys(100))

        self.assertEqual(os.listdir(self.folder), ["f"])
        self.bloomery("add", "-q", "f", stdin=text(keys(10)))
        self.refuse_all({"rebuild f": "the filter has no log", "rebuild missing": "no such file", "dedup --grow --state f": "the filter has no log"})

    def test_a_filter_is_not_replaced_while_its_log_cannot_be_read(self) -> None:
        self.build("f", keys(200))
        whole, log = self.read("f"), self.read("f.log")
        flipped, newer = bytearray(log), bytearray(log)
        flipped[20] ^= 1
        newer[8] ^= 1
        for damaged, says in (flipped, "does not match its checksum"), (newer, "unsupported version"), (log[: HEADER - 1], "truncated"):
            self.write("f.log", bytes(damaged))
            with self.subTest(says=says):
                self.refused("build", "-o", "f", "-n", 10, stdin=b"a\n", says=f"f.log: cannot read the log of the filter that would be replaced: .*{says}.*move this file away")
                self.assertEqual((self.read("f"), self.read("f.log")), (whole, bytes(damaged)))
                self.assertEqual(sorted(os.listdir(self.folder)), ["f", "f.log"])
        os.unlink(self.path("f.log"))
        self.make_filter("f", keys(100))
        self.assertEqual(os.listdir(self.folder), ["f"])

    def test_no_other_file_is_taken_for_its_log(self) -> None:
        self.write("f.log", b"my notes\n")

        self.refused("build", "--grow", "-o", "f", "/dev/stdin", stdin=text(keys(10)), says="f.log: .*not a log has the name|no log.*f.log")

        self.assertEqual((os.listdir(self.folder), self.read("f.log")), (["f.log"], b"my notes\n"))

    def test_what_cannot_grow_is_refused(self) -> None:
        self.refuse_all({
            "f -m 1MiB": "--bits",
            "f --scheme guava": "--scheme",
            "f --layout classic": "64 bits of a key's hash.*split_block, split_block512, blocked, blocked_page",
            "f --foldable": "--foldable",
            "f --counting": "--counting",
            "f --window 1h": "--window",
            "/dev/null": "two files",
        }, before="build --grow -o ")  # fmt: skip
        self.assertEqual(os.listdir(self.folder), [])

    # ---- rebuilding

    def test_rebuild_changes_rate_layout_and_capacity(self) -> None:
        self.build("f", keys(20_000))

        for options, layout, rate, capacity in [
            (["-p", "0.1%"], "split_block512", 0.001, None),
            (["--layout", "blocked_page"], "blocked_page", 0.001, None),
            (["-p", "5%", "-n", 30_000, "--layout", "split_block"], "split_block", 0.05, 30_000),
        ]:
            self.bloomery("rebuild", "f", *options)
            facts = self.info("f")
            self.assertEqual((facts["layout"], facts["target_rate"]), (layout, rate))
            self.assertIn(facts["capacity"], [capacity] if capacity else range(24_790, 24_811))
            self.assert_has_all("f", keys(20_000))
            self.assert_chance(self.count("f", keys(50_000, "absent")), 50_000, facts["rate_now"])
        self.refuse_all({"rebuild f -n 100": "below the number of keys", "rebuild f --layout classic": "64 bits"})

    def test_rebuild_needs_only_the_log_and_removes_repetitions(self) -> None:
        self.build("f", keys(20_000) * 5, "-p", "0.1%")

        os.unlink(self.path("f"))
        self.bloomery("rebuild", "-q", "f")

        self.assertEqual(sorted(self.logged("f.log")), sorted(xxh3_64(key)[0] for key in keys(20_000)))
        self.assert_has_all("f", keys(20_000))
        self.assertEqual(self.info("f")["target_rate"], 0.001)
        self.bloomery("add", "-q", "f", stdin=b"more\n")

    # ---- damage

    def test_a_damaged_log_is_reported_and_salvaged(self) -> None:
        self.build("f", keys(100))
        for number in range(5):
            self.bloomery("add", "-q", "f", stdin=text(keys(100, f"kind{number}")))
        log = bytearray(self.read("f.log"))
        log[HEADER + 2 * (24 + 8 * 100) + 50] ^= 1
        self.write("f.log", bytes(log))

        self.refused("add", "f", stdin=b"new\n", says="100 keys lost in 1 place, the first at byte .*rebuild FILTER --salvage")
        self.refused("rebuild", "f", says="100 keys lost")
        checked = self.bloomery("info", "--check", "f", status=1)
        self.assertIn(b"100 keys lost in 1 place", checked.out)
        self.assert_has_all("f", keys(100, "kind1"))
        salvaged = self.bloomery("rebuild", "f", "--salvage")

        self.assertIn("100 keys lost", salvaged.err)
        self.assertRegex(salvaged.err, r"kept, as \S*/f\.damaged and \S*/f\.damaged\.log")
        self.assert_has_all("f.damaged", keys(100, "kind1"))
        self.assertLess(self.count("f", keys(100, "kind1")), 20)
        for kind in ("key", "kind0", "kind2", "kind3", "kind4"):
            self.assert_has_all("f", keys(100, kind))
        self.bloomery("add", "-q", "f", stdin=b"new\n")
        self.bloomery("info", "--check", "f")

    def test_a_log_without_its_end_is_cut_off_or_salvaged(self) -> None:
        self.build("f", keys(1000))
        self.write("f.log", self.read("f.log") + b"LOGR torn")

        said = self.bloomery("add", "f", stdin=text(keys(300, "more"))).err

        self.assertIn("is incomplete (9 bytes)", said)
        self.assertEqual(len(self.logged("f.log")), 1300)
        self.write("f.log", self.read("f.log")[:-50])
        self.refused("rebuild", "f", says="300 or fewer keys are lost at its end")
        self.assertEqual(self.bloomery("rebuild", "--json", "--salvage", "f").json["lost"], 300)

    def test_without_its_log_it_answers_and_takes_no_keys(self) -> None:
        self.build("f", keys(100))
        os.unlink(self.path("f.log"))

        self.refused("add", "f", stdin=b"new\n", says="log is missing")
        self.assert_has_all("f", keys(100))
        self.assertIn("missing", self.bloomery("info", "f").out.decode())
        self.bloomery("info", "--check", "f", status=1)
        self.bloomery("union", "-q", "-o", "copy", "f", "f")  # the hint of the error
        self.bloomery("add", "-q", "copy", stdin=b"new\n")

    # ---- dedup

    def test_a_state_grows_and_reports_what_it_may_have_dropped(self) -> None:
        self.bloomery("dedup", "-q", "--grow", "--state", "s", "-p", "1%", stdin=text(keys(30_000) * 2))

        run = self.bloomery("dedup", "--json", "--state", "s", stdin=text(keys(50_000, "other")))

        wrongly = 50_000 - run.report["lines_out"]
        self.assertGreater(wrongly, 0)
        self.assert_chance(wrongly, 50_000, run.report["expected_wrongly_dropped"] / 50_000)
        self.assertLess(run.report["rate"], 0.01)
        self.assertEqual(set(self.logged("s.log")[-len(run.lines) :]), {xxh3_64(line)[0] for line in run.lines})
        self.assertGreaterEqual(self.info("s")["capacity"], 78_000)

    def test_a_state_without_room_to_grow_is_an_error_after_the_report(self) -> None:
        self.bloomery("dedup", "-q", "--grow", "-p", "1e-4", "--state", "s", stdin=b"first\n")
        os.mkdir(os.path.join(self.folder, "s.rebuild"))

        failed = self.bloomery("dedup", "--json", "--grow", "--state", "s", stdin=text(keys(30_000)), status=2)

        report = json.loads(next(line for line in failed.err.splitlines() if line.startswith("{")))
        self.assertEqual((report["lines_in"], report["complete"]), (30_000, True))
        self.assertEqual(failed.out.count(b"\n"), report["lines_out"])
        self.assertIn("the filter has all keys but could not be enlarged", failed.err)
        os.rmdir(os.path.join(self.folder, "s.rebuild"))
        self.assertEqual(self.bloomery("dedup", "-q", "--grow", "--state", "s", stdin=text(keys(30_000))).out, b"")

    def test_it_waits_for_another_process_that_creates_the_state(self) -> None:
        with open(self.path("s.log.unfinished"), "wb") as made:
            fcntl.flock(made, fcntl.LOCK_EX)
            run = self.start("dedup", "--grow", "--state", "s")
            run.stdin.write(b"a\nb\na\n")
            run.stdin.close()
            self.assertIn(b"waiting for another process", run.stderr.readline())
            os.unlink(self.path("s.log.unfinished"))

        self.assertEqual((run.stdout.read(), run.wait(60)), (b"a\nb\n", 0))
        self.assert_has_all("s", [b"a", b"b"])


if __name__ == "__main__":
    unittest.main()
