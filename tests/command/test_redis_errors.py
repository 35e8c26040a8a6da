"""What goes wrong between the command and real servers: each failure has a sentence that names it and what to do."""

import os
import socket
import threading
import time
import unittest

from redis_server import Client, ClusterTest, RedisServer, RedisTest, ServerError
from support import CommandTest, keys, text

NOTHING = "; nothing was done\n"


class FirstContact(CommandTest):
    """A server that is not there is reported within a second, and nothing was done."""

    def failure(self, address: str, *words: object) -> str:
        began = time.monotonic()
        said = self.refused(*words, address, stdin=b"a\n").err
        self.assertLess(time.monotonic() - began, 1)
        self.assertTrue(said.endswith(NOTHING), said)
        return said

    def test_refused(self) -> None:
        with socket.socket() as nobody:  # a port that is taken, and at which nothing listens
            nobody.bind(("127.0.0.1", 0))
            port = nobody.getsockname()[1]
            for scheme in "redis", "redis+cluster", "rediss":
                said = self.failure(f"{scheme}://127.0.0.1:{port}/f", "check")
                self.assertRegex(said, rf"127\.0\.0\.1:{port}: cannot connect: found Connection refused; check the host and the port, and that the server runs;")

    def test_no_socket(self) -> None:
        self.assertRegex(self.failure(f"unix://{self.path('none')}?name=f", "check"), "none: cannot connect: found No such file or directory; ")

    def test_unknown_host(self) -> None:
        for scheme in "redis", "redis+cluster":
            self.assertRegex(self.failure(f"{scheme}://no-such-host.invalid/f", "check"), "no-such-host.invalid:6379: cannot connect, because the host name has no address: found [^;]+; check the host and the port;")

    def test_commands_for_servers_say_the_same(self) -> None:
        for words in (["redis", "list"], ["redis", "gc"], ["redis", "doctor"], ["redis", "drop", "--yes"], ["redis", "replace"]):
            self.assertIn("cannot connect: found Connection refused", self.failure("redis://127.0.0.1:1/f", *words))


class AnotherService(CommandTest):
    def test_its_bytes_are_shown_as_digits(self) -> None:
        for greeting in (b"\x00\x1b[2J\xff binary \x07\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR \x1b]0;title\x07 \xc3\x28\r\n"):
            with self.subTest(greeting=greeting):
                err = self.answered(greeting, "redis")
                self.assertTrue(all(0x20 <= byte < 0x7F for byte in err.rstrip(b"\n")), err)
                if greeting[:1] != b"-":
                    self.assertIn(b"the reply is not from a Redis server", err)

    def test_a_tls_alert_and_an_answer_without_tls_tell_the_side(self) -> None:
        alert = b"\x15\x03\x01\x00\x02\x02\x46"  # protocol_version, RFC 8446
        self.assertIn(b"the server expects TLS at this port; write rediss:// instead of redis://, or check the host and the port; nothing was done\n", self.answered(alert, "redis"))
        self.assertIn(b"the server expects TLS at this port; write rediss+cluster:// instead of redis+cluster://,", self.answered(alert, "redis+cluster"))
        refusal = b"-ERR Protocol error: invalid multibulk length\r\n"
        self.assertIn(b"the server does not use TLS at this port; write redis:// instead of rediss://, or check the host and the port; nothing was done\n", self.answered(refusal, "rediss"))
        self.assertIn(b"the server does not use TLS at this port; write redis+cluster:// instead of rediss+cluster://,", self.answered(refusal, "rediss+cluster"))

    def answered(self, greeting: bytes, scheme: str) -> bytes:
        """What the command says of a service that answers anything so."""
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()

            def serve() -> None:
                try:
                    while True:
                        connection, _ = listener.accept()
                        connection.recv(1000)
                        connection.sendall(greeting)
                        time.sleep(0.1)
                        connection.close()
                except OSError:
                    pass

            threading.Thread(target=serve, daemon=True).start()
            process = self.start("check", "--timeout", "2s", f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/f")
            _, err = process.communicate(b"a\n", timeout=60)
            self.assertEqual(process.returncode, 2)
            return err


class Passwords(RedisTest):
    def setUp(self) -> None:
        super().setUp()
        self.redis("CONFIG", "SET", "requirepass", "right")
        self.addCleanup(self.redis, "CONFIG", "SET", "requirepass", "")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("BLOOMERY_REDIS")}

    def said(self, says: str, *words: object, **env: str) -> None:
        for verb in (["check"], ["build", "-n", 10, "-o"], ["redis", "doctor"], ["redis", "list"]):
            self.refused(*verb, self.f, *words, stdin=b"a\n", env=self.env | env, says=says)

    def test_none_was_given(self) -> None:
        self.said(r"the server requires a password, and none was given: found NOAUTH [^;]*; give it in BLOOMERY_REDIS_PASSWORD, or in the address")

    def test_a_wrong_one(self) -> None:
        self.said(r"the server refuses this user and password: found WRONGPASS [^;]*; check user and password, in the address or in BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD; nothing was done", BLOOMERY_REDIS_PASSWORD="wrong")
        self.said("the server refuses this user and password", BLOOMERY_REDIS_PASSWORD="right", BLOOMERY_REDIS_USER="nobody")

    def test_one_that_is_not_wanted(self) -> None:
        self.redis("CONFIG", "SET", "requirepass", "")
        self.said("a password was given, but the server has none; leave out the password, [^;]*; nothing was done", BLOOMERY_REDIS_PASSWORD="any")


class Server(RedisTest):
    def test_a_database_that_is_not_there(self) -> None:
        self.refused("check", self.f + "&db=16", stdin=b"a\n", says="the server has no database 16: found ERR DB index is out of range; leave out db=16, [^;]*; nothing was done")

    def test_too_few_replicas(self) -> None:
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=b"a\n")
        self.redis("CONFIG", "SET", "min-replicas-to-write", 1)
        self.addCleanup(self.redis, "CONFIG", "SET", "min-replicas-to-write", 0)

        self.refused_in_time("add", self.f, stdin=b"b\n", says=r"the server accepts no writes without its replicas, still after \d+ ms: found NOREPLICAS [^;]*; connect replicas, or lower min-replicas-to-write")
        self.assert_has_all(self.f, [b"a"])

    def test_no_more_connections(self) -> None:
        self.redis("CONFIG", "SET", "maxclients", 1)
        self.addCleanup(self.redis, "CONFIG", "SET", "maxclients", 1000)

        self.refused_in_time("check", self.f, stdin=b"a\n", says="the server accepts no more connections, still after .*found ERR max number of clients reached; close other connections, or raise maxclients")

    def test_a_script_that_does_not_end(self) -> None:
        self.redis("CONFIG", "SET", "busy-reply-threshold", 10)
        other = Client(self.server.path)

        def run() -> None:
            try:
                other("EVAL", "while true do end", 0)
            except (ServerError, OSError):
                pass

        running = threading.Thread(target=run)
        running.start()
        try:
            self.refused_in_time("check", self.f, stdin=b"a\n", says="a script has been running on the server for too long, still after .*found BUSY [^;]*; wait for it, or end it with SCRIPT KILL")
        finally:
            self.redis("SCRIPT", "KILL")
            running.join()
            other.close()


class Replica(CommandTest):
    def test_a_replica_takes_no_writes(self) -> None:
        master = RedisServer("--repl-diskless-sync-delay", "0", tcp=True)
        self.addCleanup(master.end)
        replica = RedisServer("--replicaof", "127.0.0.1", str(master.port))
        self.addCleanup(replica.end)
        end = time.monotonic() + 30
        while time.monotonic() < end and "master_link_status:up" not in replica.client("INFO", "replication").decode():
            time.sleep(0.02)
        address = replica.address("f")
        says = r"the server is a replica, which accepts no writes, still after \d+ ms: found READONLY [^;]*; give the address of its master, or use sentinels: redis\+sentinel://HOST/MASTER/NAME"

        self.refused("build", "--timeout", "500ms", "-n", 100, "-o", address, stdin=b"a\n", says=says)
        self.assertEqual(master.keys(), [])
        self.bloomery("build", "-q", "-n", 100, "--wait-replicas", 1, "-o", master.address("f"), stdin=b"a\n")
        self.refused("add", "--timeout", "500ms", address, stdin=b"b\n", says=says)
        self.refused("redis", "drop", "--yes", "--timeout", "500ms", address, says=says)


class ClusterErrors(ClusterTest):
    def test_a_database_of_a_cluster(self) -> None:
        node = self.address("f").replace("redis+cluster", "redis")

        self.refused("check", node + "?db=1", stdin=b"a\n", says=r"the server is one of a cluster, which has no database 1: found ERR SELECT [^;]*; leave out db=1, and give the cluster's address: redis\+cluster://127\.0\.0\.1:\d+/NAME; nothing was done")

    def test_slots_that_nobody_serves(self) -> None:
        node = RedisServer("--cluster-enabled", "yes", tcp=True)
        self.addCleanup(node.end)
        node.client("CLUSTER", "ADDSLOTS", *range(10_000))
        end = time.monotonic() + 30
        while time.monotonic() < end and b"cluster_slots_ok:10000" not in node.client("CLUSTER", "INFO"):
            time.sleep(0.02)

        for verb in (["check"], ["build", "-n", 10, "-o"]):
            self.refused(*verb, f"redis+cluster://127.0.0.1:{node.port}/f", "--timeout", "2s", stdin=b"a\n", says=r"the cluster does not serve all its slots, still after \d+ ms: found CLUSTERDOWN [^;]*; find the missing node with CLUSTER NODES")


if __name__ == "__main__":
    unittest.main()
