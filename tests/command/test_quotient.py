"""Quotient filters: build --quotient, add, remove, and what the other commands make of them, beside a twin in Python."""

import math
import os
import signal
import unittest
from collections.abc import Iterable

from removals import Removals
from support import CommandTest, keys, text, xxh3_64

FULL = 2**64 - 1


def mix64(x: int) -> int:
    x = (x ^ x >> 27) * 0x3C79AC492BA7B653 & FULL
    x = (x ^ x >> 33) * 0x1C69B3F74AC4AE35 & FULL
    return x ^ x >> 27


def rate_of(width: int, blocks: int, n: int) -> float:
    return -math.expm1(n * math.log1p(-1 / (blocks * 80 * 2 ** (width - 1))))


class Slots:
    """A quotient filter by the book: a list of remainders for each bucket of each block."""

    def __init__(self, width: int, bits: int) -> None:
        self.width, self.blocks = width, bits // 512
        self.slots = 432 // (width + 1)
        self.lists: list[list[list[int]]] = [[[] for _ in range(80)] for _ in range(self.blocks)]
        self.size = self.refused = 0

    def place(self, key: bytes) -> tuple[int, int, int, int]:
        low, _ = xxh3_64(key)
        return self.place_of(low * self.blocks * 80 * 2 ** (self.width - 1) >> 64)

    def place_of(self, fingerprint: int) -> tuple[int, int, int, int]:
        """Bucket, remainder, first and second block."""
        first, tag = divmod(fingerprint, 80 * 2 ** (self.width - 1))
        second = ((mix64(tag + 1) * self.blocks >> 64) - first) % self.blocks
        return *divmod(tag, 2 ** (self.width - 1)), first, second

    def slots_of(self, key: bytes) -> list[tuple[list[int], int]]:
        """In the first and in the second block: the key's bucket, and the value of its slots."""
        bucket, remainder, first, second = self.place(key)
        return [(self.lists[first][bucket], remainder), (self.lists[second][bucket], remainder + 2 ** (self.width - 1))]

    def copies(self, key: bytes) -> int:
        return sum(bucket.count(value) for bucket, value in self.slots_of(key))

    def add(self, lines: Iterable[bytes]) -> None:
        for key in lines:
            self.size += 1
            if self.copies(key) == 15:
                continue
            while not self.has_room(self.place(key)):
                self.double()
            self.append(self.place(key))

    def has_room(self, place: tuple[int, int, int, int]) -> bool:
        return min(sum(map(len, self.lists[block])) for block in place[2:]) < self.slots

    def append(self, place: tuple[int, int, int, int]) -> None:
        bucket, remainder, *blocks = place
        used = [sum(map(len, self.lists[block])) for block in blocks]
        is_second = used[1] < used[0]
        self.lists[blocks[is_second]][bucket].append(remainder + is_second * 2 ** (self.width - 1))

    def double(self) -> None:
        """Twice as many blocks, slots of one bit less: the same fingerprints, in 16 rounds."""
        before, self.width, self.blocks, self.slots = self.lists, self.width - 1, 2 * self.blocks, 432 // self.width
        self.lists = [[[] for _ in range(80)] for _ in range(self.blocks)]
        for first in range(0, 80, 5):
            for block, buckets in enumerate(before):
                for bucket in range(first, first + 5):
                    self.add_values(buckets[bucket], block, bucket, len(before))

    def add_values(self, values: list[int], block: int, bucket: int, blocks: int) -> None:
        """Those of a bucket of a filter with half as many blocks."""
        for value in dict.fromkeys(values):
            is_second, remainder = divmod(value, 2 ** self.width)
            tag = bucket * 2 ** self.width + remainder
            other = ((mix64(tag + 1) * blocks >> 64) - block) % blocks
            for _ in range(values.count(value)):
                self.append(self.place_of((other if is_second else block) * 80 * 2 ** self.width + tag))

    def remove(self, lines: Iterable[bytes]) -> int:
        """How many were not there."""
        before = self.refused
        for key in lines:
            if not self.copies(key):
                self.refused += 1
                continue
            self.size = max(self.size - 1, 0)
            if self.copies(key) < 15:
                bucket, value = next(slot for slot in self.slots_of(key) if slot[1] in slot[0])
                bucket.remove(value)
        return self.refused - before

    def has(self, key: bytes) -> bool:
        return self.copies(key) > 0

    @property
    def used(self) -> int:
        return sum(len(bucket) for block in self.lists for bucket in block)

    @property
    def bytes(self) -> bytes:
        result = b""
        for of_block in self.lists:
            marks = "".join("0" * len(bucket) + "1" for bucket in of_block).ljust(self.slots + 80, "0")
            block = int(marks[::-1], 2) ^ 2**80 - 1
            for slot, value in enumerate(v for bucket in of_block for v in bucket):
                block |= value << self.slots + 80 + slot * self.width
            result += block.to_bytes(64, "little")
        return result


class Quotient(Removals, CommandTest):
    option = "--quotient"

    def twin_of(self, name: str) -> Slots:
        """An empty twin of the filter's size."""
        facts = self.info(name)
        self.assertRegex(facts["layout"], "^quotient[0-9]+$")
        self.assertEqual(facts["fingerprint_bits"], int(facts["layout"].removeprefix("quotient")))
        return Slots(facts["fingerprint_bits"], facts["bits"])

    def assert_is(self, name: str, twin: Slots) -> dict:
        facts = self.bloomery("info", "--json", "--check", name).json
        self.assertEqual(self.bits_of(name), twin.bytes)
        self.assertEqual((facts["inserted"], facts["refused_removals"]), (twin.size, twin.refused))
        self.assertEqual((facts["tainted"], facts["clean"], facts["problems"]), (twin.refused > 0, True, []))
        self.assertEqual((facts["slots"], facts["slots_used"]), (twin.slots * twin.blocks, twin.used))
        return facts

    def test_build_add_and_remove_change_the_slots_of_the_twin(self) -> None:
        lines = keys(3000)
        self.bloomery("build", "--quotient", "-q", "-o", "f", "-n", 4000, "-p", "2%", self.write("lines", lines))
        twin = self.twin_of("f")
        twin.add(lines)
        self.assert_is("f", twin)

        added = self.bloomery("add", "--json", "f", stdin=text(lines[:500] + keys(100, "more"))).json
        twin.add(lines[:500] + keys(100, "more"))
        self.assert_is("f", twin)
        removed = self.bloomery("remove", "--json", "f", stdin=text(lines[:1000])).json
        self.assertEqual(twin.remove(lines[:1000]), 0)

        facts = self.assert_is("f", twin)
        self.assertEqual((added["keys"], added["size"], added["complete"]), (600, 3600, True))
        self.assertEqual((removed["keys"], removed["removed"], removed["not_found"]), (1000, 1000, 0))
        self.assertEqual((removed["size"], removed["tainted"], removed["unnoticed_removals"]), (2600, False, 0))
        self.assertAlmostEqual(removed["rate"], facts["rate_now"], delta=1e-9)
        self.assert_has_all("f", lines[:500] + lines[1000:])

    def test_a_filter_has_the_size_and_the_rate_that_its_formula_asks_for(self) -> None:
        for rate in 0.2, 0.01, 1e-4:
            self.bloomery("build", "--quotient", "-q", "-o", "f", "-n", 5000, "-p", rate, stdin=text(keys(5000)))
            facts = self.info("f")
            width, blocks = facts["fingerprint_bits"], facts["bits"] // 512

            self.assertAlmostEqual(facts["predicted_rate"], rate_of(width, blocks, 5000), delta=1e-9)
            self.assertLessEqual(rate_of(width, blocks, 5000), rate)
            sizes = {}
            for w in range(4, 25):
                room = 432 // (w + 1) - 5
                sizes[w] = next(b for b in range(3, 10**6) if b * room - 48 >= 5000 and rate_of(w, b, 5000) <= rate)
            self.assertEqual(blocks, min(sizes.values()))
            self.assert_chance(facts["measured_rate"]["hits"], facts["measured_rate"]["queries"], facts["rate_now"])
            self.assertEqual(self.bloomery("verify", "f").status, 0)

    def test_a_lookup_reads_two_blocks(self) -> None:
        self.bloomery("build", "-q", "--quotient", "-n", 1000, "-o", "f", stdin=text(keys(1000)))

        for arguments in ["--header"], []:
            self.assertIn(b" bits, 2 blocks per key)", self.bloomery("info", *arguments, "f").out)

    def test_a_full_filter_refuses_keys_and_stays_as_it_was(self) -> None:
        self.make_filter("f", keys(1000), "--quotient", "-n", 1000)
        facts = self.info("f")
        self.assertGreaterEqual(facts["slots_for_keys"], 1000)
        room = facts["slots_for_keys"] - 1000
        self.assertEqual(facts["keys_left"], room)
        self.bloomery("add", "-q", "f", stdin=text(keys(room, "more")))
        self.assertIn(b"room for 0 more keys", self.bloomery("info", "f").out)
        before = self.read("f")

        result = self.refused("add", "f", stdin=text(keys(2000, "too many")), says="f: the filter is full.*-n.*unchanged")

        self.assertEqual(self.read("f"), before)
        self.assertEqual(result.out, b"")
        self.refused("build", "--quotient", "-o", "new", "-n", 100, stdin=text(keys(2000)), says="new: the filter is full")
        self.assertFalse(os.path.exists(self.path("new")))
        # Removed keys make room again.
        self.bloomery("remove", "-q", "f", stdin=text(keys(500)))
        self.bloomery("add", "-q", "f", stdin=text(keys(500, "others")))
        self.assert_has_all("f", keys(1000)[500:] + keys(room, "more") + keys(500, "others"))

    def test_copies_are_removed_one_by_one_and_fifteen_stay(self) -> None:
        self.make_filter("f", [b"twice"] * 2 + [b"often"] * 20, "--quotient", "-n", 100)
        twin = self.twin_of("f")
        twin.add([b"twice"] * 2 + [b"often"] * 20)
        facts = self.assert_is("f", twin)
        self.assertEqual((facts["fingerprints_full"], facts["slots_used"], facts["alarm"]), (1, 17, False))
        self.assertIn(b"1 key with 15 copies or more", self.bloomery("info", "f").out)

        self.bloomery("remove", "-q", "f", stdin=b"twice\n")
        self.assertEqual(self.count("f", [b"twice"]), 1)
        self.bloomery("remove", "-q", "f", stdin=b"twice\n")
        self.bloomery("remove", "-q", "f", stdin=text([b"often"] * 20))

        self.assertEqual(self.count("f", [b"twice"]), 0)
        self.assertEqual(self.count("f", [b"often"]), 1)
        facts = self.info("f")
        self.assertEqual((facts["inserted"], facts["tainted"], facts["alarm"]), (0, False, False))

    def test_removing_what_is_not_there_is_said_counted_and_marked(self) -> None:
        self.make_filter("f", keys(1000), "--quotient", "-n", 1000)
        twin = self.twin_of("f")
        twin.add(keys(1000))

        wrong = keys(5) + keys(300, "stranger")
        result = self.bloomery("remove", "f", status=1, stdin=text(wrong))
        not_found = twin.remove(wrong)

        facts = self.assert_is("f", twin)
        self.assertRegex(result.err, rf"warning: {not_found} of 305 keys were not present")
        rate = max(0.01, facts["rate_now"])
        self.assertAlmostEqual(facts["unnoticed_removals"], not_found * rate / (1 - rate), delta=1e-6)
        self.assertIn(b"tainted: ", self.bloomery("info", "f").out)

    def test_explain_shows_the_blocks_of_a_key(self) -> None:
        lines = [b"Madrid", b"Madrid", b"Berlin"] + [b"Roma"] * 20
        self.write("lines", lines)
        self.bloomery("build", "--quotient", "-q", "-o", "f", "-n", 300, "lines")
        twin = self.twin_of("f")
        twin.add(lines)

        found = self.bloomery("explain", "--json", "f", "Madrid", "Roma", "Paris").json["keys"]

        for entry in found:
            bucket, remainder, *blocks = twin.place(entry["key"].encode())
            self.assertEqual((entry["bucket"], entry["remainder"]), (bucket, remainder))
            copies = [slots.count(value) for slots, value in twin.slots_of(entry["key"].encode())]
            expected = [{"block": block, "copies": n} for block, n in zip(blocks, copies)][: len(set(blocks))]
            self.assertEqual(entry["blocks"], expected)
            self.assertEqual(entry["maybe_present"], twin.has(entry["key"].encode()))
        words = self.bloomery("explain", "--keys", "lines", "f", "Madrid", "Paris").out.decode()
        self.assertIn("present: it was inserted", words)
        self.assertIn("so the key is absent", words)

    def test_a_union_adds_the_copies_or_refuses(self) -> None:
        for name, lines in ("a", keys(600)), ("b", keys(900)[300:]), ("c", keys(100)):
            self.make_filter(name, lines, "--quotient", "-n", 1400)
        result = self.bloomery("union", "--json", "-o", "u", "a", "b", "c").json

        facts = self.info("u")
        self.assertEqual((result["keys"], facts["inserted"], facts["slots_used"]), (1300, 1300, 1300))
        self.assertFalse(facts["count_is_estimate"])
        for lines in keys(600), keys(900)[300:], keys(100):
            self.bloomery("remove", "-q", "u", stdin=text(lines))
        self.assertEqual(self.info("u")["slots_used"], 0)

        # A filter filled to its capacity, with an empty one, in both orders.
        for name, lines in ("full", keys(20_000)), ("empty", []):
            self.make_filter(name, lines, "--quotient", "-n", 20_000, "--allow-empty")
        for first, second in ("full", "empty"), ("empty", "full"):
            self.bloomery("union", "-q", "-o", "w", first, second)
            self.assert_has_all("w", keys(20_000))
        self.refused("union", "-o", "v", "a", "b", "c", "a", says="a: the filter is full.*found 1,?900 keys with copies")
        self.assertFalse(os.path.exists(self.path("v")))

    def test_contradictions_are_refused_with_the_reason(self) -> None:
        self.make_filter("f", keys(100), "--quotient")
        before = self.read("f")
        build = "build --quotient -o new"
        self.refuse_all({
            f"{build} --layout split_block512": "--layout split_block512",
            f"{build} --layout counting": "--layout counting",
            f"{build} --counting": "two kinds",
            f"{build} --scheme guava": "--scheme guava",
            f"{build} --prefer memory": "--prefer",
            f"{build} --grow": "a quotient filter grows up to a maximum number of keys.*-n",
            f"{build} --grow -n 100 --layout quotient9": "slots become narrower",
            "build --counting --grow -o new": "a counting filter cannot grow",
            f"{build} --window 24h": "--window",
            f"{build} --foldable": "--foldable",
            f"{build} -m 1MiB": "--bits",
            "build --quotient -o redis://127.0.0.1:1/new -n 10": "cannot be shared",
            "build --layout quotient9 -o new": "needs --quotient",
            "build --layout quotient -o new": "needs --quotient",
            "remove f f": "choose another name",
            "intersect -o new f f": "intersection is not possible for quotient filters",
            "overlap f f": "overlap is not possible for quotient filters",
            "fold f -o new": "fold is not possible for quotient filters",
            "dedup --state f -n 10": "a filter with removal",
            "push f redis://127.0.0.1:1/new": "cannot be pushed",
        }, stdin=b"x\n")  # fmt: skip
        self.assertFalse(os.path.exists(self.path("new")))
        self.assertEqual(self.read("f"), before)

    def test_a_filter_that_grows_is_the_twin_that_doubles(self) -> None:
        self.bloomery("build", "--quotient", "--grow", "-n", "100k", "-q", "-o", "f", stdin=text(keys(100)))
        twin = self.twin_of("f")
        self.assertEqual((twin.width, twin.blocks), (12, 64))
        again = self.bloomery("build", "--quotient", "--grow", "-n", "100k", "-o", "g", stdin=text(keys(100)))
        self.assertRegex(again.err, r"4 KiB now, up to 128 KiB \(quotient12, 10.49 bits per key\)")
        twin.add(keys(100))
        self.assert_is("f", twin)
        for first, last in (100, 3_000), (3_000, 20_000), (20_000, 60_000):
            added = keys(last)[first:]
            before = os.path.getsize(self.path("f"))
            self.bloomery("add", "-q", "f", stdin=text(added))
            twin.add(added)
            facts = self.assert_is("f", twin)
            self.assertGreater(os.path.getsize(self.path("f")), before * (first > 100))
            self.assertAlmostEqual(facts["rate_now"], rate_of(twin.width, twin.blocks, last), delta=0.05 * facts["rate_now"])
            if twin.width > 7:
                self.assertEqual((facts["grows_to"], facts["keys_left"]), (100_000, 100_000 - last))
                self.assertRegex(self.bloomery("info", "f").out.decode(), "room for [0-9,]+ more keys until it doubles; at most 100,000 keys")
        self.assertEqual((twin.width, facts["grows_to"]), (7, None))
        self.assertGreaterEqual(facts["keys_left"], 40_000)
        self.bloomery("remove", "-q", "f", stdin=text(keys(60_000)))
        self.assertEqual(self.info("f")["slots_used"], 0)

    def test_filters_of_different_sizes_are_united(self) -> None:
        for name, lines in ("a", keys(200)), ("b", keys(9000)[4000:]), ("c", keys(4000)[200:]):
            self.make_filter(name, lines, "--quotient", "--grow", "-n", 20_000)
        self.assertEqual(len({os.path.getsize(self.path(name)) for name in "ab"}), 2)
        self.bloomery("union", "-q", "-o", "u", "a", "b", "c")
        self.assert_has_all("u", keys(9000))
        self.assertEqual(self.info("u")["inserted"], 9000)
        self.make_filter("other", keys(10), "--quotient", "--grow", "-n", 50_000)
        self.refused("union", "-o", "v", "a", "other", says="a and other: these filters cannot be combined.*layout")

    def test_plan_chooses_it_for_removals(self) -> None:
        plan = self.bloomery("plan", "--json", "--deletes", "-n", "1M", "-p", "1%").json
        self.assertEqual(plan["taken"]["layout"], "quotient7")
        command = self.bloomery("plan", "--deletes", "-n", 1000, "-p", "1%").out.decode()
        self.assertIn("bloomery build --quotient -n 1000 -p 1%", command)
        self.bloomery("build", "--quotient", "-n", 1000, "-p", "1%", "-q", "-o", "f", stdin=text(keys(1000)))
        self.assertRegex(command, rf"{self.info('f')['layout']}")
        # For a wide range, the worst case of a filter that grows is better.
        growing = self.bloomery("plan", "--json", "--deletes", "-n", 1000, "--max-keys", "1M").json["taken"]
        self.assertEqual(growing["layout"], "quotient_growing")
        self.assertLess(growing["worst_bits_a_key"], 100)
        command = self.bloomery("plan", "--deletes", "-n", 1000, "--max-keys", "1M").out.decode()
        self.assertIn("bloomery build --quotient --grow -n 1000000 -p 1%", command)
        limited = self.bloomery("plan", "--json", "--deletes", "-n", 1000, "--max-keys", "1M", "--memory", "1.5MiB").json["taken"]
        self.assertEqual((limited["layout"], limited["bytes"] < 1.5 * 2**20), ("quotient7", True))
        narrow = self.bloomery("plan", "--json", "--deletes", "-n", 500_000, "--max-keys", "1M").json["taken"]
        self.assertEqual(narrow["layout"], "quotient7")

    def test_a_killed_change_leaves_the_old_file(self) -> None:
        self.make_filter("f", keys(1000), "--quotient", "-n", 5000)
        before = self.read("f")
        for verb in "add", "remove":
            process = self.start(verb, "f")
            process.stdin.write(text(keys(1000)))
            process.stdin.flush()
            while not self.is_locked("f"):
                pass
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.assertEqual(self.read("f"), before)
        self.bloomery("remove", "-q", "f", stdin=text(keys(1000)))


if __name__ == "__main__":
    unittest.main()
