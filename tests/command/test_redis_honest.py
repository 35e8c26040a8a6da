"""What commands say of shared filters is so: what was compared, what was written, what was remembered, what an option did."""

import os
import re
import socket
import threading
import unittest

from redis_server import RedisTest, environment_of
from support import keys, text


class Verify(RedisTest):
    def test_what_was_not_compared_is_not_called_compared(self) -> None:
        for why, options in {"the filter grows": ["--grow"], "the filter has a window": ["--window", "1h"], "larger than 64 MiB": ["--layout", "split_block512", "-p", "1e-9", "-n", 16_000_000]}.items():
            with self.subTest(why=why):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", *(options if "-n" in options else [*options, "-n", 1000]), "-o", self.f, stdin=text(keys(100)))

                told = self.bloomery("verify", "--json", "--queries", 1000, self.f).json
                page = self.bloomery("verify", "--queries", 1000, self.f).out.decode()

                self.assertEqual([told[name] for name in ("predicted", "certified", "bits_set_expected", "bits_set_sigma")], [None] * 4)
                self.assertRegex(page, rf"(?m)^verdict +no problem found, but the measured FPR was not compared with the bits, because .*{why}")
                self.assertNotRegex(page, "agree|exact FPR|expected FPR")

    def test_the_bits_of_a_fixed_size_are_compared_with_lookups_and_not_with_a_count(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "-o", self.f, stdin=text(keys(1000)))
        told = self.bloomery("verify", "--json", self.f).json
        self.assertAlmostEqual(told["certified"], self.info(self.f)["rate_now"], delta=0.002)
        self.assertIsNone(told["bits_set_expected"])

        self.bloomery("build", "-q", "--window", "1h", "-n", 100, "-o", self.server.address("full"), stdin=text(keys(3000)), status=3)
        agrees = "verdict +no problem found: the measured FPR agrees with the bits, but the key count is an estimate"
        self.check_runs([(f"verify {self.f}", agrees)], status=0)
        self.check_runs([(f"verify --queries 1000 {self.server.address('full')}", "(?m)^verdict +above target: current FPR")], status=1)


class Info(RedisTest):
    def test_a_full_filter_reports_no_number_of_keys(self) -> None:
        self.bloomery("build", "-q", "-n", 1, "-o", self.f, stdin=text(keys(20_000)), status=3)

        told = self.bloomery("info", "--json", self.f).json
        added = self.bloomery("add", "--json", self.f, stdin=b"one\n", status=3).json

        self.assertEqual((told["fill"], told["rate_now"]), (1, 1))
        self.assertNotIn("inserted", told)
        self.assertIsNone(added["size"])
        self.assertNotRegex(self.bloomery("info", self.f).out, rb"inserted|000,000,000")


class Union(RedisTest):
    def build(self, name: str, *options: object, lines: int = 500) -> str:
        address = self.server.address(name)
        self.bloomery("build", "-q", "--layout", "split_block512", *options, "-o", address, stdin=text(keys(lines, name)), status=None)
        return address

    def test_nothing_is_written_before_all_inputs_are_read_and_compared(self) -> None:
        a = self.build("a", "-n", 100_000)
        small = self.build("small", "-n", 100)
        grown = self.build("grown", "-n", 100, "--grow")
        lost = self.build("lost", "-n", 100_000)
        self.redis("DEL", self.server.shard(3, "lost") + b":0")
        self.write("no-filter", b"text\n")
        into = self.build("into", "-n", 100_000)
        before = {key: self.redis("DUMP", key) for key in self.server.keys()}

        for target in (self.server.address("new"), into):
            for other, why in ((self.server.address("missing"), "no filter of this name"), ("missing", "no such file"), ("no-filter", "not a"), (small, "bits"), (grown, "a scalable filter"), (lost, "missing")):
                self.refused("union", "-o", target, a, other, says=why)
                self.assertEqual({key: self.redis("DUMP", key) for key in self.server.keys()}, before, other)

    def test_a_union_that_breaks_its_target_ends_with_3(self) -> None:
        a, b, into = (self.build(name, "-n", 500) for name in ("a", "b", "into"))

        run = self.bloomery("union", "--json", "-q", "-o", into, a, b, status=3)

        self.assertEqual(run.json["fpr_verdict"], "broken")
        self.assertRegex(run.err.splitlines()[-1], "warning: the filter exceeds its target FPR: current FPR .*, target 1%")
        self.assert_has_all(into, keys(500, "a") + keys(500, "b"))

    def test_half_done_it_says_so_and_can_be_run_again(self) -> None:
        a, b = self.build("a", "-n", 100_000), self.build("b", "-n", 100_000)
        self.bloomery("pull", "-q", b, "-o", "b.bloom")
        into = self.build("into", "-n", 100_000, lines=0)
        # A user with write permission for some shards only fails midway.
        mine = [b"~{into}*", *(b"~%s*" % self.server.shard(shard, "into") for shard in range(2))]
        self.redis("ACL", "SETUSER", "half", "reset", "on", ">pw", "+@all", "%R~*", "&*", *mine)
        half = environment_of("half", "pw")

        for words in (["union", "-o", into, a, "b.bloom"], ["push", "b.bloom", into]):
            with self.subTest(words=words[0]):
                self.refused(*words, env=half, says=r"unix://\S+ may have some of the new keys in addition to its own; it is safe to run the command again")
                bits = [self.redis("BITCOUNT", self.server.shard(shard, "into") + b":0", 0, -17) for shard in range(16)]
                self.assertGreater(min(bits[:2]), 0)
                self.assertEqual(max(bits[2:]), 0)

        self.bloomery("union", "-q", "-o", into, a, "b.bloom")
        self.assert_has_all(into, keys(500, "a") + keys(500, "b"))


class Dedup(RedisTest):
    def test_of_a_filter_whose_bits_are_not_counted_the_losses_are_unknown(self) -> None:
        dedup = ["dedup", "--state", self.f, "--layout", "split_block512", "-p", "1e-9", "-n", 16_000_000]

        told = self.bloomery(*dedup, "--json", stdin=text(keys(10) * 2))
        said = self.bloomery(*dedup, stdin=text(keys(10))).err

        self.assertEqual(told.lines, keys(10))
        self.assertEqual([told.report[name] for name in ("dropped", "rate", "expected_wrongly_dropped")], [10, None, None])
        self.assertRegex(said, "10 lines in, 0 out, 10 dropped; the number of false drops is unknown, because the filter's bits were not counted")
        self.assertNotIn("at most", said)

    def test_lines_that_were_remembered_and_not_printed_are_named(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "-p", "1e-9", "-o", self.f, stdin=b"")
        with open("/dev/full", "wb") as full:
            said = self.bloomery("dedup", "-q", "--state", self.f, stdin=text(keys(7)), stdout=full, status=2).err

        self.assertRegex(said, r"\Abloomery: standard output: [^\n]*No space left[^\n]*; lines 1 to 7 of the input are remembered, but the new ones may not have been printed;[^\n]*\n\Z")
        self.assert_has_all(self.f, keys(7))

    def test_a_line_torn_by_an_earlier_run_is_ended(self) -> None:
        self.write("out", b"whole\ntorn")
        with open(self.path("out"), "ab") as out:
            said = self.bloomery("dedup", "-n", 100, "--state", self.f, stdin=b"a\nb\na\n", stdout=out).err

        self.assertEqual(self.read("out"), b"whole\ntorn\na\nb\n")
        self.assertIn("the output ended with an incomplete line, which was completed with a line end", said)


class Options(RedisTest):
    """Options for a filter that exists: they agree with it, or are refused with the found and the requested value."""

    def test_sharing_that_differs(self) -> None:
        f = self.f
        self.make_filter("file", keys(10), "-m", 512 * 64, "-k", 8, "-n", 100, "--layout", "split_block512")
        self.bloomery("push", "-q", "file", f, "--shards", 4)
        self.bloomery("push", "-q", "file", f, "--shards", 4)
        before = self.redis("GET", "{f}:m")
        self.refuse_all({
            f"push file {f} --shards 8": "shards.*expected 8, found 4; leave out --shards, or choose another name",
            f"dedup --state {f} -n 100 --shards 8": "shards.*expected 8, found 4",
            f"dedup --state {f} -n 100 --max-keys 1000": "growth.*expected up to 1,000 keys, found not at all; leave out --max-keys",
            f"dedup --state {f} --grow": "growth.*expected without limit, found not at all; leave out --grow",
            f"push file {f} --ttl 1h": "time to live.*expected 1 h at most, found it does not expire; leave out --ttl",
            f"dedup --state {f} --ttl 1h": "time to live",
            f"build -o {f} --ttl 1h": "time to live",
        }, stdin=b"new\n")  # fmt: skip
        for line in "info", "pull -o x", "push file", "redis doctor", "union -o x file", "dedup -n 9 --state", "build -o", "remove":
            for option in "--tls-ca", "--tls-cert", "--tls-key":
                self.refuse_all({f"{line} {f} {option} file": f"{option}: certificates need an address with TLS.*rediss://"})
        self.assertEqual(self.redis("GET", "{f}:m"), before)
        self.assertEqual(self.count(f, [b"new"]), 0)

    def test_sharing_that_agrees(self) -> None:
        for options in (["--max-keys", "1M"], ["--grow"], ["--shards", 3, "-n", 1000], ["--ttl", "1h", "-n", 1000]):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                for line in (b"first\n", b"second\n"):
                    self.assertEqual(self.bloomery("dedup", "-q", "--state", self.f, *options, stdin=line).out, line)

    def test_a_time_to_live_is_no_longer_than_was_asked(self) -> None:
        for scheme in ([], ["--scheme", "guava-chain"]):
            with self.subTest(scheme=scheme):
                self.redis("FLUSHALL")
                self.bloomery("build", "-q", *scheme, "-n", 100, "--ttl", "10h", "-o", self.f, stdin=b"a\n")

                self.bloomery("build", "-q", *scheme, "-n", 100, "--ttl", "10h", "-o", self.f, stdin=b"b\n")
                self.refused("build", *scheme, "-n", 100, "--ttl", "9h", "-o", self.f, stdin=b"c\n", says=r"time to live.*expected 9 h at most, found 3[56]\d+ s left; leave out --ttl")

    def test_info_about_the_program_takes_no_option_of_filters(self) -> None:
        for option in "--timeout 1s", "--replicas", "--tls-ca x", "--scheme guava-chain", "--capacity 5", "--queries 5", "--secret x":
            self.refuse_all({f"info --build {option}": f"--build.*found {option.split()[0]}; leave out one"})


class Version(RedisTest):
    def server_of_version(self, version: str) -> str:
        """The address of the same server, which says that it is of another version."""
        path = os.path.join(self.server.folder, version)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.addCleanup(os.unlink, path)
        self.addCleanup(listener.close)

        def other(found: re.Match) -> bytes:  # as long as the true one: an answer says its length
            return found[1] + version.encode().ljust(len(found[2]), b"0")

        def relay(a: socket.socket, b: socket.socket) -> None:
            with a, b:
                while data := a.recv(1 << 20):
                    b.sendall(re.sub(rb"(\b(?:redis|valkey)_version:)([0-9.]+)", other, data))
                b.shutdown(socket.SHUT_WR)

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.server.path)
                for ends in ((client.dup(), server.dup()), (server, client)):
                    threading.Thread(target=relay, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return f"unix://{path}?name=f"

    def test_one_least_version_is_named_everywhere(self) -> None:
        says = {}
        for version in ("6.0.1", "6.1.9", "5.0.7", "6.2.0", "7.0.1"):
            with self.subTest(version=version):
                finding = self.bloomery("redis", "doctor", "--json", self.server_of_version(version), status=1).json["findings"][0]
                self.assertIn(version, finding["text"])
                says[version] = finding["status"]
                if finding["status"] == "RISK":
                    self.assertIn("Redis 6.2 or later, or Valkey", finding["text"])

        self.assertEqual(says, {"6.0.1": "RISK", "6.1.9": "RISK", "5.0.7": "RISK", "6.2.0": "OK", "7.0.1": "OK"})
        for name in ("docs/redis.md", "include/bloomery/redis/chain.hpp"):
            with open(os.path.join(os.environ["BLOOMERY_SOURCE"], name), encoding="utf-8") as file:
                text_of = file.read()
            self.assertIn("Redis 6.2 or later, or Valkey", text_of, name)
            self.assertNotRegex(text_of, r"Redis (5|6\.0)")


if __name__ == "__main__":
    unittest.main()
