"""The Python package with threads, forks, and processes that end."""

import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from package import PACKAGE, PackageTest, bloomery

import numpy


def run(script: str, *arguments: str) -> subprocess.CompletedProcess:
    environment = dict(os.environ, PYTHONPATH=PACKAGE)
    return subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, timeout=120)


class Forks(PackageTest):
    def test_a_child_that_ends_leaves_the_file_to_its_parent(self) -> None:
        path = self.path("users.bloom")
        script = """
import os, signal, sys, bloomery
f = bloomery.Filter.create(sys.argv[1], 10_000, 0.01)
f.update(str(i) for i in range(1000))
child = os.fork()
if child == 0:
    try:
        f.add("in the child")
    except bloomery.InvalidArgumentError as error:
        f.close()
        del f
        sys.exit(0 if "parent process" in str(error) else 3)
    sys.exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
f.update(str(i) for i in range(1000, 2000))
os.kill(os.getpid(), signal.SIGKILL)
"""
        done = run(script, path)

        self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
        with bloomery.open(path) as filter:
            self.assertTrue(all(filter.contains_many(str(i) for i in range(2000))))

    def test_a_child_looks_up_keys_of_a_filter_in_memory_or_open_for_reading(self) -> None:
        filter = bloomery.Filter(1000, 0.01)
        filter.update(["a", "b"])
        filter.save(self.path("f"))
        mapped = bloomery.open(self.path("f"))
        child = os.fork()
        if child == 0:
            filter.add("c")
            os._exit(0 if all("a" in one for one in (filter, mapped)) and "c" in filter else 1)

        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertNotIn("c", filter)


class Threads(PackageTest):
    def test_a_single_key_waits_while_its_filter_is_merged_into_another(self) -> None:
        first, second = (bloomery.Filter(200_000_000, 0.01, keys=int) for _ in range(2))
        began = threading.Event()

        def merge() -> None:
            began.set()
            for _ in range(4):
                first.__ior__(second)

        merging = threading.Thread(target=merge)
        merging.start()
        began.wait()
        for key in range(50):
            second.add(key)
        merging.join()
        first |= second
        self.assertTrue(all(first.contains_many(range(50))))
        self.assertEqual(first, second)

    def test_two_filters_are_merged_into_each_other(self) -> None:
        first, second = (bloomery.Filter(1000, 0.01) for _ in range(2))
        first.add("a"), second.add("b")
        threads = [threading.Thread(target=lambda x, y: [x.__ior__(y) for _ in range(500)], args=pair) for pair in ((first, second), (second, first))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertTrue("b" in first and "a" in second)

    def test_a_program_ends_while_threads_use_a_filter(self) -> None:
        script = """
import threading, time, numpy, bloomery
f = bloomery.Filter(3_000_000, 0.01, keys=int)
keys = numpy.arange(3_000_000, dtype="u8")
def work():
    while True:
        f.contains_many(keys)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""
        done = run(script)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_second_close_returns_after_the_first(self) -> None:
        path = self.path("f")
        filter = bloomery.Filter.create(path, 50_000_000, 0.01)
        filter.update(range(100_000))
        threads = [threading.Thread(target=filter.close) for _ in range(2)]
        for thread in threads:
            thread.start()
        threads[1].join()
        with bloomery.open(path, "r+") as again:  # the lock of the file is free
            self.assertIn("5", again)
        threads[0].join()


class KilledWriters(PackageTest):
    def test_the_number_of_keys_is_estimated(self) -> None:
        script = """
import os, signal, sys, bloomery
f = bloomery.Filter.create(sys.argv[1], 1000, 0.01)
f.update(str(i) for i in range(500))
os.kill(os.getpid(), signal.SIGKILL)
"""
        self.assertEqual(run(script, self.path("f")).returncode, -signal.SIGKILL)
        filter = bloomery.open(self.path("f"))
        self.assertTrue(filter)
        self.assertLess(abs(len(filter) - 500), 40)


if __name__ == "__main__":
    unittest.main()
