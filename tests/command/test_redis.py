"""Filters that many machines share, by address: every verb against a real server, Python's own sets and bits, and files."""

import os
import re
import threading
import unittest

from redis_server import RedisServer, RedisTest, environment_of, wait_until
from support import cells_of, cut, first_occurrences, keys, text, xxh3_64


def parts(server: RedisServer, name: bytes, shards: int, layer: int = 0) -> list[bytes]:
    """The strings of all shards, without their stamps."""
    return [server.client("GET", server.shard(shard, name.decode()) + b":%d" % layer)[:-16] for shard in range(shards)]


class BuildAddCheck(RedisTest):
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
                if "--counting" not in options:
                    self.assertEqual(b"".join(parts(self.server, b"f", made["shards"])), self.bits_of("here"))
                self.bloomery("info", "--check", "pulled")

    def test_integers_are_keys_of_their_own(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "--u64", "-o", self.f, stdin=text([b"%d" % i for i in range(500)]))
        self.bloomery("pull", "-q", self.f, "-o", "pulled")

        self.assert_has_all(self.f, [b"7", b"007", b"499"])
        self.assert_has_all("pulled", [b"7", b"499"])
        self.assertEqual(self.info(self.f)["keys"], "u64")
        self.refused("check", self.f, stdin=b"seven\n", says="standard input: .*integers.*found 'seven'")

    def test_inserted_keys_are_found_and_others_as_often_as_the_target_allows(self) -> None:
        lines = keys(20_000)
        for options, growth in ("-p 1% -n 20k", "none"), ("-p 0.1% -n 20k --layout split_block512", "none"), ("--grow -n 1000", "unlimited"), ("--max-keys 200k -n 1000", "to_maximum"):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", *options.split(), "-o", self.f, stdin=text(lines[:10_000]))
                self.bloomery("add", "-q", self.f, stdin=text(lines[10_000:]))

                self.assert_has_all(self.f, lines)
                rate = 0.001 if "0.1%" in options else 0.01
                known = self.bloomery("info", "--json", "--queries", 40_000, self.f).json
                self.assertLess(known["measured_rate"]["hits"], 40_000 * rate + 6 * (40_000 * rate) ** 0.5)
                self.assertLess(known["rate_now"], 1.05 * rate)
                self.assertLess(self.count(self.f, keys(20_000, "stranger")), 20_000 * rate + 6 * (20_000 * rate) ** 0.5)
                self.assertAlmostEqual(known["inserted"], 20_000, delta=400)
                self.assertEqual((known["growth"], known["layers"] > 1), (growth, growth != "none"))

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
        self.write("lines", keys(500) * 2)
        made = self.bloomery("build", "--json", "-n", 1000, "-p", "1e-6", "-o", self.f, "lines").json
        again = self.bloomery("build", "--json", "-o", self.f, stdin=text(keys(500))).json
        added = self.bloomery("add", "--json", self.f, stdin=text(keys(700))).json
        said = self.bloomery("add", self.f, stdin=b"one\n").err

        self.assertEqual((made["made"], made["keys"], made["new"], made["capacity"]), (True, 1000, 500, 1000))
        self.assertEqual((again["made"], again["keys"], again["new"], again["capacity"]), (False, 500, 0, 1000))
        self.assertEqual(list(added), ["filter", "keys", "new", "size", "rate", "complete", "fpr_verdict"])
        self.assertEqual((added["filter"], added["keys"], added["new"], added["complete"]), (self.f, 700, 200, True))
        self.assertAlmostEqual(added["size"], 700, delta=40)
        self.assertRegex(said, r"\Abloomery: unix://.*: 1 key read, 1 added, (about )?[67]\d\d in total, current FPR .*\n\Z")
        for number, source in enumerate((["lines"], [])):  # without -n, keys are counted
            counted = self.bloomery("build", "--json", "-o", self.server.address(f"g{number}"), *source, stdin=text(keys(777))).json
            self.assertEqual(counted["capacity"], 1000 if source else 777)
        over = self.bloomery("build", "-n", 100, "-o", self.server.address("over"), stdin=text(keys(1000)), status=3).err
        self.assertRegex(over, r"warning: the filter exceeds its target FPR: current FPR .*, target 1%[^\n]*\n\Z")

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


class Dedup(RedisTest):
    def test_first_occurrences_in_order(self) -> None:
        lines = [b"line %d" % (i * i % 3001) for i in range(20_000)]

        first = self.bloomery("dedup", "-q", "--state", self.f, "-n", 10_000, "-p", "1e-9", stdin=text(lines)).lines
        again = self.bloomery("dedup", "-q", "--state", self.f, stdin=text(lines + [b"new"])).lines

        self.assertEqual(first, first_occurrences(lines))
        self.assertEqual(again, [b"new"])

    def test_of_machines_at_once_each_line_comes_from_one(self) -> None:
        lines = keys(30_000)
        runs, outs = [], [self.path(f"out{i}") for i in range(4)]
        for i, out in enumerate(outs):
            with open(out, "wb") as file:
                runs.append(self.start("dedup", "-q", "--state", self.f, "-n", 40_000, "-p", "1e-9", stdout=file))
            runs[i].stdin.write(text(lines[7500 * i : 7500 * i + 100]))
            runs[i].stdin.flush()
        for out in outs:
            wait_until(lambda: os.path.getsize(out) > 0)

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

    def test_lines_whose_fate_is_unknown_are_named(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "-o", self.f, stdin=b"")
        self.redis("ACL", "SETUSER", "user", "on", ">pw", "~*", "+@all")
        run = self.start("dedup", "-q", "--state", self.f, env=environment_of("user", "pw"))
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
            " most_keys window_seconds expires_at inserted count_is_estimate fill rate_now rate_now_within measured_rate fpr_verdict keys_left client".split(),
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
        self.bloomery("build", "-q", "-n", 100, "-o", self.server.address("bits"), stdin=b"a\n")
        self.refuse_all({
            f"remove '{self.server.address('bits')}'": "cannot be removed.*--counting",
            f"remove '{self.server.address('none')}'": "there is no filter of this name",
            f"add --wait-replicas 1 '{self.server.address('none')}'": "there is no filter of this name",
            f"dedup --state '{self.server.address('none')}'": "number of lines.*--grow",
            f"dedup --state '{self.f}' --exact -n 5": r"\Abloomery: --exact: ",
        })  # fmt: skip

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

    def test_filters_that_cannot_be_pushed_and_files_that_cannot_be_replaced_are_refused(self) -> None:
        self.make_filter("classic", [b"a"], "--layout", "classic", "-n", 100)
        self.make_filter("counting", [b"a"], "--counting", "-n", 100)
        self.make_filter("prime", [b"a"], "-m", 512 * 32_771, "--layout", "split_block512", "-n", 100)  # 32,771 is a prime
        self.make_filter("other", [b"a"], "-m", 512 * 7, "--layout", "split_block512", "-n", 100)
        self.write("list", b"my list\n")
        g, new = self.server.address("g"), self.f
        self.bloomery("build", "-q", "-n", 100, "--layout", "split_block512", "-o", g, stdin=b"a\n")
        before = self.server.keys()

        self.refuse_all({
            f"push classic {new}": "expected layout split_block512 or blocked, found classic",
            f"push counting {new}": "filters with removal cannot be pushed",
            f"push prime {new}": r"shards of equal size: expected 16779264 bits.*found 16778752; build it again with this size \(--bits\)",
            f"push other {g}": r"bits: \d+ and \d+",
            f"push missing {new}": r"\Abloomery: missing: cannot open: No such file",
            f"push {new} {new}": "push works on files, not on Redis",
            f"pull {g} -o list": "would replace a file that is not a filter",
            f"pull {g} -o no/such/folder": "no/such/folder.*No such file",
            "pull list -o x": "list: not an address of Redis",
        })  # fmt: skip
        self.assertEqual(self.server.keys(), before)
        self.assertEqual(self.read("list"), b"my list\n")
        self.bloomery("pull", "-q", g, "-o", "other")
        self.assert_has_all("other", [b"a"])

    def test_union_of_addresses_and_files(self) -> None:
        a, b, all_of_them = (self.server.address(name) for name in ("a", "b", "all"))
        self.bloomery("build", "-q", "-n", 5000, "-o", a, stdin=text(keys(1000, "a")))
        self.bloomery("build", "-q", "-n", 5000, "-o", b, stdin=text(keys(1000, "b")))
        self.bloomery("pull", "-q", b, "-o", "b.bloom")

        self.redis("CONFIG", "RESETSTAT")
        on_server = self.bloomery("union", "--json", "-o", all_of_them, a, "b.bloom").json
        counted = re.findall(r"cmdstat_bitcount:calls=(\d+)", self.redis("INFO", "commandstats").decode())
        self.assertEqual(counted, [str(self.info(all_of_them)["shards"])], "the bits of the result are counted once")
        in_file = self.bloomery("union", "--json", "-o", "all.bloom", "b.bloom", a).json

        self.bloomery("pull", "-q", all_of_them, "-o", "pulled")
        self.assertEqual(self.bits_of("pulled"), self.bits_of("all.bloom"))
        self.assert_has_all(all_of_them, keys(1000, "a") + keys(1000, "b"))
        self.assertAlmostEqual(on_server["keys"], 2000, delta=100)
        self.assertAlmostEqual(in_file["keys"], 2000, delta=100)
        self.assert_has_all(a, keys(1000, "a"))
        self.assertLess(self.count(a, keys(1000, "b")), 50)

    def test_a_filter_that_grew_is_pulled_with_all_its_layers_and_pushed_again(self) -> None:
        g, again = self.server.address("g"), self.server.address("again")
        present, others = keys(30_000, "in"), keys(100_000, "out")
        self.bloomery("build", "-q", "--grow", "-n", 1000, "-o", g, stdin=text(present))

        pulled = self.bloomery("pull", "--json", "--note", "grown", g, "-o", "file").json
        pushed = self.bloomery("push", "--json", "file", again).json

        known = self.info(g)
        self.assertEqual((pulled["bytes"], pushed["shards"], pushed["made"]), (known["bytes"], known["shards"], True))
        found = self.bloomery("check", g, stdin=text(present + others)).out
        self.assertGreater(found.count(b"\n"), len(present))  # false positives are compared, too
        for name in "file", again:
            self.assertEqual(self.bloomery("check", name, stdin=text(present + others)).out, found)
            self.assertEqual([self.info(name)[field] for field in ("inserted", "layers", "bits")], [known[field] for field in ("inserted", "layers", "bits")])
        self.assertEqual(self.info("file")["note"], "grown")
        self.write("present", text(present))
        self.bloomery("verify", "-q", "file", "--present", "present")
        self.bloomery("info", "--check", "file")
        self.refused("explain", "file", "in-1", "--keys", "present", says="leave out --keys")
        self.bloomery("pull", "-q", "--note", "grown", again, "-o", "back")
        self.assertEqual(self.read("back"), self.read("file"))

    def test_a_file_of_layers_is_refused_where_it_cannot_be_used(self) -> None:
        g, h = self.server.address("g"), self.server.address("h")
        self.bloomery("build", "-q", "--grow", "-n", 1000, "-o", g, stdin=text(keys(20_000, "in")))
        self.bloomery("pull", "-q", g, "-o", "file")
        before = self.read("file")
        self.make_filter("plain", [b"a"])
        self.write("cut", before[:-1])
        self.write("damaged", before[:5000] + bytes([before[5000] ^ 1]) + before[5001:])
        layers = "layers of a scalable filter"

        self.refuse_all({
            f"push file {g}": "a filter of this name exists",
            f"push --shards 3 file {h}": "the number of shards of layers cannot change",
            f"push damaged {h}": "damaged: .*checksum",
            "check cut": "length of the file",
            "add file": layers,
            "union -o x plain file": layers,
            "union -o x file plain": layers,
            "fold file -o x": layers,
            "overlap plain file": layers,
        })  # fmt: skip
        self.assertEqual(self.read("file"), before)


if __name__ == "__main__":
    unittest.main()
