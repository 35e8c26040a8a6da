"""What the tests of the command share: running it, making keys, the formulas, judging chance.

A test's truth never comes from the command itself: it is a Python set, an exact count or a formula.
"""

import ctypes
import ctypes.util
import fcntl
import gzip
import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

COMMAND = os.environ["BLOOMERY"]
LONG = os.environ.get("BLOOMERY_LONG", "") not in ("", "0")
SANITIZED = os.environ.get("BLOOMERY_SANITIZED", "") not in ("", "0")  # the command starts 20 times more slowly
PAYLOAD_AT = 4096  # where a filter file's bits begin


# ---- keys ------------------------------------------------------------------------------------------------------------


def keys(count: int, kind: str = "key") -> list[bytes]:
    """Distinct keys, the same every time; those of another kind are others."""
    return [b"%s-%d" % (kind.encode(), i) for i in range(count)]


def text(lines: Iterable[bytes], end: bytes = b"\n") -> bytes:
    return b"".join(line + end for line in lines)


def cut(data: bytes, end: bytes = b"\n") -> list[bytes]:
    """The lines of a text; a last one without its end counts too."""
    lines = data.split(end)
    return lines if lines[-1] else lines[:-1]


def cut_into(lines: list[bytes], size: int) -> list[list[bytes]]:
    """Consecutive groups of this many lines."""
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def first_occurrences(lines: Iterable[bytes], key=lambda line: line) -> list[bytes]:
    first: dict[bytes, bytes] = {}
    for line in lines:
        first.setdefault(key(line), line)
    return list(first.values())


def zstd(data: bytes) -> bytes:
    """A zstd frame of raw blocks, as RFC 8878 allows: Python 3.11 has no zstd."""
    blocks = [data[at : at + 100_000] for at in range(0, len(data), 100_000)] or [b""]
    frame = b"\x28\xb5\x2f\xfd" + b"\xa0" + struct.pack("<I", len(data))
    for i, block in enumerate(blocks):
        last = i == len(blocks) - 1
        frame += struct.pack("<I", len(block) << 3 | last)[:3] + block
    return frame


def packed(data: bytes) -> bytes:
    """Two gzip members, as `cat a.gz b.gz` gives."""
    half = len(data) // 2
    return gzip.compress(data[:half], 1) + gzip.compress(data[half:], 1)


# ---- formulas --------------------------------------------------------------------------------------------------------


def classic_rate(bits: int, probes: int, n: float) -> float:
    """Bloom's formula; a little below the exact one, by 0.1% at a thousand keys."""
    return (-math.expm1(probes * n * math.log1p(-1 / bits))) ** probes


def shares_of_blocks(chance: float, n: int) -> Iterable[tuple[int, float]]:
    """(i, probability) that a block which each of n keys meets with this chance has i of them; what is negligible is left out."""
    if chance == 1:
        yield n, 1.0
        return
    spread = 12 * math.sqrt(n * chance) + 60
    for i in range(max(0, int(n * chance - spread)), min(n, int(n * chance + spread)) + 1):
        log_ways = math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
        yield i, math.exp(log_ways + i * math.log(chance) + (n - i) * math.log1p(-chance))


def lanes_rate(bits: int, n: int, block: int, lane: int) -> float:
    """A block has i of the n keys with a binomial chance, and then each of its 8 lanes is hit with 1 - (1 - 1/lane)^i."""
    return sum(share * (1 - (1 - 1 / lane) ** i) ** 8 for i, share in shares_of_blocks(block / bits, n))


def split_block_rate(bits: int, n: int) -> float:
    return lanes_rate(bits, n, block=256, lane=32)


def split_block512_rate(bits: int, n: int) -> float:
    return lanes_rate(bits, n, block=512, lane=64)


OCCUPANCIES: dict[int, list[list[float]]] = {}


def occupancy_of_a_line(balls: int, cells: int) -> list[float]:
    """Probability of each number of a line's cells that are not empty after `balls` balls."""
    known = OCCUPANCIES.setdefault(cells, [[1.0]])
    while len(known) <= balls:
        before = known[-1] + [0.0]
        after = [share * i / cells + (before[i - 1] * (cells + 1 - i) / cells if i else 0) for i, share in enumerate(before[: cells + 1])]
        known.append(after)
    return known[balls]


def line_of_cells_rate(lines: int, cells: int, probes: int, n: int) -> float:
    """A line with i keys has taken k * i balls in its cells; all k probes of another key meet full ones with (full / cells)^k."""
    hits = [(full / cells) ** probes for full in range(cells + 1)]
    return sum(
        share * sum(p * hit for p, hit in zip(occupancy_of_a_line(probes * i, cells), hits))
        for i, share in shares_of_blocks(1 / lines, n)
        if share > 1e-15
    )


def blocked_rate(bits: int, probes: int, n: int) -> float:
    return line_of_cells_rate(bits // 512, 512, probes, n)


def counting_rate(bits: int, probes: int, n: int) -> float:
    return line_of_cells_rate(bits // 512, 128, probes, n)


def blocked_page_rate(bits: int, probes: int, n: int) -> float:
    """As blocked, by Bloom's formula within a page: 32,768 cells are so many that it is right to a thousandth."""
    return sum(share * classic_rate(32_768, probes, i) for i, share in shares_of_blocks(32_768 / bits, n))


def rate_of(layout: str, bits: int, probes: int, n: int) -> float:
    """The error rate of any layout, by formulas that owe the library nothing."""
    if layout in ("split_block", "split_block512"):
        return (split_block_rate if layout == "split_block" else split_block512_rate)(bits, n)
    rates = {"blocked": blocked_rate, "blocked_page": blocked_page_rate, "classic": classic_rate, "counting": counting_rate}
    return rates[layout](bits, probes, n)


LAYOUTS = ["split_block", "split_block512", "blocked", "blocked_page", "classic"]  # the quickest first
BLOCK_BITS = {"split_block": 256, "split_block512": 512, "blocked": 512, "blocked_page": 32_768, "classic": 1}


def integral(rate, n: int, steps: int = 400) -> float:
    """Sum of rate(0) .. rate(n - 1), by Simpson's rule: distinct lines dropped wrongly while a filter fills up."""
    points = [rate(round(n * i / steps)) for i in range(steps + 1)]
    return (points[0] + points[-1] + 4 * sum(points[1:-1:2]) + 2 * sum(points[2:-1:2])) * n / steps / 3


# ---- hashes and bits, as docs/format.md says -------------------------------------------------------------------------


class Halves(ctypes.Structure):
    _fields_ = [("lo", ctypes.c_uint64), ("hi", ctypes.c_uint64)]


def xxhash() -> ctypes.CDLL:
    """The system's own library of xxHash, which the command does not call: it has been compiled in."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.XXH3_64bits_withSeed.restype = ctypes.c_uint64
    library.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    library.XXH3_128bits_withSeed.restype = Halves
    library.XXH3_128bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    return library


XXHASH = xxhash()
FULL = (1 << 64) - 1


def checksum(data: bytes) -> int:
    return XXHASH.XXH3_64bits(data, len(data))


def xxh3(key: bytes, seed: int = 0) -> tuple[int, int]:
    """lo and hi of a key."""
    hash = XXHASH.XXH3_128bits_withSeed(key, len(key), seed)
    return hash.lo, hash.hi


def mix64(x: int) -> int:
    x = (x ^ x >> 27) * 0x3C79AC492BA7B653 & FULL
    x = (x ^ x >> 33) * 0x1C69B3F74AC4AE35 & FULL
    return x ^ x >> 27


def mix(key: int) -> tuple[int, int]:
    """lo and hi of an integer key, seed 0."""
    lo = mix64(key ^ mix64(0))
    return lo, mix64(lo + 0x9E3779B97F4A7C15 & FULL)


def xxh3_64(key: bytes, seed: int = 0) -> tuple[int, int]:
    """lo and hi of a key."""
    lo = XXHASH.XXH3_64bits_withSeed(key, len(key), seed)
    return lo, mix64(lo + 0x9E3779B97F4A7C15 & FULL)


def default_hash(layout: str, key: bytes, seed: int = 0) -> tuple[int, int]:
    """lo and hi of a key by the default hash of a layout: classic alone reads both."""
    return xxh3(key, seed) if layout == "classic" else xxh3_64(key, seed)


SALTS = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]


def cells_of(layout: str, bits: int, probes: int, lo: int, hi: int) -> list[int]:
    """The bits of a key; for counting its counters."""
    if layout == "classic":
        cells, x = [], lo
        for _ in range(probes):
            cells.append(x * bits >> 64)
            x = x * 0xD1342543DE82EF95 + hi & FULL
        return cells
    if layout == "split_block":
        block = (lo >> 32) * (bits // 256) >> 32
        return [256 * block + 32 * j + ((lo & 0xFFFFFFFF) * salt & 0xFFFFFFFF) // 2**27 for j, salt in enumerate(SALTS)]
    if layout == "counting":
        cells, x = [], (2 * lo + 1) * 0x9E3779B97F4A7C15 & FULL
        for _ in range(probes):
            cells.append(128 * (lo * (bits // 512) >> 64) + (x >> 57))
            x = x * 0xD1342543DE82EF95 & FULL
        return cells
    first = BLOCK_BITS[layout] * (lo * (bits // BLOCK_BITS[layout]) >> 64)
    if layout == "split_block512":
        p = lo * 0x9E3779B97F4A7C15 & FULL
        return [first + 64 * j + (p >> (16 + 6 * j) & 63) for j in range(8)]
    cells, x = [], (2 * lo + 1) * 0x9E3779B97F4A7C15 & FULL
    for _ in range(probes):
        cells.append(first + (x >> (55 if layout == "blocked" else 49)))
        x = x * 0xD1342543DE82EF95 & FULL
    return cells


def counters_of(payload: bytes) -> list[int]:
    """The counters of a counting filter, the lower half of a byte first."""
    return [counter for byte in payload for counter in (byte & 15, byte >> 4)]


class Counters:
    """A counting filter by the book: the twin of the command's, for keys of bytes and the default hash."""

    def __init__(self, bits: int, probes: int) -> None:
        self.bits, self.probes = bits, probes
        self.counters = [0] * (bits // 4)
        self.size = self.refused = 0

    def cells(self, key: bytes) -> set[int]:
        return set(cells_of("counting", self.bits, self.probes, *xxh3_64(key)))

    def add(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self.size += 1
            for cell in self.cells(key):
                self.counters[cell] = min(self.counters[cell] + 1, 15)

    def remove(self, keys: Iterable[bytes]) -> int:
        """How many were not there."""
        before = self.refused
        for key in keys:
            cells = self.cells(key)
            if not all(self.counters[cell] for cell in cells):
                self.refused += 1
                continue
            self.size = max(self.size - 1, 0)
            for cell in cells:
                self.counters[cell] -= self.counters[cell] < 15
        return self.refused - before

    def has(self, key: bytes) -> bool:
        return all(self.counters[cell] for cell in self.cells(key))

    @property
    def bytes(self) -> bytes:
        return bytes(low | high << 4 for low, high in zip(self.counters[::2], self.counters[1::2]))

    @property
    def certified_rate(self) -> float:
        lines = [self.counters[at : at + 128] for at in range(0, len(self.counters), 128)]
        return math.fsum(((128 - line.count(0)) / 128) ** self.probes for line in lines) / len(lines)


def ones_of(data: bytes) -> int:
    return int.from_bytes(data, "little").bit_count()


def in_parts(data: bytes, size: int) -> Iterable[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def certified_rate(layout: str, bits: int, probes: int, payload: bytes, n: int) -> float:
    """The probability that a random absent key finds all its bits among these; n only for the collisions of hashes."""
    if layout == "classic":
        hit = (ones_of(payload) / bits) ** probes
    elif layout in ("split_block", "split_block512"):
        word = BLOCK_BITS[layout] // 64  # bytes
        blocks = [math.prod(ones_of(w) / (8 * word) for w in in_parts(block, word)) for block in in_parts(payload, 8 * word)]
        hit = math.fsum(blocks) / len(blocks)
    else:
        size = BLOCK_BITS[layout]
        blocks = [(ones_of(block) / size) ** probes for block in in_parts(payload, size // 8)]
        hit = math.fsum(blocks) / len(blocks)
    hashes = bits // 256 * 2**32 if layout == "split_block" else 2**128 if layout == "classic" else 2**64
    return 1 - (1 - hit) * math.exp(-n / hashes)


def remainder_current_fpr(bits: int, probes: int, payload: bytes, first: int, flip: int) -> float:
    """Of the 2^32 hashes from `first` on, the share whose remainder is a set bit; k of them independently."""
    each, favoured = divmod(2**32, bits)
    led_to = 0
    for i in range(bits):
        cell = (first + i) % bits ^ flip
        if payload[cell >> 3] >> (cell & 7) & 1:
            led_to += each + (1 if i < favoured else 0)
    return (led_to / 2**32) ** probes


# ---- how much to test ------------------------------------------------------------------------------------------------


def sample(cases: Iterable, most: int) -> list:
    """At most this many cases, evenly spaced, with the first and the last; all of them in a long run."""
    every = list(cases)
    if LONG or len(every) <= most:
        return every
    return [every[i * (len(every) - 1) // (most - 1)] for i in range(most)]


def sample_if_sanitized(cases: Iterable, most: int) -> list:
    """All cases; a sample of them under a sanitizer, because the run without one has them all."""
    return sample(cases, most) if SANITIZED else list(cases)


# ---- running ---------------------------------------------------------------------------------------------------------


@dataclass
class Result:
    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[bytes]:
        return cut(self.out)

    @property
    def json(self) -> dict:
        """The one object on standard output."""
        return json.loads(self.out)

    @property
    def report(self) -> dict:
        """The object with which dedup, whose standard output is taken, ends standard error."""
        return json.loads(self.err.splitlines()[-1])


def to_text(stderr: bytes) -> str:
    return stderr.decode(errors="replace")


class CommandTest(unittest.TestCase):
    """Each test has a folder of its own, in which the command starts."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="bloomery-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, data: bytes | Iterable[bytes]) -> str:
        """A file of these bytes or these lines; returns the name."""
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else text(data))
        return name

    def read(self, name: str) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def payload(self, name: str, size: int) -> bytes:
        return self.read(name)[PAYLOAD_AT : PAYLOAD_AT + size]

    def patch(self, name: str, payload: bytes | None = None, inserted: int | None = None) -> None:
        """Other bits or another count in file of a filter, with right checksums."""
        data = bytearray(self.read(name))
        pages = (-(-int.from_bytes(data[128:136], "little") // 8) + 4095) // 4096
        if payload is not None:
            data[PAYLOAD_AT : PAYLOAD_AT + len(payload)] = payload
            for page in range(pages):
                at = PAYLOAD_AT + 4096 * page
                sum = checksum(bytes(data[at : at + 4096])) ^ checksum(bytes(4096))
                struct.pack_into("<Q", data, PAYLOAD_AT + 4096 * pages + 8 * page, sum)
        for slot in 512, 1024:
            if inserted is not None:
                struct.pack_into("<Q", data, slot + 8, inserted)
            struct.pack_into("<Q", data, slot + 56, checksum(bytes(data[slot : slot + 56])))
        self.write(name, bytes(data))

    def make_filter(self, name: str, lines: Iterable[bytes], *options: object, status: int | None = 0) -> None:
        """A filter of these keys, which come by a pipe."""
        data = text(lines)
        self.bloomery("build", "-q", "-o", name, *options, *([] if data else ["--allow-empty"]), stdin=data, status=status)

    def bits_of(self, name: str) -> bytes:
        """The filter's own bytes."""
        file = self.read(name)
        return file[PAYLOAD_AT:][: -(-int.from_bytes(file[128:136], "little") // 8)]

    def is_locked(self, name: str) -> bool:
        """Whether a process writes to the filter."""
        with open(self.path(name), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def start(self, *arguments: object, **options) -> subprocess.Popen:
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder} | options
        process = subprocess.Popen([COMMAND, *map(str, arguments)], **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process: subprocess.Popen) -> None:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None and not stream.closed:
                stream.close()

    def bloomery(self, *arguments: object, stdin: bytes | IO = b"", status: int | None = 0, **options) -> Result:
        """Runs the command to its end; bytes come by a pipe. Fails unless it ends with this status."""
        piped = isinstance(stdin, bytes)
        process = self.start(*arguments, stdin=subprocess.PIPE if piped else stdin, **options)
        out, err = process.communicate(stdin if piped else None, timeout=600)
        result = Result(process.returncode, out or b"", to_text(err or b""))
        if status is not None and result.status != status:
            self.fail(f"bloomery {' '.join(map(str, arguments))}: status {result.status}, not {status}\n{result.err}")
        return result

    def refused(self, *arguments: object, says: str = "", **options) -> Result:
        """An error: status 2, one line on standard error, nothing on standard output."""
        result = self.bloomery(*arguments, status=None, **options)
        asked = f"bloomery {' '.join(map(str, arguments))}: {result.err}"
        self.assertEqual(result.status, 2, asked)
        self.assertEqual(result.out, b"", asked)
        self.assertRegex(result.err, r"\Abloomery: [^\n]+\n\Z", asked)
        self.assertRegex(result.err, re.compile(says, re.IGNORECASE), asked)
        return result

    def refuse_all(self, refusals: dict[str, str], before: str = "", **options) -> None:
        """Refuses each command line, written as in a shell, with an error that says this."""
        for line, says in refusals.items():
            with self.subTest(line=line):
                self.refused(*shlex.split(before + line), says=says, **options)

    def check_runs(self, table: Iterable[tuple], status: int | None = None, **options) -> None:
        """Each command line prints, on standard output and then on standard error, what the expressions beside it match."""
        for line, *shown in table:
            with self.subTest(line=line):
                result = self.bloomery(*shlex.split(line), status=status, **options)
                for expression in shown:
                    self.assertRegex(result.out.decode() + result.err, expression)

    def remove(self, *names: str) -> None:
        for name in names:
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))

    def wait_for_a_writer(self, name: str) -> None:
        while self.info(name)["clean"]:
            pass

    def info(self, name: str) -> dict:
        return self.bloomery("info", "--json", name).json

    def count(self, name: str, lines: Iterable[bytes], *options: object) -> int:
        """How many of these keys the filter says it may have."""
        return int(self.bloomery("check", "-c", *options, name, stdin=text(lines), status=None).out)

    def assert_has_all(self, name: str, lines: Iterable[bytes], *options: object) -> None:
        missing = self.bloomery("check", "-v", *options, name, stdin=text(lines), status=None)
        self.assertEqual((missing.out[:200], missing.status), (b"", 1), "keys are missing: " + missing.err)

    def assert_chance(self, hits: float, trials: int, rate: float) -> None:
        """A count that chance explains: within six standard deviations of trials * rate, and a few for small counts."""
        allowed = 6 * math.sqrt(trials * rate * (1 - rate)) + 6
        self.assertLessEqual(abs(hits - trials * rate), allowed, f"{hits} of {trials}, expected {trials * rate:.1f}")


def peak_memory(arguments: list[object], **options) -> int:
    """Bytes of memory the command used at its peak.

    A process inherits the peak of the one that started it, so a small Python in between starts and measures it.
    """
    measure = (
        "import os, sys\n"
        "child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)\n"
        "_, status, usage = os.wait4(child, 0)\n"
        "assert os.waitstatus_to_exitcode(status) == 0, status\n"
        "print(usage.ru_maxrss * 1024, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", measure, COMMAND, *map(str, arguments)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, check=True, timeout=600, **options)
    return int(ended.stderr.splitlines()[-1])
