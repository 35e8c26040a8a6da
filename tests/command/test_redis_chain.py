"""--scheme guava-chain: the chain of bitmaps of a Java service, by the published figures and by plain SETBIT commands.

tests/redis/chain compares each bit with a model of the original; here the commands are compared with each other.
"""

import hashlib
import struct
import unittest

from redis_server import RedisTest
from support import keys, text

CHAIN = ["--scheme", "guava-chain"]
PUBLISHED = [*CHAIN, "-n", 10_000, "-p", 0.0005]
SMALL = [*CHAIN, "-n", 300, "-p", "1%"]  # 2,880 bits and 7 probes: whole words of 64 bits for -n ln p / (ln 2)^2 = 2875.5


def md5_key(i: int) -> bytes:
    return hashlib.md5(struct.pack("<I", i)).hexdigest().encode()


class Chain(RedisTest):
    def bitmaps(self, name: str = "f", cursor: str = "f-cursor") -> list[bytes]:
        return [self.redis("GET", f"{name}-{i}") for i in range(int(self.redis("GET", cursor)) + 1)]

    def chain_info(self, *options: object) -> dict:
        return self.bloomery("info", "--json", self.f, *(options or CHAIN)).json

    def become_the_originals(self, lines: list[bytes]) -> str:
        """A chain of these keys under the names of the Java service, which stores no parameters; returns its address."""
        self.bloomery("build", "-q", *SMALL, "-o", self.f, stdin=text(lines))
        for number, bitmap in enumerate(self.bitmaps()):
            for offset in range(8 * len(bitmap)):
                if bitmap[offset // 8] >> (7 - offset % 8) & 1 or offset == 8 * len(bitmap) - 1:
                    self.redis("SETBIT", f"bloomfilter-{number}", offset, bitmap[offset // 8] >> (7 - offset % 8) & 1)
        self.redis("SET", "cursor", self.redis("GET", "f-cursor"))
        self.redis("DEL", *[key for key in self.server.keys() if key.startswith(b"f-")])
        return self.server.address("bloomfilter")

    def test_the_published_figures(self) -> None:
        asked = [md5_key(99_999), md5_key(9_999), b"abcdefghijklmnopqrstuvwxyz123456"]
        first = self.bloomery("build", "--json", *PUBLISHED, "-o", self.f, stdin=text(map(md5_key, range(10_000)))).json

        self.assertEqual((first["made"], first["keys"], first["growths"], first["bits"], first["probes"]), (True, 10_000, 1, 158_208, 11))

        more = self.bloomery("add", "--json", *CHAIN, self.f, stdin=text(map(md5_key, range(10_000, 30_000)))).json

        self.assertEqual((more["keys"], more["growths"]), (20_000, 3))
        self.assertEqual(self.bloomery("check", *CHAIN, self.f, stdin=text(asked)).lines, asked[1:2])
        facts = self.chain_info()
        self.assertEqual((facts["bits"], facts["probes"], facts["growths"], facts["capacity"], facts["target_rate"]), (158_208, 11, 3, 10_000, 0.0005))
        self.assertEqual(facts["ones"], [self.redis("BITCOUNT", f"f-{i}") for i in range(4)])
        self.assertAlmostEqual(facts["estimated_keys"], 30_000, delta=300)
        absent = 1.0
        for ones in facts["ones"]:
            absent *= 1 - (ones / 158_208) ** 11
        self.assertAlmostEqual(facts["rate_now"] / (1 - absent), 1, delta=1e-6)

    def test_it_answers_as_it_reports_and_is_verified(self) -> None:
        lines, others = keys(500), keys(3000, "absent")
        made = self.bloomery("build", "--json", *SMALL, "-o", self.f, stdin=text(lines + lines[:200])).json
        self.assertEqual((made["bits"], made["probes"], made["growths"], len(self.bitmaps())), (2880, 7, made["growths"], made["growths"] + 1))
        self.assertTrue(480 <= made["new"] <= 500, made)
        self.write("present", text(lines))
        self.write("absent", text(others))

        found = self.bloomery("check", *CHAIN, self.f, stdin=text(others + lines)).lines
        rest = [key for key in others if key not in set(found)]
        self.assertEqual(found[-500:], lines)
        for options, stdin, out, status in (
            (["-v"], others + lines, text(rest), 0),
            (["-c"], others + lines, b"%d\n" % len(found), 0),
            (["-q"], lines, b"", 0),
            ([], rest, b"", 1),
        ):
            self.assertEqual(self.bloomery("check", *options, *CHAIN, self.f, stdin=text(stdin), status=status).out, out)
        measured = self.chain_info("--queries", 20_000)
        verified = self.bloomery("verify", "--json", "--queries", 1000, "--present", "present", "--absent", "absent", self.f).json
        self.assertIsNone(self.chain_info()["measured_rate"])
        self.assertEqual(measured["measured_rate"]["queries"], 20_000)
        self.assertAlmostEqual(measured["measured_rate"]["rate"] / measured["rate_now"], 1, delta=0.4)
        self.assertEqual((verified["present"], verified["complaints"]), ({"keys": 500, "missing": 0, "first_missing": None}, []))
        self.assertEqual(verified["absent"]["hits"], len(found) - 500)
        self.assertEqual((verified["certified"], verified["bits_set"]), (None, sum(measured["ones"])))
        self.assertIs(verified["count_is_estimate"], True)  # a chain counts bits, not keys
        self.assertIn(b"MISSING", self.bloomery("verify", "--present", "absent", self.f, status=1).out)

    def test_the_originals_chain_is_taken_over(self) -> None:
        lines = keys(800)
        self.bloomery("build", "-q", *SMALL, "-o", self.f, stdin=text(lines))
        whole = self.bitmaps()
        self.redis("FLUSHALL")
        chain = self.become_the_originals(lines[:500])
        before = self.server.keys()

        # The chain does not store capacity and target FPR.
        unknown = "n and p of this chain are not stored.*give --capacity and --rate"
        self.refuse_all(dict.fromkeys([f"{verb} {chain}{scheme}" for verb in ("add", "check", "info") for scheme in ("", " --scheme guava-chain")] + [f"verify {chain}"], unknown))
        self.refuse_all({
            f"build -o {chain} --scheme guava-chain -n 300": "--rate: the existing chain does not store its capacity and FPR",
            f"check {chain} --scheme guava-chain -n 10000 -p 0.0005": "was not created for",
        })  # fmt: skip
        self.assertEqual(self.server.keys(), before)
        self.assert_has_all(chain, lines[:500], *SMALL)
        self.bloomery("add", chain, *SMALL, stdin=text(lines[500:600]))
        self.refused("info", chain, *CHAIN, says="n and p of this chain are not stored")  # add does not store them

        taken = self.bloomery("build", "--json", *SMALL, "-o", chain, stdin=text(lines[600:])).json

        self.assertEqual((taken["made"], taken["growths"]), (False, len(whole) - 1))
        self.assertEqual(self.bitmaps("bloomfilter", "cursor"), whole)
        self.assert_has_all(chain, lines, *CHAIN)
        self.assertEqual(self.bloomery("info", "--json", chain, *CHAIN).json["capacity"], 300)

    def test_the_messages(self) -> None:
        self.bloomery("build", *SMALL, "--ttl", "1h", "-o", self.f, stdin=text(keys(500)))

        page = self.bloomery("info", *CHAIN, self.f).out.decode()

        self.assertIn("2,880 bits each), 7 probes per key", page)
        for name in "filter", "kind", "size", "capacity", "growths", "estimated", "newest", "estimated FPR", "expires":
            self.assertRegex(page, rf"(?m)^{name} +\S")
        now, _ = map(int, self.redis("TIME"))
        [end] = {self.redis("PEXPIRETIME", key) for key in (b"f-0", b"f-1", b"f-cursor", b"f-bloomery")}
        self.assertAlmostEqual(end / 1000, now + 3600, delta=120)
        said = self.bloomery("add", *CHAIN, self.f, stdin=b"one\n").err
        self.assertRegex(said, r": 1 key read, [01] added; 2 bitmaps of 360 B, current FPR ")

    def test_without_the_scheme_it_is_recognised_or_left_alone(self) -> None:
        self.bloomery("build", "-q", *SMALL, "-o", self.f, stdin=b"a\n")
        before = self.server.keys()

        named = "the name is that of a Guava chain.*--scheme guava-chain"
        self.refuse_all({
            f"pull -o file {self.f}": named,
            f"dedup -n 100 --state {self.f}": named,
            f"build -n 100 -o {self.f}": named,
            f"remove {self.f}": "cannot be removed from a Guava chain",
            f"union -o file {self.f} {self.f}": r"name=f: a Guava chain cannot be combined with other filters",
            f"info {self.server.address('g')}": "no filter of this name",
        })  # fmt: skip
        self.assertEqual(self.bloomery("info", "--json", self.f).json, self.chain_info())
        self.assertEqual(self.server.keys(), before)

    def test_similar_names_are_no_chain(self) -> None:
        self.redis("SET", "f-0", "x")
        self.redis("SET", "g-cursor", "0")
        self.redis("RPUSH", "h-0", "x")
        self.redis("SET", "h-cursor", "0")
        for name in "f", "g", "h":
            self.bloomery("build", "-n", 100, "-o", self.server.address(name), stdin=b"a\n")
            self.assert_has_all(self.server.address(name), [b"a"])

    def test_contradictions_are_refused(self) -> None:
        f, small = self.f, "--scheme guava-chain -n 300 -p 1%"
        table = {
            f"build --scheme guava-chain -o {f}": "--capacity 10k",
            f"build --scheme guava-chain -n 0 -o {f}": "the capacity must be at least one key: expected at least 1, found 0",
            f"build --scheme guava-chain -n 1G -o {f}": "Redis string",
            f"build --scheme guava -n 10 -o {f}": "guava-chain, or build a file",
            f"build {small} -o file": "a Guava chain is stored on Redis, and this is a file",
            f"build {small} -o {f} missing": r"\Abloomery: missing: cannot read: No such file",
            f"add --scheme guava-chain --wait-replicas 1 {f}": "--wait-replicas: operations on a Guava chain do not wait for replicas",
        }
        options = """--bits 1000, --probes 3, --layout split_block512, --hash xxh3, --seed 1, --u64, --counting, --grow, --max-keys 1000,
            --shards 2, --window 1h, --foldable, --note x, --wait-replicas 1, --prefer speed"""
        for option in map(str.strip, options.split(",")):
            table[f"build {small} {option} -o {f}"] = rf"\Abloomery: {option.split()[0]}: "
        for verb in "add", "check", "info":
            table |= {
                f"{verb} --scheme guava-chain {f}": "no such chain",
                f"{verb} --scheme guava-chain -n 300 {f}": "--capacity.*give both",
                f"{verb} -n 300 {f}": "--capacity.*give both",
                f"{verb} --scheme guava {f}": "--scheme.*guava-chain",
                f"{verb} --scheme guava-chain file": "--scheme.*redis://",
            }
        self.refuse_all(table)
        self.assertEqual(self.server.keys(), [])

        self.bloomery("build", "-q", *SMALL, "-o", f, stdin=text(keys(900)))
        again = self.bloomery("build", *CHAIN, "-o", f, stdin=text(keys(902)))
        self.assertRegex(again.err, "902 lines, [0-2] added; existed already, capacity 300 keys per bitmap at 1%; [34] bitmaps of 360 B")
        self.refuse_all({
            f"build --scheme guava-chain -n 301 -o {f}": "was not created for n = 301",
            f"build --scheme guava-chain -p 1.001% -o {f}": "other n and p",
            f"check --scheme guava-chain -n 300 -p 1.001% {f}": "other n and p",
            f"info --scheme guava-chain --check {f}": "--check: a filter on servers has no page checksums",
        })  # fmt: skip
        for spoil, says in (
            (("DEL", "f-1"), "part of the chain is missing.*f-1"),
            (("DEL", "f-cursor"), "part of the chain is missing"),
            (("SET", "f-cursor", "none"), "the key 'f-cursor' is not the cursor of a chain.*found none"),
        ):
            self.redis(*spoil)
            self.refused("check", *CHAIN, f, stdin=b"a\n", says=says)


if __name__ == "__main__":
    unittest.main()
