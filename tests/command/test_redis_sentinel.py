"""Shared filters whose master is named by sentinels: a real master, a replica and three sentinels, and failovers."""

import time
import unittest

from redis_server import Client, RedisServer, ServerError, documented_rights, start_with_replica, wait_until
from support import CommandTest, keys, text

MASTER = "users-db"


class Sentinels(CommandTest):
    """A master with one replica, and three sentinels; each test has its own."""

    def setUp(self) -> None:
        super().setUp()
        self.servers = start_with_replica(self)
        self.sentinels = [self.sentinel() for _ in range(3)]
        for sentinel in self.sentinels:  # they find each other by the master
            wait_until(lambda: self.facts(sentinel)[b"num-other-sentinels"] == b"2" and self.facts(sentinel)[b"num-slaves"] == b"1")

    def sentinel(self, *options: str) -> RedisServer:
        file = self.write(
            f"sentinel-{time.monotonic_ns()}.conf",
            f"sentinel monitor {MASTER} 127.0.0.1 {self.servers[0].port} 2\nsentinel down-after-milliseconds {MASTER} 400\nsentinel failover-timeout {MASTER} 3000\n".encode(),
        )
        sentinel = RedisServer("--sentinel", *options, tcp=True, configuration=self.path(file))
        self.addCleanup(sentinel.end)
        return sentinel

    def facts(self, sentinel: RedisServer) -> dict[bytes, bytes]:
        told = sentinel.client("SENTINEL", "MASTER", MASTER)
        return dict(zip(told[::2], told[1::2]))

    def address(self, name: str = "f", user: str = "") -> str:
        return f"redis+sentinel://{user}{','.join(f'127.0.0.1:{sentinel.port}' for sentinel in self.sentinels)}/{MASTER}/{name}"

    def named(self) -> int:
        """The port of the master that the first sentinel names."""
        return int(self.sentinels[0].client("SENTINEL", "get-master-addr-by-name", MASTER)[1])

    def fail_over(self) -> None:
        """Until the old master is a replica: what it takes before that is lost, as by any failover."""
        before = self.named()
        self.sentinels[0].client("SENTINEL", "FAILOVER", MASTER)
        wait_until(lambda: self.named() != before)
        wait_until(self.first_is_a_replica)

    def first_is_a_replica(self) -> bool:
        try:
            client = Client(self.servers[0].path)  # a change of role closes connections
            try:
                return client("ROLE")[0] == b"slave"
            finally:
                client.close()
        except (OSError, ServerError):
            return False

    def test_the_master_is_asked_for_and_followed(self) -> None:
        f = self.address()
        self.bloomery("build", "-q", "-n", 500_000, "--wait-replicas", 1, "-o", f, stdin=text(keys(1000)))
        self.assertTrue(self.servers[0].keys())
        self.assertEqual(self.bloomery("redis", "list", "--json", f.rsplit("/", 1)[0]).json["filters"][0]["name"], "f")
        told = self.bloomery("redis", "doctor", "--json", f, status=1).json
        self.assertEqual(told["nodes"], [f"127.0.0.1:{self.servers[0].port}"])

        adding = self.start("add", "-q", "--timeout", "30s", f)
        adding.stdin.write(text(keys(40_000, "first")))  # more than a call
        adding.stdin.flush()
        wait_until(lambda: self.info(f)["inserted"] > 25_000)
        self.fail_over()
        adding.stdin.write(text(keys(1000, "after")))
        _, err = adding.communicate(timeout=60)
        self.assertEqual(adding.returncode, 0, err)
        self.assertEqual(self.named(), self.servers[1].port)
        self.assert_has_all(f, keys(1000) + keys(1000, "after"))

    def test_a_sentinel_that_is_not_there_is_passed_over(self) -> None:
        self.bloomery("build", "-q", "-n", 500, "-o", self.address(), stdin=b"a\n")
        self.sentinels[0].kill()

        self.assertEqual(self.bloomery("check", self.address(), stdin=b"a\n").out, b"a\n")
        self.assertEqual(self.bloomery("check", self.address().replace("//", "//127.0.0.1:1,"), stdin=b"a\n").out, b"a\n")

    def test_what_is_no_master_or_no_sentinel_is_told(self) -> None:
        self.refused("check", self.address().replace(MASTER, "other"), stdin=b"a\n", says="the sentinels do not know this master; check its name, .*; nothing was done")
        self.refused("check", f"redis+sentinel://127.0.0.1:{self.servers[0].port}/{MASTER}/f", stdin=b"a\n", says=rf"127.0.0.1:{self.servers[0].port}: the server is not a sentinel; .*redis://127.0.0.1:{self.servers[0].port}/NAME")
        self.refused("check", "--timeout", "1h", f"redis+sentinel://127.0.0.1:1,127.0.0.1:2/{MASTER}/f", stdin=b"a\n", says="127.0.0.1:2: cannot connect: found Connection refused")
        self.refused("check", f"redis+sentinel://127.0.0.1:1/{MASTER}", says="filter's name is missing: expected /MASTER/NAME")

    def test_the_password_is_for_the_master_and_for_sentinels_that_want_one(self) -> None:
        for server in self.servers:
            server.client("CONFIG", "SET", "masterauth", "pw")
            server.client("CONFIG", "SET", "requirepass", "pw")
            server.client("ACL", "SETUSER", "user", "reset", "on", ">secret", *documented_rights("f")["a filter"], *documented_rights("f")["by sentinels"])
        self.refused("check", self.address(), stdin=b"a\n", says="NOAUTH|password")
        self.bloomery("build", "-q", "-n", 500, "-o", self.address(user=":pw@"), stdin=b"a\n")
        self.assertEqual(self.bloomery("check", self.address(user="user:secret@"), stdin=b"a\n").out, b"a\n")
        address = self.address(user="user:secret@")
        verbs = (["info"], ["info", "--json"], ["check", "--json"], ["explain", "--json"], ["verify"], ["pull", "--json", "-o", "file"], ["redis", "doctor"], ["redis", "doctor", "--json"], ["info", "a"])
        for verb in verbs:
            said = self.bloomery(*verb, address, *(["a"] if verb[0] == "explain" else []), stdin=b"a\n", status=None)
            self.assertNotIn(b"secret", said.out + said.err.encode(), verb)
        for sentinel in self.sentinels:
            self.assertNotIn(b"cmdstat_auth", sentinel.client("INFO", "commandstats"))
        self.sentinels = [self.sentinel("--requirepass", "pw")]
        self.assertEqual(self.bloomery("check", self.address(user=":pw@"), stdin=b"a\n").out, b"a\n")
        self.refused("check", self.address(user=":wrong@"), stdin=b"a\n", says="the sentinel refuses this user or password: found WRONGPASS")


if __name__ == "__main__":
    unittest.main()
