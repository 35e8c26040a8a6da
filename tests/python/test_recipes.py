"""The programs in python/recipes, run as a user would, and compared with exact sets and with the command."""

import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import unittest

from package import PACKAGE, SOURCE, PackageTest, bloomery

RECIPES = SOURCE / "python" / "recipes"


class Recipes(PackageTest):
    def run_recipe(self, name: str, *arguments: str, stdin: str = "") -> "tuple[str, str]":
        done = subprocess.run([sys.executable, str(RECIPES / name), *arguments], input=stdin, cwd=self.folder, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_guard_sql_queries_only_names_that_may_be_present(self) -> None:
        with sqlite3.connect(self.path("users.db")) as database:
            database.execute("CREATE TABLE users(name TEXT PRIMARY KEY, address TEXT)")
            database.executemany("INSERT INTO users VALUES (?, ?)", [(f"user-{i}", f"street {i}") for i in range(2000)])
        database.close()
        names = [f"user-{i}" for i in range(1500, 2500)]

        out, err = self.run_recipe("guard_sql.py", "users.db", *names)

        expected = [f"user-{i}\t" + (f"street {i}" if i < 2000 else "None") for i in range(1500, 2500)]
        self.assertEqual(out.splitlines(), expected)
        queries = int(err.split()[2])
        self.assertTrue(500 <= queries <= 520, err)

    def test_guard_sql_finds_rows_that_are_inserted_later(self) -> None:
        program = (
            "import sqlite3, guard_sql; users = guard_sql.Users(sqlite3.connect('users.db'))\n"
            "print(users.address_of('new')); users.insert('new', 'street 7'); print(users.address_of('new'), users.queries)"
        )
        with sqlite3.connect(self.path("users.db")) as database:
            database.execute("CREATE TABLE users(name TEXT PRIMARY KEY, address TEXT)")
        database.close()
        done = subprocess.run([sys.executable, "-B", "-c", program], cwd=self.folder, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=f"{PACKAGE}:{RECIPES}"))  # fmt: skip
        self.assertEqual(done.stdout, "None\nstreet 7 1\n", done.stderr)

    def test_dedup_jsonl_keeps_the_first_of_equal_documents(self) -> None:
        generator = random.Random(2)
        texts = [f"Document {generator.randrange(3000)}" for _ in range(8000)]
        variants = (str.upper, str.lower, lambda text: "  " + text.replace(" ", "\n\t"), str)
        lines = [json.dumps({"text": variants[i % 4](text), "id": i}) + "\n" for i, text in enumerate(texts)]
        first: dict[str, str] = {}
        for text, line in zip(texts, lines):
            first.setdefault(text, line)

        one, _ = self.run_recipe("dedup_jsonl.py", "state.bloom", stdin="".join(lines[:5000]))
        two, _ = self.run_recipe("dedup_jsonl.py", "state.bloom", stdin="".join(lines[4000:]))

        self.assertEqual((one + two).splitlines(keepends=True), list(first.values()))

    def test_breached_passwords_are_found_and_the_file_is_that_of_the_command(self) -> None:
        leaked = [f"password{i}" for i in range(5000)]
        hashes = [hashlib.sha1(word.encode()).hexdigest().upper() for word in leaked]
        (self.folder / "hashes.txt").write_text("".join(f"{hash}:{i}\n" for i, hash in enumerate(hashes)))
        (self.folder / "plain.txt").write_text("".join(hash + "\n" for hash in hashes))

        self.run_recipe("breached_passwords.py", "build", "hashes.txt", "leaked.bloom")
        self.command("seal", "-q", "-o", "command.bloom", "--width", "16", "plain.txt")
        asked = leaked[:100] + [f"correct horse {i}" for i in range(1000)]
        out, _ = self.run_recipe("breached_passwords.py", "check", "leaked.bloom", stdin="".join(word + "\n" for word in asked))

        self.assertEqual((self.folder / "leaked.bloom").read_bytes(), (self.folder / "command.bloom").read_bytes())
        answers = out.splitlines()
        self.assertEqual(answers[:100], ["breached"] * 100)
        self.assertLess(answers[100:].count("breached"), 5)

    def test_map_partitions_gives_the_filter_of_one_machine(self) -> None:
        keys = [f"key-{i}" for i in range(40_000)]
        for part in range(4):
            (self.folder / f"part-{part}").write_text("".join(key + "\n" for key in keys[part * 8_000 : part * 8_000 + 16_000]))

        self.run_recipe("map_partitions.py", "all.bloom", *(f"part-{part}" for part in range(4)))

        self.built("command.bloom", keys, "-n", "1000000", "-p", "1%")
        united, one = bloomery.load(self.path("all.bloom")), bloomery.load(self.path("command.bloom"))
        self.assertEqual(united, one)
        payload = slice(4096, 4096 + one.info()["bytes"])
        self.assertEqual((self.folder / "all.bloom").read_bytes()[payload], (self.folder / "command.bloom").read_bytes()[payload])


if __name__ == "__main__":
    unittest.main()
