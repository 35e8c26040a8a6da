"""Filters that many machines share, by address: every verb against a real server, Python's own sets and bits, and files."""

import os
import re
import subprocess
import threading
import unittest
from signal import SIGKILL

from redis_server import RedisServer, RedisTest
from support import cells_of, cut, first_occurrences, keys, blocked_rate, split_block512_rate, text, xxh3_64


def parts(server: RedisServer, name: bytes, shards: int, layer: int = 0) -> list[bytes]:
    """The strings of all shards, without their stamps."""
    return [server.client("GET", server.shard(shard, name.decode()) + b":%d" % layer)[:-16] for shard in range(shards)]


def bits_by_the_book(layout: str, bits: int, probes: int, lines: list[bytes]) -> bytes:
    payload = bytearray(bits // 8)
    for key in lines:
        for cell in cells_of(layout, bits, probes, *xxh3_64(key)):
            payload[cell >> 3] |= 1 << (cell & 7)
    return bytes(payload)


class Bits(RedisTest):
    """Where a key's bits are: the shards laid end to end are the file's filter."""

    def test_shards_end_to_end_are_the_filter_by_the_book(self) -> None:
        for layout, count in (("split_block512", 300), ("blocked", 300), ("split_block512", 60_000), ("blocked", 60_000)):
            with self.subTest(layout=layout, count=count):
                self.redis("FLUSHALL")
                lines = keys(2000)
                made = self.bloomery("build", "--json", "-n", count, "--layout", layout, "-o", self.f, stdin=text(lines), status=None).json

                on_server = b"".join(parts(self.server, b"f", made["shards"]))

                self.assertEqual(made["shards"], 1 if count < 1000 else 16)
                self.assertEqual(on_server, bits_by_the_book(layout, made["bits"], made["probes"], lines))

    def test_a_pulled_filter_is_the_one_built_here_bit_for_bit(self) -> None:
        for options in (["--layout", "split_block512"], ["--layout", "blocked", "--seed", 7], ["--hash", "murmur3"], ["--counting"]):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                made = self.bloomery("build", "--json", "-n", 30_000, *options, "-o", self.f, stdin=text(keys(20_000))).json
                layout = [] if "--layout" in options or "--counting" in options else ["--layout", made["layout"]]
                self.make_filter("here", keys(20_000), "-m", made["bits"], "-k", made["probes"], "-n", 30_000, *options, *layout)

                self.bloomery("pull", self.f, "-o", "pulled")

                self.assertEqual(self.bits_of("pulled"), self.bits_of("here"))
                for field in ("layout", "hash", "seed", "bits", "probes", "capacity"):
                    self.assertEqual(self.info("pulled")[field], self.info("here")[field])
                self.bloomery("info", "--check", "pulled")

    def test_integers_are_keys_of_their_own(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "--u64", "-o", self.f, stdin=text([b"%d" % i for i in range(500)]))
        self.bloomery("pull", "-q", self.f, "-o", "pulled")

        self.assert_has_all(self.f, [b"7", b"007", b"499"])
        self.assert_has_all("pulled", [b"7", b"499"])
        self.assertEqual(self.info(self.f)["keys"], "u64")
        self.refused("check", self.f, stdin=b"seven\n", says="standard input: .*integers.*found 'seven'")


class BuildAddCheck(RedisTest):
    def test_what_is_in_is_found_and_little_else(self) -> None:
        for options, count in ((["-p", "1%"], 50_000), (["-p", "0.1%", "--layout", "split_block512"], 20_000), (["--grow", "-n", "1000"], 50_000), (["--max-keys", "200k", "-n", 1000], 50_000)):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                lines = keys(count)
                self.bloomery("build", "-q", *options, *([] if "-n" in options else ["-n", count]), "-o", self.f, stdin=text(lines[: count // 2]))
                self.bloomery("add", "-q", self.f, stdin=text(lines[count // 2 :]))

                self.assert_has_all(self.f, lines)
                rate = 0.001 if "0.1%" in options else 0.01
                wrong = self.count(self.f, keys(50_000, "stranger"))
                self.assertLess(wrong, 50_000 * rate + 6 * (50_000 * rate) ** 0.5)
                self.assertLess(self.info(self.f)["rate_now"], 1.05 * rate)

    def test_it_errs_as_often_as_the_formula_says(self) -> None:
        for layout in ("split_block512", "blocked"):
            with self.subTest(layout=layout):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", "-n", 20_000, "-p", "2%", "--layout", layout, "-o", self.f, stdin=text(keys(20_000)))
                bits, probes = self.info(self.f)["bits"], self.info(self.f)["probes"]
                rate = split_block512_rate(bits, 20_000) if layout == "split_block512" else blocked_rate(bits, probes, 20_000)

                self.assert_chance(self.count(self.f, keys(100_000, "stranger")), 100_000, rate)
                self.assertAlmostEqual(self.info(self.f)["rate_now"] / rate, 1, delta=0.05)

    def test_output_is_that_of_files(self) -> None:
        lines = keys(3000)
        asked = lines[:100] + keys(2000, "stranger") + lines[2000:2100] + [b""]
        self.bloomery("build", "-q", "-n", 5000, "-o", self.f, stdin=text(lines))
        self.bloomery("pull", "-q", self.f, "-o", "file")

        for options in ([], ["-v"], ["-c"], ["-v", "-c"], ["-q"], ["-0"], ["-q", "-v"], ["-f", 2, "-d", "-"]):
            with self.subTest(options=options):
                stdin = text(asked, b"\0" if "-0" in options else b"\n")
                there = self.bloomery("check", *options, self.f, stdin=stdin, status=None)
                here = self.bloomery("check", *options, "file", stdin=stdin, status=None)

                self.assertEqual((there.out, there.status), (here.out, here.status))
                self.assertEqual(there.err, "")

    def test_reports_have_the_numbers(self) -> None:
        made = self.bloomery("build", "--json", "-n", 1000, "-o", self.f, stdin=text(keys(500))).json
        again = self.bloomery("build", "--json", "-o", self.f, stdin=text(keys(500))).json
        added = self.bloomery("add", "--json", self.f, stdin=text(keys(700))).json
        said = self.bloomery("add", self.f, stdin=b"one\n").err

        self.assertEqual((made["made"], made["keys"], made["new"], made["capacity"]), (True, 500, 500, 1000))
        self.assertEqual((again["made"], again["keys"], again["new"], again["capacity"]), (False, 500, 0, 1000))
        self.assertEqual(list(added), ["filter", "keys", "new", "size", "rate", "complete", "fpr_verdict"])
        self.assertEqual((added["filter"], added["keys"], added["complete"]), (self.f, 700, True))
        self.assertAlmostEqual(added["new"], 200, delta=4)
        self.assertAlmostEqual(added["size"], 700, delta=40)
        self.assertRegex(said, r"\Abloomery: unix://.*: 1 key read, 1 added, (about )?[67]\d\d in total, current FPR .*\n\Z")

    def test_none_and_many_keys(self) -> None:
        self.bloomery("build", "-q", "-n", 100_000, "-o", self.f, stdin=b"")
        none = self.bloomery("add", "--json", self.f, stdin=b"").json
        nobody = self.bloomery("check", "-c", self.f, stdin=b"", status=1)
        many = self.bloomery("add", "--json", self.f, stdin=text(keys(100_000))).json

        self.assertEqual((none["keys"], none["new"], nobody.out, many["keys"]), (0, 0, b"0\n", 100_000))
        self.assertGreater(many["new"], 99_000)
        self.assert_has_all(self.f, keys(100_000))

    def test_repeats_in_a_batch_are_new_once(self) -> None:
        added = self.bloomery("build", "--json", "-n", 1000, "-p", "1e-6", "-o", self.f, stdin=text(keys(100) * 5)).json

        self.assertEqual((added["keys"], added["new"]), (500, 100))

    def test_without_n_keys_are_counted(self) -> None:
        self.write("lines", keys(1234))

        by_file = self.bloomery("build", "--json", "-o", self.f, "lines").json
        by_pipe = self.bloomery("build", "--json", "-o", self.server.address("g"), stdin=text(keys(777))).json

        self.assertEqual((by_file["capacity"], by_pipe["capacity"]), (1234, 777))
        self.assert_has_all(self.server.address("g"), keys(777))

    def test_names_of_any_bytes_are_filters_of_their_own(self) -> None:
        names = {"a%7Bb%7D": b"a%7Bb%7D", "with%20space": b"with space", "nul%00nul": b"nul\0nul", "~%25": b"%7E%25", "%C3%BC": "ü".encode(), "%0A": b"%0A"}
        for number, name in enumerate(names):
            self.bloomery("build", "-q", "-n", 100, "-p", "1e-9", "-o", self.server.address(name), stdin=b"only-%d\n" % number)

        for number, (name, in_keys) in enumerate(names.items()):
            with self.subTest(name=name):
                lines = [b"only-%d" % i for i in range(len(names))]
                self.assertEqual(self.bloomery("check", self.server.address(name), stdin=text(lines)).lines, [b"only-%d" % number])
                self.assertIn(b"{%s}:m" % in_keys, self.server.keys())
        self.assertEqual(len(self.server.keys()), 4 * len(names))

    def test_more_keys_than_planned_are_warned_of(self) -> None:
        said = self.bloomery("build", "-n", 100, "-o", self.f, stdin=text(keys(1000)), status=3).err

        self.assertRegex(said, r"warning: the filter exceeds its target FPR: current FPR .*, target 1%[^\n]*\n\Z")

    def test_a_secret_is_asked_for_and_is_nowhere_on_the_server(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("keygen", "-o", "other")
        self.bloomery("build", "-q", "-n", 100, "--secret", "key", "-o", self.f, stdin=b"alice\n")

        self.assertEqual(self.bloomery("check", "--secret", "key", self.f, stdin=b"alice\nbob\n").out, b"alice\n")
        self.refused("check", self.f, stdin=b"alice\n", says="secret.*--secret KEYFILE")
        self.refused("check", "--secret", "other", self.f, stdin=b"alice\n", says="another secret.*expected .*found ")
        self.bloomery("pull", "-q", "--secret", "key", self.f, "-o", "pulled")
        self.assert_has_all("pulled", [b"alice"], "--secret", "key")
        secret = bytes.fromhex(self.read("key").decode())
        self.assertFalse(any(secret in (self.redis("DUMP", key) or b"") for key in self.server.keys()))

    def test_a_killed_add_and_its_rerun_leave_all_keys(self) -> None:
        lines = keys(200_000)
        self.write("lines", lines)
        started = {"-n": lambda: self.redis("BITCOUNT", self.server.shard(0) + b":0", 0, -17) > 1000, "--grow": lambda: int(self.redis("HGET", self.server.shard(0) + b":h", "count")) > 500}
        for how in (["-n", 200_000], ["--grow", "-n", 2000]):
            with self.subTest(how=how):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", *how, "-o", self.f, stdin=b"")
                run = self.start("add", "-q", self.f)
                run.stdin.write(text(lines[:100_000]))  # it waits for more, and does not end by itself
                self.wait_until(started[how[0]])
                run.send_signal(SIGKILL)
                self.assertEqual(run.wait(), -SIGKILL)
                there = self.count(self.f, lines)
                self.assertLess(0, there)
                self.assertLess(there, 105_000)

                self.bloomery("add", "-q", self.f, "lines")

                self.assert_has_all(self.f, lines)

    def test_ten_that_add_at_once_lose_nothing(self) -> None:
        for how in (["-n", 50_000], ["--grow", "-n", 1000]):
            with self.subTest(how=how):
                self.redis("FLUSHALL")
                lists = [keys(5000, f"list{i}") for i in range(10)]
                runs = [self.start("build", "-q", *how, "-o", self.f, self.write(f"in{i}", lines), stdin=subprocess.DEVNULL) for i, lines in enumerate(lists)]
                self.assertEqual([run.wait() for run in runs], [0] * 10, [run.stderr.read() for run in runs])

                self.assert_has_all(self.f, [key for lines in lists for key in lines])


class Dedup(RedisTest):
    def test_first_occurrences_in_order(self) -> None:
        lines = [b"line %d" % (i * i % 3001) for i in range(20_000)]

        first = self.bloomery("dedup", "-q", "--state", self.f, "-n", 10_000, "-p", "1e-9", stdin=text(lines)).lines
        again = self.bloomery("dedup", "-q", "--state", self.f, stdin=text(lines + [b"new"])).lines

        self.assertEqual(first, first_occurrences(lines))
        self.assertEqual(again, [b"new"])

    def test_growing_it_loses_no_more_than_its_rate(self) -> None:
        for how in (["--grow"], ["--max-keys", "1M"]):
            with self.subTest(how=how):
                self.redis("FLUSHALL")
                lines = keys(60_000)
                out = self.bloomery("dedup", "-q", "--state", self.f, *how, "-n", 1000, "-p", "1%", stdin=text(lines * 2)).lines

                self.assertEqual(len(set(out)), len(out), "a line came twice")
                self.assertLess(60_000 - len(out), 60_000 * 0.01 + 6 * 600**0.5)

    def test_of_machines_at_once_each_line_comes_from_one(self) -> None:
        lines = keys(30_000)
        runs, outs = [], [self.path(f"out{i}") for i in range(4)]
        for i, out in enumerate(outs):
            with open(out, "wb") as file:
                runs.append(self.start("dedup", "-q", "--state", self.f, "-n", 40_000, "-p", "1e-9", stdout=file))
            runs[i].stdin.write(text(lines[7500 * i : 7500 * i + 100]))
            runs[i].stdin.flush()
        for out in outs:
            self.wait_until(lambda: os.path.getsize(out) > 0)

        def feed(i: int) -> None:
            runs[i].stdin.write(text(lines[7500 * i + 100 :] + lines[: 7500 * i + 100]))
            runs[i].stdin.close()

        feeders = [threading.Thread(target=feed, args=(i,)) for i in range(4)]
        for feeder in feeders:
            feeder.start()
        for feeder in feeders:
            feeder.join()

        self.assertEqual([run.wait(60) for run in runs], [0] * 4)
        each = [cut(self.read(out)) for out in outs]
        self.assertEqual(sorted(line for one in each for line in one), sorted(lines))
        for i, one in enumerate(each):
            self.assertEqual(one[:100], lines[7500 * i : 7500 * i + 100])

    def test_keys_are_fields_and_suspects_are_written(self) -> None:
        out = self.bloomery("dedup", "--json", "--state", self.f, "-n", 100, "-f", 1, "-d", ",", "--suspects", "s", stdin=b"a,1\na,2\nb,3\n")

        self.assertEqual((out.lines, self.read("s")), ([b"a,1", b"b,3"], b"a,2\n"))
        self.assertEqual((out.report["lines_in"], out.report["lines_out"], out.report["dropped"]), (3, 2, 1))

    def test_it_wants_to_know_how_many(self) -> None:
        self.refused("dedup", "--state", self.f, stdin=b"a\n", says="number of lines.*--grow")
        self.refused("dedup", "--state", self.f, "--exact", "-n", 5, stdin=b"a\n", says=r"\Abloomery: --exact: ")
        self.assertEqual(self.server.keys(), [])

    def test_lines_that_nobody_can_tell_about_are_named(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "-o", self.f, stdin=b"")
        self.redis("ACL", "SETUSER", "user", "on", ">pw", "~*", "+@all")
        run = self.start("dedup", "-q", "--state", self.f, env=dict(os.environ, BLOOMERY_REDIS_USER="user", BLOOMERY_REDIS_PASSWORD="pw"))
        run.stdin.write(text(keys(10)))
        run.stdin.flush()
        self.assertEqual([run.stdout.readline() for _ in range(10)], [key + b"\n" for key in keys(10)])
        self.redis("ACL", "SETUSER", "user", "-bitfield")

        out, err = run.communicate(text(keys(5, "more")), timeout=60)

        self.assertEqual((out, run.returncode), (b"", 2))
        self.assertIn(b"lines 11 to 15 of the input are not printed, but may have been remembered", err)


class InfoVerifyExplain(RedisTest):
    def test_info_has_all_that_is_known(self) -> None:
        self.bloomery("build", "-q", "-n", 20_000, "-p", "0.5%", "-o", self.f, stdin=text(keys(10_000)))

        known = self.info(self.f)
        page = self.bloomery("info", self.f).out.decode()

        self.assertEqual(
            list(known),
            "filter layout family hash keys seed key_check shards lines_of_a_shard layers epoch bits bytes first_bits probes capacity target_rate growth"
            " most_keys window_seconds expires_at inserted count_is_estimate fill rate_now measured_rate fpr_verdict keys_left client".split(),
        )
        self.assertEqual((known["filter"], known["layout"], known["hash"], known["capacity"], known["target_rate"]), (self.f, "blocked", "xxh3_64", 20_000, 0.005))
        self.assertEqual((known["growth"], known["most_keys"], known["window_seconds"], known["expires_at"]), ("none", None, None, None))
        self.assertEqual(known["bits"], 512 * known["shards"] * known["lines_of_a_shard"])
        self.assertEqual(known["bits"], 8 * sum(map(len, parts(self.server, b"f", known["shards"]))))
        self.assertAlmostEqual(known["inserted"], 10_000, delta=200)
        ones = sum(self.redis("BITCOUNT", self.server.shard(s) + b":0", 0, -17) for s in range(known["shards"]))
        self.assertAlmostEqual(known["fill"], ones / known["bits"], delta=1e-9)
        self.assertAlmostEqual(known["inserted"] + known["keys_left"], 20_000, delta=1500)
        for name in ("filter", "kind", "size", "capacity", "grows", "inserted", "fill", "(exact|estimated) FPR", "keys left"):
            self.assertRegex(page, rf"(?m)^{name} +\S")

    def test_info_of_what_grows_counts_keys(self) -> None:
        self.bloomery("build", "-q", "--grow", "-n", 1000, "-o", self.f, stdin=text(keys(20_000)))
        known = self.info(self.f)

        self.assertEqual((known["growth"], known["count_is_estimate"], known["capacity"]), ("unlimited", False, 1000))
        self.assertGreater(known["layers"], 1)
        self.assertAlmostEqual(known["inserted"], 20_000, delta=250)
        self.assertLessEqual(known["rate_now"], 0.01)

    def test_info_measures_if_asked(self) -> None:
        self.bloomery("build", "-q", "-n", 10_000, "-p", "5%", "-o", self.f, stdin=text(keys(10_000)))

        measured = self.bloomery("info", "--json", "--queries", 40_000, self.f).json["measured_rate"]

        self.assertEqual(measured["queries"], 40_000)
        known = self.info(self.f)
        self.assert_chance(measured["hits"], 40_000, blocked_rate(known["bits"], known["probes"], 10_000))

    def test_verify_finds_what_is_missing_and_what_is_wrong(self) -> None:
        self.bloomery("build", "-q", "-n", 3000, "-o", self.f, stdin=text(keys(3000)))
        self.write("present", keys(3000))
        self.write("absent", keys(20_000, "stranger") + keys(10))
        self.write("more", keys(3000) + [b"missing one"] * 1 + keys(50, "no"))

        sound = self.bloomery("verify", "--json", self.f, "--present", "present", "--absent", "absent", "--queries", 50_000).json
        unsound = self.bloomery("verify", self.f, "--present", "more", "--queries", 1000, status=1)

        self.assertEqual((sound["present"]["keys"], sound["present"]["missing"], sound["absent"]["present_too"]), (3000, 0, 10))
        self.assertEqual((sound["absent"]["queries"], sound["complaints"]), (20_000, []))
        self.bloomery("pull", "-q", self.f, "-o", "file")
        here = self.bloomery("verify", "--json", "file", "--absent", "absent", "--present", "present").json
        self.assertEqual(sound["absent"], here["absent"])
        self.assertAlmostEqual(sound["certified"], here["certified"], delta=1e-12)
        self.assertIn(b"MISSING", unsound.out)

    def test_explain_names_the_bits_on_the_server(self) -> None:
        self.bloomery("build", "-q", "-n", 50_000, "-o", self.f, stdin=text(keys(30_000)))
        known = self.info(self.f)

        told = self.bloomery("explain", "--json", self.f, "key-5", "never").json["keys"]

        for key, one in zip((b"key-5", b"never"), told):
            cells = cells_of("blocked", known["bits"], known["probes"], *xxh3_64(key))
            [layer] = one["layers"]
            shard_bits = known["bits"] // known["shards"]
            self.assertEqual(one["shard"], cells[0] // shard_bits)
            self.assertEqual(layer["key"].encode(), self.server.shard(one["shard"]) + b":0")
            self.assertEqual([bit["offset"] for bit in layer["bits"]], [cell % shard_bits ^ 7 for cell in cells])
            for bit in layer["bits"]:
                self.assertEqual(self.redis("GETBIT", layer["key"], bit["offset"]), bit["set"])
            self.assertEqual(one["maybe_present"], all(bit["set"] for bit in layer["bits"]))
        self.assertTrue(told[0]["maybe_present"])
        self.assertIn(b"SETBIT offset", self.bloomery("explain", self.f, "key-5").out)
        self.bloomery("explain", self.f, "never ever", status=1)


class RemoveWindowExpire(RedisTest):
    def test_removed_keys_are_gone_and_others_stay(self) -> None:
        self.bloomery("build", "-q", "--counting", "-n", 20_000, "-p", "1e-6", "-o", self.f, stdin=text(keys(10_000)))

        removed = self.bloomery("remove", "--json", self.f, stdin=text(keys(10_000)[:4000])).json
        twice = self.bloomery("remove", "--json", self.f, stdin=text(keys(10)), status=1)

        self.assertEqual((removed["keys"], removed["removed"], removed["not_found"]), (4000, 4000, 0))
        self.assertEqual((twice.json["removed"], twice.json["not_found"]), (0, 10))
        self.assertIn("10 of 10 keys were not present", twice.err)
        self.assertLess(self.count(self.f, keys(10_000)[:4000]), 5)
        self.assert_has_all(self.f, keys(10_000)[4000:])
        self.assertRegex(self.bloomery("info", self.f).out.decode(), r"(?m)^fill +\d+\.\d% of the counters$")

    def test_a_name_that_names_nothing_is_not_called_a_chain(self) -> None:
        self.refused("remove", self.f, stdin=b"a\n", says="there is no filter of this name")
        self.refused("add", "--wait-replicas", 1, self.f, stdin=b"a\n", says="there is no filter of this name")

    def test_plain_filters_remove_nothing(self) -> None:
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=b"a\n")

        self.refused("remove", self.f, stdin=b"a\n", says="cannot be removed.*--counting")

    def test_ttl_takes_all_of_it_at_one_time(self) -> None:
        before, _ = map(int, self.redis("TIME"))
        self.bloomery("build", "-q", "-n", 100_000, "--ttl", "1h", "-o", self.f, stdin=b"a\n")
        [end] = {self.redis("PEXPIRETIME", key) for key in self.server.keys()}

        self.assertEqual(len(self.server.keys()), 34)
        self.assertAlmostEqual(end / 1000, before + 3600, delta=120)
        self.assertEqual(self.info(self.f)["expires_at"], end / 1000)
        for key in self.server.keys():
            self.redis("PEXPIREAT", key, 1)
        self.assertEqual(self.server.keys(), [])
        self.refused("check", self.f, stdin=b"a\n", says="no filter of this name")

    def test_a_window_has_room_for_all_its_keys_at_one_go(self) -> None:
        lines = keys(20_000)
        out = self.bloomery("dedup", "-q", "--state", self.f, "-n", 20_000, "-p", "1%", "--window", "1d", stdin=text(lines)).lines
        self.assertGreater(len(out), 20_000 * 0.99)

        self.bloomery("add", "-q", self.f, stdin=text(lines))

        self.assertLessEqual(self.info(self.f)["rate_now"], 0.01)
        self.assertLess(self.count(self.f, keys(20_000, "absent")), 20_000 * 0.01)

    def test_a_window_forgets(self) -> None:
        made = self.bloomery("build", "--json", "-n", 1000, "--window", "2s", "-o", self.f, stdin=text(keys(100))).json
        self.assertEqual((made["keys"], made["complete"]), (100, True))
        self.assertEqual(self.info(self.f)["window_seconds"], 2)
        generations: set[bytes] = set()

        def forgotten() -> bool:
            # Each of those that add is a process of its own, and finds the generation of its time.
            self.bloomery("add", "-q", self.f, stdin=b"now\n")
            generations.update(self.redis("HGET", self.server.shard(0) + b":h", "layers").split(b","))
            return self.count(self.f, keys(100)) < 21 and len(generations) > 3

        def remembered() -> bool:
            self.bloomery("add", "-q", self.f, stdin=b"now\n")
            return self.count(self.f, [b"now"]) == 1

        self.wait_until(forgotten)
        self.wait_until(remembered)


class PushPullUnion(RedisTest):
    def test_pushed_and_pulled_it_is_the_same(self) -> None:
        for bits, shards in ((512 * 20, 1), (512 * 16 * 300, 16), (512 * 16_383 * 2, 43)):  # 16,383 * 2 = 2 * 3 * 43 * 127
            with self.subTest(bits=bits):
                self.redis("FLUSHALL")
                self.make_filter("file", keys(5000), "-m", bits, "-k", 8, "-n", 5000, "--layout", "split_block512")

                pushed = self.bloomery("push", "--json", "file", self.f).json
                self.bloomery("pull", "-q", self.f, "-o", "back")

                self.assertEqual(self.bits_of("back"), self.bits_of("file"))
                self.assertEqual(b"".join(parts(self.server, b"f", pushed["shards"])), self.bits_of("file"))
                self.assertEqual(pushed["shards"], shards)
                self.assertTrue(pushed["made"])

    def test_pushing_into_one_that_is_there_unites(self) -> None:
        self.make_filter("a", keys(1000, "a"), "-m", 512 * 200, "-n", 3000, "--layout", "blocked")
        self.make_filter("b", keys(1000, "b"), "-m", 512 * 200, "-n", 3000, "--layout", "blocked")
        self.bloomery("push", "-q", "a", self.f)

        pushed = self.bloomery("push", "--json", "b", self.f).json

        self.assertFalse(pushed["made"])
        self.bloomery("union", "-q", "-o", "both", "a", "b")
        self.bloomery("pull", "-q", self.f, "-o", "pulled")
        self.assertEqual(self.bits_of("pulled"), self.bits_of("both"))

    def test_what_cannot_be_pushed_is_told_why(self) -> None:
        self.make_filter("classic", [b"a"], "--layout", "classic", "-n", 100)
        self.make_filter("counting", [b"a"], "--counting", "-n", 100)
        self.make_filter("prime", [b"a"], "-m", 512 * 32_771, "--layout", "split_block512", "-n", 100)  # 32,771 is a prime
        self.make_filter("other", [b"a"], "-m", 512 * 7, "--layout", "split_block512", "-n", 100)
        self.bloomery("build", "-q", "-n", 100, "--layout", "split_block512", "-o", self.server.address("g"), stdin=b"")
        before = self.server.keys()

        self.refused("push", "classic", self.f, says="expected layout split_block512 or blocked, found classic")
        self.refused("push", "counting", self.f, says="counting filters cannot be pushed")
        self.refused("push", "prime", self.f, says="shards of equal size: expected 16779264 bits.*found 16778752; build it again with this size \\(--bits\\)")
        self.refused("push", "other", self.server.address("g"), says=r"bits: \d+ and \d+")
        self.refused("push", "missing", self.f, says=r"\Abloomery: missing: cannot open: No such file")
        self.refused("push", self.f, self.f, says="push works on files, not on Redis")
        self.assertEqual(self.server.keys(), before)

    def test_union_of_addresses_and_files(self) -> None:
        a, b, all_of_them = (self.server.address(name) for name in ("a", "b", "all"))
        self.bloomery("build", "-q", "-n", 5000, "-o", a, stdin=text(keys(1000, "a")))
        self.bloomery("build", "-q", "-n", 5000, "-o", b, stdin=text(keys(1000, "b")))
        self.bloomery("pull", "-q", b, "-o", "b.bloom")

        on_server = self.bloomery("union", "--json", "-o", all_of_them, a, "b.bloom").json
        in_file = self.bloomery("union", "--json", "-o", "all.bloom", "b.bloom", a).json

        self.bloomery("pull", "-q", all_of_them, "-o", "pulled")
        self.assertEqual(self.bits_of("pulled"), self.bits_of("all.bloom"))
        self.assert_has_all(all_of_them, keys(1000, "a") + keys(1000, "b"))
        self.assertAlmostEqual(on_server["keys"], 2000, delta=100)
        self.assertAlmostEqual(in_file["keys"], 2000, delta=100)
        self.assert_has_all(a, keys(1000, "a"))
        self.assertLess(self.count(a, keys(1000, "b")), 50)

    def test_union_counts_the_bits_of_the_result_once(self) -> None:
        a, b, both = (self.server.address(name) for name in ("a", "b", "both"))
        for name in a, b:
            self.bloomery("build", "-q", "-n", 5000, "--shards", 4, "-o", name, stdin=text(keys(1000, name)))
        self.redis("CONFIG", "RESETSTAT")

        self.bloomery("union", "-q", "-o", both, a, b)

        counted = re.findall(r"cmdstat_bitcount:calls=(\d+)", self.redis("INFO", "commandstats").decode())
        self.assertEqual(counted, ["4"])  # once per shard
        self.assertEqual(self.info(both)["shards"], 4)

    def test_union_of_what_does_not_fit_changes_nothing(self) -> None:
        a, b = self.server.address("a"), self.server.address("b")
        self.bloomery("build", "-q", "-n", 5000, "-o", a, stdin=b"a\n")
        self.bloomery("build", "-q", "-n", 50, "-o", b, stdin=b"b\n")
        self.bloomery("build", "-q", "--grow", "-n", 50, "-o", self.server.address("g"), stdin=b"b\n")

        self.refused("union", "-o", "file", a, b, says=r"bits: \d+ and \d+")
        self.refused("union", "-o", a, a, b, says=r"bits: \d+ and \d+")
        self.refused("union", "-o", "file", a, self.server.address("g"), says="cannot be pulled.*a scalable filter; pull it alone")
        self.assertFalse(os.path.exists(self.path("file")))

    def test_a_filter_that_grew_is_pulled_with_all_its_layers_and_pushed_again(self) -> None:
        g, again = self.server.address("g"), self.server.address("again")
        present, others = keys(30_000, "in"), keys(100_000, "out")
        self.bloomery("build", "-q", "--grow", "-n", 1000, "-o", g, stdin=text(present))
        self.assertGreater(self.info(g)["layers"], 1)

        pulled = self.bloomery("pull", "--json", "--note", "grown", g, "-o", "file").json
        pushed = self.bloomery("push", "--json", "file", again).json

        self.assertEqual(pulled["bytes"], self.info(g)["bytes"])
        self.assertEqual(pushed["shards"], self.info(g)["shards"])
        self.assertTrue(pushed["made"])
        self.assert_has_all("file", present)
        found = {name: self.bloomery("check", name, stdin=text(present + others)).out for name in (g, again, "file")}
        self.assertEqual(found["file"], found[g])
        self.assertEqual(found[again], found[g])
        self.assertGreater(len(found[g].splitlines()), len(present))  # false positives are compared, too
        for field in "inserted", "layers", "bits":
            self.assertEqual(self.info("file")[field], self.info(g)[field])
            self.assertEqual(self.info(again)[field], self.info(g)[field])
        self.assertEqual(self.info("file")["note"], "grown")
        self.write("present", text(present))
        self.bloomery("verify", "-q", "file", "--present", "present")
        self.bloomery("info", "--check", "file")
        for key in "in-1", "in-29999", "out-1":
            here, there = (self.bloomery("explain", "--json", name, key, status=None).json["keys"][0] for name in ("file", g))
            for layer in there["layers"]:
                del layer["key"]
                for bit in layer["bits"]:
                    del bit["offset"]
            self.assertEqual(here, there)
        self.refused("explain", "file", "in-1", "--keys", "present", says="leave out --keys")
        self.bloomery("pull", "-q", "--note", "grown", again, "-o", "back")
        self.assertEqual(self.read("back"), self.read("file"))
        self.bloomery("add", "-q", again, stdin=b"one more\n")
        self.assert_has_all(again, [b"one more"])

    def test_a_file_of_layers_is_refused_where_it_cannot_be_used(self) -> None:
        g, h = self.server.address("g"), self.server.address("h")
        self.bloomery("build", "-q", "--grow", "-n", 1000, "-o", g, stdin=text(keys(20_000, "in")))
        self.bloomery("pull", "-q", g, "-o", "file")
        before = self.read("file")
        self.make_filter("plain", [b"a"])

        self.refused("push", "file", g, says="a filter of this name exists")
        self.refused("push", "--shards", 3, "file", h, says="the number of shards of layers cannot change")
        self.refused("add", "file", says="layers of a scalable filter")
        self.refused("union", "-o", "x", "plain", "file", says="layers of a scalable filter")
        self.refused("union", "-o", "x", "file", "plain", says="layers of a scalable filter")
        self.refused("fold", "file", "-o", "x", says="layers of a scalable filter")
        self.refused("overlap", "plain", "file", says="layers of a scalable filter")
        self.assertEqual(self.read("file"), before)
        self.write("file", before[:-1])
        self.refused("check", "file", says="length of the file")
        self.write("file", before[:5000] + bytes([before[5000] ^ 1]) + before[5001:])
        self.refused("push", "file", h, says="file: .*checksum")

    def test_pull_replaces_filters_and_nothing_else(self) -> None:
        self.bloomery("build", "-q", "-n", 50, "-o", self.f, stdin=b"a\n")
        self.write("list", b"my list\n")
        self.make_filter("old", [b"old"])

        self.refused("pull", self.f, "-o", "list", says="would replace a file that is not a filter")
        self.refused("pull", self.f, "-o", "no/such/folder", says="no/such/folder.*No such file")
        self.refused("pull", "list", "-o", "x", says="list: not an address of Redis")
        self.bloomery("pull", "-q", self.f, "-o", "old")

        self.assertEqual(self.read("list"), b"my list\n")
        self.assert_has_all("old", [b"a"])


if __name__ == "__main__":
    unittest.main()
