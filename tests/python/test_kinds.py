"""The other classes of filters, plans and dedup: files as the command's, and the promises of each class."""

import collections
import datetime
import pickle
import random
import unittest

from package import PackageTest, bloomery

KEYS = [f"key-{i}" for i in range(5000)]


class Removal:
    kind: type
    option: str

    def test_removals_follow_an_exact_count(self) -> None:
        generator = random.Random(11)
        filter, twin = self.kind(2000, 1e-6), collections.Counter()
        for _ in range(20_000):
            key = generator.randrange(300)
            if generator.random() < 0.5 and twin[key] < 5:
                filter.add(key)
                twin[key] += 1
            elif twin[key] > 0:
                self.assertTrue(filter.remove(key))
                twin[key] -= 1
            self.assertEqual(key in filter, twin[key] > 0)
        self.assertEqual(len(filter), sum(twin.values()))

    def test_removals_of_many_keys_are_answered_one_by_one(self) -> None:
        filter = self.kind(2000, 1e-6)
        filter.update(range(100))
        self.assertEqual(filter.remove_many([5, 5, 500, 7]), [True, False, False, True])
        self.assertEqual(filter.contains_many([5, 6, 7]), [False, True, False])

    def test_the_file_is_that_of_the_command(self) -> None:
        expected = self.built("command.bloom", KEYS, "-n", "5000", "-p", "1%", self.option)
        filter = self.kind(5000, 0.01)
        filter.update(KEYS)
        self.assertEqual(filter.to_bytes(), expected)
        self.assertIs(type(pickle.loads(pickle.dumps(filter))), self.kind)

    def test_a_file_changes_when_it_is_closed(self) -> None:
        self.built("a.bloom", ["Madrid"], "-n", "100", "-p", "1%", self.option)
        filter = bloomery.open(self.path("a.bloom"), "r+")
        self.assertIs(type(filter), self.kind)
        self.assertTrue(filter.remove("Madrid"))
        self.assertIn("Madrid", bloomery.open(self.path("a.bloom")))
        filter.close()
        self.assertNotIn("Madrid", bloomery.open(self.path("a.bloom")))

    def test_an_exception_leaves_the_file_as_it_was(self) -> None:
        before = self.built("a.bloom", ["Madrid"], "-n", "100", "-p", "1%", self.option)
        with self.assertRaises(KeyError):
            with self.kind.open(self.path("a.bloom"), "r+") as filter:
                filter.remove("Madrid")
                raise KeyError
        self.assertEqual((self.folder / "a.bloom").read_bytes(), before)


class Counting(Removal, PackageTest):
    kind, option = bloomery.CountingFilter, "--counting"

    def test_other_filters_remove_nothing(self) -> None:
        with self.assertRaises(AttributeError):
            bloomery.Filter(100, 0.01).remove("a")
        with self.assertRaises(bloomery.IncompatibleError):
            bloomery.Filter(100, 0.01)._remove("a")


class Quotient(Removal, PackageTest):
    kind, option = bloomery.QuotientFilter, "--quotient"

    def test_it_has_its_own_class_and_no_mapped_file(self) -> None:
        with self.assertRaisesRegex(ValueError, "quotient is a layout of QuotientFilter, not of Filter"):
            bloomery.Filter(100, 0.01, layout="quotient")
        with self.assertRaisesRegex(ValueError, "not of Filter"):
            bloomery.Filter.create(self.path("b.bloom"), 100, 0.01, layout="quotient")

    def test_a_full_filter_raises(self) -> None:
        filter = bloomery.QuotientFilter(100, 0.01)
        with self.assertRaisesRegex(OverflowError, "the filter is full") as caught:
            filter.update(range(10_000))
        self.assertEqual(caught.exception.code, "full")
        self.assertEqual(caught.exception.keys_done, len(filter))
        self.assertGreaterEqual(len(filter), 100)
        self.assertEqual(filter.contains_many(range(len(filter))), [True] * len(filter))

    def test_a_filter_that_grows_doubles(self) -> None:
        filter = bloomery.QuotientFilter(100_000, 0.01, grow=True)
        first = filter.size_in_bits
        for last in 10_000, 30_000, 90_000:
            filter.update(range(len(filter), last))
            self.assertEqual(filter.contains_many(range(last)), [True] * last)
            self.assertLess(sum(filter.contains_many(range(10**9, 10**9 + 100_000))), 1100)
        self.assertEqual((filter.size_in_bits, filter.capacity), (32 * first, 100_000))
        filter.save(self.path("g.bloom"))
        with bloomery.open(self.path("g.bloom")) as opened:
            self.assertIsInstance(opened, bloomery.QuotientFilter)
        self.assertEqual(sum(filter.remove_many(range(90_000))), 90_000)
        planned = bloomery.plan(1000, most_keys=10**6, deletes=True)
        self.assertEqual((planned.structure, planned.layout), ("QuotientFilter", "quotient_growing"))


class Windowed(PackageTest):
    def test_a_window_of_keys_has_the_last_keys(self) -> None:
        filter = bloomery.WindowedFilter(7000, 0.001)
        for i in range(30_000):
            filter.add(i)
            if i % 1000 == 999:
                recent = range(max(0, i - 6999), i + 1)
                self.assertTrue(all(filter.contains_many(recent)))
        self.assertLess(sum(filter.contains_many(range(20_000))), 100)

    def test_a_window_of_time_has_the_keys_of_that_time(self) -> None:
        filter = bloomery.WindowedFilter(datetime.timedelta(hours=7), 0.001, capacity=1000)
        start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        filter.tick(start)
        filter.update(KEYS[:100])
        filter.tick(start + datetime.timedelta(hours=6, minutes=59))
        self.assertTrue(all(filter.contains_many(KEYS[:100])))
        filter.tick((start + datetime.timedelta(hours=8, minutes=1)).timestamp())
        self.assertLess(sum(filter.contains_many(KEYS[:100])), 10)

    def test_the_file_has_its_class(self) -> None:
        filter = bloomery.WindowedFilter(700, 0.01)
        filter.update(KEYS[:500])
        filter.save(self.path("a.bloom"))
        self.assertIs(type(bloomery.open(self.path("a.bloom"))), bloomery.WindowedFilter)
        self.assertEqual(pickle.loads(pickle.dumps(filter)), filter)
        self.assertIn("sliding", self.command("info", "a.bloom").decode())

    def test_wrong_windows_are_refused(self) -> None:
        hour = datetime.timedelta(hours=1)
        for window, options in ((0, {}), (-5, {}), (hour, {}), (-hour, {"capacity": 5}), (100, {"layout": "classic"}), (hour, {"capacity": -1})):
            with self.assertRaises(ValueError):
                bloomery.WindowedFilter(window, 0.01, **options)


class Scalable(PackageTest):
    def test_it_keeps_its_rate_as_it_grows(self) -> None:
        filter = bloomery.ScalableFilter(0.01, first_capacity=1000)
        filter.update(range(100_000))
        self.assertTrue(all(filter.contains_many(range(100_000))))
        found = sum(filter.contains_many(range(1_000_000, 1_200_000)))
        self.assertLess(found, 0.011 * 200_000)
        self.assertIsNone(filter.capacity)

    def test_a_saved_filter_is_opened_for_reading(self) -> None:
        filter = bloomery.ScalableFilter(0.01, first_capacity=1000)
        filter.update(KEYS)
        filter.save(self.path("a.bloom"))
        opened = bloomery.open(self.path("a.bloom"))
        self.assertIs(type(opened), bloomery.ScalableFilter)
        self.assertEqual(opened.contains_many(range(5000)), filter.contains_many(range(5000)))
        self.assertTrue(all(opened.contains_many(KEYS)))
        with self.assertRaises(bloomery.Error):
            opened.add("x")

    def test_a_file_with_a_key_log_grows(self) -> None:
        with bloomery.ScalableFilter.create(self.path("a.bloom"), 0.01) as filter:
            filter.update(KEYS)
        with bloomery.open(self.path("a.bloom"), "r+") as filter:
            self.assertIs(type(filter), bloomery.ScalableFilter)
            filter.update(f"more-{i}" for i in range(20_000))
        opened = bloomery.ScalableFilter.open(self.path("a.bloom"))
        self.assertTrue(all(opened.contains_many(KEYS)))
        self.assertLessEqual(opened.info()["current_fpr"], 0.0105)
        self.command("verify", "a.bloom", keys=KEYS)

    def test_what_it_cannot_do_is_refused_with_a_hint(self) -> None:
        filter = bloomery.ScalableFilter(0.01)
        for call in (filter.to_bytes, filter.copy, lambda: pickle.dumps(filter)):
            with self.assertRaises(bloomery.IncompatibleError):
                call()
        self.assertEqual((filter == filter, filter == bloomery.ScalableFilter(0.01)), (True, False))


class Static(PackageTest):
    def test_the_file_is_that_of_the_command_in_any_order(self) -> None:
        for bits, rate in ((8, "0.4%"), (16, "0.002%"), (32, "1e-9")):
            (self.folder / "keys.txt").write_text("".join(key + "\n" for key in KEYS))
            self.command("seal", "-q", "-o", "command.bloom", "--width", str(bits), "keys.txt")
            expected = (self.folder / "command.bloom").read_bytes()
            for keys in (KEYS, KEYS[::-1] + KEYS[:10], iter(KEYS)):
                self.assertEqual(bloomery.StaticFilter(keys, bits=bits).to_bytes(), expected, (bits, rate))
        self.command("seal", "-q", "-o", "ribbon.bloom", "--ribbon", "--width", "7", "keys.txt")
        ribbon = bloomery.StaticFilter(KEYS, bits=7, ribbon=True)
        self.assertEqual(ribbon.to_bytes(), (self.folder / "ribbon.bloom").read_bytes())

    def test_it_has_all_keys_and_its_rate(self) -> None:
        for kind in (int, bytes):
            filter = bloomery.StaticFilter(range(20_000), kind=kind)
            self.assertEqual(len(filter), 20_000)
            self.assertTrue(all(filter.contains_many(range(20_000))))
            found = sum(filter.contains_many(range(100_000, 500_000)))
            self.assertLess(abs(found - 400_000 / 256), 6 * (400_000 / 256) ** 0.5)

    def test_no_keys_and_one_key(self) -> None:
        self.assertNotIn("a", bloomery.StaticFilter([]))
        self.assertIn("a", bloomery.StaticFilter(["a"]))

    def test_changes_are_refused(self) -> None:
        filter = bloomery.StaticFilter(KEYS)
        with self.assertRaises(bloomery.NotPermittedError):
            filter.add("x")
        with self.assertRaises(bloomery.Error):
            filter.clear()
        with self.assertRaises(TypeError):
            filter | filter
        for bits in (0, 33, 64, "8"):
            with self.assertRaises(ValueError):
                bloomery.StaticFilter(KEYS, bits=bits)
        with self.assertRaises(TypeError):
            bloomery.StaticFilter([1.5])


class Dedup(PackageTest):
    def test_repetitions_are_dropped_and_first_occurrences_kept(self) -> None:
        generator = random.Random(3)
        items = [generator.randrange(20_000) for _ in range(50_000)]
        self.assertEqual(list(bloomery.dedup(items)), list(dict.fromkeys(items)))

    def test_a_key_decides_what_a_repetition_is(self) -> None:
        rows = [{"text": text, "n": n} for n, text in enumerate(["a", "b", "a", "c", "b"])]
        self.assertEqual([row["n"] for row in bloomery.dedup(rows, key=lambda row: row["text"])], [0, 1, 3])

    def test_a_filter_in_a_file_remembers_earlier_runs(self) -> None:
        for items, expected in (([1, 2, 2], [1, 2]), ([2, 3, 1], [3])):
            if not (self.folder / "seen.bloom").exists():
                bloomery.Filter(1000, 1e-6).save(self.path("seen.bloom"))
            with bloomery.open(self.path("seen.bloom"), "r+") as seen:
                self.assertEqual(list(bloomery.dedup(items, filter=seen)), expected)

    def test_items_are_read_one_by_one(self) -> None:
        read = []

        def items():
            for i in range(10):
                read.append(i)
                yield i

        stream = bloomery.dedup(items())
        self.assertEqual((next(stream), read), (0, [0]))


class Plans(PackageTest):
    def test_a_plan_is_the_filter_that_is_made(self) -> None:
        for keys, rate, prefer in ((1000, 0.01, "speed"), (10**6, 0.001, "memory"), (10**6, 1e-6, "speed")):
            planned = bloomery.plan(keys, rate, prefer=prefer)
            made = bloomery.Filter(keys, rate, prefer=prefer)
            self.assertEqual((planned.structure, planned.layout, planned.hash), ("Filter", made.info()["layout"], made.info()["hash"]))
            self.assertEqual(planned.bits_per_key * keys, made.size_in_bits)
            self.assertLessEqual(planned.fpr, rate)

    def test_requirements_choose_the_class(self) -> None:
        day = datetime.timedelta(days=1)
        for options, structure in (
            ({"keys": 1000, "deletes": True}, "QuotientFilter"),
            ({"keys": 1000, "window": day}, "WindowedFilter"),
            ({"keys": 10**6, "static": True}, "StaticFilter"),
            ({}, "ScalableFilter"),
            ({"log": True}, "ScalableFilter.create"),
        ):
            planned = bloomery.plan(**options)
            self.assertEqual(planned.structure, structure)
            self.assertTrue(hasattr(bloomery, structure.split(".")[0]))
            self.assertTrue(all(other.worst_bits_per_key >= planned.worst_bits_per_key for other in planned.alternatives))
        self.assertTrue(bloomery.plan(1000, untrusted=True).needs_secret)

    def test_contradictions_are_refused(self) -> None:
        for options in ({"fpr": 2}, {"keys": 10, "most_keys": 5}, {"keys": 10, "static": True, "deletes": True}, {"keys": -1}, {"kind": str, "prefer": "x"}):
            with self.assertRaises(bloomery.InvalidArgumentError):
                bloomery.plan(**options)
        with self.assertRaises(bloomery.TooLargeError):
            bloomery.plan(10**6, memory=1000)


if __name__ == "__main__":
    unittest.main()
