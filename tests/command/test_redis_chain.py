"""--scheme guava-chain: the chain of bitmaps of a Java service, by the published figures and by plain SETBIT commands.

The truth is a model of the original in Python: murmur3 by its description, bits of one bitmap after the other.
"""

import hashlib
import struct
import unittest

from redis_server import RedisTest
from support import keys, text
from tables import refuse_all

CHAIN = ["--scheme", "guava-chain"]
PUBLISHED = [*CHAIN, "-n", 10_000, "-p", 0.0005]
SMALL = [*CHAIN, "-n", 300, "-p", "1%"]
SMALL_BITS, SMALL_PROBES = 2880, 7  # whole words of 64 bits for -n ln p / (ln 2)^2 = 2875.5; 2875 / 300 ln 2 = 6.6
M64 = (1 << 64) - 1


def md5_key(i: int) -> bytes:
    return hashlib.md5(struct.pack("<I", i)).hexdigest().encode()


def rotated(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & M64


def finished(x: int) -> int:
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & M64
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def murmur3(key: bytes) -> tuple[int, int]:
    """murmur3_x64_128 with seed 0."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = 0
    whole = len(key) // 16 * 16
    for at in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", key, at)
        h1 ^= rotated(k1 * c1 & M64, 31) * c2 & M64
        h1 = (rotated(h1, 27) + h2) * 5 + 0x52DCE729 & M64
        h2 ^= rotated(k2 * c2 & M64, 33) * c1 & M64
        h2 = (rotated(h2, 31) + h1) * 5 + 0x38495AB5 & M64
    k1, k2 = struct.unpack("<QQ", key[whole:].ljust(16, b"\0"))
    h1 ^= rotated(k1 * c1 & M64, 31) * c2 & M64
    h2 ^= rotated(k2 * c2 & M64, 33) * c1 & M64
    h1, h2 = h1 ^ len(key), h2 ^ len(key)
    h1 = h1 + h2 & M64
    h2 = h2 + h1 & M64
    h1, h2 = finished(h1), finished(h2)
    h1 = h1 + h2 & M64
    return h1, h2 + h1 & M64


class Original:
    """The chain as the Java one fills it, key by key, in Python's integers."""

    def __init__(self, bits: int, probes: int) -> None:
        self.bits, self.probes = bits, probes
        self.bitmaps = [0]
        self.new = 0

    def offsets(self, key: bytes) -> list[int]:
        h1, h2 = murmur3(key)
        return [((h1 + i * h2) & M64 >> 1) % self.bits for i in range(self.probes)]

    def mask(self, key: bytes) -> int:
        mask = 0
        for offset in self.offsets(key):
            mask |= 1 << offset
        return mask

    def has(self, key: bytes) -> bool:
        mask = self.mask(key)
        return any(bitmap & mask == mask for bitmap in self.bitmaps)

    def put(self, lines: list[bytes]) -> None:
        for key in lines:
            if self.has(key):
                continue
            self.new += 1
            self.bitmaps[-1] |= self.mask(key)
            if 2 * self.bitmaps[-1].bit_count() > self.bits:
                self.bitmaps.append(0)

    def strings(self) -> list[bytes]:
        """What GET returns: offset 0 is the highest bit of the first byte."""
        return [int(f"{bitmap:0{self.bits}b}"[::-1], 2).to_bytes(self.bits // 8, "big") for bitmap in self.bitmaps]


class Chain(RedisTest):
    def bitmaps(self, name: bytes, cursor: bytes) -> list[bytes]:
        return [self.redis("GET", b"%s-%d" % (name, i)) for i in range(int(self.redis("GET", cursor)) + 1)]

    def chain_info(self, *options: object) -> dict:
        return self.bloomery("info", "--json", self.f, *(options or CHAIN)).json

    def write_as_the_original(self, name: str, cursor: str, lines: list[bytes]) -> Original:
        """By SETBIT and SET, and nothing else."""
        model = Original(SMALL_BITS, SMALL_PROBES)
        model.put(lines)
        for i, bitmap in enumerate(model.bitmaps):
            self.redis("SETBIT", f"{name}-{i}", SMALL_BITS - 1, 0)
            for offset in range(SMALL_BITS):
                if bitmap >> offset & 1:
                    self.redis("SETBIT", f"{name}-{i}", offset, 1)
        self.redis("SET", cursor, len(model.bitmaps) - 1)
        return model

    def test_murmur3_is_the_known_one(self) -> None:
        self.assertEqual(murmur3(b""), (0, 0))
        self.assertEqual("%016x%016x" % murmur3(b"The quick brown fox jumps over the lazy dog"), "e34bbc7bbc071b6c7a433ca9c49a9347")

    def test_the_published_figures(self) -> None:
        asked = [md5_key(99_999), md5_key(9_999), b"abcdefghijklmnopqrstuvwxyz123456"]
        first = self.bloomery("build", "--json", *PUBLISHED, "-o", self.f, stdin=text(md5_key(i) for i in range(10_000))).json

        self.assertEqual((first["made"], first["keys"], first["growths"], first["bits"], first["probes"]), (True, 10_000, 1, 158_208, 11))

        more = self.bloomery("add", "--json", *CHAIN, self.f, stdin=text(md5_key(i) for i in range(10_000, 30_000))).json

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

    def test_every_bit_is_the_models(self) -> None:
        lines = keys(1500) + keys(200)
        model = Original(SMALL_BITS, SMALL_PROBES)
        model.put(lines)

        made = self.bloomery("build", "--json", *SMALL, "-o", self.f, stdin=text(lines)).json

        self.assertEqual((made["bits"], made["probes"]), (SMALL_BITS, SMALL_PROBES))
        self.assertEqual((made["growths"], made["new"]), (len(model.bitmaps) - 1, model.new))
        self.assertEqual(self.bitmaps(b"f", b"f-cursor"), model.strings())
        asked = keys(3000, "absent") + lines
        expected = [key for key in asked if model.has(key)]
        self.assertEqual(self.bloomery("check", *CHAIN, self.f, stdin=text(asked)).lines, expected)
        self.assertEqual(self.bloomery("check", "-v", *CHAIN, self.f, stdin=text(asked)).lines, [key for key in asked if not model.has(key)])
        self.assertEqual(self.count(self.f, asked, *CHAIN), len(expected))
        self.assertEqual(self.bloomery("check", "-q", *CHAIN, self.f, stdin=b"no\n", status=None).out, b"")
        self.assertEqual(self.bloomery("check", *CHAIN, self.f, stdin=text([key for key in asked if not model.has(key)]), status=1).out, b"")

    def test_the_originals_chain_is_taken_over(self) -> None:
        lines = keys(800)
        model = self.write_as_the_original("bloomfilter", "cursor", lines[:500])
        self.assertGreater(len(model.bitmaps), 1)
        chain = self.server.address("bloomfilter")

        # It does not say capacity and target FPR.
        for verb in "add", "check", "info", "verify":
            for scheme in ([[]] if verb == "verify" else [CHAIN, []]):
                self.refused(verb, chain, *scheme, says="n and p of this chain are not stored.*give --capacity and --rate")
        self.refused("build", "-o", chain, *CHAIN, "-n", 300, says="--rate: the existing chain does not store its capacity and FPR")
        self.refused("check", chain, *PUBLISHED, says="was not created for")
        self.assertEqual(self.server.keys(), sorted([b"bloomfilter-%d" % i for i in range(len(model.bitmaps))] + [b"cursor"]))
        self.assert_has_all(chain, lines[:500], *SMALL)
        self.assertEqual(self.bloomery("info", "--json", chain, *SMALL).json["growths"], len(model.bitmaps) - 1)

        self.bloomery("add", chain, *SMALL, stdin=text(lines[500:600]))
        model.put(lines[500:600])
        self.assertEqual(self.bitmaps(b"bloomfilter", b"cursor"), model.strings())
        self.refused("info", chain, *CHAIN, says="n and p of this chain are not stored")  # add does not store them

        taken = self.bloomery("build", "--json", *SMALL, "-o", chain, stdin=text(lines[600:])).json
        model.put(lines[600:])

        self.assertEqual((taken["made"], taken["growths"]), (False, len(model.bitmaps) - 1))
        self.assertEqual(self.bitmaps(b"bloomfilter", b"cursor"), model.strings())
        self.assert_has_all(chain, lines, *CHAIN)
        self.assertEqual(self.bloomery("info", "--json", chain, *CHAIN).json["capacity"], 300)

    def test_it_says_what_it_is(self) -> None:
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
        self.write("keys", b"a\n")
        before = self.server.keys()

        for words in (["pull", "-o", "file"], ["dedup", "-n", 100, "--state"], ["build", "-n", 100, "-o"]):
            self.refused(*words, self.f, says="the name is that of a Guava chain.*--scheme guava-chain")
        self.refused("remove", self.f, says="cannot be removed from a Guava chain")
        self.refused("union", "-o", "file", self.f, self.f, says=r"name=f: a Guava chain cannot be combined with other filters")
        self.assertEqual(self.bloomery("info", "--json", self.f).json, self.chain_info())
        self.assertEqual(self.server.keys(), before)
        self.refused("info", self.server.address("g"), says="no filter of this name")

    def test_it_is_measured_and_verified(self) -> None:
        self.bloomery("build", "-q", *SMALL, "-o", self.f, stdin=text(keys(500)))
        model = Original(SMALL_BITS, SMALL_PROBES)
        model.put(keys(500))
        self.write("present", text(keys(500)))
        self.write("absent", text(keys(3000, "absent")))

        measured = self.bloomery("info", "--json", "--queries", 20_000, self.f).json
        verified = self.bloomery("verify", "--json", "--queries", 1000, "--present", "present", "--absent", "absent", self.f).json
        lost = self.bloomery("verify", "--present", "absent", self.f, status=1).out

        self.assertIsNone(self.chain_info()["measured_rate"])
        self.assertEqual(measured["measured_rate"]["queries"], 20_000)
        self.assertAlmostEqual(measured["measured_rate"]["rate"] / measured["rate_now"], 1, delta=0.4)
        self.assertEqual((verified["present"], verified["complaints"]), ({"keys": 500, "missing": 0, "first_missing": None}, []))
        self.assertEqual(verified["absent"]["hits"], sum(model.has(key) for key in keys(3000, "absent")))
        self.assertEqual((verified["certified"], verified["bits_set"]), (None, sum(measured["ones"])))
        self.assertIs(verified["count_is_estimate"], True)  # a chain counts bits, not keys
        self.assertIn(b"MISSING", lost)

    def test_alike_names_are_no_chain(self) -> None:
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
        options = "--bits 1000,--probes 3,--layout split_block512,--hash xxh3,--seed 1,--u64,--counting,--grow,--max-keys 1000,--shards 2,--window 1h,--foldable,--note x,--wait-replicas 1,--prefer speed"
        for option in options.split(","):
            table[f"build {small} {option} -o {f}"] = rf"\Abloomery: {option.split()[0]}: "
        for verb in "add", "check", "info":
            table |= {
                f"{verb} --scheme guava-chain {f}": "no such chain",
                f"{verb} --scheme guava-chain -n 300 {f}": "--capacity.*give both",
                f"{verb} -n 300 {f}": "--capacity.*give both",
                f"{verb} --scheme guava {f}": "--scheme.*guava-chain",
                f"{verb} --scheme guava-chain file": "--scheme.*redis://",
            }
        refuse_all(self, table)
        self.assertEqual(self.server.keys(), [])

        self.bloomery("build", "-q", *SMALL, "-o", f, stdin=text(keys(900)))
        again = self.bloomery("build", *CHAIN, "-o", f, stdin=text(keys(902)))
        self.assertRegex(again.err, "902 lines, [0-2] added; existed already, capacity 300 keys per bitmap at 1%; [34] bitmaps of 360 B")
        refuse_all(self, {
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
