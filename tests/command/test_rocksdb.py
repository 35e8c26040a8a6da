"""bloomery on tables of RocksDB and their filters, also with RocksDB itself."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support import CommandTest, keys, text

SOURCE = Path(os.environ["BLOOMERY_SOURCE"])
RECORDED = SOURCE / "tests/golden/foreign"
PEER = SOURCE / "tests/peers/rocksdb.cpp"
HERE = keys(300) + ["Zürich".encode(), "布隆过滤器".encode(), b"a key with spaces, which is longer than two blocks of sixteen bytes"]
OTHERS = keys(20_000, "other")
END = b"\xff\xff"  # after all other keys: RocksDB asks the filter only for keys between the first and the last one
SCHEMES = {5: "rocksdb", 4: "rocksdb_4"}


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def filter_block_of(table: bytes) -> bytes:
    """The filter of a table, read in the simplest way."""
    offset, at = varint(table, len(table) - 52)
    size, _ = varint(table, at)
    metaindex = table[offset : offset + size]
    at = metaindex.index(b"fullfilter.rocksdb.BuiltinBloomFilter") + len("fullfilter.rocksdb.BuiltinBloomFilter")
    offset, at = varint(metaindex, at)
    size, _ = varint(metaindex, at)
    return table[offset : offset + size]


class RecordedTables(CommandTest):
    """Tables that RocksDB wrote, and the answers of its filters."""

    def setUp(self) -> None:
        super().setUp()
        for file in RECORDED.glob("rocksdb_*.sst"):
            self.write(file.name, file.read_bytes())

    def test_check_answers_as_rocksdb(self) -> None:
        for version in SCHEMES:
            with self.subTest(version):
                name = f"rocksdb_{version}"
                self.assertEqual(self.bloomery("check", f"{name}.sst", stdin=text(HERE)).out, text(HERE))
                self.assertEqual(self.bloomery("check", f"{name}.sst", stdin=text(OTHERS)).out, recorded(f"{name}.positives"))
                self.bloomery("check", "-q", f"{name}.sst", stdin=b"other-0\n", status=1)

    def test_info_shows_the_filter_and_its_rate(self) -> None:
        for version, kind, lines in (5, "fast_local_bloom", 6), (4, "legacy_bloom", 7):
            with self.subTest(version):
                facts = self.bloomery("info", "--json", f"rocksdb_{version}.sst").json
                shown = self.bloomery("info", f"rocksdb_{version}.sst").out.decode()

                self.assertEqual((facts["format"], facts["kind"], facts["lines"], facts["probes"]), ("rocksdb_table", kind, lines, 6))
                self.assertEqual(facts["bits"], 512 * lines)
                self.assertAlmostEqual(facts["fill"], 0.42, delta=0.03)
                positives = len(recorded(f"rocksdb_{version}.positives").splitlines())
                self.assertLess(abs(positives - 20_000 * facts["rate_now"]), 5 * positives**0.5)
                self.assertLess(abs(facts["estimated_keys"] - len(HERE)), 5 * facts["estimated_keys_sigma"])
                self.assertIsNone(facts["no_lookups"])
                self.assertTrue(facts["has_checksums"])
                self.assertRegex(shown, r"FPR           0\.\d+%, within 5%\n")
                self.assertAlmostEqual(facts["rate_now_within"], 1.05, delta=0.005)
                self.assertNotIn("checksums", shown)
        self.assertFalse(self.bloomery("info", "--json", "rocksdb_no_checksum.sst").json["has_checksums"])
        self.assertIn("checksums     none", self.bloomery("info", "rocksdb_no_checksum.sst").out.decode())

    def test_other_commands_open_a_table_too(self) -> None:
        for version, scheme in SCHEMES.items():
            with self.subTest(version):
                name = f"rocksdb_{version}"
                self.assertIn(b"key-7", self.bloomery("explain", f"{name}.sst", "key-7").out)
                self.write("present", text(HERE))
                verified = self.bloomery("verify", "--json", f"{name}.sst", "--present", "present").json
                self.assertEqual((verified["present"]["keys"], verified["present"]["missing"]), (len(HERE), 0))

                result = self.bloomery("import", "--json", f"{name}.sst", "-o", "own").json
                self.assertEqual((result["format"], result["scheme"]), ("rocksdb_table", scheme))
                self.assertEqual(self.bloomery("check", "own", stdin=text(OTHERS)).out, recorded(f"{name}.positives"))
                back = f"back-{version}"  # a new name: a file of this format is not recognized as a filter
                self.bloomery("export", "-q", f"{name}.sst", "--to", "rocksdb", "-o", back)
                self.assertEqual(self.read(back), filter_block_of(recorded(f"{name}.sst")))

    def test_a_filter_block_is_imported_if_its_format_is_named(self) -> None:
        for version, scheme in SCHEMES.items():
            self.write("block", filter_block_of(recorded(f"rocksdb_{version}.sst")))
            self.assertEqual(self.bloomery("import", "--json", "--from", "rocksdb", "block", "-o", "own").json["scheme"], scheme)
            self.assertEqual(self.bloomery("check", "own", stdin=text(OTHERS)).out, recorded(f"rocksdb_{version}.positives"))
        self.refused("import", "block", "-o", "no", says="name the format")

    def test_tables_that_cannot_be_looked_up_are_refused_with_the_reason(self) -> None:
        self.write("keys", b"key-1\n")
        damaged = bytearray(recorded("rocksdb_5.sst"))
        damaged[damaged.index(filter_block_of(damaged)) + 9] ^= 1
        self.write("damaged.sst", bytes(damaged))
        self.refuse_all(
            {
                "check rocksdb_ribbon.sst keys": "a Ribbon filter",
                "check rocksdb_partitioned.sst keys": "a partitioned filter",
                "info rocksdb_partitioned.sst": "a partitioned filter",
                "check rocksdb_prefixes.sst keys": "prefixes of keys, not whole keys",
                "import rocksdb_prefixes.sst -o no": "prefixes of keys, not whole keys",
                "check damaged.sst keys": "checksum of the filter block",
                "add rocksdb_5.sst keys": "for reading only",
            }
        )
        self.assertIn("prefixes of keys", self.bloomery("info", "--json", "rocksdb_prefixes.sst").json["no_lookups"])
        self.assertIn("lookups       impossible", self.bloomery("info", "rocksdb_prefixes.sst").out.decode())


class Rocksdb(CommandTest):
    """The real RocksDB writes the same filters and gives the same answers."""

    def setUp(self) -> None:
        super().setUp()
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None or not os.path.exists("/usr/include/rocksdb/db.h"):
            print("SKIP peer RocksDB (librocksdb-dev, g++) is not installed")
            self.skipTest("SKIP peer RocksDB (librocksdb-dev, g++) is not installed")
        subprocess.run([compiler, "-std=c++20", "-o", self.path("rocksdb"), str(PEER), "-lrocksdb"], check=True)

    def rocksdb(self, *arguments: object, stdin: bytes = b"") -> bytes:
        command = [self.path("rocksdb"), *map(str, arguments)]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def test_the_hashes_are_those_that_were_recorded(self) -> None:
        self.assertEqual(self.rocksdb("hashes"), recorded("rocksdb.hashes"))

    def test_filters_are_the_same_bytes(self) -> None:
        for count, bits_per_key in (1, 10), (2, 1), (10, 3), (100, 5), (303, 16), (303, 70), (20_000, 10):
            some = (HERE + OTHERS)[:count]
            for version, scheme in SCHEMES.items():
                with self.subTest(count=count, bits_per_key=bits_per_key, scheme=scheme):
                    name = f"{scheme}-{count}-{bits_per_key}"
                    self.rocksdb("table", f"{name}.sst", bits_per_key, version, stdin=text(some))
                    theirs = filter_block_of(self.read(f"{name}.sst"))
                    probes = theirs[-3] if version == 5 else theirs[-5]
                    self.make_filter("own", some, "--scheme", scheme, "-m", 8 * len(theirs) - 40, "-k", probes, "-n", count)

                    self.bloomery("export", "-q", "own", "--to", "rocksdb", "-o", name)

                    self.assertEqual(self.read(name), theirs)
                    self.assertEqual(self.bloomery("check", f"{name}.sst", stdin=text(some)).out, text(some))

    def test_plan_chooses_the_size_that_rocksdb_makes_for_the_bits_per_key(self) -> None:
        some = text((HERE + OTHERS)[:5000])
        for version, scheme in SCHEMES.items():
            for rate in ("40%", "10%", "3%", "1.2%", "0.3%") + (("1e-4", "1e-5", "1e-6", "3e-7", "1e-8") if version == 5 else ()):
                with self.subTest(scheme=scheme, rate=rate):
                    planned = self.bloomery("plan", "--json", "--scheme", scheme, "-n", 5000, "-p", rate).json
                    sizes = []
                    for bits_per_key in range(planned["bits"] // 5000 - 1, planned["bits"] // 5000 + 1):
                        self.rocksdb("table", "some.sst", max(bits_per_key, 1), version, stdin=some)
                        theirs = filter_block_of(self.read("some.sst"))
                        sizes.append((8 * len(theirs) - 40, theirs[-3] if version == 5 else theirs[-5]))

                    self.assertIn((planned["bits"], planned["probes"]), sizes)

    def test_answers_are_the_same(self) -> None:
        for version, scheme in SCHEMES.items():
            for count in 2, 300, 5000:
                with self.subTest(scheme=scheme, count=count):
                    some = [b"", *(HERE + OTHERS)[-count:], END]
                    name = f"{scheme}-{count}.sst"
                    self.rocksdb("table", name, 8, version, stdin=text(some))
                    asked = HERE + OTHERS[:3000] + [b"\xc3\x28" * i for i in range(1, 300)]

                    answers = self.rocksdb("get", name, stdin=text(asked)).split()

                    found = text(key for key, answer in zip(asked, answers, strict=True) if answer == b"1")
                    self.assertEqual(self.bloomery("check", name, stdin=text(asked), status=None).out, found)


if __name__ == "__main__":
    unittest.main()
