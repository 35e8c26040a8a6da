#!/usr/bin/env python3
"""A guard before SQL: keys that are certainly absent need no query.

    guard_sql.py DATABASE NAME...    prints the address of each user, and how many queries were needed

The filter is built from the table, and takes 10 to 12 bits per row. A row that is inserted later must be added to the filter
before the transaction is committed: then a lookup never misses a row.
"""

import sqlite3
import sys
from typing import Optional

import bloomery


class Users:
    """A table with a filter before it."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.queries = 0
        [(rows,)] = database.execute("SELECT count(*) FROM users")
        self.names = bloomery.Filter(max(2 * rows, 1000), 0.01)  # room for as many rows again
        self.names.update(name for (name,) in database.execute("SELECT name FROM users"))

    def address_of(self, name: str) -> Optional[str]:
        if name not in self.names:
            return None
        self.queries += 1
        row = self.database.execute("SELECT address FROM users WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def insert(self, name: str, address: str) -> None:
        self.names.add(name)
        with self.database:
            self.database.execute("INSERT INTO users VALUES (?, ?)", (name, address))


def main() -> None:
    users = Users(sqlite3.connect(sys.argv[1]))
    for name in sys.argv[2:]:
        print(name, users.address_of(name), sep="\t")
    print(f"{len(sys.argv) - 2} lookups, {users.queries} queries", file=sys.stderr)


if __name__ == "__main__":
    main()
