"""bloomery import and export, and commands on filter files that other systems wrote. test_formats_peers.py runs these
systems."""

import gzip
import os
import unittest
from pathlib import Path

from support import CommandTest, keys, text

SOURCE = Path(os.environ["BLOOMERY_SOURCE"])
RECORDED = SOURCE / "tests/golden/foreign"
HERE = keys(300) + ["Zürich".encode(), "布隆过滤器".encode(), b"a key with spaces, which is longer than two blocks of sixteen bytes"]
OTHERS = keys(20_000, "other")
# Name of the recorded file: format, scheme, bits, probes, capacity.
FILES = {
    "guava": ("guava", "guava", 64 * 45, 7, 0),
    "guava32": ("guava", "guava32", 64 * 45, 7, 0),
    "bits_and_blooms": ("bits_and_blooms", "bits_and_blooms", 2876, 7, 0),
    "dcso": ("dcso", "dcso", 2875, 7, 300),
    "redisbloom_chunks": ("redisbloom_chunks", "redisbloom", 4416, 8, 400),
    "datasketches": ("datasketches", "datasketches", 64 * 45, 7, 0),
    "perl": ("perl", "perl", 3838, 7, 400),
    "bloom_filters": ("bloom_filters", "bloom_filters", 2876, 7, 0),
    "bloomfilter_js": ("bloomfilter_js", "bloomfilter_js", 2880, 7, 0),
    "bits_and_blooms_json": ("bits_and_blooms_json", "bits_and_blooms", 2876, 7, 0),
}

FORMATS = ", ".join(("guava", "spark", "dcso", "bits_and_blooms", "redisbloom", "redisbloom_chunks", "valkey_bloom",
                     "datasketches", "leveldb", "rocksdb", "perl", "bloom_filters", "bloomfilter_js", "bits_and_blooms_json"))


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def positives_of(name: str) -> bytes:
    """The absent keys that the system reports as present."""
    return recorded(f"{name.removesuffix('_json')}.positives")


class Recorded(CommandTest):
    """Files that the other systems wrote."""

    def setUp(self) -> None:
        super().setUp()
        for name in FILES:
            self.write(name, recorded(f"{name}.filter"))

    def test_check_answers_as_the_system_that_wrote_the_file(self) -> None:
        for name in FILES:
            with self.subTest(name):
                present = self.bloomery("check", name, stdin=text(HERE)).out
                others = self.bloomery("check", name, stdin=text(OTHERS)).out

                self.assertEqual(present, text(HERE))
                self.assertEqual(others, positives_of(name))

    def test_info_names_the_format_and_computes_the_rate_of_the_bits(self) -> None:
        for name, (form, scheme, bits, probes, capacity) in FILES.items():
            with self.subTest(name):
                facts = self.bloomery("info", "--json", name).json
                shown = self.bloomery("info", name).out.decode()

                self.assertEqual((facts["format"], facts["scheme"], facts["bits"], facts["probes"]), (form, scheme, bits, probes))
                positives = len(positives_of(name).splitlines())
                self.assertLess(abs(positives - 20_000 * facts["rate_now"]), 5 * positives**0.5)
                self.assertLess(abs(facts["estimated_keys"] - len(HERE)), 5 * facts["estimated_keys_sigma"])
                self.assertEqual(facts["capacity"], capacity)
                self.assertEqual(facts["note"], "a note of the user\n" if scheme == "dcso" else "")
                self.assertIn(f"format        {form}: ", shown)
                self.assertNotIn("clean", shown)

    def test_import_keeps_every_bit_and_export_gives_the_file_back(self) -> None:
        for name, (form, scheme, bits, _, _) in FILES.items():
            with self.subTest(name):
                result = self.bloomery("import", "--json", name, "-o", "own").json
                self.bloomery("export", "own", "--to", form, "-o", "back")

                self.assertEqual((result["format"], result["scheme"], result["bits"]), (form, scheme, bits))
                self.assertEqual(self.bloomery("check", "own", stdin=text(OTHERS)).out, positives_of(name))
                self.assertEqual(self.read("back"), recorded(f"{name}.filter"))

    def test_an_imported_filter_takes_keys_and_is_judged_by_the_given_target(self) -> None:
        self.bloomery("import", "-q", "guava", "-o", "own", "-n", 400, "-p", "10%")

        self.bloomery("add", "own", stdin=b"Madrid\n")

        facts = self.bloomery("info", "--json", "own").json
        self.assertEqual((facts["capacity"], facts["target_rate"], facts["fpr_verdict"]), (400, 0.1, "kept"))
        self.assertEqual(self.bloomery("check", "own", stdin=b"Madrid\n").out, b"Madrid\n")
        self.bloomery("import", "-q", "guava", "-o", "own", "-n", 300, "-p", "0.1%", status=3)
        self.bloomery("import", "-q", "guava", "-o", "own", "-p", "1%")
        self.assertAlmostEqual(self.bloomery("info", "--json", "own").json["capacity"], 300, delta=5)

    def test_other_commands_open_the_files_too(self) -> None:
        for name in FILES:
            with self.subTest(name):
                self.bloomery("union", "-q", "-o", "both", name, name, status=0)
                self.assertEqual(self.bloomery("check", "both", stdin=text(OTHERS)).out, positives_of(name))
                self.assertIn(b"key-7", self.bloomery("explain", name, "key-7").out)
                self.write("present", HERE)
                verified = self.bloomery("verify", "--json", name, "--present", "present").json
                self.assertEqual((verified["present"]["keys"], verified["present"]["missing"]), (len(HERE), 0))

    def test_the_files_are_never_changed(self) -> None:
        for name, (form, *_) in FILES.items():
            with self.subTest(name):
                failure = self.bloomery("add", name, stdin=b"Madrid\n", status=2).err

                self.assertIn(f"expected a file of bloomery, found format {form}", failure)
                self.assertIn(f"bloomery import -o NAME.bloom {name}", failure)
                self.assertEqual(self.read(name), recorded(f"{name}.filter"))
        self.refused("info", "--check", "guava", says="no page checksums")

    def test_a_compressed_file_is_refused_with_the_command_that_decompresses_it(self) -> None:
        self.write("dcso.gz", gzip.compress(recorded("dcso.filter")))

        for command in ("info",), ("check", "dcso.gz"), ("import", "-o", "no"):
            self.refused(command[0], "dcso.gz", *command[1:], says="dcso.gz.*found a file compressed by gzip; decompress it first: gunzip")

    def test_what_cannot_be_converted_is_refused_with_the_command_that_can(self) -> None:
        self.make_filter("blocks", HERE, "-n", 300)
        failure = self.bloomery("export", "blocks", "--to", "guava", "-o", "no", status=2).err
        self.assertIn("expected scheme guava, guava32, found layout", failure)
        self.assertIn("bloomery build --scheme", failure)
        self.assertFalse(os.path.exists(self.path("no")))
        self.write("keys", HERE)
        failure = self.bloomery("import", "keys", "-o", "no", status=2).err
        self.assertIn("one of " + FORMATS.replace("leveldb, rocksdb, ", ""), failure)
        failure = self.bloomery("import", "--from", "guava", "dcso", "-o", "no", status=2).err
        self.assertIn("number of probes", failure)
        self.write("cut", recorded("guava.filter")[:-8])
        failure = self.bloomery("import", "--from", "guava", "cut", "-o", "no", status=2).err
        self.assertIn("the file is truncated: expected 366 bytes, found 358", failure)
        self.bloomery("export", "guava", "--to", "guava", "-o", "keys", status=2)  # not a filter
        self.assertEqual(self.read("keys"), text(HERE))
        self.bloomery("export", "guava", "--to", "guava", "-o", "dcso")  # a filter of another system may be replaced
        self.assertEqual(self.read("dcso"), recorded("guava.filter"))

    def test_a_note_is_dropped_visibly(self) -> None:
        self.make_filter("noted", HERE, "--scheme", "guava", "-n", 300, "--note", "hello")

        said = self.bloomery("export", "noted", "--to", "guava", "-o", "out").err

        self.assertIn("format guava does not store the filter's note", said)


class Parquet(CommandTest):
    """Files that DuckDB and hyparquet wrote, and their answers (tests/golden/foreign/make_parquet.mjs)."""

    def answers(self, name: str) -> dict[str, tuple[list[bytes], list[list[int]]]]:
        """For each column the keys, and the row groups that may contain each of them."""
        result = {}
        for line in (RECORDED / f"{name}.answers").read_text(encoding="utf-8").splitlines():
            column, prefix, first, step, _, suffix, digits = line.split("\t")
            values = [f"{prefix}{int(first) + i * int(step)}{suffix}".encode() for i in range(len(digits))]
            result[column] = values, [[group for group in range(3) if int(digit) >> group & 1] for digit in digits]
        return result

    def setUp(self) -> None:
        super().setUp()
        for name in "duckdb", "hyparquet":
            self.write(f"{name}.parquet", recorded(f"{name}.parquet"))

    def test_check_prints_the_row_groups_that_the_real_readers_would_read(self) -> None:
        for name in "duckdb", "hyparquet":
            for column, (values, groups) in self.answers(name).items():
                if column == "without":
                    continue
                with self.subTest(name=name, column=column):
                    found = self.bloomery("check", "--row-groups", "--column", column, f"{name}.parquet", stdin=text(values)).out
                    absent = self.bloomery("check", "-v", "--column", column, f"{name}.parquet", stdin=text(values)).out

                    expected = [b"%s\t%s" % (",".join(map(str, some)).encode(), value) for value, some in zip(values, groups, strict=True) if some]
                    self.assertEqual(found, text(expected))
                    self.assertEqual(absent, text(value for value, some in zip(values, groups, strict=True) if not some))

    def test_info_lists_the_columns_and_computes_the_rate_of_each_row_group(self) -> None:
        listed = {column["column"]: column for column in self.bloomery("info", "--json", "duckdb.parquet").json["columns"]}
        self.assertLessEqual(set(self.answers("duckdb")), set(listed))
        self.assertEqual((listed["b"]["type"], listed["b"]["filters"], listed["without"]["filters"]), ("INT64", 3, 0))
        for column in self.answers("duckdb"):
            if column == "without":
                continue
            facts = self.bloomery("info", "--json", "--column", column, "-p", "1%", "duckdb.parquet").json
            self.assertEqual(len(facts["row_groups"]), 3)
            for group in facts["row_groups"]:
                self.assertIn(group["fpr_verdict"], ("kept", "within_chance"))
                self.assertAlmostEqual(facts["needless_reads"], sum(group["rate_now"] for group in facts["row_groups"]))
        shown = self.bloomery("info", "--column", "b", "duckdb.parquet").out.decode()
        self.assertRegex(shown, r"group 2       [\d,]+ rows, 256 B, [\d,]+ \+- \d+ distinct values, ")
        self.bloomery("info", "--column", "b", "-p", "0.001%", "duckdb.parquet", status=3)

    def test_import_takes_the_filter_of_a_row_group(self) -> None:
        for column, options in ("s", []), ("b", ["--u64"]):
            values, groups = self.answers("duckdb")[column]
            values = [value for value in values if not value.startswith(b"-")]
            groups = groups[-len(values) :]
            for group in range(3):
                with self.subTest(column=column, group=group):
                    self.bloomery("import", "-q", "--column", column, "--row-group", group, "duckdb.parquet", "-o", "own")

                    found = self.bloomery("check", "own", stdin=text(values)).out

                    self.assertEqual(found, text(value for value, some in zip(values, groups, strict=True) if group in some))
                    self.assertEqual(self.bloomery("info", "--json", "own").json["keys"], "u64" if options else "bytes")

    def test_errors_name_the_option_that_is_missing_or_wrong(self) -> None:
        self.write("keys", b"1\n")
        self.refuse_all(
            {
                "check duckdb.parquet keys": "filter per column and row group.*bloomery info duckdb.parquet",
                "explain duckdb.parquet 1": "filter per column and row group",
                "check --column x duckdb.parquet keys": "no such column.*expected one of s, b,.*found 'x'",
                "check --column without duckdb.parquet keys": "the column has no Bloom filter",
                "info --column without duckdb.parquet": "the column has no Bloom filter",
                "import duckdb.parquet -o no": "expected --column and --row-group",
                "import duckdb.parquet --column b --row-group 3 -o no": "a row group below 3, found 3",
                "import duckdb.parquet --column n --row-group 0 -o no": "neither text nor 64-bit integers",
                "check --column b keys keys": "not a Parquet file",
                "info --column b keys": "not a Parquet file",
                "check --row-groups keys keys": "",
                "check -v --row-groups --column b duckdb.parquet keys": "exclude",
            }
        )
        self.refused("check", "--column", "b", "duckdb.parquet", stdin=b"Madrid\n", says="Madrid")
        self.write("cut.parquet", recorded("duckdb.parquet")[:-9])
        self.refused("info", "cut.parquet", says="cut.parquet")


class LeveldbTables(CommandTest):
    """Tables that LevelDB wrote, and the answers of its filters."""

    TABLES = "leveldb_none", "leveldb_snappy"
    HERE = HERE + [b"other-%d" % i for i in range(20_000, 60_000, 37)]

    def setUp(self) -> None:
        super().setUp()
        for name in "leveldb_none.ldb", "leveldb_snappy.ldb", "leveldb.filter":
            self.write(name, recorded(name))
        for name in "CURRENT", "MANIFEST-000002":  # of a database with LevelDB's own order
            self.write(name, recorded(f"leveldb_bytewise/{name}"))

    def test_check_prints_the_keys_that_leveldb_looks_for_in_a_data_block(self) -> None:
        for name in self.TABLES:
            with self.subTest(name):
                self.assertEqual(self.bloomery("check", f"{name}.ldb", stdin=text(self.HERE)).out, text(self.HERE))
                self.assertEqual(self.bloomery("check", f"{name}.ldb", stdin=text(OTHERS)).out, recorded(f"{name}.positives"))
                self.bloomery("check", "-q", f"{name}.ldb", stdin=b"other-0\n", status=1)
                self.write("present", text(self.HERE))
                verified = self.bloomery("verify", "--json", f"{name}.ldb", "--present", "present").json
                self.assertEqual((verified["present"]["keys"], verified["present"]["missing"]), (len(self.HERE), 0))

    def test_keys_of_an_unknown_order_are_looked_up_in_all_filters(self) -> None:
        os.remove(self.path("CURRENT"))
        note = "note: keys are looked up in all filters of the table: the order of its keys is unknown"
        for name in self.TABLES:
            with self.subTest(name):
                checked = self.bloomery("check", f"{name}.ldb", stdin=text(self.HERE))
                self.assertEqual(checked.out, text(self.HERE))
                self.assertIn(note, checked.err)
                facts = self.bloomery("info", "--json", f"{name}.ldb").json
                self.assertIn("no CURRENT and MANIFEST", facts["all_filters_because"])
                found = len(self.bloomery("check", f"{name}.ldb", stdin=text(OTHERS)).out.splitlines())
                self.assertLess(abs(found - 20_000 * facts["rate_of_lookups"]), 5 * found**0.5)
                self.assertIn("lookups       in all filters, FPR", self.bloomery("info", f"{name}.ldb").out.decode())

    def test_tables_of_another_comparator_miss_no_key(self) -> None:
        for name in "CURRENT", "MANIFEST-000002", "000005.ldb":
            self.write(name, recorded(f"leveldb_reverse/{name}"))
        self.assertEqual(self.bloomery("check", "000005.ldb", stdin=text(HERE)).out, text(HERE))
        self.assertEqual(self.bloomery("info", "--json", "000005.ldb").json["all_filters_because"], "the database orders its keys by reverse")

    def test_verify_calls_sound_tables_sound(self) -> None:
        for name in self.TABLES:
            shown = self.bloomery("verify", f"{name}.ldb").out.decode()
            self.assertRegex(shown, r"filter        \S+: [\d.]+ KiB in \d+ filters \(scheme leveldb\)\nestimated FPR 0\.\d+%, from")
            self.assertIn("no problem found, but the measured FPR was not compared with the bits, because the filters of a table", shown)
            self.assertIsNone(self.bloomery("verify", "--json", f"{name}.ldb").json["certified"])

    def test_info_shows_the_rates_of_the_filters(self) -> None:
        for name in self.TABLES:
            with self.subTest(name):
                facts = self.bloomery("info", "--json", f"{name}.ldb").json

                self.assertEqual((facts["format"], facts["policy"], facts["probes"]), ("leveldb_table", "leveldb.BuiltinBloomFilter2", 6))
                self.assertLess(abs(facts["estimated_keys"] - len(self.HERE)), 5 * facts["estimated_keys_sigma"])
                positives = len(recorded(f"{name}.positives").splitlines())
                self.assertLess(abs(positives - 20_000 * facts["rate_now"]), 5 * positives**0.5)
                self.assertTrue(facts["rate_min"] < facts["rate_now"] < facts["rate_max"])
                self.assertEqual(sum(part["bits"] for part in facts["filters"]), facts["bits"])
                self.assertEqual([part["first"] for part in facts["filters"]], [2048 * i for i in range(len(facts["filters"]))])
                self.assertIsNone(facts["no_lookups"])
        shown = self.bloomery("info", "leveldb_none.ldb").out.decode()
        self.assertRegex(shown, r"filters       13, one per 2 KiB of data that has keys\n")
        self.assertRegex(shown, r"FPR           0\.\d+% \(mean of the filters; 0\.\d+% to 1\.\d+%\)\n")

    def test_a_single_filter_is_imported_if_its_format_is_named(self) -> None:
        self.bloomery("import", "-q", "--from", "leveldb", "leveldb.filter", "-o", "own")
        self.bloomery("export", "-q", "own", "--to", "leveldb", "-o", "back")

        self.assertEqual(self.bloomery("check", "own", stdin=text(HERE)).out, text(HERE))
        self.assertEqual(self.bloomery("check", "own", stdin=text(OTHERS)).out, recorded("leveldb.positives"))
        self.assertEqual(self.read("back"), recorded("leveldb.filter"))
        self.refused("import", "leveldb.filter", "-o", "no", says="name the format")

    def test_errors_say_what_a_table_is_not(self) -> None:
        self.write("keys", b"key-1\n")
        self.write("cut.ldb", recorded("leveldb_none.ldb")[-40:])
        damaged = bytearray(recorded("leveldb_none.ldb"))
        damaged[-200] ^= 1
        self.write("damaged.ldb", bytes(damaged))
        self.refuse_all(
            {
                "add leveldb_none.ldb keys": "for reading only: expected a file of bloomery, found a table of LevelDB or RocksDB; use it with check",
                "remove leveldb_none.ldb keys": "for reading only: expected a file of bloomery, found a table of LevelDB or RocksDB; use it with check",
                "import leveldb_none.ldb -o no": "filter per range of its data",
                "union -o no leveldb_none.ldb leveldb_none.ldb": "filter per range of its data",
                "export leveldb_none.ldb --to leveldb -o no": "filter per range of its data",
                "explain leveldb_none.ldb key-1": "bloomery check",
                "push leveldb_none.ldb redis://127.0.0.1:1/x": "other bits than the filters",
                "info --column a leveldb_none.ldb": "not a Parquet file",
                "check --column a leveldb_none.ldb keys": "not a Parquet file",
                "info --check leveldb_none.ldb": "does not apply to a table of LevelDB or RocksDB",
                "info --header leveldb_none.ldb": "found format leveldb_table",
                "check --row-groups leveldb_none.ldb keys": "",
                "info cut.ldb": "the table is truncated: expected at least 48 bytes, found 40",
                "check damaged.ldb keys": "checksum",
            }
        )

    def test_a_table_lists_its_filters_only_in_json(self) -> None:
        self.assertEqual(len(self.bloomery("info", "--json", "leveldb_none.ldb").json["filters"]), 13)


if __name__ == "__main__":
    unittest.main()
