"""The tests of shared filters once more, with another server's program: Valkey, or another version of Redis."""

import unittest

import another_server
import redis_server

if PROGRAM := another_server.find():
    redis_server.PROGRAM = PROGRAM
    from test_redis import *  # noqa: F403
    from test_redis_chain import *  # noqa: F403
    from test_redis_cluster import *  # noqa: F403
    from test_redis_cut import *  # noqa: F403
    from test_redis_doctor import *  # noqa: F403
    from test_redis_errors import *  # noqa: F403
    from test_redis_examples import Examples  # noqa: F401
    from test_redis_harm import *  # noqa: F403
    from test_redis_operate import *  # noqa: F403
    from test_redis_plan import PlanOnAServer  # noqa: F401
    from test_redis_sentinel import *  # noqa: F403
    from test_redis_window import Windows  # noqa: F401
else:

    class AnotherServer(unittest.TestCase):
        @unittest.skip(another_server.HOW_TO_GET_ONE)
        def test_the_same_with_another_server(self) -> None:
            pass


if __name__ == "__main__":
    unittest.main()
