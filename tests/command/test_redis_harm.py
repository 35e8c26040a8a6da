"""What may go wrong with filters on servers: each is one line of error and status 2, and never a wrong "absent"; what no
shared filter can be is refused with the reason; passwords are in no word that is printed."""

import itertools
import json
import os
import socket
import time
import unittest
from signal import SIGCONT, SIGSTOP

from redis_server import RedisTest
from support import keys, text, xxh3, xxh3_64

VERBS = [["add"], ["check"], ["check", "-v"], ["check", "-c"], ["info"], ["info", "--json"], ["verify"], ["explain"], ["pull"], ["dedup"], ["union"]]


def arguments(verb: list[str], address: str) -> list[str]:
    """A command line of this verb for this filter."""
    rest = {"explain": ["key"], "pull": ["-o", "pulled"]}.get(verb[0], [])
    if verb[0] == "dedup":
        return ["dedup", "-q", "--state", address]
    if verb[0] == "union":
        return ["union", "-o", "united", address, address]
    return [*verb, address, *rest]


class Harm(RedisTest):
    TCP = True

    def build(self, *options: object, name: str = "f") -> str:
        address = self.server.address(name)
        self.bloomery("build", "-q", "-n", 50_000, "--shards", 16, *options, "-o", address, stdin=text(keys(20_000)))
        return address

    def test_there_is_no_such_filter(self) -> None:
        for verb in VERBS:
            if verb != ["dedup"]:
                self.refused(*arguments(verb, self.f), stdin=b"a\n", says=r"no filter of this name.*bloomery build -o unix://\S+ -n NUMBER")
        self.assertEqual(self.server.keys(), [])
        self.assertFalse(os.path.exists(self.path("pulled")))

    def test_a_lost_shard_is_an_error_or_maybe(self) -> None:
        address = self.build()
        lost = [key for key in self.server.keys() if b":3}:" in key]
        self.assertEqual(len(lost), 2)
        self.redis("DEL", *lost)
        more = text(keys(1000, "absent"))

        self.refused("check", address, stdin=more, says="a part of the filter is missing.*remove it with 'bloomery redis drop unix:")
        self.refused("check", "--on-damage", "error", address, stdin=more, says="a part of the filter is missing")
        found = self.bloomery("check", "--on-damage", "maybe", address, stdin=more).out.split()
        # A sixteenth of the keys is in this shard; of the others 1% are false positives.
        self.assertTrue(30 < len(found) < 110, len(found))
        present = text(keys(20_000))
        self.assertEqual(self.bloomery("check", "--on-damage", "maybe", address, stdin=present).out, present)
        self.refused("add", address, stdin=more, says="a part of the filter is missing")
        self.refused("check", "--on-damage", "no", address, stdin=more, says="--on-damage")

    def test_a_filter_whose_description_was_deleted_is_found_by_build(self) -> None:
        address = self.build()
        self.redis("DEL", "{f}:m", "{f}:m2")
        self.refused("check", address, stdin=b"a\n", says="no filter of this name")

        made = self.bloomery("build", "-n", 50_000, "--shards", 16, "-o", address, stdin=b"")

        self.assertRegex(made.err, "note: the description of the filter was lost and has been restored")
        self.assertEqual(self.bloomery("check", address, stdin=text(keys(20_000))).out, text(keys(20_000)))

    def test_there_is_no_server(self) -> None:
        for address, why in {
            "unix:///no/such/socket?name=f": "/no/such/socket: cannot connect: found No such file",
            "redis://127.0.0.1:1/f": "127.0.0.1:1: cannot connect: found Connection refused; check the host and the port",
            "redis://no-such-host.invalid/f": "no-such-host.invalid:6379: (cannot connect|no answer within)",
        }.items():
            for verb in VERBS[:2] + VERBS[4:5]:
                self.refused(*arguments([*verb, "--timeout", "200ms"], address), stdin=b"a\n", says=why)

    def test_a_server_that_is_not_there_is_reported_within_a_second(self) -> None:
        for address in "unix:///no/such/socket?name=f", "redis://127.0.0.1:1/f", "redis+cluster://127.0.0.1:1,127.0.0.1:2/f":
            for verb in [*VERBS, ["redis", "doctor"]]:
                began = time.monotonic()
                self.refused(*arguments(verb, address), stdin=b"a\n", says="cannot connect: found .*; check the host and the port")
                self.assertLess(time.monotonic() - began, 1, (verb, address))

    def test_an_address_that_never_answers_is_given_up_after_the_connect_time(self) -> None:
        # A listener whose queue is full: the system drops further attempts to connect, as a firewall does.
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            port = listener.getsockname()[1]
            held = [socket.socket() for _ in range(8)]
            for one in held:
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            for scheme in "redis", "redis+cluster":
                began = time.monotonic()
                self.refused("check", f"{scheme}://127.0.0.1:{port}/f", stdin=b"a\n", says=r"cannot connect within \d+ ms; check the host and the port")
                self.assertLess(time.monotonic() - began, 5)
            for one in held:
                one.close()

    def test_there_is_no_such_address(self) -> None:
        for address, why in {
            "redis://": "redis://: the filter's name is missing",
            "redis://host": "name is missing",
            "redis://host/": "name is empty",
            "redis://host:port/f": "redis://host:.../f: not a port",
            "redis://host/f?no=5": "expected db=N, once, found 'no'",
            "unix://?name=f": "path of the socket is not absolute",
            "unix:///tmp/s": "name is missing",
            "redis://host/%zz": "without two hexadecimal digits.*found '%zz'",
        }.items():
            with self.subTest(address=address):
                self.refused("check", address, stdin=b"a\n", says=why)

    def test_a_lost_part_is_damage_and_never_absence(self) -> None:
        for key, verbs in ((b":0", VERBS), (b":h", [["explain"]])):
            for verb in verbs:
                with self.subTest(key=key, verb=verb):
                    self.redis("FLUSHALL")
                    self.build()
                    self.redis("DEL", self.server.shard(3) + key)
                    more = text(keys(20_000) + keys(2000, "more"))
                    where = self.explained_in_shard(3) if verb == ["explain"] else None

                    words = ["explain", self.f, where] if where else arguments(verb, self.f)
                    self.refused(*words, stdin=more, says=r"a part of the filter is missing.*shard 3 of 16|missing: \{f~[0-9a-f]{16}:3\}")
        self.assertFalse(os.path.exists(self.path("pulled")) or os.path.exists(self.path("united")))

    def test_a_lost_header_of_a_shard_that_never_changed_follows_from_the_description(self) -> None:
        for verb in ["add"], ["info"], ["verify"]:
            with self.subTest(verb=verb):
                self.redis("FLUSHALL")
                self.build()
                whole = self.bloomery("info", "--json", self.f).json
                self.redis("DEL", self.server.shard(3) + b":h")

                lost = self.bloomery("info", "--json", self.f).json
                self.assertEqual({**lost, "client": None}, {**whole, "client": None})
                self.bloomery(*arguments(verb, self.f), stdin=text(keys(2000, "more")))
                found = self.bloomery("check", self.f, stdin=text(keys(20_000)))
                self.assertEqual(found.out.count(b"\n"), 20_000)

    def explained_in_shard(self, shard: int) -> str:
        return next(key.decode() for key in keys(1000) if xxh3_64(key)[0] * 16 >> 64 == shard)

    def test_a_shard_of_zeros_again_is_damage_too(self) -> None:
        self.build()
        bits = self.server.shard(3) + b":0"
        self.redis("SET", bits, bytes(self.redis("STRLEN", bits)))

        self.refused("check", "-v", self.f, stdin=text(keys(20_000)), says="a part of the filter is missing")

    def test_flushed_while_it_is_used_it_is_gone_for_all(self) -> None:
        self.build()
        run = self.start("check", "-v", self.f)
        run.stdin.write(text(keys(100)) + text(keys(10, "stranger")))
        run.stdin.flush()
        self.assertEqual([run.stdout.readline() for _ in range(10)], [key + b"\n" for key in keys(10, "stranger")])
        self.redis("FLUSHALL")

        out, err = run.communicate(text(keys(100)))

        self.assertEqual((out, run.returncode), (b"", 2))
        self.assertRegex(err, b"the filter no longer exists|no filter of this name")

    def test_flushed_while_it_is_filled_it_is_an_error_and_leaves_nothing(self) -> None:
        self.build()
        run = self.start("add", self.f)
        run.stdin.write(text(keys(100, "new")))
        run.stdin.flush()
        end = time.monotonic() + 20
        while time.monotonic() < end and self.count(self.f, keys(100, "new")) < 100:
            pass
        self.redis("FLUSHALL")

        out, err = run.communicate(text(keys(5000)))

        self.assertEqual((out, run.returncode), (b"", 2), err)
        self.assertEqual(self.server.keys(), [])

    def test_a_filter_with_an_earlier_default_hash_keeps_it(self) -> None:
        self.build("--hash", "xxh3")

        self.build()
        self.bloomery("add", "-q", self.f, stdin=text(keys(1000, "more")))

        self.assertEqual(self.bloomery("info", "--json", self.f).json["hash"], "xxh3")
        self.assert_has_all(self.f, keys(20_000) + keys(1000, "more"))
        [told] = self.bloomery("explain", "--json", self.f, "key-5").json["keys"]
        self.assertEqual(told["hash"], "%016X %016X" % xxh3(b"key-5"))

    def test_another_filter_of_that_name_is_told_with_both_values(self) -> None:
        self.build("-p", "2%")

        for options, both in {
            ("-n", 70_000): "capacity.*expected 70000, found 50000",
            ("-p", "1%"): "target FPR.*0.01.*0.02",
            ("--layout", "split_block512"): "layout.*expected split_block512, found blocked",
            ("--seed", 7): "seed.*expected 7, found 0",
            ("--hash", "murmur3"): "hash.*murmur3.*xxh3_64",
            ("--u64",): "keys.*expected u64, found bytes",
            ("--shards", 32): "32 shards.*16 shards",
            ("--grow",): "growth.*unlimited.*none",
            ("--window", "1h"): "window",
        }.items():
            with self.subTest(options=options):
                usual = {"-n": 50_000, "-p": "2%", "--shards": 16}
                rest = [word for option, value in usual.items() if option not in options for word in (option, value)]
                self.refused("build", *rest, *options, "-o", self.f, stdin=b"1\n", says=both)
        self.assert_has_all(self.f, keys(20_000))

    def test_somebody_elses_keys_are_left_alone(self) -> None:
        self.redis("SET", b"{f}:m", b"my own")
        self.refused("build", "-n", 100, "-o", self.f, stdin=b"a\n", says="the key with this name is not a filter")
        self.assertEqual(self.redis("GET", b"{f}:m"), b"my own")
        self.redis("FLUSHALL")
        self.redis("RPUSH", b"{f}:m", b"a list")
        for verb in VERBS:
            self.refused(*arguments(verb, self.f), stdin=b"a\n", says="WRONGTYPE.*belongs to something else: choose another name")
        self.assertEqual(self.redis("LRANGE", b"{f}:m", 0, -1), [b"a list"])

    def test_a_stopped_server_is_waited_for_no_longer_than_said(self) -> None:
        self.build()
        os.kill(self.server.process.pid, SIGSTOP)
        try:
            self.refused("check", "--timeout", "200ms", self.f, stdin=b"a\n", says=r"no answer within \d+ ms")
        finally:
            os.kill(self.server.process.pid, SIGCONT)
        self.assert_has_all(self.f, keys(100))

    def test_without_memory_on_the_server_it_is_said(self) -> None:
        self.build()
        self.redis("CONFIG", "SET", "maxmemory", "1mb")
        try:
            self.refused("build", "-n", 10_000_000, "-o", self.server.address("large"), stdin=b"a\n", says="OOM.*maxmemory")
        finally:
            self.redis("CONFIG", "SET", "maxmemory", "0")

    def test_replicas_that_are_not_there_are_waited_for_in_vain(self) -> None:
        self.build()

        self.refused_in_time("add", "--wait-replicas", 1, self.f, stdin=b"new\n", says="not on the required number of replicas.*expected 1, found 0")
        self.assert_has_all(self.f, [b"new"])


class HalfDone(RedisTest):
    """A user whose rights are taken away in the midst of it: what was done before is done, and said."""

    def setUp(self) -> None:
        super().setUp()
        self.allow("+@all")
        self.env = dict(os.environ, BLOOMERY_REDIS_USER="user", BLOOMERY_REDIS_PASSWORD="pw")

    def allow(self, *rules: str) -> None:
        self.redis("ACL", "SETUSER", "user", "on", ">pw", "~*", *rules)

    def test_a_later_batch_that_fails_leaves_the_numbers_of_those_before(self) -> None:
        chain = ["--scheme", "guava-chain"]
        for making, words, changed, advice in (
            (["--counting"], ["add"], "new", "if you add them again, those already added count twice"),
            (["--counting"], ["remove"], "removed", "run 'bloomery check' before removing them again"),
            (chain, ["add", *chain], "new", "add them again"),
        ):
            with self.subTest(making=making, words=words):
                self.redis("FLUSHALL")
                self.allow("+@all")
                before = keys(15) if words == ["remove"] else []
                self.bloomery("build", "-q", *making, "-n", 1000, "-p", "1e-9", "-o", self.f, stdin=text(before))
                run = self.start(*words, "--json", self.f, env=self.env)
                run.stdin.write(text(keys(10)))
                run.stdin.flush()
                wait_until(lambda: self.count(self.f, keys(10), *words[1:]) == (0 if before else 10))
                self.allow("-bitfield", "-evalsha")

                out, err = run.communicate(text(keys(15)[10:]), timeout=60)

                told = json.loads(out)
                self.assertEqual(run.returncode, 2)
                self.assertEqual((told["keys"], told[changed], told["complete"], told["undecided"], told["rate"]), (10, 10, False, 5, None))
                self.assertRegex(err.decode(), rf"\Abloomery: [^\n]*NOPERM[^\n]*; keys 1 to 10 of the input are done, 10 of them {'added' if changed == 'new' else changed}; keys 11 to 15 of the input may or may not be done: {advice}\n\Z")
                self.assertEqual(self.count(self.f, keys(15), *words[1:]), 5 if before else 10)

    def test_a_count_that_is_not_known_afterwards_is_no_failure(self) -> None:
        for making, words, right, unknown in (
            ([], ["build", "-n", 1000, "-o"], "bitcount", ["rate"]),
            ([], ["add"], "bitcount", ["size", "rate"]),
            (["--counting"], ["remove"], "strlen", ["size", "rate"]),
            (["--scheme", "guava-chain"], ["add", "--scheme", "guava-chain"], "pttl", ["rate"]),
        ):
            with self.subTest(words=words):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", *making, "-n", 1000, "-p", "1%", "-o", self.f, stdin=text(keys(10)))
                self.allow("+@all", "-" + right)

                result = self.bloomery(*words, self.f, "--json", stdin=text(keys(10)), env=self.env)

                self.assertEqual((result.json["keys"], result.json["complete"]), (10, True))
                self.assertEqual([result.json[name] for name in unknown], [None] * len(unknown))
                self.assertRegex(result.err, rf"\Abloomery: unix://\S+: warning: the operation succeeded, but the number of keys is unknown: [^\n]*NOPERM[^\n]*{right}[^\n]*\n\Z")


class Refused(RedisTest):
    def test_what_no_shared_filter_is(self) -> None:
        for options, why in {
            ("--scheme", "guava"): "a shared filter cannot have this scheme.*--scheme",
            ("--layout", "classic"): "cannot be shared: expected split_block512 or blocked",
            ("--layout", "sliding"): "cannot be shared",
            ("-m", "64KiB"): "size of a shared filter follows",
            ("-k", 3): "probes of a shared filter follow",
            ("--prefer", "speed"): "--prefer: not available for shared filters",
            ("--window-keys", 10): "can only have a window of time",
            ("--note", "hello"): "--note: a shared filter cannot store a comment",
            ("--foldable",): "--foldable: a shared filter cannot be folded",
            ("--grow", "--max-keys", "1M"): "exclude each other",
            ("--grow", "--counting"): "a counting filter cannot grow",
            ("--max-keys", "1M", "--window", "1h"): "cannot grow",
            ("--counting", "--window", "1h"): "keys cannot be removed from a sliding-window filter",
            ("--max-keys", 10): "the maximum is less than the capacity.*100 or more",
            ("--shards", 0): "invalid number of shards",
            ("--hash", "siphash"): "--hash: the hash siphash needs a secret key",
            ("-p", "200%"): "--rate: invalid value",
            ("--ttl", "0s"): "--ttl: invalid value",
            ("--wait-replicas", "-1"): "--wait-replicas: invalid value: expected a whole number from 0 to 1000, found '-1'",
        }.items():
            with self.subTest(options=options):
                self.refused("build", "-n", 100, *options, "-o", self.f, stdin=b"a\n", says=why)
        self.assertEqual(self.server.keys(), [])

    def test_a_missing_input_is_said_before_anything_is_made(self) -> None:
        self.refused("build", "-n", 100, "-o", self.f, "missing", says="missing: .*no such file")
        self.assertEqual(self.server.keys(), [])

    def test_options_of_servers_are_not_for_files(self) -> None:
        self.make_filter("file", [b"a"], "-n", 10)
        for words in (
            ["add", "--wait-replicas", 1, "file"],
            ["check", "--replicas", "file"],
            ["check", "--on-damage", "maybe", "file"],
            ["info", "--timeout", "1s", "file"],
            ["verify", "--tls-ca", "x", "file"],
            ["explain", "--tls-key", "x", "file", "a"],
            ["build", "--max-keys", 10, "-o", "new"],
            ["build", "--ttl", "1h", "-o", "new"],
            ["dedup", "--shards", 4, "--state", "new"],
            ["union", "--tls-cert", "x", "-o", "new", "file", "file"],
            ["remove", "--timeout", "1s", "file"],
        ):
            with self.subTest(words=words):
                self.refused(*words, stdin=b"a\n", says="this option needs a filter on Redis, and FILTER is a file")

    def test_verbs_of_files_name_the_way_out(self) -> None:
        self.make_filter("file", [b"a"], "-n", 10)
        for words in (
            ["fold", self.f, "-o", "x"],
            ["fold", "file", "-o", self.f],
            ["intersect", "-o", "x", self.f, "file"],
            ["overlap", self.f, "file"],
        ):
            with self.subTest(words=words):
                self.refused(*words, says=rf"{words[0]} works on files.*bloomery pull unix://\S+ -o FILE.*bloomery push FILE ADDRESS")
        for words in (["rebuild", self.f], ["seal", "-o", self.f, "file"], ["seal", "-o", "x", self.f]):
            with self.subTest(words=words):
                self.refused(*words, says=rf"{words[0]} works on files.*which servers do not keep.*bloomery build --grow -o FILE")

    def test_the_way_out_of_verbs_of_files_is_one(self) -> None:
        self.bloomery("build", "-q", "-n", 10_000, "-o", self.f, stdin=text(keys(100)))

        self.bloomery("pull", "-q", self.f, "-o", "file")
        self.bloomery("fold", "-q", "file", "-o", "folded")
        self.bloomery("push", "-q", "folded", self.server.address("folded"))

        self.assert_has_all(self.server.address("folded"), keys(100))

    def test_what_only_files_have_is_refused(self) -> None:
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=b"a\n")

        self.refused("info", "--check", self.f, says="--check: a filter on servers has no page checksums")
        self.refused("explain", self.f, "a", "--keys", "file", says="static filters in files")
        self.refused("check", "--now", "5", self.f, says="clock of the server")
        self.refused("add", "--now", "5", self.f, says="clock of the server")
        self.refused("pull", self.f, "-o", self.f, says="pull writes a file")


class Secrets(RedisTest):
    """The server asks for a password, and no word of ours has it."""

    TCP = True
    PASSWORDS = ("pw-of-bob", "wrong-pw", "s3cret")

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.server.client("ACL", "SETUSER", "bob", "on", ">pw-of-bob", "~*", "&*", "+@all")
        cls.server.client("CONFIG", "SET", "requirepass", "s3cret")

    def setUp(self) -> None:
        self.server.client("AUTH", "s3cret")
        super().setUp()

    def assert_silent(self, said: str | bytes) -> None:
        said = said if isinstance(said, str) else said.decode()
        for password in self.PASSWORDS:
            self.assertNotIn(password, said)

    def run_silently(self, *words: object, **options):
        result = self.bloomery(*words, status=None, **options)
        self.assert_silent(result.err)
        self.assert_silent(result.out)
        return result

    def test_the_right_password_opens_and_is_not_printed(self) -> None:
        for address in (self.server.tcp_address("f", ":s3cret@"), self.server.tcp_address("f", "bob:pw-of-bob@")):
            self.assertEqual(self.run_silently("build", "-n", 100, "-o", address, stdin=b"a\n").status, 0)
            for verb in VERBS if "bob" in address else VERBS[:2]:
                self.assertIn(self.run_silently(*arguments(verb, address), stdin=b"a\n").status, (0, 1), verb)
            self.run_silently("info", "--help", address)
            self.assertEqual(self.run_silently("redis", "doctor", address).status, 1)

    def test_the_environment_has_it_for_addresses_without(self) -> None:
        environment = dict(os.environ, BLOOMERY_REDIS_USER="bob", BLOOMERY_REDIS_PASSWORD="pw-of-bob")
        self.assertEqual(self.run_silently("build", "-n", 100, "-o", self.f, stdin=b"a\n", env=environment).status, 0)
        self.assertEqual(self.run_silently("check", self.f, stdin=b"a\nb\n", env=environment).out, b"a\n")

    def test_a_wrong_one_is_refused_and_not_printed(self) -> None:
        for address in (self.server.tcp_address("f", ":wrong-pw@"), self.server.tcp_address("f", "bob:wrong-pw@"), self.server.tcp_address("f"), self.f):
            for verb in VERBS + [["redis", "doctor"]]:
                said = self.run_silently(*arguments(verb, address), stdin=b"a\n")
                self.assertEqual(said.status, 2)
                self.assertRegex(said.err, r"\Abloomery: [^\n]*(refuses this user|NOAUTH|WRONGPASS|password)[^\n]*\n\Z")

    def test_misspelt_commands_do_not_print_it_either(self) -> None:
        address = self.server.tcp_address("f", "bob:pw-of-bob@")
        for words in (
            [address],
            ["chekc", address],
            ["info", "a", address],
            ["info", "--no-such-option", address],
            ["check", "-d", address, self.f],
            ["fold", address, "-o", "x"],
            ["union", "-o", address, "one"],
            ["info", address.replace("redis://", "REDIS://")],
            ["info", address.replace("redis://", "rediss+cluster://").replace("/f", "")],
            ["check", self.f, address],
            ["build", "-o", "x", address],
            ["keygen", "-o", address],
            ["seal", "-o", "x", address],
            ["noisy", "check", address],
            ["pull", address, "-o", address],
            ["push", address, address],
            ["add", "redis://bob:pw-of-bob/with/slashes@host/f"],
            ["plan", address],
        ):
            with self.subTest(words=words[:1]):
                self.assertEqual(self.run_silently(*words).status, 2)

    def test_odd_passwords_are_printed_by_no_message(self) -> None:
        odd = ("it's-SECRET", "12/SECRET", 'a"b:SECRET', "a@SECRET", "two words/SECRET", "tab\tand:SECRET'@x", "%zzSECRET", "SECRET?db=1#")
        forms = (
            ("redis://bob:", "@127.0.0.1:1/f"),
            ("rediss://bob:", "@127.0.0.1:1/f?db=1"),
            ("redis+cluster://bob:", "@127.0.0.1:1,127.0.0.1:2/f"),
            ("rediss+cluster://:", "@127.0.0.1:1"),
            ("redis+sentinel://bob:", "@127.0.0.1:1,127.0.0.1:2/master/f"),
            ("rediss+sentinel://bob:", "@127.0.0.1:1/f"),
            ("Redsi://bob:", "@host/f"),
        )
        for password, (start, end) in itertools.product(odd, forms):
            address = start + password + end
            for words in (["info", "--timeout", "1ms", address], [address], ["info", "x", address], ["info", "--timeout", address], ["build", "-o", "x", address]):
                said = self.bloomery(*words, status=2)
                for part in (password, "SECRET", "bob"):
                    self.assertNotIn(part, said.err, (words, part))

    def test_what_is_no_password_is_printed(self) -> None:
        self.refused("info", "--timeout", "1ms", "redis://127.0.0.1:1/f", says="127.0.0.1:1")
        self.refused("check", "no://such/file", says="no://such/file: ")
        self.refused("check", "user@host:file", says="user@host:file: ")


if __name__ == "__main__":
    unittest.main()
