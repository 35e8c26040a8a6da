"""Filters in files: the same bytes as the command's, mapped, locked, closed; and damaged, missing or foreign files."""

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import unittest

from package import PACKAGE, PackageTest, bloomery

KEYS = [f"key-{i}" for i in range(3000)]


def contains(path: str, key: str) -> bool:
    return key in bloomery.open(path)


class Files(PackageTest):
    def test_a_file_of_the_command_is_opened_in_every_way(self) -> None:
        self.built("users.bloom", KEYS, "-n", "3000", "-p", "1%")
        for filter in (
            bloomery.open(self.folder / "users.bloom"),
            bloomery.load(self.path("users.bloom")),
            bloomery.Filter.open(self.path("users.bloom")),
            bloomery.Filter.load(self.folder / "users.bloom"),
        ):
            self.assertIs(type(filter), bloomery.Filter)
            self.assertTrue(all(filter.contains_many(KEYS)))

    def test_the_command_opens_a_file_of_the_package(self) -> None:
        filter = bloomery.Filter(3000, 0.01)
        filter.update(KEYS)
        filter.save(self.folder / "users.bloom")
        self.assertEqual(self.command("check", "users.bloom", keys=KEYS), b"".join(key.encode() + b"\n" for key in KEYS))

    def test_keys_added_in_place_give_the_file_of_all_keys(self) -> None:
        expected = self.built("all.bloom", KEYS, "-n", "3000", "-p", "1%")
        self.built("users.bloom", KEYS[:1000], "-n", "3000", "-p", "1%")

        with bloomery.open(self.path("users.bloom"), "r+") as users:
            users.update(KEYS[1000:2000])
            for key in KEYS[2000:]:
                users.add(key)

        self.assertEqual(bloomery.load(self.path("users.bloom")), bloomery.from_bytes(expected))
        self.assertEqual(len(bloomery.load(self.path("users.bloom"))), len(bloomery.from_bytes(expected)))

    def test_a_created_file_is_that_of_the_command(self) -> None:
        expected = self.built("command.bloom", KEYS, "-n", "3000", "-p", "1%")
        with bloomery.Filter.create(self.path("python.bloom"), 3000, 0.01) as created:
            created.update(KEYS)
        self.assertEqual(bloomery.load(self.path("python.bloom")), bloomery.from_bytes(expected))
        with self.assertRaises(bloomery.AlreadyExistsError) as raised:
            bloomery.Filter.create(self.path("python.bloom"), 3000, 0.01)
        self.assertIsInstance(raised.exception, FileExistsError)
        bloomery.Filter.create(self.path("python.bloom"), 3000, 0.01, replace=True).close()
        self.assertEqual(len(bloomery.open(self.path("python.bloom"))), 0)

    def test_a_filter_opened_for_reading_accepts_no_keys(self) -> None:
        self.built("users.bloom", KEYS, "-n", "3000", "-p", "1%")
        before = (self.folder / "users.bloom").read_bytes()
        users = bloomery.open(self.path("users.bloom"))
        for call in (lambda: users.add("x"), lambda: users.update(["x"]), users.clear, lambda: users.__ior__(users)):
            with self.assertRaises(bloomery.NotPermittedError) as raised:
                call()
            self.assertIsInstance(raised.exception, PermissionError)
        self.assertEqual((self.folder / "users.bloom").read_bytes(), before)

    def test_a_filter_file_of_another_system_is_opened_for_reading(self) -> None:
        recorded = os.path.join(os.environ["BLOOMERY_SOURCE"], "tests/golden/foreign")
        others = [f"other-{i}" for i in range(20_000)]
        for name in "guava", "dcso", "bits_and_blooms", "redisbloom", "redisbloom_layers", "datasketches":
            with self.subTest(name):
                filter = bloomery.open(os.path.join(recorded, f"{name}.filter"))
                self.assertTrue(all(filter.contains_many([f"key-{i}" for i in range(300)])))
                found = [key for key, answer in zip(others, filter.contains_many(others), strict=True) if answer]
                with open(os.path.join(recorded, f"{name}.positives"), encoding="utf-8") as file:
                    self.assertEqual(found, file.read().splitlines())
                with self.assertRaises(PermissionError):
                    filter.add("Madrid")

    def test_save_keeps_an_existing_file_on_request(self) -> None:
        filter = bloomery.Filter(10, 0.01)
        filter.save(self.path("a.bloom"))
        with self.assertRaises(FileExistsError):
            filter.save(self.path("a.bloom"), replace=False)
        filter.save(self.path("a.bloom"))

    def test_paths_are_those_of_the_system(self) -> None:
        filter = bloomery.Filter(10)
        odd = os.fsencode(self.path("n")) + b"\xff.bloom"
        for name in (odd, os.fsdecode(odd)):
            filter.save(name)
            self.assertEqual(bloomery.open(name), filter)
        for call in (lambda: filter.save("x\0y"), lambda: bloomery.load("users.bloom\0junk"), lambda: bloomery.open(b"a\0")):
            with self.assertRaisesRegex(ValueError, "null byte"):
                call()
        with self.assertRaises(bloomery.NotFoundError) as raised:
            bloomery.open(b"missing\xff.bloom")
        self.assertIn("missing\udcff.bloom", str(raised.exception))

    def test_a_mapped_filter_is_pickled_as_its_bytes(self) -> None:
        self.built("users.bloom", KEYS, "-n", "3000", "-p", "1%")
        twin = pickle.loads(pickle.dumps(bloomery.open(self.path("users.bloom"))))
        os.unlink(self.path("users.bloom"))
        self.assertTrue(all(twin.contains_many(KEYS)))
        self.assertTrue(twin.add("another"))

    def test_processes_share_a_file(self) -> None:
        self.built("users.bloom", KEYS, "-n", "3000", "-p", "1%")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            answers = pool.starmap(contains, [(self.path("users.bloom"), key) for key in KEYS[:50]])
        self.assertEqual(answers, [True] * 50)


class Closing(PackageTest):
    def test_a_closed_filter_refuses_every_call(self) -> None:
        bloomery.Filter(10, 0.01).save(self.path("a.bloom"))
        for filter in (bloomery.Filter(10, 0.01), bloomery.open(self.path("a.bloom"), "r+"), bloomery.CountingFilter(10, 0.01)):
            filter.close()
            filter.close()
            self.assertTrue(filter.closed)
            self.assertRegex(repr(filter), "closed")
            for call in (
                lambda: filter.add("x"),
                lambda: "x" in filter,
                lambda: filter.update(["x"]),
                lambda: filter.add_many(["x"]),
                lambda: filter.contains_many(["x"]),
                lambda: len(filter),
                filter.clear,
                filter.copy,
                filter.to_bytes,
                filter.info,
                lambda: filter.save(self.path("b.bloom")),
                lambda: filter | filter,
            ):
                with self.assertRaisesRegex(ValueError, "the filter is closed"):
                    call()

    def test_a_filter_closed_by_its_own_keys_refuses_the_rest(self) -> None:
        filter = bloomery.Filter(100_000, 0.01)

        def keys():
            yield from range(50_000)
            filter.close()
            yield "last"

        with self.assertRaisesRegex(ValueError, "the filter is closed"):
            filter.update(keys())

    def test_a_filter_that_is_dropped_keeps_its_file(self) -> None:
        bloomery.Filter(100, 0.01).save(self.path("a.bloom"))
        filter = bloomery.open(self.path("a.bloom"), "r+")
        filter.add("Madrid")
        del filter
        gc.collect()
        self.assertIn("Madrid", bloomery.load(self.path("a.bloom")))

    def test_a_second_writer_is_locked_out(self) -> None:
        bloomery.Filter(100, 0.01).save(self.path("a.bloom"))
        program = f"import sys; sys.path.insert(0, {PACKAGE!r}); import bloomery; bloomery.open(sys.argv[1], 'r+')"
        with bloomery.open(self.path("a.bloom"), "r+"):
            done = subprocess.run([sys.executable, "-c", program, self.path("a.bloom")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("LockedError", done.stderr)
        subprocess.run([sys.executable, "-c", program, self.path("a.bloom")], check=True)


class Wrong(PackageTest):
    def test_a_missing_file_is_not_found(self) -> None:
        for call in (bloomery.open, bloomery.load, bloomery.Filter.open):
            with self.assertRaises(bloomery.NotFoundError) as raised:
                call(self.path("missing.bloom"))
            self.assertIsInstance(raised.exception, FileNotFoundError)
            self.assertIn("missing.bloom", str(raised.exception))
            self.assertEqual((raised.exception.code, raised.exception.where), ("not_found", self.path("missing.bloom")))

    def test_a_foreign_file_is_no_filter(self) -> None:
        for name, data in (("text", b"Hello\n" * 2000), ("empty", b""), ("zeros", bytes(8192))):
            (self.folder / name).write_bytes(data)
            for call in (bloomery.open, bloomery.load):
                with self.assertRaises(bloomery.NotAFilterError):
                    call(self.path(name))

    def test_a_damaged_file_is_reported_with_what_to_do(self) -> None:
        data = bytearray(self.built("a.bloom", KEYS, "-n", "3000", "-p", "1%"))
        data[5000] ^= 1
        (self.folder / "a.bloom").write_bytes(data)
        for call in (bloomery.open, bloomery.load):
            with self.assertRaises(bloomery.DamagedError) as raised:
                call(self.path("a.bloom"))
            self.assertTrue(raised.exception.hint)
            self.assertIn(raised.exception.hint, str(raised.exception))
        (self.folder / "short.bloom").write_bytes(data[:-100])
        with self.assertRaises(bloomery.DamagedError) as raised:
            bloomery.open(self.path("short.bloom"))
        self.assertTrue(raised.exception.expected and raised.exception.found)

    def test_wrong_arguments_are_refused(self) -> None:
        for mode in ("w", "rb", "", None):
            with self.assertRaisesRegex(ValueError, "mode"):
                bloomery.open(self.path("a.bloom"), mode)
        for name in (None, 7, ["a"]):
            with self.assertRaises(TypeError):
                bloomery.open(name)
        with self.assertRaises(bloomery.Error):
            bloomery.Filter(10, 0.01).save(self.path("no/such/folder/a.bloom"))
        with self.assertRaises((bloomery.Error, ValueError)):
            bloomery.open("a\0b")

    def test_another_class_is_refused(self) -> None:
        bloomery.StaticFilter(KEYS).save(self.path("a.bloom"))
        with self.assertRaisesRegex(bloomery.IncompatibleError, "expected CountingFilter, found StaticFilter"):
            bloomery.CountingFilter.open(self.path("a.bloom"))


if __name__ == "__main__":
    unittest.main()
