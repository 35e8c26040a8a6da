"""The examples of the headers of shared filters, on a server: a file of its own, since they are skipped where they are not built."""

import os
import subprocess
import unittest

from redis_server import RedisTest


class Examples(RedisTest):
    def test_those_of_the_headers_hold_on_a_server(self) -> None:
        program = os.path.join(os.environ["BLOOMERY_BUILD"], "tests", "bloomery_examples")
        if not os.path.exists(program):
            self.skipTest(f"NO EXAMPLES: {program} is not built")

        ran = subprocess.run([program, "--gtest_filter=*redis*"], env={**os.environ, "BLOOMERY_EXAMPLES_REDIS": self.f}, capture_output=True, text=True, timeout=60)

        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn("Example.redis_line_", ran.stdout)
        self.assertIn("Example.redis_chain_line_", ran.stdout)
        used = self.redis("INFO", "commandstats").decode()
        self.assertIn("cmdstat_bitfield:", used)
        self.assertEqual(self.server.keys(), [])


if __name__ == "__main__":
    unittest.main()
