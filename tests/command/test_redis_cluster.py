"""Shared filters in a cluster of three masters, and with TLS: the same commands by other addresses."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from redis_server import ClusterTest, RedisServer, documented_rights, environment_of, wait_until
from support import LONG, CommandTest, keys, text


class Cluster(ClusterTest):
    def test_a_filter_lies_on_all_nodes_and_is_one(self) -> None:
        lines = keys(20_000)
        self.bloomery("build", "-q", "-n", 40_000, "--shards", 32, "-o", self.address("f"), stdin=text(lines))
        self.bloomery("add", "-q", self.address("f", of=2), stdin=text(keys(100, "more")))

        self.assert_has_all(self.address("f", of=1), lines + keys(100, "more"))
        self.assertEqual(sum(len(node.keys()) for node in self.nodes), 66)
        self.assertTrue(all(node.keys() for node in self.nodes))
        self.assertLess(self.count(self.address("f"), keys(20_000, "stranger")), 60)
        self.bloomery("pull", "-q", self.address("f"), "-o", "pulled")
        known = self.info("pulled")
        self.make_filter("here", lines + keys(100, "more"), "-m", known["bits"], "-k", known["probes"], "-n", 40_000, "--layout", known["layout"])
        self.assertEqual(self.bits_of("pulled"), self.bits_of("here"))
        self.bloomery("union", "-q", "-o", self.address("g"), self.address("f"), "here")
        self.assert_has_all(self.address("g"), lines)
        out = self.bloomery("dedup", "-q", "--state", self.address("d"), "--grow", "-n", 1000, "-p", "1e-6", stdin=text(keys(5000) * 2)).lines
        self.assertEqual(out, keys(5000))

    def test_the_doctor_sees_all_nodes(self) -> None:
        self.bloomery("build", "-q", "-n", 40_000, "--shards", 32, "-o", self.address("f"), stdin=b"a\n")
        self.nodes[1].client("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        self.addCleanup(self.nodes[1].client, "CONFIG", "SET", "maxmemory-policy", "noeviction")

        found = self.bloomery("redis", "doctor", "--json", self.address("f"), status=1).json

        self.assertEqual(len(found["nodes"]), 3)
        by_check: dict[str, list] = {}
        for finding in found["findings"]:
            by_check.setdefault(finding["check"], []).append(finding)
        self.assertEqual([len(one["nodes"]) for one in by_check["cluster"]], [3])
        self.assertEqual(by_check["cluster"][0]["status"], "OK")
        self.assertEqual(sorted((one["status"], len(one["nodes"])) for one in by_check["eviction"]), [("OK", 2), ("RISK", 1)])
        self.assertIn("32 shards", by_check["filter"][0]["text"])

    def test_the_doctor_goes_on_without_a_node_and_within_its_time(self) -> None:
        self.bloomery("build", "-q", "-n", 40_000, "--shards", 32, "-o", self.address("f"), stdin=b"a\n")
        os.kill(self.nodes[2].process.pid, signal.SIGSTOP)
        self.addCleanup(self.wait_until_well)
        self.addCleanup(os.kill, self.nodes[2].process.pid, signal.SIGCONT)

        result = self.bloomery("redis", "doctor", "--json", "--timeout", "4s", self.address("f"), status=1).json
        silent = f"127.0.0.1:{self.nodes[2].port}"
        by_node = {name: {finding["check"]: finding for finding in result["findings"] if name in finding["nodes"]} for name in result["nodes"]}
        self.assertEqual(len(by_node), 3)
        for name, found in by_node.items():
            for check in ("server", "permissions", "persistence", "eviction", "memory", "replicas"):
                self.assertEqual(found[check]["text"].startswith("not checked: "), name == silent, found[check])
        self.assertRegex(by_node[silent]["server"]["text"], "no answer within")
        [filter] = [finding for finding in result["findings"] if finding["check"] == "filter"]
        self.assertRegex(filter["text"], r"\Anot checked: .*(no answer within|does not serve all)")

    def test_the_doctor_goes_on_when_slots_are_not_served(self) -> None:
        self.nodes[0].client("CLUSTER", "DELSLOTS", 0)
        self.addCleanup(self.wait_until_well)
        self.addCleanup(self.nodes[0].client, "CLUSTER", "ADDSLOTS", 0)
        wait_until(lambda: b"cluster_state:fail" in self.nodes[0].client("CLUSTER", "INFO"))

        result = self.bloomery("redis", "doctor", "--json", self.address("f"), status=1).json
        found = [finding for finding in result["findings"] if finding["check"] in ("cluster", "filter")]
        self.assertIn(("BAD", "the cluster state is fail"), [(one["status"], one["text"]) for one in found])
        self.assertIn(("UNKNOWN", "not checked: the cluster does not serve all slots"), [(one["status"], one["text"]) for one in found])
        self.assertIn("OK", [one["status"] for one in result["findings"] if one["check"] == "permissions"])

    def test_the_documented_rights_are_enough(self) -> None:
        rights = documented_rights("f")
        env = environment_of("user", "pw")

        def allow(*rules: str) -> None:
            for node in self.nodes:
                node.client("ACL", "SETUSER", "user", "reset", "on", ">pw", *rules)

        def permissions() -> dict[str, dict]:
            found = self.bloomery("redis", "doctor", "--json", self.address("f"), status=1, env=env).json
            return {finding["status"]: finding for finding in found["findings"] if finding["check"] == "permissions"}

        rules = rights["a filter"] + rights["in a cluster"]
        allow(*rules)
        for making in (["-n", 20_000, "--shards", 16], ["--grow", "-n", 1000, "--shards", 16]):
            for node in self.nodes:
                node.client("FLUSHALL")
            self.bloomery("build", "-q", *making, "-o", self.address("f"), stdin=text(keys(10_000)), env=env)
            self.assertEqual(self.bloomery("check", "-c", self.address("f"), stdin=text(keys(10_000)), env=env).out, b"10000\n")
            self.bloomery("info", self.address("f"), env=env)
        self.assertEqual(list(permissions()), ["UNKNOWN"])
        allow(*rules, "+info", "+acl|dryrun", "+acl|whoami")
        self.assertEqual(list(permissions()), ["OK"])
        self.nodes[1].client("ACL", "SETUSER", "user", "-asking", "-setrange")
        found = permissions()
        self.assertEqual((len(found["OK"]["nodes"]), len(found["BAD"]["nodes"])), (2, 1))
        self.assertIn("has no permission for SETRANGE, ASKING on", found["BAD"]["text"])

    def test_the_other_kind_of_address_is_told(self) -> None:
        single = self.address("f").replace("redis+cluster", "redis")
        found = self.bloomery("redis", "doctor", "--json", single, status=1).json["findings"]

        wrong = [finding for finding in found if finding["check"] == "address"]
        self.assertEqual([finding["status"] for finding in wrong], ["BAD"])
        self.assertIn("redis+cluster://", wrong[0]["mend"])

    def test_a_chain_says_so_too(self) -> None:
        single = self.address("f").replace("redis+cluster", "redis")
        chain = ["--scheme", "guava-chain"]
        for words in (["build", *chain, "-n", 300, "-o"], ["add", *chain], ["check", *chain], ["info", *chain]):
            said = self.refused(*words, single, says=r"part of a cluster.*redis\+cluster://").err
            self.assertNotIn("-p", said)
        self.assertEqual([key for node in self.nodes for key in node.keys()], [])


class Tls(CommandTest):
    def start_with_tls(self) -> tuple[RedisServer, int, dict[str, str]]:
        """A server without and with TLS, its port with TLS, and certificates."""
        made = self.make_certificates()
        server = RedisServer(tcp=True)
        self.addCleanup(server.end)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        try:
            for name, value in (("tls-cert-file", made["cert"]), ("tls-key-file", made["key"]), ("tls-ca-cert-file", made["ca"])):
                server.client("CONFIG", "SET", name, value)
            server.client("CONFIG", "SET", "tls-port", port)
        except Exception as error:
            self.skipTest(f"NO TLS: this server has none: {error}")
        return server, port, made

    def test_the_wrong_side_of_tls_is_told(self) -> None:
        server, port, made = self.start_with_tls()
        for scheme in "redis", "redis+cluster":
            plain, tls = scheme.replace("+", r"\+"), scheme.replace("redis", "rediss", 1).replace("+", r"\+")
            self.refused(
                *("check", "--timeout", "1h", f"{scheme}://127.0.0.1:{port}/f"),
                stdin=b"a\n",
                says=rf"127.0.0.1:{port}: (the server expects TLS at this port; write {tls}://|the server closes each connection without a reply: found [^;]*; if the server expects TLS at this port, write {tls}:// instead of {plain}://, or check the host and the port)",
            )
            for _ in range(6 if LONG else 1):  # what the server makes of a handshake depends on its random bytes
                self.refused(
                    *("check", "--tls-ca", made["ca"], f"{scheme.replace('redis', 'rediss', 1)}://127.0.0.1:{server.port}/f"),
                    stdin=b"a\n",
                    says=rf"127.0.0.1:{server.port}: (the server does not use TLS at this port; write {plain}:// instead of {tls}://[^\n]*; nothing was done|no answer to the TLS handshake within \d+ ms; if the server does not use TLS at this port, write {plain}:// instead of {tls}://, or [^\n]*; nothing was done)",
                )

    def test_with_certificates_it_is_the_same(self) -> None:
        server, port, made = self.start_with_tls()
        address = f"rediss://127.0.0.1:{port}/f"
        options = ["--tls-ca", made["ca"], "--tls-cert", made["cert"], "--tls-key", made["key"]]

        self.bloomery("build", "-q", *options, "-n", 1000, "-o", address, stdin=text(keys(500)))

        self.assert_has_all(address, keys(500), *options)
        self.assert_has_all(server.address("f"), keys(500))
        self.refused("check", *options[2:], address, stdin=b"a\n", says="its certificate is not trusted")
        self.refused("check", "--tls-ca", "missing", address, stdin=b"a\n", says="missing: cannot read the certificates to trust")

    def make_certificates(self) -> dict[str, str]:
        if shutil.which("openssl") is None:
            self.skipTest("NO OPENSSL: install openssl")
        folder = tempfile.mkdtemp(prefix="bloomery-tls-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        names = {name: os.path.join(folder, name) for name in ("ca", "ca.key", "cert", "key", "request", "extensions")}
        with open(names["extensions"], "w") as file:
            file.write("subjectAltName=IP:127.0.0.1")

        def openssl(*words: str) -> None:
            subprocess.run(["openssl", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority", "-keyout", names["ca.key"], "-out", names["ca"])
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-keyout", names["key"], "-out", names["request"])
        openssl("x509", "-req", "-days", "2", "-in", names["request"], "-CA", names["ca"], "-CAkey", names["ca.key"], "-CAcreateserial", "-extfile", names["extensions"], "-out", names["cert"])
        return names


if __name__ == "__main__":
    unittest.main()
