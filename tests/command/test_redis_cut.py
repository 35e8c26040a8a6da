"""Connections that break while lines go into a filter on a server: dedup loses none of them, and says which may come twice."""

import re
import select
import socket
import threading
import unittest

from redis_server import RedisServer, RedisTest
from support import keys, text


class CuttingNetwork:
    """Forwards connections of a port of 127.0.0.1 to a server's socket. Once, behind `writes` portions of commands that write bits,
    the server's next answer is thrown away and the connection closed: the command is done, and the client does not know."""

    def __init__(self, server: RedisServer, writes: int | None) -> None:
        self.path = server.path
        self.writes = writes
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"redis://127.0.0.1:{self.listener.getsockname()[1]}/f"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.forward, args=(client,), daemon=True).start()

    def forward(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.connect(self.path)
        is_cut = False
        with client, server:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data or (ready is server and is_cut):
                        return
                    is_cut = is_cut or (ready is client and self.is_to_be_cut(data))
                    (server if ready is client else client).sendall(data)

    def is_to_be_cut(self, data: bytes) -> bool:
        if self.writes is None or b"BITFIELD" not in data:
            return False
        self.writes -= 1
        if self.writes >= 0:
            return False
        self.writes = None
        self.cuts += 1
        return True

    def close(self) -> None:
        self.listener.close()


class LostAnswers(RedisTest):
    SIZE = ("-n", 50_000, "-p", "1e-9")

    def network(self, writes: int | None) -> CuttingNetwork:
        network = CuttingNetwork(self.server, writes)
        self.addCleanup(network.close)
        return network

    def test_no_line_is_lost_and_some_may_come_twice(self) -> None:
        lines = keys(20_000)
        for how, writes in ([], 0), ([], 6), (["--grow"], 0), (["--grow"], 6):
            with self.subTest(how=how, writes=writes):
                self.redis("FLUSHALL")
                network = self.network(writes)

                done = self.bloomery("dedup", *(["--json"] if writes else []), "--state", network.address, *how, *self.SIZE, stdin=text(lines * 2), status=3)

                self.assertEqual(network.cuts, 1)
                self.assertEqual(set(lines) - set(done.lines), set(), "lost")
                if writes:
                    most = done.report["maybe_repeated"]
                    self.assertIs(done.report["kept"], False)
                else:
                    most = int(re.search(r"warning: up to ([\d,]+) lines? may have been printed twice, because a connection", done.err)[1].replace(",", ""))
                self.assertGreater(most, 0)
                self.assertLess(most, 10_000, "all that was sent is taken for uncertain")
                self.assertLessEqual(len(done.lines) - len(lines), most)

    def test_without_a_cut_each_line_comes_once(self) -> None:
        lines = keys(20_000)

        done = self.bloomery("dedup", "--json", "--state", self.network(None).address, *self.SIZE, stdin=text(lines * 2))

        self.assertEqual(done.lines, lines)
        self.assertEqual((done.report["maybe_repeated"], done.report["kept"]), (0, True))

    def test_info_tells_what_the_client_did(self) -> None:
        self.bloomery("build", "-q", "-n", 1000, "-o", self.f, stdin=text(keys(10)))

        client = self.bloomery("info", "--json", self.f).json["client"]

        exchanges = client.pop("exchanges")
        self.assertGreater(exchanges, 0)
        self.assertEqual(client, dict.fromkeys(["retries", "reconnects", "redirects", "description_changes", "growths", "restarts_seen", "resent_groups"], 0))


if __name__ == "__main__":
    unittest.main()
