"""bloomery seal: smaller filters of all their keys, read here by docs/format.md alone, and what they refuse."""

import functools
import operator
import os
import struct
import unittest

from support import FULL, PAYLOAD_AT, CommandTest, keys, mix, mix64, text, xxh3, xxh3_64

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "sealed")


class Sealed:
    """The bytes of a static filter, read independently of bloomery."""

    def __init__(self, file: bytes) -> None:
        self.layout = file[16:48].rstrip(b"\0").decode()
        self.width = struct.unpack_from("<I", file, 116)[0]
        bits, self.probes = struct.unpack_from("<QI", file, 128)
        self.capacity, self.rate = struct.unpack_from("<Qd", file, 144)
        self.inserted = [struct.unpack_from("<Q", file, slot + 8)[0] for slot in (512, 1024)]
        self.payload = file[PAYLOAD_AT : PAYLOAD_AT + bits // 8]
        self.keys, self.partitions, width = struct.unpack_from("<QII", self.payload, 0)
        assert width == self.width and not any(self.payload[16:64]) and bits % 512 == 0
        self.table = [struct.unpack_from("<QQQII", self.payload, 64 + 32 * i) for i in range(self.partitions)]
        whole = width in (8, 16, 32)
        unit = 1 if whole else 8
        end = -(-8 * -(-(64 + 32 * self.partitions) // 64) * 64 // width)
        for _, first, count, starts, segment in self.table:
            assert first == -(-end // unit) * unit
            end = first + starts + 2 * segment if count else end
        assert sum(entry[2] for entry in self.table) == self.keys == self.capacity
        assert -(-(-(-end * width // 8) + (0 if whole else 7)) // 64) * 64 == len(self.payload)

    def has(self, lo: int) -> bool:
        seed, first, count, starts, segment = self.table[lo * self.partitions >> 64]
        if count == 0:
            return False
        h = mix64(lo ^ seed)
        a = h * starts >> 64
        b = a + segment ^ h >> 18 & segment - 1
        c = a + 2 * segment ^ h & segment - 1
        bits = [self.width * (first + i) for i in (a, b, c)]
        cells = [int.from_bytes(self.payload[bit // 8 :][:5], "little") >> bit % 8 & (1 << self.width) - 1 for bit in bits]
        return cells[0] ^ cells[1] ^ cells[2] == ((h ^ h >> 29) * 0x9E3779B97F4A7C15 & FULL) >> 64 - self.width


class Ribbon:
    """The bytes of a ribbon filter, read independently of bloomery."""

    def __init__(self, payload: bytes, zeros: int = 16) -> None:
        self.payload = payload
        self.keys, self.partitions, self.width = struct.unpack_from("<QII", payload, 0)
        assert not any(payload[zeros:64])
        self.table = [struct.unpack_from("<QQQ8IQ", self.payload, 64 + 64 * i) for i in range(self.partitions)]
        word = 8 + 8 * self.partitions
        for _, first, keys, *blocks, reserved in self.table:
            layers = [b for b in blocks if b]
            assert first == word and reserved == 0 and blocks[: len(layers)] == layers and bool(layers) == bool(keys)
            word += sum(b * self.width for b in layers) + sum(self.threshold_words(b) for b in layers[:-1])
        assert -(-word // 8) * 64 == len(self.payload) and sum(entry[2] for entry in self.table) == self.keys

    @staticmethod
    def threshold_words(blocks: int) -> int:
        return -(-(-(-64 * (blocks - 1) // 128)) // 32)

    def word(self, i: int) -> int:
        return int.from_bytes(self.payload[8 * i :][:8], "little")

    def has(self, lo: int) -> bool:
        fingerprint, value = self.value(lo, FULL)
        return value == fingerprint

    def value(self, lo: int, used: int) -> tuple[int, int]:
        """The fingerprint of a hash, and the combined slots; of the hash, the bits of `used` matter."""
        seed, word, keys, *blocks, _ = self.table[lo * self.partitions >> 64]
        layers = [b for b in blocks if b]
        if not keys:
            return 1, 0
        h = mix64(lo & used ^ seed) & used
        for i, size in enumerate(layers):
            start = h * 64 * (size - 1) >> 64
            bucket = start // 128
            if i + 1 == len(layers) or start % 128 >= (0, 8, 32, 128)[self.word(word + size * self.width + bucket // 32) >> 2 * (bucket % 32) & 3]:
                break
            word += size * self.width + self.threshold_words(size)
            h = mix64(h + 0x9E3779B97F4A7C15 & FULL) & used
        fingerprint = ((h ^ h >> 29) * 0x9E3779B97F4A7C15 & FULL) >> 64 - self.width
        coefficients = h * 0xD6E8FEB86659FD93 & FULL | 1
        at = word + start // 64 * self.width
        columns = [(self.word(at + i) | self.word(at + self.width + i) << 64) >> start % 64 for i in range(self.width)]
        return fingerprint, sum((column & coefficients).bit_count() % 2 << i for i, column in enumerate(columns))


class Cascade:
    """The bytes of a filter cascade, read independently of bloomery."""

    def __init__(self, payload: bytes) -> None:
        second = int.from_bytes(payload[16:24], "little")
        self.first = Ribbon(payload[:second], 24)
        self.second = Ribbon(payload[second:])
        assert self.second.width == 1

    def has(self, lo: int) -> bool:
        return self.first.has(lo) and self.second.value(lo, FULL - 1)[1] == 1


def payload_of(file: bytes) -> bytes:
    return file[PAYLOAD_AT : PAYLOAD_AT + struct.unpack_from("<Q", file, 128)[0] // 8]


class Seal(CommandTest):
    def test_the_golden_files_have_their_keys_by_the_documented_rule(self) -> None:
        texts = [b"key %d" % i for i in range(3000)]
        cases = {
            "fuse8-bytes-xxh3": (8, [xxh3(key)[0] for key in texts]),
            "fuse8-bytes-xxh3_64": (8, [xxh3_64(key)[0] for key in texts]),
            "fuse11-bytes-xxh3_64": (11, [xxh3_64(key)[0] for key in texts]),
            "fuse16-u64-mix": (16, [mix(i * i)[0] for i in range(1000)]),
            "fuse32-bytes-xxh3": (32, [xxh3(key)[0] for key in texts[:20]]),
        }
        for name, (width, los) in cases.items():
            with open(os.path.join(GOLDEN, name + ".bloom"), "rb") as file:
                sealed = Sealed(file.read())

            self.assertEqual((sealed.layout, sealed.width, sealed.probes), (name.split("-")[0], width, 3))
            self.assertEqual((sealed.keys, sealed.inserted), (len(los), [len(los)] * 2))
            self.assertAlmostEqual(sealed.rate * 2**width, 1 + len(los) * 2.0 ** (width - 64), delta=1e-12)
            self.assertTrue(all(sealed.has(lo) for lo in los), name)
            self.assert_chance(sum(sealed.has(xxh3_64(b"absent %d" % i)[0]) for i in range(30_000)), 30_000, 2.0**-width)

    def test_keys_from_files_and_from_a_pipe_give_the_same_bytes(self) -> None:
        lines = keys(20_000)
        self.write("a", lines[:15_000])
        self.write("b", lines[10_000:][::-1])  # 5000 come twice

        self.bloomery("seal", "-q", "a", "b", "-o", "by-files")
        self.bloomery("seal", "-q", "-o", "by-pipe", stdin=text(lines))
        result = self.bloomery("seal", "--json", "-j", 1, "b", "a", "-o", "again").json

        self.assertEqual(self.read("by-files"), self.read("by-pipe"))
        self.assertEqual(self.read("by-files"), self.read("again"))
        self.assertEqual((result["lines"], result["keys"], result["layout"]), (25_000, 20_000, "fuse8"))
        self.assertAlmostEqual(result["bits_a_key"], 8 * result["bytes"] / 20_000)
        self.assert_has_all("by-files", lines)
        sealed = Sealed(self.read("by-files"))
        self.assertTrue(all(sealed.has(xxh3_64(line)[0]) for line in lines))
        self.assert_chance(self.count("by-files", keys(100_000, "absent")), 100_000, 1 / 256)

    def test_widths_integers_fields_and_notes(self) -> None:
        self.write("numbers", [b"x\t%d" % i for i in range(5000)])
        for width in 1, 5, 8, 11, 16, 21, 32:
            self.bloomery("seal", "-q", "--u64", "-f", 2, "--width", width, "--note", "of numbers", "numbers", "-o", "f")

            sealed = Sealed(self.read("f"))
            info = self.info("f")

            self.assertTrue(all(sealed.has(mix(i)[0]) for i in range(5000)))
            self.assertEqual([info[name] for name in ("layout", "width", "keys", "inserted", "note", "keys_left")], [f"fuse{width}", width, "u64", 5000, "of numbers", 0])
            self.assertAlmostEqual(info["rate_now"], 2.0**-width, delta=1e-9)
            self.assertNotIn("forecast", info)
            self.assert_has_all("f", [b"%d" % i for i in range(5000)])

    def test_a_rate_chooses_the_shortest_fingerprints(self) -> None:
        self.write("lines", keys(20_000))
        for rate, width in ("50%", 1), ("1%", 7), ("0.1%", 10), ("1e-6", 20):
            made = self.bloomery("seal", "--json", "-p", rate, "lines", "-o", "f").json

            self.assertEqual(made["layout"], f"fuse{width}")
            self.assertAlmostEqual(made["rate"], 2.0**-width, delta=1e-12)
            self.assert_chance(self.count("f", keys(100_000, "absent")), 100_000, 2.0**-width)
        self.refuse_all({
            "seal -p 1e-12 lines -o g": "no fingerprint is long enough",
            "seal -p 0 lines -o g": "above 0 and below 1",
            "seal -p 1% --width 8 lines -o g": "",
        })  # fmt: skip

    def test_ribbon_filters_follow_the_documented_rule(self) -> None:
        with open(os.path.join(GOLDEN, "ribbon7-bytes-xxh3_64.bloom"), "rb") as file:
            golden = Ribbon(payload_of(file.read()))
        self.assertEqual((golden.keys, golden.width), (3000, 7))
        self.assertTrue(all(golden.has(xxh3_64(b"key %d" % i)[0]) for i in range(3000)))
        self.assert_chance(sum(golden.has(xxh3_64(b"absent %d" % i)[0]) for i in range(30_000)), 30_000, 2.0**-7)
        lines = keys(30_000)
        self.write("lines", lines)
        for width in 1, 7, 8, 13, 32:
            made = self.bloomery("seal", "--json", "--ribbon", "--width", width, "lines", "-o", "f").json
            ribbon = Ribbon(payload_of(self.read("f")))

            self.assertEqual((made["layout"], ribbon.keys), (f"ribbon{width}", 30_000))
            self.assertLess(made["bits_a_key"], 1.04 * width + 0.05)
            self.assertTrue(all(ribbon.has(xxh3_64(line)[0]) for line in lines[:3000]))
            absent = keys(20_000, "absent")
            expected = [line for line in absent[:2000] if ribbon.has(xxh3_64(line)[0])]
            found = self.bloomery("check", "f", stdin=text(absent), status=None).out.splitlines()
            self.assertEqual([line for line in found if line in set(absent[:2000])], expected)
            self.assert_chance(len(found), 20_000, 2.0**-width)
            self.assert_has_all("f", lines)
            self.assertEqual(self.info("f")["width"], width)
            self.assertEqual(self.bloomery("verify", "--json", "f", "--present", "lines").json["present"]["missing"], 0)

    def test_no_key_and_one_key(self) -> None:
        self.bloomery("seal", "-q", "-o", "none", stdin=b"")
        self.bloomery("seal", "-q", "-o", "one", stdin=b"a\na\na\n")

        self.assertEqual((self.count("none", keys(1000)), self.info("none")["rate_now"], self.info("one")["inserted"]), (0, 0, 1))
        self.assert_has_all("one", [b"a"])
        for name in "none", "one":
            self.bloomery("info", "--check", name)
            self.bloomery("verify", name)

    def test_verify_and_explain(self) -> None:
        lines = keys(10_000)
        self.write("lines", lines)
        self.bloomery("seal", "-q", "lines", "-o", "f")
        absent = [key.decode() for key in keys(3000, "absent")]

        verified = self.bloomery("verify", "--json", "f", "--present", "lines").json
        there, *others = self.bloomery("explain", "--json", "f", lines[0].decode(), *absent, "--keys", "lines", status=None).json["keys"]

        self.assertEqual((verified["complaints"], verified["present"]["missing"]), ([], 0))
        self.assertEqual(verified["predicted"], verified["certified"])
        self.assertTrue(there["maybe_present"] and there["put_in"])
        for one in [there, *others]:
            exclusive_or = functools.reduce(operator.xor, (int(cell["value"], 16) for cell in one["cells"]))
            self.assertEqual(exclusive_or, int(one["exclusive_or"], 16))
            self.assertEqual(one["maybe_present"], one["exclusive_or"] == one["fingerprint"])
        self.assertFalse(any(one["put_in"] for one in others))
        self.assert_chance(sum(one["maybe_present"] for one in others), len(others), 1 / 256)
        self.assertIn(b"this proves that the key was never inserted", self.bloomery("explain", "f", *absent[:20], status=None).out)

        payload = bytearray(self.bits_of("f"))
        payload[4000] ^= 1
        self.patch("f", payload=bytes(payload))
        self.assertGreater(self.bloomery("verify", "--json", "f", "--present", "lines", status=1).json["present"]["missing"], 0)

    def test_a_file_that_contradicts_itself_is_refused(self) -> None:
        self.bloomery("seal", "-q", "-o", "sound", stdin=text(keys(1000)))
        payload = self.bits_of("sound")
        for at in 0, 8, 12, 16, 72, 80, 88, 92:
            damaged = bytearray(payload)
            damaged[at] ^= 3
            self.write("f", self.read("sound"))
            self.patch("f", payload=bytes(damaged))
            self.refuse_all(dict.fromkeys(["check f", "info f", "verify f", "explain f x"], "contradicts itself"))

    def test_a_file_that_changes_meanwhile_is_kept(self) -> None:
        self.write("absent", keys(100, "absent"))
        for options in [], ["--never-for", "absent"]:
            for prepare, change in (["-n", 1000], ["add", "-q", "f"]), (None, ["dedup", "-q", "--state", "f"]):
                self.remove("f", "f.log")
                if prepare:
                    self.bloomery("build", "-q", "-o", "f", *prepare, stdin=b"first\n")
                process = self.start("seal", *options, "-o", "f")
                process.stdin.write(text(keys(100_000)))  # more than the pipe holds, so it has begun to read
                process.stdin.flush()
                self.bloomery(*change, stdin=text(keys(10, "late")))

                _, err = process.communicate()

                self.assertEqual(process.returncode, 2, err)
                self.assertRegex(err.decode(), "f: another process has changed this file meanwhile; it is kept; try again")
                self.assertEqual(self.count("f", keys(10, "late")), 10)

    def test_operations_that_a_static_filter_lacks_are_refused(self) -> None:
        self.write("lines", keys(1000))
        self.bloomery("seal", "-q", "lines", "-o", "f")
        self.bloomery("build", "-q", "lines", "-o", "plain")
        before = self.read("f")

        self.refuse_all({
            "add f lines": "cannot be inserted into or removed from a static filter.*--grow",
            "dedup --state f lines": "cannot be inserted into or removed from a static filter",
            "union -o g f f": "static filter, which cannot be merged",
            "intersect -o g f f": "static filter, which cannot be merged",
            "overlap f f": "static filter, which cannot be merged",
            "fold f -o g": "fold is not possible for static filters",
            "seal f -o g": "static already",
            "seal plain -o g": "cannot list its keys.*--grow",
            "seal lines plain -o g": "expected one INPUT, found 2",
            "seal lines -o lines": "replace the input",
            "seal --width 33 lines -o g": "1 to 32",
            "seal --width 0 lines -o g": "1 to 32",
            "build --layout fuse8 -n 10 -o g lines": "",
        })  # fmt: skip
        self.refused("seal", "--u64", "-o", "g", says="integer", stdin=b"no number\n")

        self.assertFalse(os.path.exists(self.path("g")))
        self.assertEqual(self.read("f"), before)

    def test_a_keyed_filter_needs_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "secret")
        self.bloomery("seal", "-q", "--secret", "secret", "-o", "f", stdin=text(keys(1000)))

        self.refused("check", "f", says="secret")
        self.assert_has_all("f", keys(1000), "--secret", "secret")
        self.assertEqual(self.info("f")["measured_rate"], None)
        self.bloomery("info", "--secret", "secret", "f")


class SealOfALog(CommandTest):
    def build(self, name: str, lines: list[bytes], *options: object) -> None:
        self.bloomery("build", "--grow", "-q", "-o", name, *options, stdin=text(lines))

    def test_it_has_the_bytes_that_its_keys_give(self) -> None:
        numbers = [b"%d" % i for i in range(20_000)]
        self.bloomery("keygen", "-o", "secret")
        for options, secret in ([], []), (["--u64"], []), (["--u64", "--seed", 7], []), (["--secret", "secret"], ["--secret", "secret"]):
            self.build("f", numbers[:12_000] + numbers[:3000], *options)
            self.bloomery("add", "-q", *secret, "f", stdin=text(numbers[10_000:]))

            result = self.bloomery("seal", "--json", "f", "-o", "sealed", *secret).json
            self.bloomery("seal", "-q", "-o", "by-keys", *options, stdin=text(numbers))

            self.assertEqual((result["lines"], result["keys"]), (25_000, 20_000))
            self.assertEqual(self.read("sealed"), self.read("by-keys"), options)
            self.assert_has_all("sealed", numbers, *secret)
        self.refused("check", "sealed", says="secret", stdin=b"1\n")

    def test_a_secret_that_is_not_the_logs_is_refused(self) -> None:
        self.bloomery("keygen", "-o", "secret")
        self.bloomery("keygen", "-o", "another")
        self.build("plain", keys(10))
        self.build("keyed", keys(10), "--secret", "secret")

        self.refuse_all({"seal plain -o sealed --secret secret": "not keyed", "seal keyed -o sealed --secret another": "another secret"})

        self.assertFalse(os.path.exists(self.path("sealed")))

    def test_a_log_that_was_rewritten_or_torn_by_a_kill_has_all_keys(self) -> None:
        lines = keys(20_000)
        self.build("f", lines * 6)
        before = self.read("f")
        self.bloomery("rebuild", "-q", "f")
        self.write("f", before)  # as a kill between the two renames leaves it, the other way round
        self.bloomery("seal", "-q", "f", "-o", "sealed")
        self.assert_has_all("sealed", lines)
        self.assertEqual(Sealed(self.read("sealed")).keys, 20_000)

        self.build("f", keys(1000))
        whole = self.read("f.log")
        self.write("f.log", whole + whole[256 : 256 + 500])  # a record that was not written to its end
        self.bloomery("seal", "-q", "f", "-o", "sealed")
        self.assert_has_all("sealed", keys(1000))

    def test_a_log_that_lacks_keys_is_refused(self) -> None:
        self.build("f", keys(1000))
        older = self.read("f.log")
        self.bloomery("add", "-q", "f", stdin=text(keys(1000, "more")))
        log = self.read("f.log")
        damaged = bytearray(log)
        damaged[500] ^= 1
        self.build("other", keys(2000))

        for instead, says in (
            (log[:-100], "[0-9]+ or fewer keys are lost at its end.*salvage"),
            (older, "10[0-9][0-9] or fewer keys|1000 or fewer keys are lost at its end.*salvage"),
            (bytes(damaged), "keys lost in 1 place.*salvage"),
            (self.read("other.log"), "the log belongs to another filter"),
        ):
            self.write("f.log", instead)
            self.refused("seal", "f", "-o", "sealed", says=says)
        os.unlink(self.path("f.log"))
        self.refused("seal", "f", "-o", "sealed", says="f.log")
        self.assertFalse(os.path.exists(self.path("sealed")))

    def test_a_log_of_an_older_generation_is_refused(self) -> None:
        self.build("f", keys(1000))
        older = self.read("f.log")
        self.bloomery("add", "-q", "f", stdin=text(keys(20_000, "more") * 6))
        self.bloomery("rebuild", "-q", "f")  # rewrites the log
        self.write("f.log", older)

        self.refuse_all(dict.fromkeys(["seal f -o sealed", "add f", "rebuild f"], "only 1000 keys, but the filter has 2.*older.*salvage"))
        self.assertIn(b"older", self.bloomery("info", "--check", "f", status=1).out)
        self.assert_has_all("f", keys(20_000, "more"))
        self.assertIn("keys lost", self.bloomery("rebuild", "f", "--salvage").err)
        self.bloomery("seal", "-q", "f", "-o", "sealed")
        self.assert_has_all("sealed", keys(1000))


if __name__ == "__main__":
    unittest.main()
