"""Arrow arrays by the C data interface: good ones, and hostile ones."""

import ctypes
import struct
import unittest

from arrow_by_hand import Chunks, Exported, ReleaseArray, texts
from package import PackageTest, bloomery


def filter_of(keys, kind: type = bytes) -> bloomery.Filter:
    filter = bloomery.Filter(50_000, 0.01, keys=kind)
    for key in keys:
        filter.add(key)
    return filter


class Good(PackageTest):
    def check(self, exported, keys: list, kind: type = bytes) -> None:
        filter = bloomery.Filter(50_000, 0.01, keys=kind)
        answers = filter.add_many(exported)
        self.assertEqual(filter, filter_of(keys, kind))
        self.assertEqual(answers.size, len(keys))

    def test_text_with_both_widths_of_offsets(self) -> None:
        for size in (0, 1, 5, 16_384, 20_000):
            keys = [b"key-%d" % i for i in range(size)]
            for format in (b"u", b"z", b"U", b"Z"):
                self.check(texts(keys, format), keys)

    def test_slices_begin_at_their_offset(self) -> None:
        keys = [b"key-%d" % i for i in range(100)]
        for format in (b"u", b"U"):
            self.check(texts(keys, format, offset=37), keys[37:])
            self.check(texts(keys, format, offset=100), [])
        numbers = struct.pack("<100Q", *range(100))
        self.check(Exported(b"L", [None, numbers], 20, offset=30), list(range(30, 50)), int)

    def test_bytes_of_a_fixed_width(self) -> None:
        keys = [b"%05d" % i for i in range(20_000)]
        self.check(Exported(b"w:5", [None, b"".join(keys)], len(keys)), keys)
        self.check(Exported(b"w:5", [None, b"".join(keys)], 7, offset=3), keys[3:10])

    def test_integers_of_every_type(self) -> None:
        for format, code in ((b"c", "b"), (b"C", "B"), (b"s", "h"), (b"S", "H"), (b"i", "i"), (b"I", "I"), (b"l", "q"), (b"L", "Q")):
            keys = [*range(100)] + ([-1, -100] if code.islower() else [200])
            for kind in (int, bytes):
                self.check(Exported(format, [None, struct.pack(f"<{len(keys)}{code}", *keys)], len(keys)), keys, kind)

    def test_an_empty_array_may_have_no_buffers(self) -> None:
        self.check(Exported(b"u", [None, None, None], 0), [])
        self.check(Exported(b"L", [None, None], 0), [], int)

    def test_a_bitmap_without_nulls_is_accepted(self) -> None:
        keys = [b"a", b"b", b"c"]
        for nulls in (0, -1):
            exported = texts(keys, nulls=nulls)
            bitmap = ctypes.create_string_buffer(b"\x07")
            exported.pointers[0] = ctypes.addressof(bitmap)
            self.check(exported, keys)

    def test_a_stream_has_the_keys_of_its_arrays(self) -> None:
        chunks = [texts([b"key-%d" % i for i in range(first, first + 100)]) for first in (0, 100, 200)]
        self.check(Chunks(chunks), [b"key-%d" % i for i in range(300)])
        self.assertTrue(all(chunk.released == ["array"] for chunk in chunks[1:]))

    def test_lookups_are_those_of_single_keys(self) -> None:
        keys = [b"key-%d" % i for i in range(20_000)]
        filter = filter_of(keys[::2])
        self.assertEqual(filter.contains_many(texts(keys)).tolist(), [key in filter for key in keys])


class Release(PackageTest):
    def test_the_structs_are_released_once_after_each_call(self) -> None:
        exported = texts([b"a", b"b"])
        filter = bloomery.Filter(1000, 0.01)
        for call in (filter.update, filter.contains_many):
            exported.released.clear()
            call(exported)
            self.assertEqual(sorted(exported.released), ["array", "schema"])
            schema, array = exported.exports[-1]
            self.assertFalse(schema.release or array.release)  # moved out of their capsules


class Hostile(PackageTest):
    def refused(self, exported, error: type, says: str, kind: type = bytes) -> None:
        filter = bloomery.Filter(1000, 0.01, keys=kind)
        with self.assertRaisesRegex(error, says):
            filter.update(exported)
        with self.assertRaisesRegex(error, says):
            filter.contains_many(exported)
        self.assertEqual(len(filter), 0)

    def test_nulls_are_refused(self) -> None:
        for nulls in (1, -1):
            exported = texts([b"a", b"b", b"c"], nulls=nulls)
            bitmap = ctypes.create_string_buffer(b"\x05")
            exported.pointers[0] = ctypes.addressof(bitmap)
            self.refused(exported, ValueError, "key 1 is null")
        self.refused(texts([b"a"], nulls=1), ValueError, "no bitmap")

    def test_wrong_offsets_are_refused(self) -> None:
        for ends in ([0, 5, 3, 6], [-1, 2, 3, 6], [0, 7, 6, 6], [3, 2, 6, 6], [0, 2**31 - 1, 4, 6], [0, 1, 2, -5]):
            exported = Exported(b"u", [None, struct.pack("<4i", *ends), b"abcdef"], 3)
            self.refused(exported, ValueError, "offset")
        self.refused(Exported(b"U", [None, struct.pack("<2q", 0, 2**63 - 1), None], 1), ValueError, "buffer 2 is missing")

    def test_wrong_sizes_are_refused(self) -> None:
        for fields in ({"length": -1}, {"offset": -1}, {"length": 2**63 - 1}, {"offset": 2**62}):
            exported = texts([b"a", b"b"])
            for name, value in fields.items():
                setattr(exported.array, name, value)
            self.refused(exported, ValueError, "out of range")
        self.refused(Exported(b"u", [None, None, b"abc"], 1), ValueError, "buffer 1 is missing")
        self.refused(Exported(b"u", [None, b"\0" * 8], 1), ValueError, "expected 3 buffers, found 2")
        self.refused(Exported(b"L", [None, None], 1), ValueError, "buffer 1 is missing", int)
        for width in (b"w:", b"w:x", b"w:-1", b"w:99999999999", b"w:5 "):
            self.refused(Exported(width, [None, b"abcde"], 1), ValueError, "width")

    def test_other_types_are_refused(self) -> None:
        for format in (b"g", b"f", b"b", b"n", b"+l", b"+s", b"vu", b"tdD", b"", b"LL"):
            self.refused(Exported(format, [None, b"12345678"], 1), TypeError, "cast it before")
        self.refused(texts([b"a"]), TypeError, "expected int for a filter of integers", int)
        self.refused(Exported(b"w:1", [None, b"a"], 1), TypeError, "expected int for a filter of integers", int)
        indices = Exported(b"l", [None, b"\0" * 8], 1)
        indices.schema.dictionary = ctypes.addressof(indices.schema)
        self.refused(indices, TypeError, "decode it before", int)

    def test_released_and_foreign_capsules_are_refused(self) -> None:
        released = texts([b"a"])
        released.array.release = ReleaseArray()
        self.refused(released, ValueError, "released before")

        class Foreign:
            def __arrow_c_array__(self, requested_schema=None):
                return self.answer

        for answer, error in ((None, Exception), ((1, 2), ValueError), ((texts([b"a"]).__arrow_c_array__() * 2)[:3], Exception)):
            foreign = Foreign()
            foreign.answer = answer
            self.refused(foreign, error, "")

    def test_a_stream_that_fails_is_reported(self) -> None:
        filter = bloomery.Filter(1000, 0.01)
        with self.assertRaisesRegex(ValueError, "the disk is gone"):
            filter.update(Chunks([texts([b"a"])], fails=True))
        self.assertIn(b"a", filter)


if __name__ == "__main__":
    unittest.main()
