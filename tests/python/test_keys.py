"""Keys of the Python package: which objects are keys, and which of them are the same key."""

import random
import unittest

from package import PackageTest, bloomery


class Str(str):
    """A subclass whose text is another one."""

    def __str__(self) -> str:
        return "other"


class Index:
    """An object that is an integer for Python."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class KeysOfBytes(PackageTest):
    def test_every_form_of_a_key_is_the_same_key(self) -> None:
        forms = {
            "ключ": ["ключ", "ключ".encode(), bytearray("ключ".encode()), memoryview("ключ".encode()), Str("ключ")],
            "": ["", b"", bytearray()],
            "7": ["7", b"7", 7, True + 6, Index(7)],
            "-5": ["-5", -5],
            "18446744073709551616": [2**64, "18446744073709551616"],
            str(-(2**63)): [-(2**63), str(-(2**63))],
            str(10**30): [10**30, -(-(10**30))],
            "a\0b": ["a\0b", b"a\0b"],
        }
        for name, same in forms.items():
            for inserted in same:
                filter = bloomery.Filter(1000, 1e-9)
                self.assertTrue(filter.add(inserted))
                for form in same:
                    self.assertIn(form, filter, (name, inserted, form))
                    self.assertFalse(filter.add(form), (name, inserted, form))
                self.assertEqual(len(filter), 1)

    def test_other_objects_are_refused(self) -> None:
        filter = bloomery.Filter(1000, 0.01)
        for key in (1.5, None, ["a"], ("a",), {"a"}, object(), type, 2j):
            with self.assertRaisesRegex(TypeError, "key: expected str, bytes or int, found"):
                filter.add(key)
            with self.assertRaises(TypeError):
                key in filter
            with self.assertRaises(TypeError):
                filter.update([key])
        self.assertEqual(len(filter), 0)

    def test_a_lone_surrogate_is_refused(self) -> None:
        filter = bloomery.Filter(1000, 0.01)
        for call in (filter.add, filter.__contains__, lambda key: filter.update(["a", key])):
            with self.assertRaises(UnicodeEncodeError):
                call("\ud800")
        self.assertEqual(len(filter), 0)

    def test_a_view_that_is_not_contiguous_is_the_key_of_its_bytes(self) -> None:
        filter = bloomery.Filter(1000, 1e-9)
        filter.add(memoryview(b"axbxcx")[::2])
        self.assertIn(b"abc", filter)

    def test_an_index_that_raises_passes_its_exception(self) -> None:
        class Bad:
            def __index__(self) -> int:
                raise RuntimeError("bad index")

        with self.assertRaisesRegex(RuntimeError, "bad index"):
            bloomery.Filter(1000, 0.01).add(Bad())

    def test_the_file_is_that_of_the_command(self) -> None:
        generator = random.Random(5)
        keys = ["".join(generator.choices("abcdeфй€😀", k=generator.randrange(40))) for _ in range(5000)]
        keys = [key for key in keys if key] + [str(generator.getrandbits(70)) for _ in range(100)]
        expected = self.built("command.bloom", keys, "-n", "10000", "-p", "0.1%")

        one_by_one = bloomery.Filter(10_000, 0.001)
        for key in keys:
            one_by_one.add(key)
        at_once = bloomery.Filter(10_000, 0.001)
        at_once.update(keys)
        mixed = bloomery.Filter(10_000, 0.001)
        mixed.update(int(key) if key.isdecimal() else key.encode() for key in keys)

        for filter in (one_by_one, at_once, mixed):
            filter.save(self.path("python.bloom"))
            self.assertEqual((self.folder / "python.bloom").read_bytes(), expected)
            self.assertEqual(filter.to_bytes(), expected)


class KeysOfIntegers(PackageTest):
    def test_the_file_is_that_of_the_command(self) -> None:
        generator = random.Random(6)
        keys = [generator.getrandbits(64) for _ in range(5000)] + [0, 2**64 - 1]
        expected = self.built("command.bloom", [str(key) for key in keys], "-n", "6000", "-p", "1%", "--u64")

        filter = bloomery.Filter(6000, 0.01, keys=int)
        self.assertEqual(filter.update(keys[:2000]) + sum(filter.add(key) for key in keys[2000:]), len(filter))

        self.assertEqual(filter.to_bytes(), expected)

    def test_a_negative_number_is_a_key_modulo_2_to_the_64(self) -> None:
        filter = bloomery.Filter(1000, 1e-9, keys=int)
        filter.add(-1)
        self.assertIn(2**64 - 1, filter)
        filter.add(2**63)
        self.assertIn(-(2**63), filter)
        self.assertEqual(len(filter), 2)

    def test_other_numbers_are_refused(self) -> None:
        filter = bloomery.Filter(1000, 0.01, keys=int)
        for key in (2**64, -(2**63) - 1, 10**40):
            for call in (filter.add, filter.__contains__, lambda key: filter.update([key])):
                with self.assertRaisesRegex(OverflowError, "2\\*\\*64"):
                    call(key)

    def test_text_is_refused(self) -> None:
        filter = bloomery.Filter(1000, 0.01, keys=int)
        for key in ("7", b"7", 7.0, None):
            for call in (filter.add, filter.__contains__, lambda key: filter.update([key])):
                with self.assertRaisesRegex(TypeError, "expected int for a filter of integers"):
                    call(key)


if __name__ == "__main__":
    unittest.main()
