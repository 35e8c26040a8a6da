"""bloomery playground: its server on the network.

What the API answers is tested without the network (tests/playground). These tests are about requests that are refused,
and show that the server survives them.
"""

import concurrent.futures
import gzip
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import unittest

from support import SANITIZED, CommandTest, keys

PATIENCE = 30  # seconds, for what takes a moment
HAS_PLAYGROUND = os.environ.get("BLOOMERY_HAS_PLAYGROUND") != "0"

if not HAS_PLAYGROUND:

    class LeftOut(CommandTest):
        def test_a_command_without_the_playground_says_how_to_get_it(self) -> None:
            for arguments in [], ["--no-open", "--port", "0"], ["no such file"]:
                self.refused("playground", *arguments, says="BLOOMERY_BUILD_PLAYGROUND=ON")


@unittest.skipUnless(HAS_PLAYGROUND, "built with BLOOMERY_BUILD_PLAYGROUND=OFF")
class PlaygroundTest(CommandTest):
    def playground(self, *arguments: object, port: int | None = 0, **options) -> subprocess.Popen:
        """Starts the command; it answers from now on at self.port."""
        at = [] if port is None else ["--port", port]
        process = self.start("playground", "--no-open", *at, *arguments, stdin=subprocess.DEVNULL, **options)
        line = process.stdout.readline().decode()
        found = re.fullmatch(r"http://(127\.0\.0\.1|localhost|\[::1\]):(\d+)/\n", line)
        if not found:
            process.kill()
            self.fail(f"{line!r} is no address: {process.stderr.read().decode()}")
        self.port = int(found[2])
        return process

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        s = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.addCleanup(s.close)
        return s

    def raw(self, request: bytes) -> bytes:
        """All that comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            s.sendall(request)
            return self.rest(s)

    @staticmethod
    def rest(s: socket.socket) -> bytes:
        answer = b""
        while True:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                return answer
            if not piece:
                return answer
            answer += piece

    def ask(self, method: str, path: str, body=None, headers=None) -> tuple[int, dict, bytes]:
        """Status, headers and body of the response. A body that is not bytes is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def call(self, path: str, body=None, status: int = 200, method: str = "") -> dict:
        got, _, answer = self.ask(method or ("GET" if body is None else "POST"), f"/api/1/{path}", body)
        self.assertEqual(got, status, (path, body if body is None else str(body)[:200], answer[:500]))
        return json.loads(answer) if answer else {}

    def problem(self, answer: bytes) -> dict:
        """An error in words, with a way out."""
        p = json.loads(answer)["error"]
        self.assertEqual(set(p), {"code", "what", "where", "expected", "found", "hint", "way_out"})
        self.assertTrue(p["what"] and p["way_out"], p)
        return p

    def assert_lives(self) -> None:
        self.assertEqual(self.call("about")["api"], 1)


class Refused(PlaygroundTest):
    """Requests as bytes, and the status of the one response."""

    def setUp(self) -> None:
        super().setUp()
        self.playground()

    def answered(self, request: bytes | str, *statuses: int) -> bytes:
        """The response has one of these statuses; a refusal is an error in words, and the rest of the request is not taken for another."""
        answer = self.raw(request if isinstance(request, bytes) else request.encode())
        with self.subTest(request[:300]):
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer[:500])
            self.assertIn(int(answer[9:12]), statuses, answer[:500])
            body = answer.split(b"\r\n\r\n", 1)[1]
            if statuses[0] in (403, 411, 413, 415, 417, 431) or b"/api/1/" in answer:
                self.problem(body)
        return answer

    def ask_all(self, table: list[tuple], **fixed: str) -> None:
        """Rows of method, path, body, headers and the status of the response."""
        for method, path, body, headers, status in table:
            with self.subTest(method=method, path=path, headers=headers):
                got, _, answer = self.ask(method, path, body, headers)
                self.assertEqual(got, status, answer[:300])
                if status == 403:
                    self.assertIn(self.problem(answer)["where"], fixed["where"])

    def head(self, line: str = "GET /api/1/about", *more: str, host: str | None = None) -> str:
        return "\r\n".join([f"{line} HTTP/1.1", f"Host: {host or self.host}", *more, ""])

    def test_another_host_is_refused_and_an_address_is_not(self) -> None:
        port = self.port
        others = "evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"localhost:{port + 1}", "127.0.0.1", "", f"[::1:{port}", f"localhost:{port}:{port}"
        for host in others:
            to_host = {"Host": host}
            requests = ("GET", "/", None), ("GET", "/api/1/about", None), ("POST", "/api/1/plans", {"capacity": 1})
            self.ask_all([(*request, to_host, 403) for request in requests], where="Host")
        self.ask_all([("GET", "/api/1/about", None, {"Host": f"{host}:{port}"}, 200) for host in ("localhost", "LOCALHOST", "127.0.0.1", "[::1]")])

    def test_another_origin_is_refused(self) -> None:
        port, capacity = self.port, {"capacity": 1}
        for origin in "http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", f"http://127.0.0.1:{port}.evil.example", "file://":
            self.ask_all([("POST", "/api/1/plans", capacity, {"Origin": origin}, 403), ("DELETE", "/api/1/jobs/x", None, {"Origin": origin}, 403)], where="Origin")
        for site in "cross-site", "same-site":
            foreign = {"Sec-Fetch-Site": site}
            link = foreign | {"Sec-Fetch-Mode": "navigate"}
            self.ask_all([
                ("GET", "/api/1/about", None, foreign, 403),
                ("GET", "/api/1/about", None, link, 403),
                ("POST", "/", b"x", link, 403),
                ("GET", "/", None, foreign | {"Sec-Fetch-Mode": "no-cors"}, 403),
                ("GET", "/", None, link, 200),  # a link may lead to the page
            ], where="Sec-Fetch-Site Origin")  # fmt: skip
        self.ask_all([("POST", "/api/1/plans", capacity, {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin"}, 200)])

    def test_a_refused_body_is_not_taken_for_the_next_request(self) -> None:
        hidden = self.head("POST /api/1/plans", "Content-Length: 14") + '\r\n{"capacity":3}'
        hidden *= 300  # so that some of it comes after the bytes that are read together with the head
        post = "POST /api/1/plans"
        for head in (
            self.head(post, "Origin: http://evil.example"),
            self.head(post, host="evil.example"),
            self.head("POST /nowhere"),
            self.head(),
            self.head("DELETE /api/1/jobs/x"),
            self.head(post, "Transfer-Encoding: chunked"),
            self.head("GET /api/1/about", "Transfer-Encoding: chunked"),
            self.head(f"POST /{'a' * 9000}"),
            self.head(f"POST /{'a' * 7000}"),
            self.head("POST /a%0ab"),
            self.head(post, "Range: bytes=0-"),
            self.head(post, "Range: none"),
            self.head(post, f"X: {'x' * 9000}"),
            self.head("BREW /api/1/plans"),
        ):
            answer = self.raw(f"{head}Content-Length: {len(hidden)}\r\n\r\n{hidden}".encode())
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (head, answer))
            self.assertNotIn(b" 200 ", answer, head)

    def test_bodies_that_are_too_long_or_wrapped_are_refused_in_words(self) -> None:
        for body, headers, status, word in (
            (b" " * (17 << 20), {}, 413, "body"),
            (gzip.compress(b"{}"), {"Content-Encoding": "gzip"}, 415, "invalid_argument"),
            (b"--x--", {"Content-Type": "multipart/form-data; boundary=x"}, 415, ""),
        ):
            got, _, answer = self.ask("POST", "/api/1/plans", body, headers)
            self.assertEqual(got, status)
            self.assertIn(word, ["", *map(str, self.problem(answer).values())])
        post = "POST /api/1/plans"
        self.answered(self.head(post, "Transfer-Encoding: chunked", "", "2", "{}", "0", "", ""), 411)
        self.answered(self.head(post) + "\r\n", 411)
        for length in "abc", "15x", "-1", "+15", "", "0x10", "15, 15", "15\r\nContent-Length: 16":
            self.problem(self.answered(self.head(post, f"Content-Length: {length}", "") + '{"capacity":10}', 400, 411).split(b"\r\n\r\n", 1)[1])
        for length in "99999999999999999999999", str(1 << 40):
            self.answered(self.head(post, f"Content-Length: {length}", ""), 413)
        self.assert_lives()

    def test_no_path_leads_out_of_the_page(self) -> None:
        for path in "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/index.html%00.js", "/assets/../../server.cpp", "/index.html/", "/%", "/" + "a" * 8000:
            status, _, answer = self.ask("GET", path)
            self.assertIn(status, (400, 404, 414), path)
            self.assertNotIn(b"root:", answer)
        self.assertNotIn(b" 200 ", self.raw(b"GET /\0 HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % self.host.encode())[:20])
        for path in "nothing", "../2/about", "filters", "filters/1", "files", "jobs/../about/x", "inspections/0", "inspections/x":
            status, _, answer = self.ask("GET", f"/api/1/{path}")
            self.assertIn(status, (400, 404), path)
            self.problem(answer)
        self.assert_lives()

    def test_other_methods_are_refused(self) -> None:
        for method in "PUT", "OPTIONS", "PATCH", "TRACE", "CONNECT", "PRI", "BREW":
            for path in "/", "/api/1/about", "/api/1/plans":
                self.assertIn(self.ask(method, path)[0], (400, 405), (method, path))
        self.assertIn(self.ask("DELETE", "/")[0], (404, 405))
        self.assertEqual(self.ask("DELETE", "/api/1/about")[0], 404)
        status, headers, body = self.ask("HEAD", "/api/1/about")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["content-length"]), 100)

    def test_heads_that_are_endless_malformed_or_contradict_themselves_are_refused(self) -> None:
        line, host = self.head(), f"Host: {self.host}"
        many = "".join(f"X-{i}: {'x' * 100}\r\n" for i in range(300))
        for head in line + many + "\r\n", line + many, f"GET / HTTP/1.1\r\nX: {'x' * 9000}\r\n\r\n":
            self.problem(self.answered(head, 400, 431).split(b"\r\n\r\n", 1)[1])
        for strange in b"\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\xff\xfe" * 2000 + b"\r\n\r\n", b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n":
            self.assertNotIn(b" 200 ", self.raw(strange)[:20])
        ranges = self.answered(line + "Connection: close\r\nRange: bytes=" + "0-," * 2700 + "0-\r\n\r\n", 416)
        self.assertLess(len(ranges), 5000)
        about = "GET /api/1/about HTTP/1.1\r\n"
        for lines, status in (
            (f"{host}\r\nHost: evil.example", 400),
            (f"Host: evil.example\r\n{host}", 400),
            (f"{host}\r\n{host}", 400),
            (f"{host}\r\nOrigin: http://{self.host}\r\nOrigin: http://evil.example", 403),
            (f"{host}\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site", 403),
            (f"{host}\r\nX: 1\r\n Y: 2", 400),
            (f"{host}\r\nContent-Length : 0", 400),
            (f"{host}\r\nX: \0", 400),
        ):
            self.problem(self.answered(f"{about}{lines}\r\n\r\n", status).split(b"\r\n\r\n", 1)[1])
        self.assert_lives()

    def test_a_client_that_asks_first_is_told_to_continue(self) -> None:
        head = self.head("POST /api/1/plans", "Connection: close", "Content-Length: 15", "")[:-2]
        s = self.connect()
        s.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        self.assertEqual(s.recv(1000), b"HTTP/1.1 100 Continue\r\n\r\n")
        s.sendall(b'{"capacity":10}')
        self.assertRegex(self.rest(s), rb"\AHTTP/1.1 200 ")
        # A body that will not be read is refused before the client sends it.
        self.answered(f"{head}Origin: http://evil.example\r\nExpect: 100-continue\r\n\r\n", 403)
        self.answered(f"{head}Expect: coffee\r\n\r\n", 417)

    def test_every_response_has_the_headers_that_keep_other_pages_out(self) -> None:
        for path in "/", "/api/1/about", "/nowhere":
            _, headers, _ = self.ask("GET", path)
            for name, value in {"x-content-type-options": "nosniff", "x-frame-options": "DENY", "referrer-policy": "no-referrer"}.items():
                self.assertEqual(headers[name], value)
            for rule in "default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "base-uri 'none'":
                self.assertIn(rule, headers["content-security-policy"])
            self.assertNotIn("access-control-allow-origin", headers)

    def test_the_page_is_compressed_only_for_clients_that_accept_it(self) -> None:
        _, headers, plain = self.ask("GET", "/")
        self.assertNotIn("content-encoding", headers)
        if not headers["content-type"].startswith("text/html"):
            self.assertIn(b"built without its page", plain)
            self.skipTest("built without the web page")
        self.assertNotEqual(self.ask("GET", "/", headers={"Accept-Encoding": "gzip;q=0"})[1].get("content-encoding"), "gzip")
        _, headers, packed = self.ask("GET", "/", headers={"Accept-Encoding": "br, gzip"})
        self.assertEqual((headers["content-encoding"], gzip.decompress(packed)), ("gzip", plain))


class Crowds(PlaygroundTest):
    def setUp(self) -> None:
        super().setUp()
        self.process = self.playground()

    def test_two_thousand_connections_at_once_are_all_answered(self) -> None:
        count = 2000
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with open("/proc/sys/net/core/somaxconn") as file:
            if most < count + 100 or int(file.read()) < count:
                count = 250  # the system allows no more
        if least < count + 100:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, most))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (least, most))
        request = f"GET /api/1/about HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode()
        for _ in range(2):
            # None has sent its request when the last one connects.
            connections = [self.connect() for _ in range(count)]
            for s in connections:
                s.sendall(request)
            for s in connections:
                self.assertEqual(s.recv(65536)[:13], b"HTTP/1.1 200 ")
                s.close()
        self.assert_lives()

    def test_the_memory_of_large_bodies_is_given_back(self) -> None:
        def resident() -> int:
            with open(f"/proc/{self.process.pid}/statm") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        body = json.dumps({"keys": ["%0120d" % i for i in range(90_000)]}).encode()
        body += b" " * ((16 << 20) - len(body))
        before = resident()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for status, _, answer in pool.map(lambda _: self.ask("POST", "/api/1/plans", body), range(20)):
                self.assertEqual((status, self.problem(answer)["where"]), (400, "keys"))
        # Less than four of the twenty bodies, without what was made of them.
        if not SANITIZED:
            self.assertLess(resident() - before, 64 << 20)

    def test_who_says_nothing_or_half_a_word_keeps_no_one_waiting(self) -> None:
        silent = [self.connect() for _ in range(150)]
        for i, s in enumerate(silent):
            if i % 3 != 0:
                s.sendall(b"POST /api/1/plans HTTP/1.1\r\nHo")
            if i % 3 == 2:
                s.sendall(f"st: {self.host}\r\nContent-Length: 1000\r\n\r\n{{".encode())

        self.assert_lives()

        # Each of them may take ten seconds: were they waited for, the last would be closed by now.
        silent[-1].setblocking(False)
        with self.assertRaises(BlockingIOError):
            silent[-1].recv(1)

    def test_downloads_may_be_left_half_way(self) -> None:
        script = re.search(rb'src="\./(assets/[^"]+\.js)"', self.ask("GET", "/")[2])
        if not script:
            self.skipTest("built without the web page")
        for _ in range(3):
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that the server has not sent all
                s.settimeout(PATIENCE)
                s.connect(("127.0.0.1", self.port))
                s.sendall(f"GET /{script[1].decode()} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
                self.assertRegex(s.recv(100), rb"\AHTTP/1.1 200 ")
        self.assert_lives()

    def test_a_body_that_stops_half_way_is_no_request(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            s.sendall(f"POST /api/1/plans HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: 1000000\r\n\r\n{{".encode())
            s.shutdown(socket.SHUT_WR)
            answer = self.rest(s)
        self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer)
        self.assert_lives()

    def test_an_old_client_has_one_response_per_connection(self) -> None:
        old = f"GET /api/1/about HTTP/1.0\r\nHost: {self.host}\r\n"
        self.assertEqual(self.raw(f"{old}\r\n{old}\r\n".encode()).count(b"HTTP/1.1 200 "), 1)

    def test_requests_may_follow_each_other_on_one_connection(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.connect()
        first = connection.sock
        for i in range(20):
            connection.request("POST", "/api/1/plans", b'{"capacity":10}')
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            self.assertTrue(json.loads(answer.read()))
            self.assertIs(connection.sock, first, i)
        # A refusal ends the connection, and says so.
        connection.request("POST", "/api/1/plans", b'{"capacity":10}', {"Origin": "http://evil.example"})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.getheader("Connection"), answer.getheader("Keep-Alive")), (403, "close", None))


class Silence(PlaygroundTest):
    def test_a_server_that_says_nothing_keeps_no_one_else_waiting(self) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(1000)
            process = self.playground(f"redis://127.0.0.1:{silent.getsockname()[1]}/a")
            body = b'{"keys": ["Madrid"]}'
            for _ in range(110):
                self.connect().sendall(f"POST /api/1/inspections/0/ask HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

            # Each of them asks a server of which three seconds are waited for.
            self.assert_lives()
            status, _, answer = self.ask("POST", "/api/1/inspections/0/ask", body)
            self.assertEqual((status, self.problem(answer)["code"]), (503, "unavailable"))

            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE)


class Files(PlaygroundTest):
    def seen(self, number: int, *states: str) -> dict:
        seen = self.call(f"inspections/{number}")
        while seen["state"] not in states:
            seen = self.call(f"inspections/{number}?after={seen['version']}")
        return seen

    def test_files_that_cannot_be_read_are_entries_with_errors_until_they_are_restored(self) -> None:
        self.make_filter("good.bloom", keys(10), "-n", 10)
        self.write("no.bloom", b"this is no filter" * 1000)
        self.write("cut.bloom", self.read("good.bloom")[:5000])
        problems = {"no.bloom": "not_a_filter", "cut.bloom": "damaged", "missing.bloom": "not_found", self.folder: "not_a_filter"}
        process = self.playground(*problems, "good.bloom")

        for number, code in enumerate(problems.values()):
            self.assertEqual(self.seen(number, "failed", "ready")["error"]["code"], code)
        self.assertEqual(self.seen(len(problems), "failed", "ready")["keys"], 10)
        os.rename(self.path("good.bloom"), self.path("missing.bloom"))
        self.assertEqual(self.seen(2, "ready")["keys"], 10)
        self.seen(len(problems), "failed")

        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE)[1].decode()
        for name in problems:
            self.assertRegex(said, f"(?m)^bloomery: warning: .*{re.escape(str(name))}", said)
        self.assertEqual(said.count("warning: "), len(problems), said)

        # Also if it is the only one.
        self.playground("no.bloom")
        self.assertEqual(self.seen(0, "failed", "ready")["error"]["code"], "not_a_filter")
        self.refused("playground", "--no-open", "redis://", says="name is missing")

    def test_the_verdict_is_that_of_the_command(self) -> None:
        self.make_filter("pharo.bloom", keys(200_000), "-n", 200_000, "-p", 0.02, "--scheme", "pharo", status=3)
        self.playground("pharo.bloom")

        seen = self.seen(0, "failed", "ready")

        self.assertGreater(seen["measured"]["low"], 0.2)
        self.assertEqual((seen["verdict"]["level"], seen["verdict"]["code"]), ("bad", "broken"))
        self.assertEqual(self.bloomery("info", "--json", "pharo.bloom").json["fpr_verdict"], "broken")

    def test_a_filter_with_a_secret_is_looked_into_without_it(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("secret.bloom", keys(100), "-n", 1000, "--secret", "key")
        self.playground("secret.bloom")

        seen = self.seen(0, "failed", "ready")

        self.assertEqual((seen["state"], seen["keys"], seen["measured"]), ("ready", 100, None))
        self.assertEqual(self.problem(self.ask("POST", "/api/1/inspections/0/ask", {"keys": ["x"]})[2])["code"], "incompatible")


class Lifetime(PlaygroundTest):
    def test_addresses_that_cannot_be_had(self) -> None:
        self.playground()
        self.refuse_all({
            f"playground --no-open --port {self.port}": f"127.0.0.1:{self.port}.*--port",
            "playground --no-open --host no.such.host.invalid": "--host",
            "playground --no-open --host ''": "--host",
            "playground --no-open --port 65536": "port",
        })  # fmt: skip

    def test_a_given_port_is_taken(self) -> None:
        # Bound, so that no other process gets the port, but not listening.
        with socket.socket() as kept:
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind(("127.0.0.1", 0))
            port = kept.getsockname()[1]
            self.playground(port=port)
            self.assertEqual(self.port, port)
            self.assert_lives()

    def test_the_usual_port_is_taken_if_it_is_free_and_otherwise_another_one(self) -> None:
        usual = 25666
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                other.bind(("127.0.0.1", usual))
                other.listen()
            except OSError:
                pass  # another program listens there, which is as good
            process = self.playground(port=None)
            self.assertNotEqual(self.port, usual)
            self.assert_lives()
            process.send_signal(signal.SIGTERM)
            self.assertIn(b"port 25666 is in use", process.communicate(timeout=PATIENCE)[1])
            self.refused("playground", "--no-open", "--port", usual, says="in use|uses this port")
        with socket.socket() as kept:  # bound, so that no other process gets the port, but not listening
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                kept.bind(("127.0.0.1", usual))
            except OSError:
                self.skipTest(f"port {usual} is in use")
            self.playground(port=None)
            self.assertEqual(self.port, usual)
            self.assert_lives()

    def test_others_come_by_address_not_by_a_foreign_name_and_never_with_a_secret(self) -> None:
        process = self.playground("--host", "0.0.0.0")
        for host, status in ("10.1.2.3", 200), ("127.0.0.1", 200), ("evil.example", 403):
            self.assertEqual(self.ask("GET", "/api/1/about", headers={"Host": f"{host}:{self.port}"})[0], status)
        process.send_signal(signal.SIGTERM)
        self.assertIn(b"everyone who can reach this machine can open the page", process.communicate(timeout=PATIENCE)[1])
        self.bloomery("keygen", "-o", "key")
        self.refused("playground", "--no-open", "--host", "0.0.0.0", "--secret", "key", says="secret.*--host|--host.*secret")

    def test_signals_end_it_with_their_status_and_nothing_is_left(self) -> None:
        self.make_filter("a.bloom", keys(10), "-n", 10)
        scratch = self.path("tmp")
        os.mkdir(scratch)
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
            with self.subTest(number):
                process = self.playground("a.bloom", env=dict(os.environ, TMPDIR=scratch))
                self.call("jobs", {"kind": "benchmark", "sizes": [300_000] * 6}, 202)
                # One that waits for news, and one that says nothing.
                news, silent = self.connect(), self.connect()
                version = self.call("inspections/0")["version"]
                news.sendall(f"GET /api/1/inspections/0?after={version + 1000} HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())

                process.send_signal(number)
                out, _ = process.communicate(timeout=PATIENCE)

                # As a shell has it: by the signal itself, or 128 and its number.
                self.assertIn(process.returncode, (-number, 128 + number))
                self.assertEqual(out, b"")
                self.assertEqual(sorted(os.listdir(self.folder)), ["a.bloom", "tmp"])
                self.assertEqual(os.listdir(scratch), [])
                with self.assertRaises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
                news.close()
                silent.close()


if __name__ == "__main__":
    unittest.main()
