"""Many keys at once: iterables and NumPy arrays give the same filter as single keys, and hostile ones are refused."""

import array
import ctypes
import importlib
import importlib.util
import itertools
import os
import signal
import sys
import threading
import unittest

from package import PackageTest, bloomery

import numpy

SIZES = (0, 1, 63, 64, 65, 16_383, 16_384, 16_385, 40_000)  # around a word of answers and a part of keys


def filter_of_numbers(numbers: list[int]) -> bloomery.Filter:
    filter = bloomery.Filter(100, 0.001, keys=int)
    for number in numbers:
        filter.add(number)
    return filter


def formatted(numbers: list[int], format: str) -> object:
    """A buffer with any format of the module struct, which memoryview.cast() does not offer."""
    return importlib.import_module("_testbuffer").ndarray(numbers, shape=[len(numbers)], format=format)


def filter_of(keys, kind: type = bytes) -> bloomery.Filter:
    """The filter of single keys."""
    filter = bloomery.Filter(50_000, 0.01, keys=kind)
    for key in keys:
        filter.add(key)
    return filter


class Buffers(PackageTest):
    def test_arrays_of_ctypes_have_no_strides(self) -> None:
        for item, numbers in ((ctypes.c_uint64, [1, 2, 3, 2**64 - 1]), (ctypes.c_int16, [-1, 0, 7]), (ctypes.c_uint8, [0, 255])):
            filter = bloomery.Filter(100, 0.001, keys=int)
            filter.update((item * len(numbers))(*numbers))
            self.assertEqual(filter, filter_of_numbers(numbers))

    @unittest.skipUnless(importlib.util.find_spec("_testbuffer"), "SKIP: this Python has no module _testbuffer")
    def test_the_width_of_integers_is_that_of_the_items(self) -> None:
        numbers = [1, 2, 3, 4]
        for format in ("<l", "=L", "<i", "<q", "=h"):
            filter = bloomery.Filter(100, 0.001, keys=int)
            filter.update(formatted(numbers, format))
            self.assertEqual(filter, filter_of_numbers(numbers), format)

    def test_answers_without_numpy_are_a_list(self) -> None:
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name == "numpy" or name.startswith("numpy.")}
        sys.modules["numpy"] = None
        try:
            filter = bloomery.Filter(100, 0.001, keys=int)
            self.assertEqual(filter.add_many(array.array("Q", [1, 2, 1])), [True, True, False])
            self.assertEqual(filter.contains_many(array.array("Q", [1, 2])), [True, True])
        finally:
            del sys.modules["numpy"]
            sys.modules.update(hidden)


class Iterables(PackageTest):
    def test_every_iterable_gives_the_filter_of_its_keys(self) -> None:
        for size in SIZES:
            keys = [f"key-{i}" for i in range(size)]
            expected = filter_of(keys)
            for iterable in (keys, tuple(keys), iter(keys), (key for key in keys), dict.fromkeys(keys), numpy.array(keys, object)):
                filter = bloomery.Filter(50_000, 0.01)
                self.assertEqual(filter.update(iterable), len(expected))
                self.assertEqual((filter, len(filter)), (expected, len(expected)))

    def test_answers_are_those_of_single_keys(self) -> None:
        for size in SIZES:
            keys = [f"key-{i // 2}" for i in range(size)]
            one, many = bloomery.Filter(50_000, 0.01), bloomery.Filter(50_000, 0.01)

            self.assertEqual(many.add_many(keys), [one.add(key) for key in keys])
            asked = [f"key-{3 * i}" for i in range(size)]
            self.assertEqual(many.contains_many(asked), [key in one for key in asked])
            self.assertTrue(all(type(answer) is bool for answer in many.contains_many(asked)))

    def test_a_single_key_is_not_an_iterable_of_keys(self) -> None:
        filter = bloomery.Filter(100, 0.01)
        for keys in ("text", b"bytes", bytearray(b"bytes")):
            for call in (filter.update, filter.add_many, filter.contains_many):
                with self.assertRaisesRegex(TypeError, "expected an iterable of keys, found"):
                    call(keys)
        for keys in (7, None, 1.5, object()):
            with self.assertRaises(TypeError):
                filter.update(keys)

    def test_an_iterable_that_raises_keeps_the_whole_parts_before(self) -> None:
        def keys():
            yield from range(20_000)
            raise RuntimeError("no more")

        filter = bloomery.Filter(50_000, 0.01)
        with self.assertRaisesRegex(RuntimeError, "no more"):
            filter.update(keys())
        self.assertEqual(filter, filter_of(range(16_384)))

    def test_keys_that_change_their_list_do_no_harm(self) -> None:
        class Clears:
            def __index__(self) -> int:
                keys.clear()
                return 5

        keys = [str(i) for i in range(100)] + [Clears()] + [str(i) for i in range(1000)]
        filter = bloomery.Filter(50_000, 0.01)
        filter.update(keys)
        self.assertEqual(filter, filter_of(range(100)))
        keys = [1, Clears(), 2]
        numbers = bloomery.Filter(50_000, 0.01, keys=int)
        numbers.update(keys)
        self.assertEqual(numbers, filter_of([1, 5], int))

    def test_a_filter_updated_by_its_own_iterator_has_all_keys(self) -> None:
        filter = bloomery.Filter(50_000, 0.01)
        filter.update(i for i in range(40_000) if filter.add(-i) or i not in filter or True)
        self.assertTrue(all(filter.contains_many(range(-39_999, 40_000))))

    def test_a_signal_interrupts_an_endless_iterable(self) -> None:
        process = os.getpid()
        endless = itertools.chain(filter(None, map(os.kill, [process], [signal.SIGINT])), itertools.repeat("key"))
        with self.assertRaises(KeyboardInterrupt):
            bloomery.Filter(100, 0.01).update(endless)


class Arrays(PackageTest):
    def test_integers_of_every_type_are_the_same_keys(self) -> None:
        for kind in (int, bytes):
            for name in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "<u8", ">i4", ">u8"):
                for size in SIZES:
                    keys = (numpy.arange(size) % 120).astype(name)
                    filter = bloomery.Filter(50_000, 0.01, keys=kind)
                    answers = filter.add_many(keys)
                    self.assertEqual(answers.dtype, bool)
                    self.assertEqual(filter, filter_of(range(min(size, 120)), kind), (kind, name, size))
                    self.assertEqual(answers.sum(), len(filter))

    def test_negative_integers_are_those_of_python(self) -> None:
        keys = numpy.array([-1, -(2**63), 5, 2**63 - 1])
        for kind in (int, bytes):
            filter = bloomery.Filter(1000, 0.01, keys=kind)
            filter.update(keys)
            self.assertEqual(filter.to_bytes(), self.same(keys.tolist(), kind))

    def same(self, keys: list, kind: type) -> bytes:
        filter = bloomery.Filter(1000, 0.01, keys=kind)
        filter.update(keys)
        return filter.to_bytes()

    def test_an_array_that_is_not_contiguous_gives_its_own_keys(self) -> None:
        numbers = numpy.arange(60_000, dtype="u8")
        unaligned = numpy.frombuffer(b"x" + numbers[:1000].tobytes(), dtype=numpy.uint8)[1:].view("<u8")
        field = numpy.zeros(1000, dtype=[("a", "i4"), ("key", "u8")])
        field["key"] = numbers[:1000]
        for keys in (numbers[::3], numbers[::-1], numbers[5:5], numbers.reshape(600, 100)[:, 7], unaligned, field["key"]):
            for kind in (int, bytes):
                filter = bloomery.Filter(50_000, 0.01, keys=kind)
                filter.update(keys)
                self.assertEqual(filter, filter_of(keys.tolist(), kind))

    def test_fixed_width_bytes_are_their_bytes_without_padding(self) -> None:
        texts = [b"", b"a", b"a\0b", b"twenty characters...", b"caf\xc3\xa9"] * 5000
        keys = numpy.array(texts)
        for given in (keys, keys[::2], keys[::-1]):
            filter = bloomery.Filter(50_000, 0.01)
            filter.update(given)
            self.assertEqual(filter, filter_of(given.tolist()))
        with self.assertRaisesRegex(TypeError, "expected int"):
            bloomery.Filter(10, 0.01, keys=int).update(keys)

    def test_other_arrays_are_iterated(self) -> None:
        names = numpy.array(["Madrid", "Łódź"])
        filter = bloomery.Filter(1000, 0.01)
        self.assertEqual(filter.add_many(names).tolist(), [True, True])
        self.assertIn("Łódź", filter)
        numbers = array.array("Q", [1, 2**64 - 1])
        self.assertEqual(bloomery.Filter(1000, 0.01, keys=int).update(numbers), 2)

    def test_arrays_without_keys_are_refused(self) -> None:
        for kind in (int, bytes):
            filter = bloomery.Filter(1000, 0.01, keys=kind)
            for keys in (numpy.array([1.5]), numpy.array([1 + 2j]), numpy.zeros((3, 2)), numpy.array(["2020"], "datetime64[D]"), numpy.zeros(3, "V4")):
                with self.assertRaises(TypeError):
                    filter.update(keys)
            with self.assertRaises(TypeError):
                filter.update(numpy.array(5))
            self.assertEqual(len(filter), 0)

    def test_answers_for_an_array_are_an_array(self) -> None:
        filter = bloomery.Filter(50_000, 0.01, keys=int)
        keys = numpy.arange(40_000, dtype="u8")
        self.assertTrue(filter.add_many(keys[:20_000]).any())
        found = filter.contains_many(keys)
        self.assertEqual(found.tolist(), [int(key) in filter for key in keys])
        self.assertEqual(keys[~found].size, 40_000 - found.sum())
        self.assertTrue(filter.contains_many(keys[:0]).size == 0)


class Threads(PackageTest):
    def test_threads_insert_into_one_filter(self) -> None:
        for keys in ([f"key-{i}" for i in range(40_000)], numpy.arange(40_000, dtype="u8")):
            kind = bytes if isinstance(keys, list) else int
            filter = bloomery.Filter(50_000, 0.01, keys=kind)

            def work(part: int) -> None:
                for at in range(part * 10_000, (part + 1) * 10_000, 500):
                    filter.update(keys[at : at + 400])
                    for key in keys[at + 400 : at + 500]:
                        filter.add(key)
                    filter.contains_many(keys)

            threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(filter, filter_of(keys, kind))

    def test_other_threads_run_during_a_batch(self) -> None:
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        keys = numpy.arange(4_000_000, dtype="u8")
        filter = bloomery.Filter(4_000_000, 0.01, keys=int)
        begin, ran = threading.Lock(), []
        begin.acquire()
        other = threading.Thread(target=lambda: (begin.acquire(), ran.append(True)))
        other.start()
        sys.setswitchinterval(1000)  # a thread runs only when another one gives the GIL up by itself
        begin.release()
        for _ in range(1000):
            filter.update(keys)
            if ran:
                break
        seen = bool(ran)
        sys.setswitchinterval(interval)
        other.join()
        self.assertTrue(seen)


if __name__ == "__main__":
    unittest.main()
