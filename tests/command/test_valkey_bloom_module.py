"""The module valkey-bloom reads what bloomery writes, and the other way round.

$BLOOMERY_TEST_VALKEY_BLOOM names the module.
"""

import unittest

import test_redisbloom_module


class Module(test_redisbloom_module.ModuleTest):
    name = "valkey-bloom"
    variable = "BLOOMERY_TEST_VALKEY_BLOOM"
    scheme = "valkey_bloom"

    def stated(self, inserted: int, options: list[object]) -> int:
        """A full filter states its capacity, because the module would have added a layer."""
        return min(inserted, int(options[1]) if options else 400)

    def test_restore_accepts_what_export_writes(self) -> None:
        self.check_restore()

    def test_redis_cli_writes_files_that_bloomery_reads(self) -> None:
        self.check_dump()


if __name__ == "__main__":
    unittest.main()
