"""bloomery redis list, drop, clear, reset, expire, persist, rotate, replace, repair and gc: what is on the servers afterwards."""

import os
import pty
import re
import subprocess
import time
import unittest

from redis_server import SOURCE, ClusterTest, RedisTest, documented_rights, environment_of, wait_until
from support import SANITIZED, keys, text

CHAIN = ["--scheme", "guava-chain", "-n", 100, "-p", "1%"]
OLD = 7200  # seconds


def server_of(address: str) -> str:
    """A filter's address without its name."""
    return address.split("?name=")[0] if address.startswith("unix:") else address.rsplit("/", 1)[0]


class List(RedisTest):
    def listed(self, server: str = "", *options: object) -> dict[str, dict]:
        told = self.bloomery("redis", "list", "--json", *options, server or server_of(self.f)).json
        return {one["name"]: one for one in told["filters"]}

    def test_filters_of_every_kind_and_nothing_else(self) -> None:
        making = {
            "fixed": (["-n", 5000], 5000),
            "growing": (["--grow", "-n", 60], 60),
            "limited": (["--max-keys", 9000, "-n", 100], 9000),
            "window": (["--window", "1h", "-n", 5000], 5000),
            "counting": (["--counting", "-n", 5000], 5000),
            "guava-chain": (["--scheme", "guava-chain", "-n", 5000], 5000),
        }
        for name, (options, _) in making.items():
            self.bloomery("build", "-q", *options, "--ttl", "1h", "-o", self.server.address(name), stdin=text(keys(500)))
        odd = b"odd {}%~:m2"
        self.bloomery("build", "-q", "-n", 10, "-o", self.server.address("odd%20%7B%7D%25~%3Am2"), stdin=b"a\n")
        for key in (b"{other}:m", b"{other}:x", b"user:m", b"cursor", b"{}:m", b"{%zz}:m", b"x-bloomery"):
            self.redis("SET", key, b"text")
        self.redis("RPUSH", "{a list}:m", "a")

        found = self.listed()

        self.assertEqual(set(found), {*making, odd.decode()})
        for name, (_, capacity) in making.items():
            with self.subTest(name=name):
                one = found[name]
                self.assertEqual((one["kind"], one["state"], one["capacity"]), ("growing" if name == "limited" else name, "ready", capacity))
                self.assertAlmostEqual(one["keys"], 500, delta=25)
                self.assertEqual(one["filter"], self.server.address(name))
                self.assertAlmostEqual(one["expires_at"] / 1000 - time.time(), 3600, delta=60)
                mine = [key for key in self.server.keys() if key.startswith((b"{%s~" % name.encode(), b"%s-0" % name.encode()))]
                self.assertAlmostEqual(one["memory"] / sum(self.redis("MEMORY", "USAGE", key) for key in mine), 1, delta=0.02)
        self.assertEqual(self.bloomery("check", found[odd.decode()]["filter"], stdin=b"a\n").out, b"a\n")
        self.assertIsNone(found[odd.decode()]["expires_at"])

    def test_the_table(self) -> None:
        self.check_runs([(f"redis list {server_of(self.f)}", r"\A(?=[\s\S]*no filters)bloomery: .*\n\Z")])
        names = {"30s": r"(30|[12][0-9]) s", "90min": "90 min", "3h": "3 h", "36h": "36 h", "7d": "7 d"}
        for ttl in names:
            self.bloomery("build", "-q", "-n", 1000, "--ttl", ttl, "-o", self.server.address(ttl), stdin=text(keys(10)))
        self.bloomery("build", "-q", "-n", 1000, "-o", self.server.address("%1B%5B2J"), stdin=text(keys(10)))

        heading, *page = self.bloomery("redis", "list", server_of(self.f)).out.decode().splitlines()

        self.assertRegex(heading, r"\ANAME +KIND +KEYS +CAPACITY +TARGET FPR +MEMORY +EXPIRES +STATE\Z")
        rows = {line.split()[0]: line for line in page}
        for name, expires in {**{ttl: f"in {left}" for ttl, left in names.items()}, r"\x1B[2J": "never"}.items():
            self.assertRegex(rows.pop(name), rf"\A\S+ +fixed +10 +1,000 +1% +[\d.]+ KiB +{expires} +ready\Z")
        self.assertEqual(rows, {})
        self.assertEqual(list(self.listed(self.server.address("7d"))), ["7d"])

    def test_what_is_wrong_with_a_filter_is_its_state(self) -> None:
        self.bloomery("build", "-q", "-n", 200_000, "-o", self.f, stdin=text(keys(10)))
        self.redis("DEL", self.server.shard(7) + b":0")
        self.redis("SET", b"{old}:m", b"bloomery=9\n")

        found = self.listed()

        self.assertIn("shard 7 of 16", found["f"]["state"])
        self.assertIn("unsupported version", found["old"]["state"])
        self.assertIsNone(found["old"]["kind"])

    def test_one_copy_of_the_description_is_enough_and_a_keyed_filter_needs_no_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.bloomery("build", "-q", "-n", 100, "--secret", "key", "-o", self.f, stdin=b"a\n")
        self.redis("DEL", b"{f}:m")

        found = self.listed()["f"]

        self.assertEqual((found["state"], found["capacity"], found["keys"]), ("ready", 100, None))

    def test_thousands_of_keys_and_never_the_command_keys(self) -> None:
        self.redis("EVAL", "for i = 1, 20000 do redis.call('SET', 'user:' .. i .. ':m', i) end", 0)
        filters = 10 if SANITIZED else 40
        for name in range(filters):
            self.bloomery("build", "-q", "-n", 10, "-o", self.server.address(f"f{name}"), stdin=b"a\n")
        self.redis("CONFIG", "RESETSTAT")

        self.assertEqual(len(self.listed()), filters)
        stats = self.redis("INFO", "commandstats").decode()
        self.assertIn("cmdstat_scan", stats)
        self.assertNotIn("cmdstat_keys", stats)


class Rights(RedisTest):
    def test_those_that_are_documented_are_enough(self) -> None:
        with open(os.path.join(SOURCE, "docs", "redis.md")) as file:
            [more] = re.findall(r"(?s)Besides the permissions below, (.*?)\n\n", file.read())
        rules = re.findall(r"\+[a-z|]+", more)
        self.assertEqual(rules, ["+scan", "+memory|usage", "+object|idletime"])
        for name in ("f", "other"):
            self.bloomery("build", "-q", "-n", 5000, "-o", self.server.address(name), stdin=text(keys(100)))
        self.redis("ACL", "SETUSER", "user", "reset", "on", ">pw", *documented_rights("f")["a filter"], *rules)
        env = environment_of("user", "pw")

        found = {one["name"]: one for one in self.bloomery("redis", "list", "--json", server_of(self.f), env=env).json["filters"]}
        self.assertEqual((found["f"]["state"], found["f"]["capacity"]), ("ready", 5000))
        self.assertGreater(found["f"]["memory"], 0)
        self.assertRegex(found["other"]["state"], "cannot read the description of this filter.*NOPERM")
        for words in (["expire", self.f, "1h"], ["persist", self.f], ["replace", self.f], ["clear", "--yes", self.f]):
            self.bloomery("redis", *words, stdin=b"a\n", env=env)
        left = {key: self.redis("DUMP", key) for key in self.server.keys() if key.startswith(b"{f~")}
        self.bloomery("redis", "clear", "--yes", self.f, env=env)
        for key, dump in left.items():
            self.redis("RESTORE", key, 0, dump, "IDLETIME", OLD)
        [one] = self.bloomery("redis", "gc", "--yes", "--json", server_of(self.f), env=env).json["instances"][:1]
        self.assertEqual((one["name"], one["removed"]), ("f", True))
        self.bloomery("redis", "drop", "--yes", self.f, env=env)
        self.assertEqual([key for key in self.server.keys() if key.startswith(b"{f")], [])
        self.assertTrue(self.server.keys())


class Operations(RedisTest):
    def build(self, *options: object, lines: int = 1000) -> None:
        self.bloomery("build", "-q", *options, "-o", self.f, stdin=text(keys(lines)))

    def test_drop_removes_every_key_and_says_what_is_lost(self) -> None:
        for options, kind in ((["-n", 200_000, "--layout", "split_block512"], "fixed, split_block512"), (["--counting", "-n", 5000], "counting, counting"), (CHAIN, "guava-chain"), (["--window", "1h", "-n", 5000, "--layout", "blocked"], "window, blocked")):
            with self.subTest(kind=kind):
                self.redis("FLUSHALL")
                self.build(*options)
                before = self.server.keys()

                said = self.refused("redis", "drop", self.f, says=r"drop removes about [\d,]+ keys .*needs a confirmation.*give --yes to confirm; nothing was changed").err
                self.assertIn(f"({kind})", said)
                self.assertEqual(self.server.keys(), before)
                told = self.bloomery("redis", "drop", "--yes", "--json", self.f).json
                self.assertEqual((told["filter"], told["done"], told["kind"]), (self.f, "drop", kind.split(",")[0]))
                self.assertAlmostEqual(told["keys"], 1000, delta=50)
                self.assertEqual(self.server.keys(), [])
        self.refused("redis", "drop", "--yes", self.f, says="no filter of this name")
        self.build("-n", 200_000)
        self.redis("DEL", self.server.shard(7) + b":0")
        self.refused("build", "-n", 100, "-o", self.f, stdin=b"a\n", says=r"another filter of this name.*bloomery redis drop unix://\S+\n")
        self.assertIn("unknown number of keys", self.bloomery("redis", "drop", "--yes", self.f).err)
        self.assertEqual(self.server.keys(), [])
        self.build(*CHAIN)
        self.redis("DEL", "f-bloomery")  # a chain of the Java program
        self.refused("redis", "drop", "--yes", self.f, says="--capacity.*--rate|n and p|capacity")
        self.bloomery("redis", "drop", "--yes", *CHAIN, self.f)
        self.assertEqual(self.server.keys(), [])

    def test_a_keyed_filter_takes_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.build("-n", 5000, "--secret", "key")
        before = self.server.keys()

        for words in (["drop", "--yes"], ["clear", "--yes"], ["replace"]):
            self.refused("redis", *words, self.f, stdin=b"a\n", says="keyed with a secret.*--secret KEYFILE")
        self.assertEqual(self.server.keys(), before)
        self.bloomery("redis", "replace", "--secret", "key", self.f, stdin=b"a\n")
        self.assertEqual(self.bloomery("check", "--secret", "key", self.f, stdin=b"a\nkey-1\n").out, b"a\n")
        self.bloomery("redis", "drop", "--yes", "--secret", "key", self.f)
        self.assertEqual(self.server.keys(), [])

    def test_clear_keeps_the_filter_and_its_expiry(self) -> None:
        self.build("-n", 5000, "--ttl", "1h")
        self.refused("redis", "clear", self.f, says="clear removes about .* needs a confirmation")
        self.bloomery("redis", "clear", "--yes", self.f)

        self.assertEqual(self.count(self.f, keys(1000)), 0)
        self.assertEqual(self.info(self.f)["capacity"], 5000)
        for key in self.server.keys():
            self.assertAlmostEqual(self.redis("PTTL", key), 3_600_000, delta=60_000)
        self.bloomery("add", "-q", self.f, stdin=b"a\n")

    def test_reset_begins_a_chain_again(self) -> None:
        self.build(*CHAIN)
        self.assertGreater(int(self.redis("GET", "f-cursor")), 3)
        self.refused("redis", "reset", self.f, says="reset removes about .* needs a confirmation")
        self.refused("redis", "clear", "--yes", self.f, says="redis reset")
        self.bloomery("redis", "reset", "--yes", self.f)

        self.assertFalse(self.redis("EXISTS", "f-1"))
        self.assertEqual(self.redis("BITCOUNT", "f-0"), 0)
        self.assertEqual(self.count(self.f, keys(1000)), 0)
        self.bloomery("add", "-q", self.f, stdin=text(keys(10)))
        self.assert_has_all(self.f, keys(10))

    def test_expire_and_persist_are_about_all_keys(self) -> None:
        for options in (["-n", 200_000], ["--grow", "-n", 100], CHAIN):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                self.build(*options)
                told = self.bloomery("redis", "expire", "--json", self.f, "2h").json
                self.assertAlmostEqual(told["expires_at"] / 1000 - time.time(), 7200, delta=60)
                for key in self.server.keys():
                    self.assertAlmostEqual(self.redis("PTTL", key), 7_200_000, delta=60_000)
                self.bloomery("redis", "persist", self.f)
                self.assertEqual({self.redis("PTTL", key) for key in self.server.keys()}, {-1})
        self.refused("redis", "expire", self.f, "soon", says="DURATION")

    def test_rotate_begins_a_generation(self) -> None:
        self.build("--window", "700ms", "-n", 5000)
        before = self.server.keys()

        def rotated() -> bool:  # once a slice has passed
            self.bloomery("redis", "rotate", self.f)
            return bool(set(self.server.keys()) - set(before))

        wait_until(rotated)
        self.redis("FLUSHALL")
        self.build("-n", 5000)
        self.refused("redis", "rotate", self.f, says="no window")

    def test_at_a_terminal_it_asks(self) -> None:
        self.build("-n", 5000)
        for answer, status, left in (("no", 1, True), ("", 1, True), ("yes", 0, False)):
            with self.subTest(answer=answer):
                ours, theirs = pty.openpty()
                process = self.start("redis", "drop", self.f, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
                os.close(theirs)
                shown = b""
                while b"to continue: " not in shown:
                    shown += os.read(ours, 4096)
                self.assertRegex(shown.decode(), r"drop removes about [\d,]+ keys \(fixed, blocked\)")
                os.write(ours, answer.encode() + b"\n")
                self.assertEqual(process.wait(60), status)
                os.close(ours)
                self.assertEqual(bool(self.server.keys()), left)


class Replace(RedisTest):
    def test_it_is_a_filter_of_the_new_keys(self) -> None:
        self.bloomery("build", "-q", "-n", 5000, "-p", "0.1%", "--ttl", "1h", "-o", self.f, stdin=text(keys(3000)))
        instance = self.server.shard(0)

        told = self.bloomery("redis", "replace", "--json", self.f, stdin=text(keys(4000, "new"))).json

        self.assertEqual((told["filter"], told["done"], told["kind"], told["keys"], told["capacity"], told["target_rate"]), (self.f, "replace", "fixed", 4000, 5000, 0.001))
        self.assertNotEqual(self.server.shard(0), instance)
        self.assertFalse([key for key in self.server.keys() if key.startswith(instance)])
        self.assert_has_all(self.f, keys(4000, "new"))
        self.assertLess(self.count(self.f, keys(3000)), 20)
        self.assertAlmostEqual(self.redis("PTTL", self.server.shard(0) + b":0"), 3_600_000, delta=60_000)
        for lost in (b"{f}:m", b"{f}:m2"):  # one copy of the description is enough
            self.assertEqual(self.redis("DEL", lost), 1)
            self.bloomery("redis", "replace", "-q", self.f, stdin=text(keys(100)))
            self.assertAlmostEqual(self.redis("PTTL", self.server.shard(0) + b":0"), 3_600_000, delta=60_000)

    def test_more_lines_make_it_larger_and_options_make_it_another(self) -> None:
        self.bloomery("build", "-q", "-n", 500, "-o", self.f, stdin=text(keys(500)))

        self.write("keys", keys(20_000))
        self.assertEqual(self.bloomery("redis", "replace", "--json", self.f, "keys").json["capacity"], 20_000)
        self.assert_has_all(self.f, keys(20_000))
        told = self.bloomery("redis", "replace", "--json", "--grow", "-n", 1000, "-p", "2%", "--layout", "blocked", self.f, "keys").json
        self.assertEqual((told["kind"], told["layout"], told["target_rate"]), ("growing", "blocked", 0.02))
        self.assert_has_all(self.f, keys(20_000))
        self.assertEqual(self.bloomery("redis", "replace", "--json", "-n", 10, self.f, stdin=text(keys(50_000)), status=None).status, 0)

    def test_the_old_filter_stays_if_the_new_one_is_not_filled(self) -> None:
        self.bloomery("build", "-q", "-n", 5000, "-o", self.f, stdin=text(keys(1000)))
        before = self.server.keys()

        self.refused("redis", "replace", self.f, stdin=b"", says="an empty filter would replace the filter.*the old filter stays")
        self.write("binary", b"\x7fELF\0\0\0" * 100)
        self.refused("redis", "replace", self.f, "binary")
        self.refused("redis", "replace", self.f, "missing", says="no such file|missing")
        stopped = self.start("redis", "replace", self.f, "-n", 5000)
        stopped.stdin.write(text(keys(100, "new")))
        stopped.stdin.flush()
        wait_until(lambda: self.redis("EXISTS", b"{f}:n") == 1)
        stopped.terminate()
        self.assertNotEqual(stopped.wait(60), 0)

        self.assert_has_all(self.f, keys(1000))
        self.assertEqual(self.server.keys(), before)
        self.refused("redis", "replace", self.server.address("none"), stdin=b"a\n", says="no filter of this name")


class Repair(RedisTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-n", 5000, "--shards", 16, "-o", self.f, stdin=text(keys(3000)))
        self.write("keys", keys(3000))

    def test_a_lost_shard_is_refilled(self) -> None:
        strings = [self.server.shard(s) + b":0" for s in range(16)]
        before = {name: self.redis("GET", name) for name in strings}
        self.redis("DEL", strings[3])
        self.refused("check", self.f, "keys", says="a part of the filter is missing.*bloomery redis repair unix:")

        told = self.bloomery("redis", "repair", "--json", self.f, "keys").json

        self.assertEqual((told["filter"], told["done"], told["lost"], told["shards"], told["keys"]), (self.f, "repair", [3], 16, 3000))
        self.assertTrue(100 < told["new"] < 300, told)
        self.assertLessEqual(told["rate"], 0.01)
        after = {name: self.redis("GET", name) for name in strings}
        self.assertEqual(after[strings[3]][:-16], before[strings[3]][:-16])
        self.assertEqual({name for name in strings if after[name] != before[name]}, {strings[3]}, "its stamp has changed")
        self.assertFalse(self.redis("EXISTS", b"{f}:repair"))
        self.redis("DEL", strings[0], self.server.shard(15) + b":h", strings[15])
        said = self.bloomery("redis", "repair", self.f, "keys").err
        self.assertRegex(said, r": repaired: shards 0 and 15 of 16; 3,000 lines, \d+ of them inserted again\n")
        self.assert_has_all(self.f, keys(3000))
        self.assertRegex(self.bloomery("redis", "repair", self.f, "keys").err, "nothing to repair: 16 shards are intact")
        self.assertEqual(self.bloomery("redis", "repair", "--json", self.f, "keys").json["lost"], [])
        self.refused("redis", "repair", self.server.address("none"), "keys", says="no filter of this name")

    def interrupt(self) -> None:
        """A repair that is killed after some keys."""
        killed = self.start("redis", "repair", self.f)
        killed.stdin.write(text(keys(100)))
        killed.stdin.flush()
        wait_until(lambda: self.redis("HGET", self.server.shard(3) + b":h", b"repairing") and self.redis("EXISTS", b"{f}:repair"))
        killed.kill()
        killed.wait()

    def test_an_interrupted_repair_is_run_again(self) -> None:
        self.redis("DEL", self.server.shard(3) + b":0")
        self.refused("redis", "repair", self.f, stdin=b"", says="the lost shards would become empty.*--allow-empty")
        self.interrupt()

        self.refused("redis", "repair", self.f, "keys", says="another client is repairing the filter.*try again in 15 s")
        self.refused("check", self.f, "keys", says="a part of the filter is being repaired: shard 3 of 16")
        lease = self.redis("PTTL", b"{f}:repair")
        self.assertTrue(0 < lease <= 15_000, lease)
        self.redis("PEXPIRE", b"{f}:repair", 100)  # as if most of the lease had passed
        wait_until(lambda: not self.redis("EXISTS", b"{f}:repair"))
        self.redis("DEL", self.server.shard(3) + b":h")  # a lost header, too
        self.assertEqual(self.bloomery("redis", "repair", "--json", self.f, "keys").json["lost"], [3])
        self.assert_has_all(self.f, keys(3000))

    def test_dedup_keeps_lines_that_a_shard_under_repair_may_have_lost(self) -> None:
        self.redis("DEL", self.server.shard(3) + b":0")
        self.interrupt()
        self.redis("DEL", b"{f}:repair")  # as if its lease had ended

        done = self.bloomery("dedup", "--state", self.f, "keys", status=None)

        self.assertEqual(done.status, 2, "the FPR of a filter with a damaged shard is unknown")
        kept = len(done.out.splitlines())
        self.assertTrue(100 < kept < 300, kept)
        self.assertRegex(done.err, "up to %d lines may have been printed twice, because" % kept)


class Gc(RedisTest):
    def setUp(self) -> None:
        super().setUp()
        self.at = server_of(self.f)

    def make_old(self) -> None:
        for key in self.server.keys():
            if self.redis("TYPE", key) in (b"string", b"hash"):
                self.redis("RESTORE", key, 0, self.redis("DUMP", key), "REPLACE", "IDLETIME", OLD)

    def orphan(self, name: str = "f") -> list[bytes]:
        """The keys of an instance that was replaced and left: the shards of a filter with an earlier description."""
        address = self.server.address(name)
        self.bloomery("build", "-q", "-n", 50_000, "-o", address, stdin=text(keys(100)))
        left = [key for key in self.server.keys() if key.startswith(b"{%s~" % name.encode())]
        dumps = {key: self.redis("DUMP", key) for key in left}
        self.bloomery("redis", "clear", "-q", "--yes", address)
        for key, dump in dumps.items():
            self.redis("RESTORE", key, 0, dump, "REPLACE")
        return left

    def found(self, *options: object, status: int = 0) -> dict[str, dict]:
        told = self.bloomery("redis", "gc", "--json", *options, self.at, status=status).json
        return {one["instance"]: one for one in told["instances"]}

    def test_shards_of_an_earlier_instance_are_shown_and_removed_with_yes(self) -> None:
        left = self.orphan()
        tag = left[0].split(b"}:")[0] + b"}:"
        for part in b"7c", b"copy":
            self.redis("SET", tag + part, "a layer under another name, or what a merge left")
            left.append(tag + part)
        for other in (b"{f~0:0}:h", tag, tag + b"x y", b"x" + tag + b"h", tag.replace(b"f~", b"f:"), tag.replace(b"~", b"~g")):
            self.redis("SET", other, "not of an instance")
        self.make_old()
        all_keys = self.server.keys()

        [(instance, one)] = self.found().items()
        self.assertIn(instance.encode(), left[0])
        self.assertEqual((one["name"], one["keys"], one["removed"], one["why"]), ("f", len(left), False, "replaced by another instance"))
        self.assertEqual(one["memory"], sum(self.redis("MEMORY", "USAGE", key) for key in left))
        self.assertGreaterEqual(one["idle_seconds"], OLD)
        shown = self.bloomery("redis", "gc", self.at)
        self.assertRegex(shown.out.decode(), rf"\A\{{{instance}\}}  {len(left)} keys  [\d.]+ KiB  idle [^\n]*can be removed\n\Z")
        self.assertIn("1 orphan", shown.err)
        self.assertIn("--yes", shown.err)
        self.assertEqual(self.server.keys(), all_keys)

        removed = self.found("--yes")
        self.assertTrue(removed[instance]["removed"])
        self.assertEqual(set(all_keys) - set(self.server.keys()), set(left))
        self.assertEqual(self.found(), {})
        self.bloomery("add", "-q", self.f, stdin=b"a\n")

    def test_what_is_young_in_use_announced_or_of_another_program_stays(self) -> None:
        self.orphan("young")
        before = self.server.keys()
        [one] = self.found("--yes").values()
        self.assertEqual((one["removed"], one["status"]), (False, "kept: used within 5 min"))
        self.assertEqual(self.server.keys(), before)

        self.redis("FLUSHALL")
        self.bloomery("build", "-q", "-n", 50_000, "-o", self.f, stdin=text(keys(100)))
        before = self.server.keys()
        replacing = self.start("redis", "replace", self.f, "-n", 50_000)
        replacing.stdin.write(b"a\n")
        replacing.stdin.flush()
        wait_until(lambda: any(key.startswith(b"{f~") and key not in before for key in self.server.keys()))
        self.assertEqual(self.found("--yes", "--min-idle", 0, "--without-description"), {})
        replacing.communicate(timeout=60)
        self.assertEqual(replacing.returncode, 0)
        self.assertEqual(self.count(self.f, [b"a"]), 1)

    def test_without_a_description_it_takes_an_option(self) -> None:
        self.bloomery("build", "-q", "-n", 50_000, "-o", self.f, stdin=text(keys(100)))
        self.redis("DEL", b"{f}:m")
        self.make_old()
        self.assertEqual(self.found("--yes", "--without-description"), {}, "the second copy is a description")
        self.redis("DEL", b"{f}:m2")
        before = self.server.keys()

        [one] = self.found("--yes").values()
        self.assertEqual((one["why"], one["removed"]), ("without a description", False))
        self.assertIn("--without-description", one["status"])
        self.assertEqual(self.server.keys(), before)
        self.found("--yes", "--without-description")
        self.assertEqual(self.server.keys(), [])

    def test_an_unreadable_description_protects_its_instances(self) -> None:
        self.orphan()
        self.redis("SET", b"{f}:m", b"bloomery=7\n")
        self.redis("DEL", b"{f}:m2")
        self.make_old()
        before = self.server.keys()

        self.assertEqual({one["status"] for one in self.found("--yes", "--without-description").values()}, {"kept"})
        self.assertEqual(self.server.keys(), before)

    def test_a_server_that_does_not_tell_idle_times(self) -> None:
        left = self.orphan()
        self.redis("CONFIG", "SET", "maxmemory-policy", "volatile-lfu")
        self.addCleanup(self.redis, "CONFIG", "SET", "maxmemory-policy", "noeviction")

        [one] = self.found("--yes").values()
        self.assertEqual((one["idle_seconds"], one["removed"]), (None, False))
        self.assertIn("--min-idle", one["status"])
        self.found("--yes", "--min-idle", 0)
        self.assertFalse(set(left) & set(self.server.keys()))


class OnACluster(ClusterTest):
    def test_list_and_operations_and_gc(self) -> None:
        f, at = self.address("f"), server_of(self.address("f"))
        self.bloomery("build", "-q", "-n", 40_000, "--shards", 32, "-o", f, stdin=text(keys(5000)))
        self.bloomery("build", "-q", *CHAIN, "-o", self.address("c"), stdin=text(keys(500)))

        found = {one["name"]: one for one in self.bloomery("redis", "list", "--json", at).json["filters"]}
        self.assertEqual({name: one["kind"] for name, one in found.items()}, {"f": "fixed", "c": "guava-chain"})
        self.assertAlmostEqual(found["f"]["keys"], 5000, delta=100)

        self.bloomery("redis", "expire", f, "1h")
        self.assertTrue(all(node.client("PTTL", key) > 0 for node in self.nodes for key in node.keys() if key.startswith(b"{f")))
        self.bloomery("redis", "persist", f)
        dumps = [(node, key, node.client("DUMP", key)) for node in self.nodes for key in node.keys() if key.startswith(b"{f~")]
        self.assertEqual(len(dumps), 64)
        self.bloomery("redis", "clear", "--yes", f)
        for node, key, dump in dumps:
            node.client("RESTORE", key, 0, dump, "IDLETIME", OLD)
        [one] = self.bloomery("redis", "gc", "--yes", "--json", at).json["instances"]
        self.assertEqual((one["keys"], one["removed"]), (64, True))
        self.assertEqual(sum(key.startswith(b"{f~") for node in self.nodes for key in node.keys()), 64)
        self.bloomery("redis", "replace", "-q", f, stdin=text(keys(100, "new")))
        self.assert_has_all(f, keys(100, "new"))
        for name in "fc":
            self.bloomery("redis", "drop", "--yes", self.address(name))
        self.assertEqual([key for node in self.nodes for key in node.keys()], [])


if __name__ == "__main__":
    unittest.main()
