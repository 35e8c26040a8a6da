"""The tests of shared filters once more, with the server that BLOOMERY_VALKEY_SERVER names: Valkey, or another version."""

import os
import unittest

import redis_server

NAMED = os.environ.get("BLOOMERY_VALKEY_SERVER")

if NAMED:
    redis_server.PROGRAM = NAMED
    from test_redis import *  # noqa: F403
    from test_redis_chain import *  # noqa: F403
    from test_redis_cluster import *  # noqa: F403
    from test_redis_cut import *  # noqa: F403
    from test_redis_doctor import *  # noqa: F403
    from test_redis_harm import *  # noqa: F403
    from test_redis_plan import PlanOnAServer  # noqa: F401
else:

    class Valkey(unittest.TestCase):
        @unittest.skip("NO OTHER SERVER: let BLOOMERY_VALKEY_SERVER name valkey-server")
        def test_the_same_with_valkey(self) -> None:
            pass


if __name__ == "__main__":
    unittest.main()
