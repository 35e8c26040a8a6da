"""The files that the playground's page exchanges with the command: the same filters, byte for byte."""

import base64
import json
import os
import shlex
import subprocess
import unittest

from support import CommandTest, keys

PATIENCE = 30  # seconds, for what takes a moment
DEMO = os.environ.get("BLOOMERY_PLAYGROUND_ANSWERS")  # tests/playground/answers_main.cpp


@unittest.skipUnless(DEMO, "BLOOMERY_PLAYGROUND_ANSWERS does not name the program with the page's own API")
class Demo(CommandTest):
    """The API that runs in the page, here as a program: the command gets and makes the same filters."""

    def setUp(self) -> None:
        super().setUp()
        self.program = subprocess.Popen([DEMO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tearDown(self) -> None:
        self.program.communicate(timeout=PATIENCE)
        self.assertEqual(self.program.returncode, 0)
        super().tearDown()

    def answer(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        request = {"method": method, "path": f"/api/1/{path}", "base64": base64.b64encode(body).decode()}
        self.program.stdin.write(json.dumps(request).encode() + b"\n")
        self.program.stdin.flush()
        answer = json.loads(self.program.stdout.readline())
        return answer["status"], base64.b64decode(answer["base64"])

    def demo(self, path: str, body=None, status: int = 200) -> dict:
        got, answer = self.answer("GET" if body is None else "POST", path, b"" if body is None else json.dumps(body).encode())
        self.assertEqual(got, status, (path, answer[:500]))
        return json.loads(answer)

    def test_a_file_goes_out_and_comes_back(self) -> None:
        lines = keys(1000)
        filter = self.demo("filters", {"capacity": 1000, "rate": 0.01}, 201)["id"]
        self.demo(f"filters/{filter}/add", {"keys": [line.decode() for line in lines]})

        self.write("out.bloom", self.answer("GET", f"filters/{filter}/file")[1])
        self.make_filter("built.bloom", lines, "-n", 1000, "-p", 0.01)

        # Byte for byte what the command builds.
        self.assertEqual(self.bits_of("out.bloom"), self.bits_of("built.bloom"))
        self.assert_has_all("out.bloom", lines)
        status, answer = self.answer("POST", "files", self.read("built.bloom"))
        came = json.loads(answer)
        self.assertEqual((status, came["truth"], came["facts"]["keys"]), (201, False, None))
        asked = self.demo(f"filters/{came['id']}/ask", {"keys": [line.decode() for line in lines]})
        self.assertEqual((asked["maybe"], asked["false_positives"]), (1000, None))

    def test_what_is_no_filter_is_refused(self) -> None:
        self.make_filter("cut.bloom", keys(10), "-n", 10)
        for content in b"this is no filter" * 1000, b"", self.read("cut.bloom")[:5000]:
            status, answer = self.answer("POST", "files", content)
            self.assertEqual((status, json.loads(answer)["error"]["where"]), (422, "body"))

    def test_the_command_of_a_plan_builds_its_filter(self) -> None:
        lines = [b"key-%d" % i for i in range(30)]
        self.write("keys.txt", b"".join(line + b"\n" for line in lines))
        sizes = {"capacity": 30, "rate": 0.05}, {"capacity": 30, "bits": 300, "probes": 3, "layout": "classic"}, {"bits": 4096, "rate": 0.01}
        shapes = [
            *({"layout": layout} for layout in ("classic", "blocked", "blocked_page", "split_block", "split_block512", "counting")),
            *({"scheme": scheme} for scheme in ("guava", "guava32", "spark", "spark2", "dcso", "bits_and_blooms", "pharo", "python", "perl", "redisbloom", "datasketches", "bloom_filters", "bloomfilter_js", "leveldb", "rocksdb", "rocksdb_4", "valkey_bloom")),
            {},
            {"layout": "classic", "hash": "murmur3", "seed": "7"},
        ]
        for wanted in [*(sizes[0] | shape for shape in shapes), *sizes[1:], {"scheme": "pharo", "capacity": 30, "bits": 99}]:
            with self.subTest(wanted):
                filter = self.demo("filters", wanted, 201)["id"]
                self.demo(f"filters/{filter}/add", {"keys": [line.decode() for line in lines]})
                self.write("page.bloom", self.answer("GET", f"filters/{filter}/file")[1])
                words = shlex.split(self.demo("plans", wanted)["command"])
                self.assertEqual(words[:4], ["bloomery", "build", "-o", "filter.bloom"])
                self.bloomery(*words[1:], status=None)  # a scheme may miss its target
                self.assertEqual(self.bits_of("filter.bloom"), self.bits_of("page.bloom"))
                os.remove(self.path("filter.bloom"))
        # Filters that have no file, or one with a clock, by their parameters.
        for wanted, grows in ({"rate": 0.05, "window_keys": 40}, False), ({"capacity": 40, "window_milliseconds": 8570}, False), ({"capacity": 40, "grows": True}, True):
            with self.subTest(wanted):
                plan = self.demo("plans", wanted)
                self.bloomery(*shlex.split(plan["command"])[1:])
                facts = self.bloomery("info", "--json", "filter.bloom").json
                self.assertEqual((facts["target_rate"], facts["capacity"]), (plan["filter"]["rate"], plan["filter"]["capacity"]))
                if not grows:
                    self.assertEqual((facts["layout"], facts["bits"], facts["probes"]), (plan["filter"]["layout"], plan["filter"]["bits"], plan["filter"]["probes"]))
                self.assertEqual(os.path.exists(self.path("filter.bloom.log")), grows)


if __name__ == "__main__":
    unittest.main()
