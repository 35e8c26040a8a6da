"""What may go wrong with filters on servers: each is one line of error and status 2, and never a wrong "absent"; what no
shared filter can be is refused with the reason; passwords are in no word that is printed."""

import itertools
import json
import os
import unittest
from signal import SIGCONT, SIGSTOP

from redis_server import RedisTest, environment_of, wait_until
from support import keys, sample, text, xxh3, xxh3_64

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

    def test_addresses_and_names_that_are_wrong(self) -> None:
        self.refuse_all({
            "check redis://": "redis://: the filter's name is missing",
            "check redis://host:port/f": "redis://host:.../f: not a port",
            "check redis://host/f?no=5": "expected db=N, once, found 'no'",
            "check 'unix://?name=f'": "path of the socket is not absolute",
            "check redis://host/%zz": "without two hexadecimal digits.*found '%zz'",
            "check no://such/file": "no://such/file: ",
            "check user@host:file": "user@host:file: ",
        }, stdin=b"a\n")  # fmt: skip

    def test_a_lost_or_emptied_part_is_damage_and_never_absence(self) -> None:
        in_shard_3 = next(key.decode() for key in keys(1000) if xxh3_64(key)[0] * 16 >> 64 == 3)
        for key, zeros, verbs in ((b":0", False, VERBS), (b":0", True, [["check", "-v"]]), (b":h", False, [["explain"]])):
            for verb in verbs:
                with self.subTest(key=key, verb=verb):
                    self.redis("FLUSHALL")
                    self.build()
                    lost = self.server.shard(3) + key
                    size = self.redis("STRLEN", lost) if zeros else 0
                    self.redis("DEL", lost)
                    if zeros:
                        self.redis("SET", lost, bytes(size))

                    words = ["explain", self.f, in_shard_3] if verb == ["explain"] else arguments(verb, self.f)
                    says = r"a part of the filter is missing.*shard 3 of 16|missing: \{f~[0-9a-f]{16}:3\}"
                    self.refused(*words, stdin=text(keys(20_000) + keys(2000, "more")), says=says)
        self.assertFalse(os.path.exists(self.path("pulled")) or os.path.exists(self.path("united")))

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
        wait_until(lambda: self.count(self.f, keys(100, "new")) == 100)
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

    def test_another_filter_of_that_name_is_an_error_with_both_values(self) -> None:
        self.build("-p", "2%")
        usual = {"-n": "50k", "-p": "2%", "--shards": "16"}
        for option, both in {
            "-n 70k": "capacity.*expected 70000, found 50000",
            "-p 1%": "target FPR.*0.01.*0.02",
            "--layout split_block512": "layout.*expected split_block512, found blocked",
            "--seed 7": "seed.*expected 7, found 0",
            "--hash murmur3": "hash.*murmur3.*xxh3_64",
            "--u64": "keys.*expected u64, found bytes",
            "--shards 32": "32 shards.*16 shards",
            "--grow": "growth.*unlimited.*none",
            "--window 1h": "window",
        }.items():
            with self.subTest(option):
                rest = [word for pair in usual.items() if pair[0] not in option for word in pair]
                self.refused("build", *rest, *option.split(), "-o", self.f, stdin=b"1\n", says=both)
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
        self.env = environment_of("user", "pw")

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
    def test_parameters_that_no_shared_filter_has(self) -> None:
        self.make_filter("file", [b"a"], "-n", 10)
        made = f"build -n 100 -o {self.f}"
        self.refuse_all({
            f"{made} missing": "missing: .*no such file",  # before the filter is created
            f"{made} --scheme guava": "a shared filter cannot have this scheme.*--scheme",
            f"{made} --layout classic": "cannot be shared: expected split_block512 or blocked",
            f"{made} --layout sliding": "cannot be shared",
            f"{made} -m 64KiB": "size of a shared filter follows",
            f"{made} -k 3": "probes of a shared filter follow",
            f"{made} --prefer speed": "--prefer: not available for shared filters",
            f"{made} --window-keys 10": "can only have a window of time",
            f"{made} --note hello": "--note: a shared filter cannot store a comment",
            f"{made} --foldable": "--foldable: a shared filter cannot be folded",
            f"{made} --grow --max-keys 1M": "exclude each other",
            f"{made} --grow --counting": "a counting filter cannot grow",
            f"{made} --max-keys 1M --window 1h": "cannot grow",
            f"{made} --counting --window 1h": "keys cannot be removed from a sliding-window filter",
            f"{made} --max-keys 10": "the maximum is less than the capacity.*100 or more",
            f"{made} --shards 0": "invalid number of shards",
            f"{made} --hash siphash": "--hash: the hash siphash needs a secret key",
            f"{made} -p 200%": "--rate: invalid value",
            f"{made} --ttl 0s": "--ttl: invalid value",
            f"{made} --wait-replicas -1": "--wait-replicas: invalid value: expected a whole number from 0 to 1000, found '-1'",
        }, stdin=b"a\n")  # fmt: skip
        needs_redis = [
            "add --wait-replicas 1 file",
            "check --replicas file",
            "check --on-damage maybe file",
            "info --timeout 1s file",
            "verify --tls-ca x file",
            "explain --tls-key x file a",
            "build --max-keys 10 -o new",
            "build --ttl 1h -o new",
            "dedup --shards 4 --state new",
            "union --tls-cert x -o new file file",
            "remove --timeout 1s file",
        ]
        self.refuse_all(dict.fromkeys(needs_redis, "this option needs a filter on Redis, and FILTER is a file"), stdin=b"a\n")
        self.assertEqual(self.server.keys(), [])

    def test_operations_that_only_files_have(self) -> None:
        f = self.f
        self.bloomery("build", "-q", "-n", 10_000, "-o", f, stdin=text(keys(100)))
        self.make_filter("file", [b"a"], "-n", 10)
        for verb in f"fold {f} -o x", f"fold file -o {f}", f"intersect -o x {f} file", f"overlap {f} file":
            self.refuse_all({verb: rf"{verb.split()[0]} works on files.*bloomery pull unix://\S+ -o FILE.*bloomery push FILE ADDRESS"})
        for verb in f"rebuild {f}", f"seal -o {f} file", f"seal -o x {f}":
            self.refuse_all({verb: rf"{verb.split()[0]} works on files.*which servers do not keep.*bloomery build --grow -o FILE"})
        self.refuse_all({
            f"info --check {f}": "--check: a filter on servers has no page checksums",
            f"explain {f} a --keys file": "only for filters in files without a window",
            f"check --now 5 {f}": "clock of the server",
            f"add --now 5 {f}": "clock of the server",
            f"pull {f} -o {f}": "pull writes a file",
        })  # fmt: skip

        # As advised: pull, then push.
        self.bloomery("pull", "-q", f, "-o", "file")
        self.bloomery("fold", "-q", "file", "-o", "folded")
        self.bloomery("push", "-q", "folded", self.server.address("folded"))
        self.assert_has_all(self.server.address("folded"), keys(100))


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
        environment = environment_of("bob", "pw-of-bob")
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
        lines = """ADDRESS, chekc ADDRESS, info a ADDRESS, info --no-such-option ADDRESS, check -d ADDRESS f, fold ADDRESS -o x,
            union -o ADDRESS one, check f ADDRESS, build -o x ADDRESS, keygen -o ADDRESS, seal -o x ADDRESS, noisy check ADDRESS,
            pull ADDRESS -o ADDRESS, push ADDRESS ADDRESS, plan ADDRESS, info ODD, info CLUSTER,
            add redis://bob:pw-of-bob/with/slashes@host/f"""
        replaced = {"ADDRESS": address, "ODD": address.replace("redis://", "REDIS://"), "CLUSTER": address.replace("redis://", "rediss+cluster://").replace("/f", "")}
        for line in lines.split(","):
            with self.subTest(line):
                self.assertEqual(self.run_silently(*(replaced.get(word, word) for word in line.split())).status, 2)

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
        lines = (["info", "--timeout", "1ms"], [], ["info", "x"], ["info", "--timeout"], ["build", "-o", "x"])
        for password, (start, end), words in sample(itertools.product(odd, forms, lines), 97):
            said = self.bloomery(*words, start + password + end, status=2)
            for part in (password, "SECRET", "bob"):
                self.assertNotIn(part, said.err, (words, start + password + end))


if __name__ == "__main__":
    unittest.main()
