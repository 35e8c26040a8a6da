#!/usr/bin/env python3
"""Rows per second of the extension of SQLite, beside a plain scan and a join with an index.

    /usr/bin/python3 bench/sqlite_rows.py build/release/sqlite/bloomery.so [--rows N] [--members N] [--rounds N]

The database is in memory, and one thread runs. A tenth of the rows are members. The statements take turns, so that a slow
moment of the machine does not fall on one of them.
"""

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extension", help="bloomery.so")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(os.path.abspath(options.extension).removesuffix(".so"))
    db.execute("CREATE TABLE members(name TEXT PRIMARY KEY) WITHOUT ROWID")
    # Random keys, so that absent keys fall anywhere between them.
    numbers = random.Random(1)
    members = [f"{numbers.getrandbits(64):016x}" for _ in range(options.members)]
    db.executemany("INSERT INTO members VALUES (?)", ((name,) for name in members))
    db.execute("CREATE TABLE t(key TEXT)")
    rows = (numbers.choice(members) if i % 10 == 0 else f"{numbers.getrandbits(64):016x}" for i in range(options.rows))
    db.executemany("INSERT INTO t VALUES (?)", ((key,) for key in rows))
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "members.bloom")
        db.execute("SELECT bloom_save(bloom_build(name, ?, 0.01), ?) FROM members", [options.members, path]).fetchall()
        (blob,) = db.execute("SELECT bloom_load(?)", [path]).fetchone()
        db.execute("CREATE TABLE filters(filter BLOB)")
        db.execute("INSERT INTO filters VALUES (?)", [blob])
        layout, bits = db.execute("SELECT layout, bits FROM bloom_info(?)", [path]).fetchone()
        print(f"{options.rows:,} rows, {options.members:,} members; filter: {layout}, {bits / options.members:.2f} bits per key, target FPR 1%; SQLite {sqlite3.sqlite_version}")

        statements = {
            "scan: count(key)": ("SELECT count(key) FROM t", []),
            "bloom(file, key)": ("SELECT count(*) FROM t WHERE bloom(?, key)", [path]),
            "bloom_contains(parameter, key)": ("SELECT count(*) FROM t WHERE bloom_contains(?, key)", [blob]),
            "join with the index": ("SELECT count(*) FROM t CROSS JOIN members ON name = key", []),
            "bloom(), then the join": ("SELECT count(*) FROM t CROSS JOIN members ON name = key WHERE bloom(?, key)", [path]),
        }
        seconds: dict[str, list[float]] = {name: [] for name in statements}
        results = {}
        for _ in range(options.rounds):
            for name, (sql, values) in statements.items():
                start = time.perf_counter()
                results[name] = db.execute(sql, values).fetchone()[0]
                seconds[name].append(time.perf_counter() - start)
        print(f"{'million rows/s':32}{'min':>8}{'median':>8}{'max':>8}{'rows found':>12}")
        for name, times in seconds.items():
            rates = [options.rows / t / 1e6 for t in times]
            print(f"{name:32}{min(rates):8.2f}{statistics.median(rates):8.2f}{max(rates):8.2f}{results[name]:12,}")

        some = min(options.rows, 20_000)
        start = time.perf_counter()
        db.execute("SELECT count(*) FROM (SELECT key FROM t LIMIT ?) WHERE bloom_contains((SELECT filter FROM filters), key)", [some]).fetchone()
        print(f"bloom_contains(subquery, key), once: {some / (time.perf_counter() - start) / 1e6:.3f} million rows/s for {some:,} rows")


if __name__ == "__main__":
    main()
