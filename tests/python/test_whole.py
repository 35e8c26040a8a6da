"""Whole filters of the Python package: operators, copies, bytes, pickles, parameters and rates."""

import copy
import math
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import unittest

from package import PACKAGE, PackageTest, bloomery

KEYS = [f"key-{i}" for i in range(2000)]


def filter_of(keys: list[str], **options) -> bloomery.Filter:
    filter = bloomery.Filter(4000, 0.01, **options)
    filter.update(keys)
    return filter


class Named(bloomery.Filter):
    """A class of a program, whose objects have attributes."""


def count_of(filter: bloomery.BaseFilter) -> int:
    return len(filter)


class Operators(PackageTest):
    def test_a_union_is_the_filter_of_all_keys(self) -> None:
        first, second, all = filter_of(KEYS[:1200]), filter_of(KEYS[800:]), filter_of(KEYS)

        self.assertEqual(first | second, all)
        self.assertNotEqual(first, all)
        first |= second
        self.assertEqual(first, all)

    def test_an_intersection_has_the_common_keys(self) -> None:
        first, second = filter_of(KEYS[:1200]), filter_of(KEYS[800:])

        both = first & second
        self.assertTrue(all(both.contains_many(KEYS[800:1200])))
        absent = sum(both.contains_many(f"other-{i}" for i in range(10_000)))
        self.assertLess(absent, 300)
        self.assertIn(KEYS[0], first)
        first &= second
        self.assertEqual(first, both)
        self.assertLess(sum(first.contains_many(KEYS[:800])), 100)

    def test_filters_of_other_parameters_are_not_merged(self) -> None:
        first = filter_of(KEYS)
        for other in (bloomery.Filter(9000, 0.01), bloomery.Filter(4000, 0.01, keys=int), bloomery.Filter(4000, 0.01, seed=1)):
            before = first.to_bytes()
            for operation in ("__or__", "__ior__", "__and__", "__iand__"):
                with self.assertRaises(bloomery.IncompatibleError) as raised:
                    getattr(first, operation)(other)
                self.assertIsInstance(raised.exception, ValueError)
                self.assertEqual(raised.exception.code, "incompatible")
            self.assertEqual(first.to_bytes(), before)
        for other in ({1}, None, "text"):
            with self.assertRaises(TypeError):
                first | other
            self.assertNotEqual(first, other)

    def test_a_filter_united_with_itself_stays_the_same(self) -> None:
        filter = filter_of(KEYS)
        twin = filter.copy()
        filter |= filter
        filter &= filter
        self.assertEqual(filter, twin)
        self.assertEqual(filter, filter)

    def test_a_copy_is_independent(self) -> None:
        filter = filter_of(KEYS)
        for twin in (filter.copy(), copy.copy(filter), copy.deepcopy(filter)):
            self.assertIs(type(twin), bloomery.Filter)
            self.assertEqual(twin, filter)
            twin.clear()
            self.assertNotIn(KEYS[0], twin)
            self.assertEqual(len(twin), 0)
        self.assertIn(KEYS[0], filter)

    def test_a_filter_is_not_hashable(self) -> None:
        with self.assertRaises(TypeError):
            hash(filter_of(KEYS))


class Bytes(PackageTest):
    def test_bytes_make_the_same_filter(self) -> None:
        filter = filter_of(KEYS)
        for data in (filter.to_bytes(), bytearray(filter.to_bytes()), memoryview(filter.to_bytes())):
            twin = bloomery.from_bytes(data)
            self.assertEqual((twin, len(twin)), (filter, len(filter)))

    def test_damaged_bytes_are_refused(self) -> None:
        data = filter_of(KEYS).to_bytes()
        for size in (0, 1, 100, 4095, 4096, len(data) - 1):
            with self.assertRaises((bloomery.NotAFilterError, bloomery.DamagedError), msg=str(size)) as raised:
                bloomery.from_bytes(data[:size])
            self.assertIsInstance(raised.exception, ValueError)
        generator = random.Random(7)
        for _ in range(200):
            at = generator.randrange(len(data))
            changed = bytearray(data)
            changed[at] ^= 1 << generator.randrange(8)
            try:
                twin = bloomery.from_bytes(changed)
            except bloomery.Error:
                continue
            self.assertEqual(twin.contains_many(KEYS), [True] * len(KEYS))  # a bit that has no meaning

    def test_other_objects_are_refused(self) -> None:
        for data in ("text", None, 7, [1, 2]):
            with self.assertRaises(TypeError):
                bloomery.from_bytes(data)

    def test_a_pickle_makes_the_same_filter(self) -> None:
        filter = filter_of(KEYS)
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            twin = pickle.loads(pickle.dumps(filter, protocol))
            self.assertIs(type(twin), bloomery.Filter)
            self.assertEqual((twin, len(twin)), (filter, len(filter)))

    def test_a_pickle_keeps_the_attributes_of_a_class_of_ones_own(self) -> None:
        own = Named(1000, 0.01)
        own.add("a")
        own.tag = 5
        for twin in (pickle.loads(pickle.dumps(own)), copy.copy(own), copy.deepcopy(own)):
            self.assertEqual((type(twin), twin.tag, twin), (Named, 5, own))

    def test_a_file_that_grows_is_copied_and_pickled_as_a_filter_of_fixed_size(self) -> None:
        with bloomery.ScalableFilter.create(self.path("grows"), 0.01) as filter:
            filter.update(KEYS)
            for twin in (filter.copy(), pickle.loads(pickle.dumps(filter)), bloomery.load(self.path("grows"))):
                self.assertIs(type(twin), bloomery.Filter)
                self.assertIsNotNone(twin.capacity)
                self.assertTrue(all(twin.contains_many(KEYS)))
        with self.assertRaises(bloomery.IncompatibleError):
            bloomery.ScalableFilter.load(self.path("grows"))
        self.assertIs(type(bloomery.open(self.path("grows"))), bloomery.ScalableFilter)

    def test_a_class_refuses_layouts_of_others(self) -> None:
        for layout, name in (("counting", "CountingFilter"), ("sliding", "WindowedFilter"), ("fuse8", "StaticFilter")):
            for make in (lambda: bloomery.Filter(100, layout=layout), lambda: bloomery.Filter.create(self.path("f"), 100, layout=layout)):
                with self.assertRaisesRegex(bloomery.InvalidArgumentError, name):
                    make()
        self.assertFalse(os.path.exists(self.path("f")))

    def test_a_filter_without_keys_is_true(self) -> None:
        self.assertTrue(bloomery.Filter(10))

    def test_no_error_shows_a_secret(self) -> None:
        bloomery.Filter(10, secret=b"0123456789abcdef").save(self.path("keyed"))
        for secret in ("my-secret-key-16", 16, ["my-secret-key-16"]):
            for call in (lambda: bloomery.Filter(10, secret=secret), lambda: bloomery.load(self.path("keyed"), secret=secret)):
                with self.assertRaises(TypeError) as raised:
                    call()
                self.assertNotIn("my-secret", str(raised.exception))
        self.assertNotIn("a", bloomery.load(self.path("keyed"), secret=bytearray(b"0123456789abcdef")))

    def test_a_pickle_passes_between_processes(self) -> None:
        filter = filter_of(KEYS)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.assertEqual(pool.map(count_of, [filter, filter]), [len(filter)] * 2)

    def test_a_secret_is_not_pickled(self) -> None:
        filter = bloomery.Filter(1000, 0.01, secret=bytes(16))
        filter.add("Madrid")
        with self.assertRaises(bloomery.IncompatibleError):
            pickle.dumps(filter)
        self.assertIn("Madrid", bloomery.from_bytes(filter.to_bytes(), secret=bytes(16)))
        for secret in (None, b"x" * 16):
            with self.assertRaises(bloomery.IncompatibleError):
                bloomery.from_bytes(filter.to_bytes(), secret=secret)

    def test_another_process_computes_the_same_bytes(self) -> None:
        program = (
            f"import sys; sys.path.insert(0, {PACKAGE!r}); import bloomery\n"
            "f = bloomery.Filter(4000, 0.01); f.update(f'key-{i}' for i in range(2000)); sys.stdout.buffer.write(f.to_bytes())"
        )
        for seed in ("1", "2"):
            done = subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
            self.assertEqual(done.stdout, filter_of(KEYS).to_bytes())


class Parameters(PackageTest):
    def test_parameters_choose_the_filter_of_the_command(self) -> None:
        for options, arguments in (
            ({"layout": "classic"}, ["--layout", "classic"]),
            ({"hash": "murmur3"}, ["--hash", "murmur3"]),
            ({"scheme": "guava"}, ["--scheme", "guava"]),
            ({"prefer": "memory"}, ["--prefer", "memory"]),
            ({"seed": 7}, ["--seed", "7"]),
        ):
            expected = self.built("command.bloom", KEYS, "-n", "4000", "-p", "1%", *arguments)
            self.assertEqual(filter_of(KEYS, **options).to_bytes(), expected, options)

    def test_wrong_parameters_are_refused(self) -> None:
        for arguments, options in (
            ((0,), {"fpr": 0}),
            ((1000, 1.0), {}),
            ((1000, math.nan), {}),
            ((-1,), {}),
            ((2**64,), {}),
            ((1000,), {"layout": "round"}),
            ((1000,), {"hash": "md5"}),
            ((1000,), {"scheme": "java", "layout": "classic"}),
            ((1000,), {"keys": float}),
            ((1000,), {"secret": b"short"}),
            ((1000,), {"prefer": "beauty"}),
            ((1000,), {"seed": -1}),
        ):
            with self.assertRaises(bloomery.InvalidArgumentError, msg=f"{arguments} {options}") as raised:
                bloomery.Filter(*arguments, **options)
            self.assertIsInstance(raised.exception, ValueError)
            self.assertEqual(raised.exception.code, "invalid_argument")
        with self.assertRaises(bloomery.TooLargeError) as too_large:
            bloomery.Filter(2**62, 1e-9)
        self.assertIsInstance(too_large.exception, MemoryError)
        for capacity in ("1000", 1.5, None):
            with self.assertRaises(TypeError):
                bloomery.Filter(capacity)

    def test_a_filter_reports_its_facts(self) -> None:
        filter = filter_of(KEYS)
        facts = filter.info()
        self.assertEqual((filter.capacity, filter.fpr, facts["keys"], facts["seed"]), (4000, 0.01, "bytes", 0))
        self.assertEqual(facts["bits"], filter.size_in_bits)
        self.assertEqual(facts["insert_count"], len(filter))
        self.assertLess(abs(filter.approx_items - len(KEYS)), 5 * math.sqrt(len(KEYS)))
        self.assertLess(facts["current_fpr"], 0.01)
        self.assertNotIn("current_fpr", filter.info(read_bits=False))
        self.assertRegex(repr(filter), r"<bloomery.Filter: [\d,]+ keys, FPR 0.01, \w+, [\d,]+ bytes>")

    def test_an_object_that_was_not_made_is_closed(self) -> None:
        empty = bloomery.Filter.__new__(bloomery.Filter)
        self.assertTrue(empty.closed)
        for call in (lambda: empty.add("a"), lambda: "a" in empty, lambda: len(empty), empty.copy, lambda: empty | empty):
            with self.assertRaisesRegex(bloomery.InvalidArgumentError, "the filter is closed"):
                call()

    def test_an_object_is_made_once(self) -> None:
        filter = filter_of(KEYS)
        with self.assertRaisesRegex(bloomery.InvalidArgumentError, "already has a filter"):
            filter.__init__(1000, 0.01)
        self.assertIn(KEYS[0], filter)

    def test_a_subclass_inherits_everything(self) -> None:
        class Names(bloomery.Filter):
            def add(self, key: str) -> bool:
                return super().add(key.lower())

        names = Names(1000, 0.01)
        names.add("MADRID")
        names.note = "attributes are allowed"
        self.assertIn("madrid", names)
        for twin in (names.copy(), Names.from_bytes(names.to_bytes()), pickle.loads(pickle.dumps(filter_of(KEYS)))):
            self.assertIsInstance(twin, bloomery.Filter)
        self.assertIs(type(names.copy()), Names)


class Rates(PackageTest):
    def test_the_measured_rate_is_the_expected_rate(self) -> None:
        for rate in (0.05, 0.01, 0.001):
            filter = bloomery.Filter(50_000, rate)
            filter.update(f"in-{i}" for i in range(50_000))
            expected = filter.info()["expected_fpr"]
            lookups = 400_000

            found = sum(filter.contains_many(f"out-{i}" for i in range(lookups)))

            self.assertLessEqual(expected, rate)
            self.assertLess(abs(found - lookups * expected), 6 * math.sqrt(lookups * expected) + 6)
            self.assertTrue(all(filter.contains_many(f"in-{i}" for i in range(50_000))))


if __name__ == "__main__":
    unittest.main()
