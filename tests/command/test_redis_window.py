"""Shared filters with a window in files: pull, push, check, explain, info and verify."""

import re
import struct
import unittest

from redis_server import RedisServer, RedisTest
from support import checksum, keys, ones_of, text

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
        self.numbers = sorted({number for shard in range(shards) for number in numbers_of(self.server, self.server.shard(shard)) if self.redis("EXISTS", self.server.shard(shard) + b":%d" % number)})
        return shards

    def found(self, name: str, lines: list[bytes], *options: object) -> list[bytes]:
        return self.bloomery("check", name, *options, stdin=text(lines), status=None).lines

    def test_it_is_pulled_and_pushed_and_answers_at_any_time(self) -> None:
        shards = self.fill(1500)  # too small, for false positives
        other = RedisServer()
        self.addCleanup(other.end)
        again = other.address("again")
        lines = self.PRESENT + keys(30_000, "out")

        pulled = self.bloomery("pull", "--json", "--note", "a week", self.f, "-o", "file").json
        pushed = self.bloomery("push", "--json", "file", again).json

        self.assertEqual([pulled["slices"], pushed["slices"], pushed["expired_slices"], pushed["shards"]], [4, 4, 0, shards])
        self.assertAlmostEqual(pulled["copied_at"], float(self.server.client("TIME")[0]), delta=60)
        expected = self.found(self.f, lines)
        self.assertEqual(expected[:6000], self.PRESENT)
        self.assertGreater(len(expected), 6000)  # false positives are compared, too
        for name in "file", again:
            self.assertEqual(self.found(name, lines), expected, name)
        for age, number in enumerate(self.numbers):
            end = ((number + 8) * SLICE + TOLERANCE) / 1000
            before, after = (self.found("file", lines, "--now", f"{time:.3f}") for time in (end - 0.001, end))
            self.assertLessEqual(set(self.PRESENT[1500 * age :]), set(before))
            self.assertLess(len(set(self.PRESENT[1500 * age : 1500 * (age + 1)]) & set(after)), 1500 / 2)
        self.assertEqual(after, [], "after the last slice has expired")
        note = self.bloomery("check", "--now", f"{end:.3f}", "file", stdin=b"in-1\n", status=1).err
        self.assertRegex(note, r"\Abloomery: file: note: no key is found, because the last slice expired 20\d\d-[^\n]* UTC\n\Z")
        self.assertEqual(self.bloomery("check", "--now", f"{end - 0.001:.3f}", "file", stdin=b"in-1\n", status=None).err, "")
        report = self.bloomery("check", "--json", "-c", "--now", f"{end:.3f}", "file", stdin=b"in-1\n", status=1).json
        self.assertEqual([report["time"], report["maybe_present"]], [end, 0])
        self.bloomery("pull", "-q", "--note", "a week", again, "-o", "back")
        self.assertEqual(self.read("back")[4096:], self.read("file")[4096:])
        self.bloomery("add", "-q", again, stdin=b"one more\n", status=None)
        self.assert_has_all(again, [b"one more"])

    def test_info_and_verify_describe_it_as_of_the_copy(self) -> None:
        self.fill()
        self.bloomery("pull", "-q", "--note", "a week", self.f, "-o", "recent")
        self.write("file", moved(self.read("recent"), 5))  # the slices of the ages 6 and 4 have expired since

        info = self.info("file")

        window, numbers = info["window"], [number - 5 for number in reversed(self.numbers)]
        self.assertEqual([window["seconds"], window["part"]], [WINDOW / 1000, SLICE / 1000])
        slices = [(n * SLICE / 1000, ((n + 8) * SLICE + TOLERANCE) / 1000, expired) for n, expired in zip(numbers, (False, False, True, True))]
        self.assertEqual([(s["start"], s["expires_at"], s["has_expired"]) for s in window["slices"]], slices)
        for shown, number in zip(window["slices"], reversed(self.numbers)):
            of_slice = [self.redis("GET", self.server.shard(shard) + b":%d" % number)[:-16] for shard in range(3)]
            self.assertEqual((shown["bits_set"], shown["bits"]), (sum(map(ones_of, of_slice)), 8 * sum(map(len, of_slice))))
        self.assertAlmostEqual(info["inserted"], 6000, delta=200)
        self.assertEqual((info["count_is_estimate"], info["note"], info["hash"]), (True, "a week", "xxh3_64"))
        out = self.bloomery("info", "file").out.decode()
        self.assertRegex(out, r"window +7 d, in slices of 1 d")
        for end in r"\d+\.\d% of the bits, expires 20", " expired 20":
            self.assertEqual(len(re.findall(rf"(?m)^slice +from .*{end}", out)), 2)
        self.write("present", text(self.PRESENT))
        verified = self.bloomery("verify", "--json", "file", "--present", "present").json
        self.assertEqual((verified["present"]["missing"], verified["complaints"]), (0, []))
        self.bloomery("info", "--check", "file")
        # By this machine's clock the two old slices do not count.
        self.assertEqual(self.found("file", self.PRESENT[3000:]), self.PRESENT[3000:])
        self.assertLess(len(self.found("file", self.PRESENT[:3000])), 200)

    def test_explain_shows_the_slices_that_count_and_says_as_of_when(self) -> None:
        self.fill()
        self.bloomery("pull", "-q", self.f, "-o", "file")
        here, there = (self.bloomery("explain", "--json", name, "in-10", "out-7", status=None).json["keys"] for name in ("file", self.f))
        for ours, theirs in zip(here, there):
            for layer in theirs["layers"]:
                del layer["key"]
                for bit in layer["bits"]:
                    del bit["offset"]
            for layer in ours["layers"]:
                self.assertEqual(layer.pop("start"), layer["layer"] * SLICE / 1000)
                self.assertEqual(layer.pop("expires_at"), ((layer["layer"] + 8) * SLICE + TOLERANCE) / 1000)
            self.assertEqual(ours, theirs)
        end = ((self.numbers[1] + 8) * SLICE + TOLERANCE) / 1000
        later = self.bloomery("explain", "--json", "--now", f"{end:.3f}", "file", "in-10", status=1).json
        self.assertEqual(later["time"], end)
        self.assertEqual([layer["layer"] for layer in later["keys"][0]["layers"]], self.numbers[:1:-1])
        self.assertFalse(later["keys"][0]["maybe_present"])
        self.check_runs([
            (f"explain --now {end:.3f} file in-10", "in-10: certainly not seen in the window", r"as of +20\d\d-", r"block \d+ of \d+ of the slice from 20\d\d-"),
            ("explain --now 99999999999 file in-10", "no slice is left"),
        ], status=1)  # fmt: skip

    def test_expired_slices_are_not_pushed(self) -> None:
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
                found = self.found(address, self.PRESENT)
                self.assertLessEqual(set(self.PRESENT[1500 * expired :]), set(found))
                self.assertLess(len(found), 1500 * (4 - expired) + 200)
                self.assertEqual(self.found("moved", self.PRESENT), found)

    def test_a_window_whose_keys_have_all_expired_is_an_empty_file(self) -> None:
        shards = self.fill()
        make_older(self.server, shards, 8)
        again = self.server.address("again")

        said = self.bloomery("pull", self.f, "-o", "file").err
        pushed = self.bloomery("push", "--json", "file", again).json

        self.assertRegex(said, r"in 1 slice of 3 shards, as of 20\d\d-[^\n]* UTC\n\Z")
        info = self.info("file")
        [only] = info["window"]["slices"]
        self.assertEqual([only["bits_set"], only["has_expired"], only["start"] % 86_400, info["inserted"], info["rate_now"]], [0, False, 0, 0, 0])
        self.assertEqual([pushed["slices"], pushed["expired_slices"]], [1, 0])
        for name in "file", self.f, again:
            self.assertEqual(self.found(name, self.PRESENT), [])
        self.bloomery("verify", "-q", "file")

    def test_a_few_keys_in_a_large_window_are_counted(self) -> None:
        self.bloomery("build", "-q", "-n", "10M", "--window", "24h", "-o", self.f, stdin=text(keys(3)))
        self.assertEqual(self.bloomery("redis", "drop", "--yes", "--json", self.f).json["keys"], 3)

    def test_where_it_cannot_be_used_it_is_refused(self) -> None:
        self.fill()
        self.make_filter("file", [b"old"])
        self.bloomery("pull", "-q", self.f, "-o", "file")  # replaces the file of another filter
        self.assert_has_all("file", self.PRESENT)
        before = self.read("file")
        self.make_filter("plain", [b"a"])
        self.bloomery("build", "-q", "--window", "7d", "-n", 100, "-o", "local", stdin=b"a\n")
        self.write("future", before[:8] + struct.pack("<I", 3) + before[12:])
        slices = "slices of a shared sliding-window filter"

        self.refuse_all({
            f"push file {self.f}": "a filter of this name exists",
            f"push --shards 4 file {self.server.address('new')}": "the number of shards of layers cannot change",
            "add file": slices,
            "union -o x plain file": slices,
            "fold file -o x": slices,
            "overlap plain file": slices,
            f"union -o x {self.f} plain": "a sliding-window filter; pull it alone",
            "explain --now 1 local a": "explained as of its newest generation",
            "explain --now 1 plain a": "no window of time",
            f"explain --now 1 {self.f} a": "clock of the server",
            "check future": "unsupported file version: expected version 1 or 2, found 3",
        })  # fmt: skip
        self.assertEqual(self.read("file"), before)


if __name__ == "__main__":
    unittest.main()
