"""bloomery seal: smaller filters of all their keys, read here by docs/format.md alone; what they refuse; killed at any moment."""

import os
import struct
import subprocess
import unittest
from signal import SIGKILL, SIGTERM

from support import FULL, LONG, PAYLOAD_AT, CommandTest, MidwayTest, keys, mix, mix64, text, xxh3, xxh3_64

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
        cell = -(-(64 + 32 * self.partitions) // 64) * 64 // (width // 8)
        for _, first, count, starts, segment in self.table:
            assert first == cell
            cell += starts + 2 * segment if count else 0
        assert sum(entry[2] for entry in self.table) == self.keys == self.capacity
        assert -(-cell * (width // 8) // 64) * 64 == len(self.payload)

    def has(self, lo: int) -> bool:
        seed, first, count, starts, segment = self.table[lo * self.partitions >> 64]
        if count == 0:
            return False
        h = mix64(lo ^ seed)
        a = h * starts >> 64
        b = a + segment ^ h >> 18 & segment - 1
        c = a + 2 * segment ^ h & segment - 1
        size = self.width // 8
        cells = [int.from_bytes(self.payload[size * (first + i) :][:size], "little") for i in (a, b, c)]
        return cells[0] ^ cells[1] ^ cells[2] == ((h ^ h >> 29) * 0x9E3779B97F4A7C15 & FULL) >> 64 - self.width


class Seal(CommandTest):
    def test_the_golden_files_have_their_keys_by_the_documented_rule(self) -> None:
        texts = [b"key %d" % i for i in range(3000)]
        cases = {
            "fuse8-bytes-xxh3": (8, [xxh3(key)[0] for key in texts]),
            "fuse8-bytes-xxh3_64": (8, [xxh3_64(key)[0] for key in texts]),
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
        for width in 8, 16, 32:
            self.bloomery("seal", "-q", "--u64", "-f", 2, "--width", width, "--note", "of numbers", "numbers", "-o", "f")

            sealed = Sealed(self.read("f"))
            info = self.info("f")

            self.assertTrue(all(sealed.has(mix(i)[0]) for i in range(5000)))
            self.assertEqual((info["layout"], info["width"], info["keys"]), (f"fuse{width}", width, "u64"))
            self.assertEqual((info["inserted"], info["note"], info["keys_left"]), (5000, "of numbers", 0))
            self.assertAlmostEqual(info["rate_now"], 2.0**-width, delta=1e-9)
            self.assertNotIn("forecast", info)
            self.assert_has_all("f", [b"%d" % i for i in range(5000)])

    def test_sealing_nothing_and_one_key(self) -> None:
        self.bloomery("seal", "-q", "-o", "none", stdin=b"")
        self.bloomery("seal", "-q", "-o", "one", stdin=b"a\na\na\n")

        self.assertEqual(self.count("none", keys(1000)), 0)
        self.assertEqual(self.info("none")["rate_now"], 0)
        self.assertEqual(self.info("one")["inserted"], 1)
        self.assert_has_all("one", [b"a"])
        for name in "none", "one":
            self.bloomery("info", "--check", name)
            self.bloomery("verify", name)

    def test_verify_and_explain(self) -> None:
        lines = keys(10_000)
        self.write("lines", lines)
        self.bloomery("seal", "-q", "lines", "-o", "f")

        verified = self.bloomery("verify", "--json", "f", "--present", "lines").json
        there = self.bloomery("explain", "--json", "f", lines[0].decode(), "--keys", "lines").json["keys"][0]
        absent = [key.decode() for key in keys(3000, "absent")]
        others = self.bloomery("explain", "--json", "f", *absent, "--keys", "lines", status=None).json["keys"]
        said = self.bloomery("explain", "f", lines[0].decode(), *absent[:20], status=None).out.decode()

        self.assertEqual((verified["complaints"], verified["present"]["missing"]), ([], 0))
        self.assertEqual(verified["predicted"], verified["certified"])
        self.assertTrue(there["maybe_present"] and there["put_in"])
        self.assertEqual(there["exclusive_or"], there["fingerprint"])
        for one in [there, *others]:
            exclusive_or = 0
            for cell in one["cells"]:
                exclusive_or ^= int(cell["value"], 16)
            self.assertEqual(exclusive_or, int(one["exclusive_or"], 16))
            self.assertEqual(one["maybe_present"], one["exclusive_or"] == one["fingerprint"])
        self.assertFalse(any(one["put_in"] for one in others))
        self.assert_chance(sum(one["maybe_present"] for one in others), len(others), 1 / 256)
        self.assertIn("this proves that the key was never inserted", said)

    def test_verify_notices_changed_cells(self) -> None:
        lines = keys(10_000)
        self.write("lines", lines)
        self.bloomery("seal", "-q", "lines", "-o", "f")
        payload = bytearray(self.bits_of("f"))
        payload[4000] ^= 1
        self.patch("f", payload=bytes(payload))

        result = self.bloomery("verify", "--json", "f", "--present", "lines", status=1).json

        self.assertGreater(result["present"]["missing"], 0)

    def test_what_contradicts_itself_is_refused(self) -> None:
        self.bloomery("seal", "-q", "-o", "sound", stdin=text(keys(1000)))
        payload = self.bits_of("sound")
        for at in 0, 8, 12, 16, 72, 80, 88, 92:
            damaged = bytearray(payload)
            damaged[at] ^= 3
            self.write("f", self.read("sound"))
            self.patch("f", payload=bytes(damaged))
            for command in ["check", "f"], ["info", "f"], ["verify", "f"], ["explain", "f", "x"]:
                self.refused(*command, says="contradicts itself")

    def test_what_a_sealed_filter_cannot_do_is_refused(self) -> None:
        self.write("lines", keys(1000))
        self.bloomery("seal", "-q", "lines", "-o", "f")
        self.bloomery("build", "-q", "lines", "-o", "plain")
        before = self.read("f")

        self.refused("add", "f", "lines", says="cannot be inserted into or removed from a static filter.*--grow")
        self.refused("dedup", "--state", "f", "lines", says="cannot be inserted into or removed from a static filter")
        self.refused("union", "-o", "g", "f", "f", says="static filter, which cannot be merged")
        self.refused("intersect", "-o", "g", "f", "f", says="static filter, which cannot be merged")
        self.refused("overlap", "f", "f", says="static filter, which cannot be merged")
        self.refused("fold", "f", "-o", "g", says="fold is not possible for static filters")
        self.refused("seal", "f", "-o", "g", says="static already")
        self.refused("seal", "plain", "-o", "g", says="cannot list its keys.*--grow")
        self.refused("seal", "lines", "plain", "-o", "g", says="expected one INPUT, found 2")
        self.refused("seal", "lines", "-o", "lines", says="replace the input")
        self.refused("seal", "-o", "lines", says="not a filter", stdin=b"a\n")
        self.refused("seal", "--width", 12, "lines", "-o", "g", says="8, 16 or 32")
        self.refused("seal", "nowhere", "-o", "g", says="nowhere")
        self.refused("seal", "--u64", "-o", "g", says="integer", stdin=b"no number\n")
        self.refused("build", "--layout", "fuse8", "-n", 10, "-o", "g", "lines", says="")

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

    def test_it_has_the_bytes_of_its_keys_themselves(self) -> None:
        lines = keys(20_000)
        self.build("f", lines[:12_000] + lines[:3000])
        self.bloomery("add", "-q", "f", stdin=text(lines[10_000:]))

        result = self.bloomery("seal", "--json", "f", "-o", "sealed").json
        self.bloomery("seal", "-q", "-o", "by-keys", stdin=text(lines))

        self.assertEqual((result["lines"], result["keys"]), (25_000, 20_000))
        self.assertEqual(self.read("sealed"), self.read("by-keys"))
        self.assert_has_all("sealed", lines)

    def test_integers_seeds_and_secrets(self) -> None:
        numbers = [b"%d" % i for i in range(5000)]
        self.bloomery("keygen", "-o", "secret")
        for making, asking in (["--u64"], []), (["--u64", "--seed", 7], []), (["--secret", "secret"], ["--secret", "secret"]):
            self.build("f", numbers, *making)

            self.bloomery("seal", "-q", "f", "-o", "sealed", *asking)
            self.bloomery("seal", "-q", "-o", "by-keys", *making, stdin=text(numbers))

            self.assertEqual(self.read("sealed"), self.read("by-keys"), making)
            self.assert_has_all("sealed", numbers, *asking)
        self.refused("check", "sealed", says="secret", stdin=b"1\n")

    def test_a_secret_that_is_not_the_logs_is_refused(self) -> None:
        self.bloomery("keygen", "-o", "secret")
        self.bloomery("keygen", "-o", "another")
        self.build("plain", keys(10))
        self.build("keyed", keys(10), "--secret", "secret")

        self.refused("seal", "plain", "-o", "sealed", "--secret", "secret", says="not keyed")
        self.refused("seal", "keyed", "-o", "sealed", "--secret", "another", says="another secret")

        self.assertFalse(os.path.exists(self.path("sealed")))

    def test_a_log_that_was_written_anew_has_all_keys(self) -> None:
        lines = keys(20_000)
        self.build("f", lines * 6)
        before = self.read("f")
        self.bloomery("rebuild", "-q", "f")
        self.write("f", before)  # as a kill between the two renames leaves it, the other way round

        self.bloomery("seal", "-q", "f", "-o", "sealed")

        self.assert_has_all("sealed", lines)
        self.assertEqual(Sealed(self.read("sealed")).keys, 20_000)

    def test_what_a_kill_tore_is_left_out(self) -> None:
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

        for command in ["seal", "f", "-o", "sealed"], ["add", "f"], ["rebuild", "f"]:
            self.refused(*command, says="only 1000 keys, but the filter has 2.*older.*salvage")
        self.assertIn("older", self.bloomery("info", "--check", "f", status=1).out.decode())
        self.assert_has_all("f", keys(20_000, "more"))
        self.assertIn("keys lost", self.bloomery("rebuild", "f", "--salvage").err)
        self.bloomery("seal", "-q", "f", "-o", "sealed")
        self.assert_has_all("sealed", keys(1000))


class KilledSeal(MidwayTest):
    def test_a_killed_seal_leaves_the_old_file_or_the_new_one_or_none(self) -> None:
        rounds = 100 if LONG else 20
        self.bloomery("seal", "-q", "--width", 32, "lines", "-o", "new")
        self.bloomery("seal", "-q", "-o", "old", stdin=b"old\n")
        old, new = self.read("old"), self.read("new")
        survived = 0

        for number in range(rounds):
            before = old if number % 2 else None

            def start() -> subprocess.Popen:
                self.remove("f")
                if before:
                    self.write("f", before)
                return self.start_slow("seal", "--width", 32, "-o", "f")

            end = SIGTERM if number % 5 == 4 else SIGKILL
            self.end_midway((number + self.chance.random()) / rounds, end, start)

            left = self.read("f") if os.path.exists(self.path("f")) else None
            self.assertTrue(left in (before, new), f"round {number}: neither the old file nor the new one")
            survived += left == before
        self.bloomery("seal", "-q", "--width", 32, "lines", "-o", "f")

        self.assertGreater(survived, rounds / 4, "it was hardly ever killed at work")
        self.assertEqual(self.read("f"), new)


if __name__ == "__main__":
    unittest.main()
