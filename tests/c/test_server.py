"""The C interface, called by ctypes, and the command share a filter on a real server."""

import ctypes
import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["BLOOMERY_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "command"))

from redis_server import RedisTest  # noqa: E402
from support import COMMAND  # noqa: E402

WRITE = 1
UNAVAILABLE = 12

library = ctypes.CDLL(os.environ["BLOOMERY_C"])
library.bloomery_error_text.restype = ctypes.c_char_p


class Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Keys(ctypes.Structure):
    _fields_ = [
        ("form", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("count", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("data_size", ctypes.c_size_t),
    ]


class Change(ctypes.Structure):
    _fields_ = [("keys", ctypes.c_uint64), ("changed", ctypes.c_uint64), ("undecided", ctypes.c_uint64)]


def keys_of(texts: list[bytes]) -> Keys:
    views = (Bytes * len(texts))(*[Bytes(text, len(text)) for text in texts])
    keys = Keys(0, 0, len(texts), ctypes.cast(views, ctypes.c_void_p), None, 0)
    keys.kept = views
    return keys


class Server(RedisTest):
    def check(self, code: int) -> None:
        self.assertEqual(code, 0, library.bloomery_error_text())

    def open(self, flags: int) -> ctypes.c_void_p:
        filter = ctypes.c_void_p()
        self.check(library.bloomery_open(self.f.encode(), flags, None, ctypes.byref(filter)))
        return filter

    def make(self) -> None:
        subprocess.run([COMMAND, "build", "-q", "-n", "100k", "-p", "1%", "-o", self.f], input=b"", check=True, stdout=subprocess.DEVNULL)

    def test_keys_of_the_interface_are_found_by_the_command(self) -> None:
        self.make()
        inside = [b"in-%d" % i for i in range(50_000)]  # more than one exchange
        filter = self.open(WRITE)
        done = Change()

        self.check(library.bloomery_insert_many(filter, ctypes.byref(keys_of(inside)), None, ctypes.byref(done)))
        self.check(library.bloomery_close(filter))

        self.assertEqual(done.keys, len(inside))
        self.assertGreater(done.changed, 0.99 * len(inside))
        lines = b"".join(key + b"\n" for key in inside)
        checked = subprocess.run([COMMAND, "check", self.f], input=lines, stdout=subprocess.PIPE, check=True)
        self.assertEqual(checked.stdout, lines)

    def test_keys_of_the_command_are_found_by_the_interface(self) -> None:
        self.make()
        subprocess.run([COMMAND, "add", "-q", self.f], input=b"Madrid\n", check=True, stdout=subprocess.DEVNULL)
        filter = self.open(0)
        answers = (ctypes.c_uint8 * 2)()

        self.check(library.bloomery_contains_many(filter, ctypes.byref(keys_of([b"Madrid", b"Berlin"])), answers, None))

        self.assertEqual(list(answers), [1, 0])
        self.check(library.bloomery_close(filter))

    def test_a_filter_on_a_server_is_saved_as_the_file_that_the_command_pulls(self) -> None:
        self.make()
        subprocess.run([COMMAND, "add", "-q", self.f], input=b"Madrid\nLima\n", check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory() as folder:
            saved, pulled = os.path.join(folder, "saved"), os.path.join(folder, "pulled")
            filter = self.open(0)
            self.check(library.bloomery_save(filter, saved.encode()))
            self.check(library.bloomery_close(filter))
            subprocess.run([COMMAND, "pull", "-q", self.f, "-o", pulled], check=True, stdout=subprocess.DEVNULL)
            with open(saved, "rb") as one, open(pulled, "rb") as other:
                self.assertEqual(one.read(), other.read())

    def test_a_server_that_is_gone_is_reported_with_the_number_of_keys(self) -> None:
        self.make()
        filter = self.open(WRITE)
        self.check(library.bloomery_insert(filter, b"Madrid", 6, None))
        self.addCleanup(self.server.start)
        self.server.kill()
        done = Change(9, 9, 9)

        code = library.bloomery_insert_many(filter, ctypes.byref(keys_of([b"Berlin", b"Lima"])), None, ctypes.byref(done))

        self.assertEqual(code, UNAVAILABLE, library.bloomery_error_text())
        self.assertEqual((done.keys, done.changed), (0, 0))
        self.assertLessEqual(done.undecided, 2)
        self.assertTrue(library.bloomery_error_text())
        library.bloomery_discard(filter)


if __name__ == "__main__":
    unittest.main()
