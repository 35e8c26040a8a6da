"""The extension of SQLite, through Python's sqlite3. Its truth is a Python set, an exact number, or the command."""

import contextlib
import json
import math
import os
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = os.environ["BLOOMERY"]
EXTENSION = os.environ["BLOOMERY_SQLITE"]
PAYLOAD_AT = 4096  # where a filter file's bits begin

CAN_LOAD = hasattr(sqlite3.Connection, "enable_load_extension") and os.environ.get("BLOOMERY_SANITIZED", "0") == "0"


def command(*words: str, keys: list[str] = [], status: int = 0) -> str:
    done = subprocess.run([COMMAND, *words], input="".join(key + "\n" for key in keys), capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f"{words}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def names(count: int, kind: str = "user") -> list[str]:
    return [f"{kind}-{i}" for i in range(count)]


@unittest.skipUnless(CAN_LOAD, "this Python's sqlite3 cannot load extensions, or the extension has a sanitizer")
class SqliteTest(unittest.TestCase):
    def setUp(self) -> None:
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.dir = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.db = self.connect()

    def connect(self, encoding: str = "UTF-8") -> sqlite3.Connection:
        db = sqlite3.connect(":memory:")
        self.addCleanup(db.close)
        db.execute(f"PRAGMA encoding = '{encoding}'")
        db.enable_load_extension(True)
        db.load_extension(EXTENSION.removesuffix(".so"))
        return db

    def path(self, name: str) -> str:
        return str(self.dir / name)

    def one(self, sql: str, *values: object, db: sqlite3.Connection | None = None) -> object:
        rows = (db or self.db).execute(sql, values).fetchall()
        self.assertEqual(len(rows), 1, sql)
        return rows[0][0]

    def table(self, keys: list, db: sqlite3.Connection | None = None) -> None:
        (db or self.db).execute("CREATE TABLE IF NOT EXISTS t(key)")
        (db or self.db).execute("DELETE FROM t")
        (db or self.db).executemany("INSERT INTO t VALUES (?)", ((key,) for key in keys))

    def build(self, keys: list, capacity: int = 1000) -> bytes:
        self.table(keys)
        return self.one(f"SELECT bloom_build(key, {capacity}, 0.01) FROM t ORDER BY rowid")

    def refused(self, message: str, sql: str, *values: object, db: sqlite3.Connection | None = None) -> None:
        with self.assertRaisesRegex(sqlite3.OperationalError, message):
            (db or self.db).execute(sql, values).fetchall()


class Lookups(SqliteTest):
    def test_finds_the_keys_that_the_command_finds_in_filters_of_every_kind(self):
        kept, looked_up = names(2000), names(4000)
        makers = {
            "plain": ["build"],
            "classic": ["build", "--layout", "classic"],
            "guava": ["build", "--scheme", "guava"],
            "counting": ["build", "--counting"],
            "window": ["build", "--window", "1h"],
            "growing": ["build", "--grow"],
            "static": ["seal"],
        }
        self.table(looked_up)
        for kind, words in makers.items():
            with self.subTest(kind):
                path = self.path(kind + ".bloom")
                command(*words, "-o", path, *([] if kind == "static" else ["-n", "2000", "-p", "0.01"]), keys=kept)

                found = {key for (key,) in self.db.execute("SELECT key FROM t WHERE bloom(?, key)", [path])}
                blob = self.one("SELECT bloom_load(?)", path)
                in_blob = {key for (key,) in self.db.execute("SELECT key FROM t WHERE bloom_contains(?, key)", [blob])}

                self.assertEqual(found, set(command("check", path, keys=looked_up).split()))
                self.assertEqual(in_blob, found)
                self.assertLessEqual(set(kept), found)
                self.assertLess(len(found), 2100)

    def test_looks_up_a_window_as_of_now_in_a_file_and_as_of_its_newest_generation_in_a_blob(self):
        path = self.path("old.bloom")
        command("build", "--window", "1h", "--now", str(int(time.time()) - 7200), "-o", path, "-n", "10", keys=["a"])

        self.assertEqual(self.db.execute("SELECT bloom(?1, 'a'), bloom_contains(bloom_load(?1), 'a')", [path]).fetchone(), (0, 1))

    def test_has_no_false_negative_and_at_most_the_target_rate_of_false_positives(self):
        kept, absent = names(20_000), names(200_000, "absent")
        blob = self.build(kept, 20_000)

        self.assertEqual(self.one("SELECT count(*) FROM t WHERE bloom_contains(?, key)", blob), 20_000)
        self.table(absent)
        hits = self.one("SELECT count(*) FROM t WHERE bloom_contains(?, key)", blob)

        mean = 0.01 * len(absent)
        self.assertLess(hits, mean + 6 * math.sqrt(mean))
        self.assertGreater(hits, 0)

    def test_answers_NULL_for_a_NULL_argument(self):
        path = self.path("a.bloom")
        command("build", "-o", path, "-n", "10", keys=["a"])
        blob = Path(path).read_bytes()

        self.assertEqual(self.db.execute("SELECT bloom(?1, NULL), bloom(NULL, 'a'), bloom_contains(?2, NULL), bloom_contains(NULL, 'a'), bloom_load(NULL), bloom_save(NULL, ?1), bloom_overlap(?2, NULL)", [path, blob]).fetchall(), [(None,) * 7])
        self.assertEqual(self.db.execute("SELECT * FROM bloom_info(NULL)").fetchall(), [])
        self.assertEqual(Path(path).read_bytes(), blob)

    def test_takes_an_integer_as_the_integer_or_as_its_decimal_text(self):
        numbers, lines = self.path("numbers.bloom"), self.path("lines.bloom")
        keys = ["0", "7", "9223372036854775807"]
        command("build", "--u64", "-o", numbers, "-n", "10", "-p", "1e-6", keys=[*keys, "18446744073709551615"])
        command("build", "-o", lines, "-n", "10", "-p", "1e-6", keys=[*keys, "-9223372036854775808"])

        for key in map(int, keys):
            self.assertEqual(self.db.execute("SELECT bloom(?1, ?3), bloom(?2, ?3), bloom(?2, CAST(?3 AS TEXT))", [numbers, lines, key]).fetchone(), (1, 1, 1))
        self.assertEqual(self.one("SELECT bloom(?, -1)", numbers), 1)  # 2^64 - 1
        self.assertEqual(self.one("SELECT bloom(?, ?)", lines, -(2**63)), 1)
        self.assertEqual(self.one("SELECT bloom(?, 8)", numbers), 0)
        self.refused("key: .*expected INTEGER for a filter of integers, found TEXT", "SELECT bloom(?, '7')", numbers)
        self.refused("key: .*expected INTEGER for a filter of integers, found REAL", "SELECT bloom(?, 7.0)", numbers)
        self.refused("key: .*expected TEXT, BLOB or INTEGER, found REAL", "SELECT bloom(?, 7.0)", lines)
        self.refused("found REAL", "SELECT bloom_build(7.0, 10, 0.01)")

    def test_looks_up_the_same_bytes_in_a_database_of_UTF_16(self):
        keys = ["Köln", "東京", "\U0001f600", "a\0b", ""]
        blob = self.build(keys, 10)
        for encoding in ("UTF-16le", "UTF-16be"):
            wide = self.connect(encoding)
            self.table(keys, wide)

            self.assertEqual(self.one("PRAGMA encoding", db=wide), encoding)
            self.assertEqual(self.one("SELECT bloom_build(key, 10, 0.01) FROM t ORDER BY rowid", db=wide), blob)
            self.assertEqual(self.one("SELECT sum(bloom_contains(?, key)) FROM t", blob, db=wide), len(keys))
        self.assertEqual(self.one("SELECT sum(bloom_contains(?, CAST(key AS BLOB))) FROM t", blob), len(keys))

    def test_sees_a_file_that_was_replaced_between_two_statements(self):
        path = self.path("a.bloom")
        answers = []
        for key in ("first", "second"):
            command("build", "-o", path, "-n", "10", "-p", "1e-9", keys=[key])
            answers.append(self.db.execute("SELECT bloom(?1, 'first'), bloom(?1, 'second')", [path]).fetchone())
        command("add", path, keys=["first"])
        answers.append(self.db.execute("SELECT bloom(?1, 'first'), bloom(?1, 'second')", [path]).fetchone())

        self.assertEqual(answers, [(1, 0), (0, 1), (1, 1)])
        os.remove(path)
        self.refused("a.bloom: .*No such file", "SELECT bloom(?, 'first')", path)

    def test_uses_the_filter_of_each_row(self):
        self.db.execute("CREATE TABLE f(path, blob, own)")
        for i in range(40):  # more than a connection keeps open
            path = self.path(f"{i}.bloom")
            command("build", "-o", path, "-n", "10", "-p", "1e-9", keys=[f"key {i}"])
            self.db.execute("INSERT INTO f VALUES (?1, bloom_load(?1), ?2)", [path, f"key {i}"])

        rows = self.db.execute("SELECT sum(bloom(a.path, b.own)), sum(bloom_contains(a.blob, b.own)), sum(bloom(a.path, a.own)), sum(bloom_contains(a.blob, a.own)) FROM f a, f b").fetchall()

        self.assertEqual(rows, [(40, 40, 1600, 1600)])


class Errors(SqliteTest):
    def test_refuses_damaged_blobs_or_finds_all_their_keys(self):
        keys = names(300)
        blob = self.build(keys)
        self.assertEqual(self.one("SELECT sum(bloom_contains(?, key)) FROM t", blob), 300)
        refusals = 0
        for length in [*range(0, 64), *range(64, len(blob), 97), len(blob) - 1]:
            self.refused("", "SELECT bloom_contains(?, 'a')", blob[:length])
        offsets = range(0, len(blob), 13)
        for at in offsets:
            flipped = bytearray(blob)
            flipped[at] ^= 1 << at % 8
            try:
                self.assertEqual(self.one("SELECT sum(bloom_contains(?, key)) FROM t", bytes(flipped)), 300, at)
            except sqlite3.OperationalError:
                refusals += 1
        for at in range(PAYLOAD_AT, PAYLOAD_AT + 1344, 7):  # every changed bit of the keys' bits is noticed
            flipped = bytearray(blob)
            flipped[at] ^= 1
            self.refused("damaged|checksum|match", "SELECT bloom_contains(?, 'a')", bytes(flipped))
        self.assertGreater(refusals, len(offsets) // 4)

    def test_replaces_no_file_with_a_damaged_blob(self):
        path = self.path("kept.bloom")
        blob = self.build(["a"])
        self.assertEqual(self.one("SELECT bloom_save(?, ?)", blob, path), len(blob))

        self.refused("", "SELECT bloom_save(?, ?)", blob[:-1], path)
        self.refused("not a bloomery filter", "SELECT bloom_save(x'00', ?)", path)
        self.refused("no/such.bloom", "SELECT bloom_save(?, ?)", blob, self.path("no/such.bloom"))

        self.assertEqual(Path(path).read_bytes(), blob)
        self.assertEqual(os.listdir(self.dir), ["kept.bloom"])

    def test_names_the_argument_of_a_wrong_type_or_value(self):
        for sql, message in {
            "SELECT bloom(x'00', 'a')": "bloom: file: .*expected a file name as TEXT, found BLOB",
            "SELECT bloom('', 'a')": "bloom: file: the file name is empty",
            "SELECT bloom('a' || char(0) || 'b', 'a')": "NUL",
            "SELECT bloom_contains('a', 'a')": "bloom_contains: filter: .*expected a BLOB .*, found TEXT",
            "SELECT bloom_build(1, 1.5, 0.01)": "bloom_build: capacity: .*found REAL",
            "SELECT bloom_build(1, -1, 0.01)": "bloom_build: capacity: .*found -1",
            "SELECT bloom_build(1, 10, '0.01')": "bloom_build: fpr: .*found TEXT",
            "SELECT bloom_build(1, 10, 1)": "number above 0 and below 1",
            "SELECT bloom_build(1, 10, 1e999)": "number above 0 and below 1",
            "SELECT * FROM bloom_info": "missing argument",
            "SELECT * FROM bloom_info(7)": "bloom_info: filter: .*found INTEGER",
        }.items():
            with self.subTest(sql):
                self.refused(message, sql)

    def test_refuses_a_filter_beyond_the_limit_of_a_blob_before_it_takes_memory(self):
        self.refused("does not fit in a BLOB: expected at most 1000000000 bytes", "SELECT bloom_build(1, 1000000000000, 0.01)")
        self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
        self.refused("does not fit in a BLOB: expected at most 10000 bytes", "SELECT bloom_build(1, 100000, 0.01)")
        path = self.path("large.bloom")
        command("build", "-o", path, "-n", "100000", keys=["a"])
        with self.assertRaisesRegex(sqlite3.DataError, "too big"):
            self.db.execute("SELECT bloom_load(?)", [path]).fetchall()

    def test_refuses_lookups_in_keyed_filters_but_describes_their_files(self):
        path, key = self.path("keyed.bloom"), self.path("users.key")
        command("keygen", "-o", key)
        command("build", "--secret", key, "-o", path, "-n", "10", keys=["a"])

        self.refused("keyed.bloom: .*keyed with a secret.*accept no secrets", "SELECT bloom(?, 'a')", path)
        self.refused("keyed with a secret.*accept no secrets", "SELECT bloom_contains(bloom_load(?), 'a')", path)
        self.assertEqual(self.one("SELECT hash FROM bloom_info(?)", path), "siphash")


class Schemas(SqliteTest):
    def test_functions_of_files_are_refused_in_views_and_triggers(self):
        path = self.path("a.bloom")
        blob = self.build(["a"])
        self.one("SELECT bloom_save(?, ?)", blob, path)
        for i, sql in enumerate([f"bloom('{path}', 'a')", f"bloom_load('{path}')", f"bloom_save(x'', '{path}')", f"(SELECT bits FROM bloom_info('{path}'))"]):
            self.db.execute(f"CREATE TABLE log{i}(x)")
            self.db.execute(f"CREATE VIEW v{i} AS SELECT {sql} AS x")
            self.db.execute(f"CREATE TRIGGER g{i} AFTER INSERT ON log{i} BEGIN SELECT {sql}; END")
            for trusted in ("OFF", "ON"):
                with self.subTest(sql, trusted=trusted):
                    self.db.execute(f"PRAGMA trusted_schema = {trusted}")
                    self.refused("unsafe use of", f"SELECT * FROM v{i}")
                    self.refused("unsafe use of", f"INSERT INTO log{i} VALUES (1)")

    def test_functions_of_values_are_allowed_in_untrusted_schemas_and_in_indexes(self):
        blob = self.build(["a", "b"])
        self.db.execute("PRAGMA trusted_schema = OFF")
        self.db.execute("CREATE VIEW v AS SELECT bloom_contains(bloom_union(f), 'a') AS a, bloom_overlap(bloom_build(key, 10, 0.01), bloom_build(key, 10, 0.01)) AS o FROM (SELECT bloom_build(key, 10, 0.01) AS f, key FROM t)")
        self.db.execute(f"CREATE INDEX i ON t(bloom_contains(x'{blob.hex()}', key))")

        a, common = self.db.execute("SELECT a, o FROM v").fetchone()

        self.assertEqual(a, 1)
        self.assertGreater(common, 0)

    def test_exports_only_the_entry_point(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", EXTENSION], capture_output=True, text=True, check=True).stdout

        self.assertEqual([line.split()[-1] for line in listed.splitlines()], ["sqlite3_bloomery_init"])


class Blobs(SqliteTest):
    def test_bloom_build_makes_the_bytes_of_the_command(self):
        for rate in ("0.01", "0.0001"):
            for keys in (names(5000), [str(i) for i in range(3000)], ["a", "a", "b"]):
                by_command, by_sql = self.path("command.bloom"), self.path("sql.bloom")
                command("build", "-o", by_command, "-n", "5000", "-p", rate, keys=keys)
                self.table([int(key) if key.isdecimal() else key for key in keys])

                written = self.one(f"SELECT bloom_save(bloom_build(key, 5000, {rate}), ?) FROM (SELECT key FROM t ORDER BY rowid)", by_sql)

                self.assertEqual(Path(by_sql).read_bytes(), Path(by_command).read_bytes())
                self.assertEqual(written, os.path.getsize(by_sql))
                self.assertEqual(self.one("SELECT bloom_load(?)", by_command), Path(by_command).read_bytes())

    def test_keeps_the_note_of_a_file(self):
        path, copy = self.path("a.bloom"), self.path("b.bloom")
        command("build", "-o", path, "-n", "10", "--note", "users of May", keys=["a"])

        self.one("SELECT bloom_save(bloom_load(?), ?)", path, copy)

        self.assertEqual(Path(copy).read_bytes(), Path(path).read_bytes())

    def test_builds_NULL_without_rows_and_an_empty_filter_of_NULL_keys(self):
        self.table([])
        self.assertIsNone(self.one("SELECT bloom_build(key, 10, 0.01) FROM t"))
        self.assertIsNone(self.one("SELECT bloom_union(key) FROM t"))

        self.table([None, None])
        self.assertIsNone(self.one("SELECT bloom_union(key) FROM t"))
        empty = self.one("SELECT bloom_build(key, 10, 0.01) FROM t")
        self.assertEqual(self.db.execute("SELECT bloom_contains(?, 'a')", [empty]).fetchone(), (0,))
        self.table([None, "a", None])
        self.assertEqual(self.one("SELECT bloom_build(key, 10, 0.01) FROM t"), self.build(["a"], 10))

    def test_builds_a_filter_for_each_group(self):
        self.db.execute("CREATE TABLE g(day, key)")
        self.db.executemany("INSERT INTO g VALUES (?, ?)", ((i % 7, f"key {i}") for i in range(7000)))

        for day, blob in self.db.execute("SELECT day, bloom_build(key, 1000, 0.01) FROM g GROUP BY day").fetchall():
            self.assertEqual(blob, self.build([f"key {i}" for i in range(7000) if i % 7 == day]), day)

    def test_unites_filters(self):
        a, b = self.build(names(600)), self.build(names(600, "other"))
        self.table([a, None, b])
        union = self.one("SELECT bloom_union(key) FROM t")

        size = self.one("SELECT bloom_build(1, 1000, 0.01)")
        end = PAYLOAD_AT + 1344
        self.assertEqual(len(union), len(size))
        self.assertEqual(union[PAYLOAD_AT:end], bytes(x | y for x, y in zip(a[PAYLOAD_AT:end], b[PAYLOAD_AT:end])))
        self.table(names(600) + names(600, "other"))
        self.assertEqual(self.one("SELECT sum(bloom_contains(?, key)) FROM t", union), 1200)
        self.refused("bits", "SELECT bloom_union(x) FROM (SELECT ? AS x UNION ALL SELECT bloom_build('a', 50000, 0.01))", a)

    def test_estimates_the_overlap_as_the_command_does(self):
        keys = names(15_000)
        for part, kept in {"a": keys[:9000], "b": keys[6000:]}.items():
            command("build", "-o", self.path(part), "-n", "10000", "-p", "0.01", keys=kept)

        common = self.one("SELECT bloom_overlap(bloom_load(?), bloom_load(?))", self.path("a"), self.path("b"))

        told = json.loads(command("overlap", "--json", self.path("a"), self.path("b")))["keys_both"]
        self.assertEqual(common, told["value"])
        self.assertLess(abs(common - 3000), 5 * told["sigma"])
        self.refused("bits: ", "SELECT bloom_overlap(bloom_load(?), bloom_build('a', 10, 0.01))", self.path("a"))


class Info(SqliteTest):
    def test_reports_what_the_command_reports(self):
        path = self.path("a.bloom")
        command("build", "-o", path, "-n", "5000", "-p", "0.001", keys=names(4000))
        told = json.loads(command("info", "--json", path))

        for filter in (path, Path(path).read_bytes()):
            cursor = self.db.execute("SELECT * FROM bloom_info(?)", [filter])
            row = dict(zip([column[0] for column in cursor.description], cursor.fetchone()))

            self.assertEqual(row.pop("distinct_keys"), told["predicted_for_keys"])
            self.assertEqual(row, {
                "layout": told["layout"], "scheme": None, "hash": told["hash"], "keys": "bytes", "capacity": 5000, "target_fpr": 0.001,
                "bits": told["bits"], "bytes": told["bytes"], "probes": told["probes"], "insert_count": told["inserted"],
                "fill_ratio": told["fill"], "expected_fpr": told["predicted_rate"], "current_fpr": told["rate_now"],
            })

    def test_joins_a_table_of_file_names(self):
        for name, capacity in (("a", 100), ("b", 200)):
            command("build", "-o", self.path(name), "-n", str(capacity), keys=["x"])
        self.table([self.path("a"), self.path("b")])

        self.assertEqual(self.db.execute("SELECT capacity FROM t, bloom_info(t.key) ORDER BY 1").fetchall(), [(100,), (200,)])
        self.refused("No such file", "SELECT * FROM bloom_info(?)", self.path("c"))

    def test_has_the_version_of_the_command(self):
        self.assertIn(self.one("SELECT bloomery_version()"), command("--version"))


if __name__ == "__main__":
    unittest.main()
