"""Servers of Redis or Valkey for the tests of the command, started by them and ended by process id.

test_redis_valkey.py runs the same tests with another binary. A server is on a Unix socket in a folder of its
own, whose path is short, and on loopback if asked. The tests talk to it by a client of a few lines: their truth is what is
on the server, not what the command says of it.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable

from support import CommandTest

SOURCE = os.environ["BLOOMERY_SOURCE"]


def documented_rights(name: str) -> dict[str, list[str]]:
    """What docs/redis.md lets a user have: of "a filter", "in a cluster", ... the rules of ACL SETUSER."""
    with open(os.path.join(SOURCE, "docs", "redis.md")) as file:
        [listed] = re.findall(r"(?ms)^```text\n(a filter .*?)^```", file.read())
    rights: dict[str, list[str]] = {}
    for line in listed.splitlines():
        heading, rules = line[:21].strip(), line[21:].replace("NAME", name).split()
        if heading:
            last = rights.setdefault(heading, [])
        last += rules
    return rights


PROGRAM: str | None = None  # another than redis-server


def program() -> str:
    """The server's program. Without one the tests are skipped, and say so."""
    found = PROGRAM or shutil.which("redis-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/bin")
    if found is None:
        raise unittest.SkipTest("NO SERVER: install redis-server")
    return found


class ServerError(Exception):
    """What the server refused, in its words."""


class Client:
    """One connection: client("GET", "key") returns bytes, int, list or None."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words: object):
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server hung up")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            raise ServerError(rest.decode())
        if kind == b":":
            return int(rest)
        size = int(rest)
        if size < 0:
            return None
        if kind == b"$":
            return self.file.read(size + 2)[:-2]
        return [self.reply() for _ in range(size)]

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def free_port() -> int:
    """A free port whose number plus 10,000, the port between nodes of a cluster, is a port number, too."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port + 10_000 < 65_536:
            return port


class RedisServer:
    def __init__(self, *options: str, tcp: bool = False, configuration: str = "") -> None:
        self.program = program()
        self.configuration = [configuration] if configuration else []
        self.folder = tempfile.mkdtemp(prefix="bloomery-")  # short: the path of a socket has 107 bytes at most
        self.path = os.path.join(self.folder, "s")
        self.options = options
        self.tcp = tcp
        self.port = 0
        self.process: subprocess.Popen | None = None
        self.client: Client | None = None
        self.start()

    def start(self) -> None:
        for attempt in range(5):  # another process may take the port first
            if self.tcp:
                self.port = free_port()
            arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.path, "--dir", self.folder, "--save", "", "--loglevel", "warning"]
            with open(os.path.join(self.folder, "log"), "wb") as log:
                self.process = subprocess.Popen([self.program, *self.configuration, *arguments, *self.options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            if self.wait_until_it_answers():
                return
        with open(os.path.join(self.folder, "log")) as log:
            raise RuntimeError("the server does not start: " + log.read())

    def wait_until_it_answers(self) -> bool:
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.client = Client(self.path)
                try:
                    self.client("PING")
                except ServerError as error:
                    if str(error).startswith("LOADING"):
                        continue
                return True  # also if it wants a password first
            except OSError:
                time.sleep(0.01)
        return False

    def address(self, name: str = "filter") -> str:
        return f"unix://{self.path}?name={name}"

    def tcp_address(self, name: str = "filter", user: str = "") -> str:
        return f"redis://{user}127.0.0.1:{self.port}/{name}"

    def shard(self, number: int, name: str = "f") -> bytes:
        """With what the names of a shard's keys begin: {NAME~EPOCH:number}, as the description says."""
        lines = dict(line.split(b"=", 1) for line in self.client("GET", "{%s}:m" % name).splitlines())
        return b"{%s:%d}" % (lines[b"instance"], number)

    def keys(self) -> list[bytes]:
        """All keys but the marks of dropped filters, which expire."""
        return sorted(key for key in self.client("KEYS", "*") if b"}:gone~" not in key)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self.client is not None:
            self.client.close()
            self.client = None
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def end(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(it_is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not it_is_so():
        if time.monotonic() > end:
            raise AssertionError("the condition does not become true")
        time.sleep(0.01)


def start_with_replica(test: CommandTest) -> tuple[RedisServer, RedisServer]:
    """A master and its replica, connected."""
    master = RedisServer("--repl-diskless-sync-delay", "0", tcp=True)
    test.addCleanup(master.end)
    replica = RedisServer("--repl-diskless-sync-delay", "0", "--replicaof", "127.0.0.1", str(master.port), tcp=True)
    test.addCleanup(replica.end)
    wait_until(lambda: b"master_link_status:up" in replica.client("INFO", "replication"))
    return master, replica


def environment_of(user: str, password: str) -> dict[str, str]:
    return dict(os.environ, BLOOMERY_REDIS_USER=user, BLOOMERY_REDIS_PASSWORD=password)


class RedisTest(CommandTest):
    """Tests with one server, emptied before each; its options are those of the class."""

    OPTIONS: tuple[str, ...] = ()
    TCP = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = RedisServer(*cls.OPTIONS, tcp=cls.TCP)
        cls.addClassCleanup(cls.server.end)

    def setUp(self) -> None:
        super().setUp()
        self.server.client("FLUSHALL")
        self.f = self.server.address("f")

    def redis(self, *words: object):
        return self.server.client(*words)

    def refused_in_time(self, *words: object, says: str, **options) -> None:
        """An error of waiting in vain, which takes all of the time; on a slow machine it takes longer to get there."""
        for timeout in ("300ms", "2s", "10s"):
            result = self.bloomery(*words, "--timeout", timeout, status=2, **options)
            if re.search(says, result.err):
                return
        self.refused(*words, "--timeout", "30s", says=says, **options)


class ClusterTest(CommandTest):
    """Tests with a cluster of three masters, emptied before each."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.nodes = []
        for _ in range(3):
            node = RedisServer("--cluster-enabled", "yes", "--cluster-node-timeout", "5000", tcp=True)
            cls.addClassCleanup(node.end)
            cls.nodes.append(node)
        for i, node in enumerate(cls.nodes):
            node.client("CLUSTER", "ADDSLOTS", *range(16384 * i // 3, 16384 * (i + 1) // 3))
            node.client("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in cls.nodes[1:]:
            cls.nodes[0].client("CLUSTER", "MEET", "127.0.0.1", node.port)
        cls.wait_until_well()

    @classmethod
    def wait_until_well(cls) -> None:
        wait_until(lambda: all(cls.is_well(node) for node in cls.nodes))

    @staticmethod
    def is_well(node: RedisServer) -> bool:
        state = node.client("CLUSTER", "INFO").decode()
        return "cluster_state:ok" in state and "cluster_known_nodes:3" in state

    def setUp(self) -> None:
        super().setUp()
        for node in self.nodes:
            node.client("FLUSHALL")

    def address(self, name: str, of: int = 0) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[of].port}/{name}"
