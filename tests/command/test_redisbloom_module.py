"""The module RedisBloom reads what bloomery writes, and the other way round.

$BLOOMERY_TEST_REDISBLOOM names the module; tests/golden/foreign/build_redisbloom.sh builds it.
"""

import os
import subprocess
import unittest

from redis_server import RedisServer
from support import CommandTest, text
from test_redisbloom import HERE, OTHERS


class Module(CommandTest):
    @classmethod
    def setUpClass(cls) -> None:
        module = os.environ.get("BLOOMERY_TEST_REDISBLOOM", "")
        if not module:
            reason = "SKIP RedisBloom: $BLOOMERY_TEST_REDISBLOOM does not name the module"
            print(reason)
            raise unittest.SkipTest(reason)
        cls.server = RedisServer("--loadmodule", os.path.abspath(module))
        cls.addClassCleanup(cls.server.end)
        cls.redis = cls.server.client

    def setUp(self) -> None:
        super().setUp()
        self.redis("FLUSHALL")

    def answers(self, name: str) -> bytes:
        found = self.redis("BF.MEXISTS", name, *(HERE + OTHERS))
        return text(key for key, answer in zip(HERE + OTHERS, found, strict=True) if answer)

    def answers_here(self, file: str) -> bytes:
        return self.bloomery("check", file, stdin=text(HERE + OTHERS)).out

    def test_restore_accepts_what_export_writes(self) -> None:
        for options in [], ["-n", 100, "-p", "20%"], ["-n", 400, "-m", 6400, "-k", 5], ["-n", 300, "-m", 64, "-k", 1]:
            with self.subTest(options):
                self.make_filter("own", HERE, "--scheme", "redisbloom", *(options or ["-n", 400, "-p", "2%"]), status=None)
                self.bloomery("export", "-q", "own", "--to", "redisbloom", "-o", "theirs")
                with open(self.path("theirs"), "rb") as file:
                    subprocess.run(["redis-cli", "-s", self.server.path, "-x", "RESTORE", "f", "0"], stdin=file, check=True, stdout=subprocess.DEVNULL)

                self.assertEqual(self.answers("f"), self.answers_here("own"))
                self.assertEqual(self.redis("BF.CARD", "f"), self.bloomery("info", "--json", "own").json["inserted"])
                self.redis("BF.MADD", "f", *OTHERS[:2000])  # it still grows
                self.assertEqual(self.redis("BF.MEXISTS", "f", *OTHERS[:2000]), [1] * 2000)
                self.redis("DEL", "f")

    def test_loadchunk_accepts_what_export_writes(self) -> None:
        self.make_filter("own", HERE, "--scheme", "redisbloom", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "redisbloom_chunks", "-o", "theirs")
        chunks = self.read("theirs")
        self.redis("BF.LOADCHUNK", "f", 1, chunks[:73])
        for at in range(73, len(chunks), 100):
            part = chunks[at : at + 100]
            self.redis("BF.LOADCHUNK", "f", at - 73 + len(part) + 1, part)

        self.assertEqual(self.answers("f"), self.answers_here("own"))

    def test_redis_cli_writes_files_that_bloomery_reads(self) -> None:
        for reserve in ["0.01", 400], ["0.001", 5000, "NONSCALING"], ["0.2", 400], ["0.01", 10, "EXPANSION", 1], ["0.01", 20, "EXPANSION", 4]:
            with self.subTest(reserve):
                self.redis("DEL", "f")
                self.redis("BF.RESERVE", "f", *reserve)
                self.redis("BF.MADD", "f", *HERE)
                with open(self.path("dump"), "wb") as file:
                    subprocess.run(["redis-cli", "-s", self.server.path, "--raw", "DUMP", "f"], stdout=file, check=True)

                self.assertEqual(self.answers_here("dump"), self.answers("f"))
                self.assertEqual(self.bloomery("info", "--json", "dump").json["inserted"], self.redis("BF.CARD", "f"))


if __name__ == "__main__":
    unittest.main()
