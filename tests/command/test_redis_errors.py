"""What goes wrong between the command and real servers: each failure has a sentence that names it and what to do."""

import contextlib
import os
import socket
import threading
import time
import unittest

from redis_server import Client, ClusterTest, RedisServer, RedisTest, ServerError, start_with_replica, wait_until
from support import CommandTest

NOTHING = "; nothing was done\n"


class FirstContact(CommandTest):
    """A server that cannot be reached is reported at once, however long the command may take, and nothing was done."""

    REACHING = """add, check, check -v, info, info --json, verify, explain KEY, pull -o x, dedup --state, union -o x SECOND, redis doctor,
        redis list, redis gc, redis drop --yes, redis replace"""

    def test_at_once(self) -> None:
        with socket.socket() as bound:  # a port that is taken, and at which no process listens
            bound.bind(("127.0.0.1", 0))
            server = f"127.0.0.1:{bound.getsockname()[1]}"
            refused = rf"{server}: cannot connect: found Connection refused; check the host and the port, and that the server runs{NOTHING}"
            unknown = f"no-such-host.invalid:6379: cannot connect, because the host name has no address: found [^;]+; check the host and the port{NOTHING}"
            for address, says in (
                (f"redis://{server}/f", refused),
                (f"redis+cluster://{server}/f", refused),
                (f"rediss://{server}/f", refused),
                (f"unix://{self.path('none')}?name=f", f"none: cannot connect: found No such file or directory; check the host and the port.*{NOTHING}"),
                ("redis://no-such-host.invalid/f", unknown),
                ("redis+cluster://no-such-host.invalid/f", unknown),
            ):
                for verb in self.REACHING.split(",") if says is refused else ["check"]:
                    with self.subTest(address=address, verb=verb):
                        words = verb.replace("KEY", f"{address} key").replace("SECOND", address).split()
                        self.refused(*words, *([] if "KEY" in verb else [address]), "--timeout", "1h", stdin=b"a\n", says=rf"{says}\Z")

    def test_an_address_that_never_answers_is_given_up_after_the_time_to_connect(self) -> None:
        # A listener whose queue is full: the system drops further attempts to connect, as a firewall does.
        with socket.socket() as listener, contextlib.ExitStack() as held:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            port = listener.getsockname()[1]
            for _ in range(8):
                one = held.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(("127.0.0.1", port))
            for scheme in "redis", "redis+cluster":
                self.refused("check", "--timeout", "1h", f"{scheme}://127.0.0.1:{port}/f", stdin=b"a\n", says=r"cannot connect within \d+ ms; check the host and the port")


class AnotherService(CommandTest):
    def test_its_bytes_are_shown_as_digits(self) -> None:
        for greeting in (b"\x00\x1b[2J\xff binary \x07\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR \x1b]0;title\x07 \xc3\x28\r\n"):
            with self.subTest(greeting=greeting):
                err = self.answered(greeting, "redis")
                self.assertTrue(all(0x20 <= byte < 0x7F for byte in err.rstrip(b"\n")), err)
                if greeting[:1] != b"-":
                    self.assertIn(b"the reply is not from a Redis server", err)

    def test_a_tls_alert_and_an_answer_without_tls_name_the_right_address(self) -> None:
        alert = b"\x15\x03\x01\x00\x02\x02\x46"  # protocol_version, RFC 8446
        refusal = b"-ERR Protocol error: invalid multibulk length\r\n"
        for greeting, wrong, right, expects in (
            (alert, "redis", "rediss", "expects TLS"),
            (alert, "redis+cluster", "rediss+cluster", "expects TLS"),
            (refusal, "rediss", "redis", "does not use TLS"),
            (refusal, "rediss+cluster", "redis+cluster", "does not use TLS"),
        ):
            advice = f"write {right}:// instead of {wrong}://, or check the host and the port"
            self.assertIn(f"the server {expects} at this port; {advice}{NOTHING}".encode(), self.answered(greeting, wrong))

    def test_a_last_try_that_is_cut_short_does_not_hide_that_the_service_closes_connections(self) -> None:
        with socket.socket() as listener, contextlib.ExitStack() as held:
            listener.bind(("127.0.0.1", 0))
            listener.listen()

            def serve() -> None:
                try:
                    connection, _ = listener.accept()
                    stalls_at = time.monotonic() + 1.2
                    while True:
                        if time.monotonic() < stalls_at:
                            connection.close()
                        else:
                            held.enter_context(connection)
                        connection, _ = listener.accept()
                except OSError:
                    pass

            threading.Thread(target=serve, daemon=True).start()
            address = f"redis+cluster://127.0.0.1:{listener.getsockname()[1]}/f"
            self.refused("check", "--timeout", "1h", address, stdin=b"a\n", says="closes each connection without a reply")

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
                        connection.shutdown(socket.SHUT_WR)  # and what else it sends is read, lest the greeting be lost by a reset
                        while connection.recv(1000):
                            pass
                        connection.close()
                except OSError:
                    pass

            threading.Thread(target=serve, daemon=True).start()
            process = self.start("check", "--timeout", "2s", f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/f")
            _, err = process.communicate(b"a\n", timeout=60)
            self.assertEqual(process.returncode, 2)
            return err


class Passwords(RedisTest):
    def test_a_password_that_is_missing_wrong_or_not_required(self) -> None:
        self.addCleanup(self.redis, "CONFIG", "SET", "requirepass", "")
        bare = {name: value for name, value in os.environ.items() if not name.startswith("BLOOMERY_REDIS")}
        refuses = "the server refuses this user and password"
        for required, env, says in (
            ("right", {}, "the server requires a password, and none was given: found NOAUTH [^;]*; give it in BLOOMERY_REDIS_PASSWORD, or in the address"),
            ("right", {"BLOOMERY_REDIS_PASSWORD": "wrong"}, f"{refuses}: found WRONGPASS [^;]*; check user and password, in the address or in BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD; nothing was done"),
            ("right", {"BLOOMERY_REDIS_PASSWORD": "right", "BLOOMERY_REDIS_USER": "another"}, refuses),
            ("", {"BLOOMERY_REDIS_PASSWORD": "any"}, "a password was given, but the server has none; leave out the password, [^;]*; nothing was done"),
        ):
            self.redis("CONFIG", "SET", "requirepass", required)
            self.refuse_all(dict.fromkeys([f"check {self.f}", f"build -n 10 -o {self.f}", f"redis doctor {self.f}", f"redis list {self.f}"], says), stdin=b"a\n", env=bare | env)


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
        master, replica = start_with_replica(self)
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

        self.refused("check", node + "?db=1", stdin=b"a\n", says=r"the server is part of a cluster, which has no database 1: found ERR SELECT [^;]*; leave out db=1, and give the cluster's address: redis\+cluster://127\.0\.0\.1:\d+/NAME; nothing was done")

    def test_slots_that_nobody_serves(self) -> None:
        node = RedisServer("--cluster-enabled", "yes", tcp=True)
        self.addCleanup(node.end)
        node.client("CLUSTER", "ADDSLOTS", *range(10_000))
        wait_until(lambda: b"cluster_slots_ok:10000" in node.client("CLUSTER", "INFO"))

        for verb in (["check"], ["build", "-n", 10, "-o"]):
            self.refused(*verb, f"redis+cluster://127.0.0.1:{node.port}/f", "--timeout", "2s", stdin=b"a\n", says=r"the cluster does not serve all its slots, still after \d+ ms: found CLUSTERDOWN [^;]*; find the missing node with CLUSTER NODES")


if __name__ == "__main__":
    unittest.main()
