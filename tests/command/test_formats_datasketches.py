"""The real Bloom filter of Apache DataSketches reads what bloomery writes. BLOOMERY_DATASKETCHES is a checkout of
github.com/apache/datasketches-cpp, which is not a package of Debian."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from support import CommandTest, keys, text

PEER = Path(os.environ["BLOOMERY_SOURCE"]) / "tests/peers/datasketches.cpp"
CHECKOUT = os.environ.get("BLOOMERY_DATASKETCHES", "")
HERE = keys(300)
OTHERS = keys(20_000, "other")


class DataSketches(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        if not CHECKOUT or shutil.which("g++") is None:
            print("SKIP peer DataSketches (BLOOMERY_DATASKETCHES names no checkout, or g++ is missing)")
            self.skipTest("SKIP peer DataSketches (BLOOMERY_DATASKETCHES names no checkout, or g++ is missing)")
        includes = [f"-I{CHECKOUT}/{part}/include" for part in ("common", "filters")]
        subprocess.run(["g++", "-std=c++17", *includes, str(PEER), "-o", self.path("peer")], check=True)

    def peer(self, *words: str, stdin: bytes = b"") -> bytes:
        return subprocess.run([self.path("peer"), *words], input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def test_datasketches_answers_as_bloomery(self) -> None:
        self.make_filter("own", HERE, "--scheme", "datasketches", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "datasketches", "-o", "theirs")

        answers = self.peer("check", "theirs", stdin=text(HERE + OTHERS))

        found = [key for key, answer in zip(HERE + OTHERS, answers.split(), strict=True) if answer == b"1"]
        self.assertEqual(text(found), self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)

    def test_datasketches_writes_the_same_files(self) -> None:
        for present in HERE, []:
            with self.subTest(keys=len(present)):
                self.make_filter("own", present, "--scheme", "datasketches", "-n", 300, "-p", "1%")
                self.bloomery("export", "-q", "own", "--to", "datasketches", "-o", "ours")

                self.peer("write", "theirs", "300", "0.01", "0", stdin=text(present))

                self.assertEqual(self.read("ours"), self.read("theirs"))
                self.assertEqual(set(self.peer("check", "ours", stdin=text(present)).split()), {b"1"} if present else set())


if __name__ == "__main__":
    unittest.main()
