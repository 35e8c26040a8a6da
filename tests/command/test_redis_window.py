"""Shared filters with a window in files: pull, push, check, explain, info and verify, against bits that Python reads and writes."""

import re
import struct
import unittest

from redis_server import RedisServer, RedisTest
from support import cells_of, checksum, keys, text, xxh3_64

WINDOW = 7 * 86_400_000
SLICE = 86_400_000  # milliseconds
TOLERANCE = 5000


def numbers_of(server: RedisServer, shard: bytes) -> list[int]:
    return [int(number) for number in server.client("HGET", shard + b":h", "layers").split(b",")]


def make_older(server: RedisServer, shards: int, slices: int) -> None:
    """As if all keys had come that many slices earlier; what has expired then is gone."""
    for number in range(shards):
        shard = server.shard(number)
        before = numbers_of(server, shard)
        for slice_number in before:
            name = shard + b":%d" % slice_number
            if not server.client("EXISTS", name):
                continue
            if slice_number == before[-1]:
                server.client("SETRANGE", name, server.client("STRLEN", name) - 16, b"another stamp...")
            server.client("RENAME", name, shard + b":%d" % (slice_number - slices))
            server.client("PEXPIREAT", shard + b":%d" % (slice_number - slices), (slice_number - slices + 8) * SLICE + TOLERANCE)
        server.client("HSET", shard + b":h", "layers", ",".join(str(n - slices) for n in before), "stamp", "another stamp...")


class Slices:
    """The bits of a window as they are on a server, by shard and number of the slice."""

    def __init__(self, server: RedisServer, shards: int, probes: int = 8) -> None:
        self.shards, self.probes = shards, probes
        self.bits: dict[tuple[int, int], bytes] = {}
        for number in range(shards):
            shard = server.shard(number)
            for slice_number in numbers_of(server, shard):
                content = server.client("GET", shard + b":%d" % slice_number)
                if content is not None:
                    self.bits[number, slice_number] = content[:-16]
        self.numbers = sorted({number for _, number in self.bits})

    def has(self, key: bytes, now: float) -> bool:
        """@param now: seconds since 1970"""
        lo, hi = xxh3_64(key)
        shard = lo * self.shards >> 64
        for (of, number), bits in self.bits.items():
            if of != shard or (number + 8) * SLICE + TOLERANCE <= round(now * 1000):
                continue
            cells = cells_of("split_block512", 8 * len(bits) * self.shards, self.probes, lo, hi)
            if all(bits[(x >> 3) - shard * len(bits)] >> (x & 7) & 1 for x in cells):
                return True
        return False


def moved(file: bytes, slices: int) -> bytes:
    """The file of a window as if it had been copied that many slices earlier."""
    data = bytearray(file)
    [count] = struct.unpack_from("<Q", data, 136)
    for at in [192] + [4096 + 48 * i + 32 for i in range(count)]:
        struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] - slices * SLICE)
    struct.pack_into("<Q", data, 144, checksum(bytes(data[4096 : 4096 + 48 * count])))
    struct.pack_into("<Q", data, 4088, checksum(bytes(data[:4088])))
    return bytes(data)


class Windows(RedisTest):
    PRESENT = keys(6000, "in")

    def fill(self, capacity: int = 20_000) -> int:
        """Keys in slices of the ages 6, 4, 1 and 0; returns the number of shards."""
        options = ["-n", capacity, "--window", "7d", "--layout", "split_block512", "--shards", 3]
        shards = self.bloomery("build", "--json", *options, "-o", self.f, stdin=text(self.PRESENT[:1500]), status=None).json["shards"]
        for part, later in ((1, 2), (2, 3), (3, 1)):
            make_older(self.server, shards, later)
            self.bloomery("add", "-q", self.f, stdin=text(self.PRESENT[1500 * part : 1500 * (part + 1)]), status=None)
        return shards

    def found(self, name: str, lines: list[bytes], *options: object) -> bytes:
        return self.bloomery("check", name, *options, stdin=text(lines), status=None).out

    def test_it_is_pulled_and_pushed_and_answers_as_its_bits_say_at_any_time(self) -> None:
        shards = self.fill(1500)  # too small, for false positives
        other = RedisServer()
        self.addCleanup(other.end)
        again = other.address("again")
        lines = self.PRESENT + keys(30_000, "out")
        truth = Slices(self.server, shards)

        pulled = self.bloomery("pull", "--json", "--note", "a week", self.f, "-o", "file").json
        pushed = self.bloomery("push", "--json", "file", again).json

        self.assertEqual([pulled["slices"], pushed["slices"], pushed["expired_slices"], pushed["shards"]], [4, 4, 0, shards])
        self.assertEqual(pulled["bytes"], sum(map(len, truth.bits.values())))
        self.assertAlmostEqual(pulled["copied_at"], float(self.server.client("TIME")[0]), delta=60)
        now = pulled["copied_at"]
        expected = text(key for key in lines if truth.has(key, now))
        self.assertGreater(expected.count(b"\n"), 6000)  # false positives are compared, too
        for name in ("file", self.f, again):
            self.assertEqual(self.found(name, lines), expected, name)
        for number in truth.numbers:
            end = ((number + 8) * SLICE + TOLERANCE) / 1000
            for time in (end - 0.001, end):
                with self.subTest(slice=number, time=time):
                    out = self.found("file", lines, "--now", f"{time:.3f}")
                    self.assertEqual(out, text(key for key in lines if truth.has(key, time)))
        self.assertEqual(out, b"", "after the last slice has expired")
        note = self.bloomery("check", "--now", f"{end:.3f}", "file", stdin=b"in-1\n", status=1).err
        self.assertRegex(note, r"\Abloomery: file: note: no key is found, because the last slice expired 20\d\d-[^\n]* UTC\n\Z")
        self.assertEqual(self.bloomery("check", "--now", f"{end - 0.001:.3f}", "file", stdin=b"in-1\n", status=None).err, "")
        report = self.bloomery("check", "--json", "-c", "--now", f"{end:.3f}", "file", stdin=b"in-1\n", status=1).json
        self.assertEqual([report["time"], report["maybe_present"]], [end, 0])
        self.bloomery("pull", "-q", "--note", "a week", again, "-o", "back")
        before, after = self.read("file"), self.read("back")
        self.assertEqual(after[4096:], before[4096:])
        self.bloomery("add", "-q", again, stdin=b"one more\n", status=None)
        self.assert_has_all(again, [b"one more"])

    def test_info_and_verify_describe_it_as_of_the_copy(self) -> None:
        shards = self.fill()
        self.bloomery("pull", "-q", "--note", "a week", self.f, "-o", "recent")
        self.write("file", moved(self.read("recent"), 5))  # the slices of the ages 6 and 4 have expired since
        truth = Slices(self.server, shards)

        info = self.info("file")

        window = info["window"]
        self.assertEqual([window["seconds"], window["part"]], [WINDOW / 1000, SLICE / 1000])
        self.assertEqual([(s["start"], s["expires_at"]) for s in window["slices"]], [((n - 5) * SLICE / 1000, ((n + 3) * SLICE + TOLERANCE) / 1000) for n in reversed(truth.numbers)])
        self.assertEqual([s["has_expired"] for s in window["slices"]], [False, False, True, True])
        for shown, number in zip(window["slices"], reversed(truth.numbers)):
            of_slice = [bits for (_, n), bits in truth.bits.items() if n == number]
            self.assertEqual(shown["bits_set"], sum(int.from_bytes(bits, "little").bit_count() for bits in of_slice))
            self.assertEqual(shown["bits"], 8 * sum(map(len, of_slice)))
        self.assertAlmostEqual(info["inserted"], 6000, delta=200)
        self.assertTrue(info["count_is_estimate"])
        self.assertEqual(info["note"], "a week")
        self.assertEqual(info["hash"], "xxh3_64")
        out = self.bloomery("info", "file").out.decode()
        self.assertRegex(out, r"window +7 d, in slices of 1 d")
        self.assertEqual(len(re.findall(r"(?m)^slice +from .*: \d+\.\d% of the bits, expires 20", out)), 2)
        self.assertEqual(len(re.findall(r"(?m)^slice +from .* expired 20", out)), 2)
        self.write("present", text(self.PRESENT))
        verified = self.bloomery("verify", "--json", "file", "--present", "present").json
        self.assertEqual(verified["present"]["missing"], 0)
        self.assertEqual(verified["complaints"], [])
        self.bloomery("info", "--check", "file")
        # By this machine's clock the two old slices do not count.
        self.assertEqual(self.found("file", self.PRESENT[3000:]), text(self.PRESENT[3000:]))
        self.assertLess(self.found("file", self.PRESENT[:3000]).count(b"\n"), 200)

    def test_explain_shows_the_slices_that_count_and_says_as_of_when(self) -> None:
        shards = self.fill()
        self.bloomery("pull", "-q", self.f, "-o", "file")
        truth = Slices(self.server, shards)
        here = self.bloomery("explain", "--json", "file", "in-10", "out-7", status=None).json
        there = self.bloomery("explain", "--json", self.f, "in-10", "out-7", status=None).json
        for ours, theirs in zip(here["keys"], there["keys"]):
            for layer in theirs["layers"]:
                del layer["key"]
                for bit in layer["bits"]:
                    del bit["offset"]
            for layer in ours["layers"]:
                self.assertEqual(layer.pop("start"), layer["layer"] * SLICE / 1000)
                self.assertEqual(layer.pop("expires_at"), ((layer["layer"] + 8) * SLICE + TOLERANCE) / 1000)
            self.assertEqual(ours, theirs)
        end = ((truth.numbers[1] + 8) * SLICE + TOLERANCE) / 1000
        later = self.bloomery("explain", "--json", "--now", f"{end:.3f}", "file", "in-10", status=1).json
        self.assertEqual(later["time"], end)
        self.assertEqual([layer["layer"] for layer in later["keys"][0]["layers"]], list(reversed(truth.numbers[2:])))
        self.assertFalse(later["keys"][0]["maybe_present"])
        out = self.bloomery("explain", "--now", f"{end:.3f}", "file", "in-10", status=1).out.decode()
        self.assertRegex(out, r"in-10: certainly not seen in the window")
        self.assertRegex(out, r"as of +20\d\d-")
        self.assertRegex(out, r"block \d+ of \d+ of the slice from 20\d\d-")
        out = self.bloomery("explain", "--now", "99999999999", "file", "in-10", status=1).out.decode()
        self.assertRegex(out, "no slice is left")

    def test_slices_that_have_expired_are_not_pushed(self) -> None:
        self.fill()
        self.bloomery("pull", "-q", self.f, "-o", "file")
        file = self.read("file")
        for slices, expired in ((5, 2), (7, 3), (8, 4)):
            with self.subTest(slices=slices):
                address = self.server.address(f"after{slices}")
                self.write("moved", moved(file, slices))

                said = self.bloomery("push", "moved", address).err
                pushed = self.bloomery("push", "--json", "moved", address + "-again").json

                self.assertEqual(pushed["expired_slices"], expired)
                self.assertRegex(said, "the new filter is empty, because all slices have expired" if expired == 4 else f"{expired} expired slices were left out")
                found = self.found(address, self.PRESENT).splitlines()
                self.assertLessEqual(set(self.PRESENT[1500 * expired :]), set(found))
                self.assertLess(len(found), 1500 * (4 - expired) + 200)
                self.assertEqual(self.found("moved", self.PRESENT).splitlines(), found)
                self.bloomery("add", "-q", address, stdin=b"one more\n")
                self.assert_has_all(address, [b"one more"])

    def test_a_window_whose_keys_have_all_expired_is_an_empty_file(self) -> None:
        shards = self.fill()
        make_older(self.server, shards, 8)
        self.assertEqual(Slices(self.server, shards).bits, {})
        again = self.server.address("again")

        said = self.bloomery("pull", self.f, "-o", "file").err
        pushed = self.bloomery("push", "--json", "file", again).json

        self.assertRegex(said, r"in 1 slice of 3 shards, as of 20\d\d-[^\n]* UTC\n\Z")
        [only] = self.info("file")["window"]["slices"]
        self.assertEqual([only["bits_set"], only["has_expired"], only["start"] % 86_400], [0, False, 0])
        self.assertEqual([self.info("file")["inserted"], self.info("file")["rate_now"]], [0, 0])
        self.assertEqual([pushed["slices"], pushed["expired_slices"]], [1, 0])
        for name in ("file", self.f, again):
            self.assertEqual(self.found(name, self.PRESENT), b"")
        self.bloomery("verify", "-q", "file")
        self.bloomery("add", "-q", again, stdin=b"one more\n")
        self.assert_has_all(again, [b"one more"])

    def test_where_it_cannot_be_used_it_is_refused(self) -> None:
        self.fill()
        self.bloomery("pull", "-q", self.f, "-o", "file")
        before = self.read("file")
        self.make_filter("plain", [b"a"])
        self.bloomery("build", "-q", "--window", "7d", "-n", 100, "-o", "local", stdin=b"a\n")

        self.refused("push", "file", self.f, says="a filter of this name exists")
        self.refused("push", "--shards", 4, "file", self.server.address("new"), says="the number of shards of layers cannot change")
        for words in (["add", "file"], ["union", "-o", "x", "plain", "file"], ["fold", "file", "-o", "x"], ["overlap", "plain", "file"]):
            self.refused(*words, says="slices of a shared sliding-window filter")
        self.refused("union", "-o", "x", self.f, "plain", says="a sliding-window filter; pull it alone")
        self.refused("explain", "--now", 1, "local", "a", says="explained as of its newest generation")
        self.refused("explain", "--now", 1, "plain", "a", says="no window of time")
        self.refused("explain", "--now", 1, self.f, "a", says="clock of the server")
        self.assertEqual(self.read("file"), before)
        self.write("file", before[:8] + struct.pack("<I", 3) + before[12:])
        self.refused("check", "file", says="unsupported file version: expected version 1 or 2, found 3")

    def test_a_pull_replaces_the_file_of_another_filter(self) -> None:
        self.fill()
        self.make_filter("file", [b"old"])
        self.bloomery("pull", "-q", self.f, "-o", "file")
        self.assert_has_all("file", self.PRESENT)


if __name__ == "__main__":
    unittest.main()
