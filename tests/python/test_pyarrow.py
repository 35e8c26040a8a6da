"""Arrays of pyarrow, if it is installed. Debian 12 does not package it; test_arrow.py makes the same arrays by hand."""

import unittest

from package import PackageTest, bloomery

try:
    import pyarrow
except ImportError:
    pyarrow = None


@unittest.skipUnless(pyarrow is not None and hasattr(pyarrow.Array, "__arrow_c_array__"), "pyarrow 14 or later is not installed")
class Pyarrow(PackageTest):
    def test_arrays_and_chunked_arrays_have_the_keys_of_their_lists(self) -> None:
        keys = [f"key-{i}" for i in range(20_000)]
        for type in (pyarrow.string(), pyarrow.large_string()):
            whole = pyarrow.array(keys, type)
            for given in (whole, whole[100:200], pyarrow.chunked_array([whole[:50], whole[50:]])):
                filter, expected = bloomery.Filter(50_000, 0.01), bloomery.Filter(50_000, 0.01)
                filter.update(given)
                expected.update(given.to_pylist())
                self.assertEqual(filter, expected)

    def test_nulls_are_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "null"):
            bloomery.Filter(100, 0.01).update(pyarrow.array(["a", None]))


if __name__ == "__main__":
    unittest.main()
