"""The module RedisBloom reads what bloomery writes, and the other way round.

$BLOOMERY_TEST_REDISBLOOM names the module; tests/golden/foreign/build_redisbloom.sh builds it.
"""

import os
import subprocess
import unittest

from redis_server import RedisServer
from support import CommandTest, text
from test_redisbloom import HERE, OTHERS


class ModuleTest(CommandTest):
    """Tests of both modules; test_valkey_bloom_module.py runs them with the other one."""

    name = "RedisBloom"
    variable = "BLOOMERY_TEST_REDISBLOOM"
    scheme = "redisbloom"  # also the format

    @classmethod
    def setUpClass(cls) -> None:
        module = os.environ.get(cls.variable, "")
        if not module:
            reason = f"SKIP {cls.name}: ${cls.variable} does not name the module"
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

    def check_restore(self) -> None:
        for options in [], ["-n", 100, "-p", "20%"], ["-n", 400, "-m", 6400, "-k", 5], ["-n", 300, "-m", 64, "-k", 1]:
            with self.subTest(options):
                self.make_filter("own", HERE, "--scheme", self.scheme, *(options or ["-n", 400, "-p", "2%"]), status=None)
                self.bloomery("export", "-q", "own", "--to", self.scheme, "-o", "theirs")
                with open(self.path("theirs"), "rb") as file:
                    subprocess.run(["redis-cli", "-s", self.server.path, "-x", "RESTORE", "f", "0"], stdin=file, check=True, stdout=subprocess.DEVNULL)

                self.assertEqual(self.answers("f"), self.answers_here("own"))
                inserted = self.bloomery("info", "--json", "own").json["inserted"]
                self.assertEqual(self.redis("BF.CARD", "f"), self.stated(inserted, options))
                self.redis("BF.MADD", "f", *OTHERS[:2000])  # it still grows
                self.assertEqual(self.redis("BF.MEXISTS", "f", *OTHERS[:2000]), [1] * 2000)
                self.redis("DEL", "f")

    def stated(self, inserted: int, options: list[object]) -> int:
        """The number of keys that the module states."""
        return inserted

    def check_dump(self) -> None:
        for reserve in ["0.01", 400], ["0.001", 5000, "NONSCALING"], ["0.2", 400], ["0.01", 10, "EXPANSION", 1], ["0.01", 20, "EXPANSION", 4]:
            with self.subTest(reserve):
                self.redis("DEL", "f")
                self.redis("BF.RESERVE", "f", *reserve)
                self.redis("BF.MADD", "f", *HERE)
                with open(self.path("dump"), "wb") as file:
                    subprocess.run(["redis-cli", "-s", self.server.path, "--raw", "DUMP", "f"], stdout=file, check=True)

                self.assertEqual(self.answers_here("dump"), self.answers("f"))
                self.assertEqual(self.bloomery("info", "--json", "dump").json["inserted"], self.redis("BF.CARD", "f"))


class Module(ModuleTest):
    def test_restore_accepts_what_export_writes(self) -> None:
        self.check_restore()

    def test_redis_cli_writes_files_that_bloomery_reads(self) -> None:
        self.check_dump()

    def test_loadchunk_accepts_what_export_writes(self) -> None:
        self.make_filter("own", HERE, "--scheme", "redisbloom", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "redisbloom_chunks", "-o", "theirs")
        chunks = self.read("theirs")
        self.redis("BF.LOADCHUNK", "f", 1, chunks[:73])
        for at in range(73, len(chunks), 100):
            part = chunks[at : at + 100]
            self.redis("BF.LOADCHUNK", "f", at - 73 + len(part) + 1, part)

        self.assertEqual(self.answers("f"), self.answers_here("own"))


if __name__ == "__main__":
    unittest.main()
