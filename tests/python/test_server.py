"""RedisFilter on a real server, shared with the command."""

import datetime
import sys
import unittest

from package import SOURCE, bloomery

sys.path.insert(0, str(SOURCE / "tests" / "command"))

from redis_server import RedisTest  # noqa: E402

KEYS = [f"key-{i}" for i in range(40_000)]  # more than one exchange


@unittest.skipUnless(bloomery._bloomery.has_servers, "built without servers")
class Server(RedisTest):
    def test_the_command_and_the_package_share_a_filter(self) -> None:
        filter = bloomery.RedisFilter(self.f, 50_000, 0.01)
        self.assertGreater(filter.update(KEYS), 0.99 * len(KEYS))
        self.assertFalse(filter.add(KEYS[0]))
        self.assertIn(KEYS[-1], filter)
        self.assertGreater(filter.add_many([f"new-{i}" for i in range(100)]).count(True), 90)

        lines = b"".join(key.encode() + b"\n" for key in KEYS)
        self.assertEqual(self.bloomery("check", self.f, stdin=lines).out, lines)
        self.bloomery("add", "-q", self.f, stdin=b"Madrid\n")

        self.assertTrue(all(filter.contains_many(KEYS)))
        opened = bloomery.open(self.f)
        self.assertIs(type(opened), bloomery.RedisFilter)
        self.assertEqual(opened.contains_many(["Madrid", "Lima"]), [True, False])
        with self.assertRaises(bloomery.NotPermittedError):
            opened.add("Lima")
        self.assertLess(abs(filter.approx_items - len(KEYS) - 101), 500)

    def test_a_second_client_joins_and_another_size_is_refused(self) -> None:
        bloomery.RedisFilter(self.f, 1000, 0.01).add("Madrid")
        self.assertIn("Madrid", bloomery.RedisFilter(self.f, 1000, 0.01))
        with self.assertRaises(bloomery.IncompatibleError):
            bloomery.RedisFilter(self.f, 90_000, 0.01)

    def test_a_copy_is_local_and_can_be_merged_back(self) -> None:
        filter = bloomery.RedisFilter(self.f, 1000, 0.01)
        filter.update(KEYS[:100])
        twin = filter.copy()
        self.assertIs(type(twin), bloomery.Filter)
        twin.update(KEYS[100:200])
        self.assertEqual((filter | twin), twin)
        filter |= twin
        self.assertTrue(all(filter.contains_many(KEYS[:200])))
        filter.save(self.path("saved.bloom"))
        self.assertEqual(bloomery.load(self.path("saved.bloom")), twin)
        filter.clear()
        self.assertNotIn(KEYS[0], filter)
        for call in (filter.to_bytes, lambda: filter.__reduce__()):
            with self.assertRaises(bloomery.IncompatibleError):
                call()

    def test_kinds_of_filters_on_a_server(self) -> None:
        growing = bloomery.RedisFilter(self.server.address("grows"), 1000, 0.01, grows=True)
        growing.update(KEYS[:20_000])
        self.assertTrue(all(growing.contains_many(KEYS[:20_000])))
        counting = bloomery.RedisFilter(self.server.address("counts"), 1000, 0.01, layout="counting")
        counting.update(["a", "b"])
        self.assertTrue(counting.remove("a"))
        self.assertEqual(counting.remove_many(["b", "c"]), [True, False])
        recent = bloomery.RedisFilter(self.server.address("recent"), 1000, 0.01, window=datetime.timedelta(hours=1))
        self.assertTrue(recent.add("a") and "a" in recent)
        numbers = bloomery.RedisFilter(self.server.address("numbers"), 1000, 0.01, keys=int, expires=3600)
        self.assertTrue(numbers.add(2**64 - 1) and 2**64 - 1 in numbers)
        self.assertTrue(bloomery.RedisFilter.drop(self.server.address("numbers")))
        self.assertFalse(bloomery.RedisFilter.drop(self.server.address("numbers")))

    def test_a_server_that_is_gone_is_a_connection_error(self) -> None:
        filter = bloomery.RedisFilter(self.f, 1000, 0.01)
        self.addCleanup(self.server.start)
        self.server.kill()
        with self.assertRaises(bloomery.UnavailableError) as raised:
            filter.update(KEYS[:10])
        self.assertIsInstance(raised.exception, ConnectionError)
        self.assertEqual(raised.exception.keys_done, 0)
        self.assertLessEqual(raised.exception.undecided, 10)
        with self.assertRaises(ConnectionError):
            bloomery.open(self.f)

    def test_wrong_addresses_are_refused(self) -> None:
        for address in ("redis://", "http://host/name", "name"):
            with self.assertRaises(bloomery.Error):
                bloomery.RedisFilter(address, 1000)
        with self.assertRaises(bloomery.NotFoundError):
            bloomery.open(self.server.address("missing"))


if __name__ == "__main__":
    unittest.main()
