"""bloomery redis doctor: what a server's settings mean for a filter. Each risk is made on a real server, and mended."""

import os
import time
import unittest

from redis_server import RedisServer, RedisTest
from support import CommandTest, keys, text

CHECKS = ["server", "permissions", "persistence", "eviction", "memory", "replicas", "latency", "filter"]


class Doctor(RedisTest):
    def findings(self, status: int | None = None, address: str = "", **options) -> dict[str, dict]:
        result = self.bloomery("redis", "doctor", "--json", address or self.f, status=status, **options).json
        return {finding["check"]: finding for finding in result["findings"]}

    def set(self, **settings: str) -> None:
        for name, value in settings.items():
            before = self.redis("CONFIG", "GET", name.replace("_", "-"))[1]
            self.redis("CONFIG", "SET", name.replace("_", "-"), value)
            self.addCleanup(self.redis, "CONFIG", "SET", name.replace("_", "-"), before)

    def test_each_check_says_one_thing(self) -> None:
        found = self.bloomery("redis", "doctor", "--json", self.f, status=1).json
        page = self.bloomery("redis", "doctor", self.f, status=1).out.decode()

        self.assertEqual(list(found), ["filter", "status", "nodes", "findings"])
        self.assertEqual((found["filter"], found["status"], len(found["nodes"])), (self.f, "RISK", 1))
        self.assertEqual([finding["check"] for finding in found["findings"]], CHECKS)
        for finding in found["findings"]:
            self.assertEqual(list(finding), ["check", "status", "text", "mend", "nodes"])
            self.assertEqual(finding["mend"] is None, finding["status"] == "OK", finding)
            self.assertRegex(page, rf"(?m)^{finding['status']} +{finding['check']} +\S")
        self.assertEqual(page.count("mend: "), sum(finding["mend"] is not None for finding in found["findings"]))
        self.assertIn("version", self.redis("INFO", "server").decode())
        version = dict(line.split(":", 1) for line in self.redis("INFO", "server").decode().splitlines() if ":" in line)
        self.assertIn(version.get("valkey_version", version["redis_version"]), found["findings"][0]["text"])

    def test_it_changes_nothing(self) -> None:
        self.redis("CONFIG", "RESETSTAT")
        changes = int(self.redis("INFO", "persistence").decode().split("rdb_changes_since_last_save:")[1].split()[0])

        self.findings()

        self.assertEqual(self.server.keys(), [])
        self.assertEqual(int(self.redis("INFO", "persistence").decode().split("rdb_changes_since_last_save:")[1].split()[0]), changes)

    def test_what_keeps_nothing_and_what_keeps_all(self) -> None:
        self.assertRegex(self.findings()["persistence"]["text"], "keeps nothing on disk")
        self.set(save="3600 1")
        self.assertRegex(self.findings()["persistence"]["text"], "last snapshot.*3600 1")
        self.set(appendonly="yes", appendfsync="everysec")
        everysec = self.findings()["persistence"]
        self.assertEqual(everysec["status"], "RISK")
        self.assertRegex(everysec["text"], "everysec.*last second")
        self.set(appendfsync="no")
        self.assertRegex(self.findings()["persistence"]["text"], "half a minute")
        self.set(appendfsync="always")
        self.assertEqual(self.findings()["persistence"]["status"], "OK")

    def test_eviction(self) -> None:
        for policy, most, status in (("allkeys-lru", "1gb", "BAD"), ("allkeys-random", "0", "RISK"), ("volatile-ttl", "1gb", "RISK"), ("noeviction", "1gb", "OK")):
            with self.subTest(policy=policy):
                self.set(maxmemory=most, maxmemory_policy=policy)
                found = self.findings()["eviction"]
                self.assertEqual(found["status"], status)
                self.assertIn(policy, found["text"])

    def test_memory_that_is_nearly_used_up(self) -> None:
        used = int(self.redis("INFO", "memory").decode().split("used_memory:")[1].split()[0])
        self.set(maxmemory=str(int(used * 1.05)))
        self.assertEqual(self.findings()["memory"]["status"], "RISK")

    def test_the_filter_itself(self) -> None:
        self.assertIn("none of this name", self.findings()["filter"]["text"])

        self.bloomery("build", "-q", "-n", 200_000, "-o", self.f, stdin=text(keys(1000)))
        found = self.findings()["filter"]
        self.assertEqual(found["status"], "OK")
        self.assertRegex(found["text"], r"200,000 keys at 1 %.*16 shards; .*keys in.*it takes \d+ KiB")
        says = float(found["text"].split("it takes ")[1].split()[0]) * 1024
        uses = sum(self.redis("MEMORY", "USAGE", key) for key in self.server.keys())
        self.assertAlmostEqual(says / uses, 1, delta=0.02)

        self.redis("DEL", self.server.shard(7) + b":0")
        lost = self.findings()["filter"]
        self.assertEqual(lost["status"], "BAD")
        self.assertIn("shard 7 of 16", lost["text"])

        self.redis("FLUSHALL")
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=text(keys(1000)))
        self.assertRegex(self.findings()["filter"]["mend"], "larger one")

        self.redis("FLUSHALL")
        self.redis("SET", b"{f}:m", b"not ours")
        self.assertEqual(self.findings()["filter"]["status"], "BAD")

    def test_permissions(self) -> None:
        def user(rules: str) -> dict:
            self.redis("ACL", "SETUSER", "lim", "reset", "on", ">pw", *rules.split())
            return self.findings(env=dict(os.environ, BLOOMERY_REDIS_USER="lim", BLOOMERY_REDIS_PASSWORD="pw"))

        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=b"a\n")
        enough = "~{f* +@read +@write +@scripting +ping +time +wait"

        self.assertEqual(user("~{f* +@all")["permissions"]["status"], "OK")
        self.assertEqual(user(enough + " +info +config|get +acl|dryrun +acl|whoami")["permissions"]["status"], "OK")
        few = user(enough)
        self.assertEqual((few["server"]["status"], few["permissions"]["status"]), ("RISK", "OK"))
        none = user("~{f* +@read +ping +acl|dryrun +acl|whoami +info")
        self.assertEqual(none["permissions"]["status"], "BAD")
        self.assertRegex(none["permissions"]["text"], "SETRANGE")
        self.assertIn("GET", user("~other +@all")["permissions"]["text"])
        # What it calls enough is enough.
        user(enough)
        environment = dict(os.environ, BLOOMERY_REDIS_USER="lim", BLOOMERY_REDIS_PASSWORD="pw")
        self.bloomery("add", "-q", self.f, stdin=b"b\n", env=environment)
        self.bloomery("info", self.f, env=environment)
        self.assertEqual(self.bloomery("check", self.f, stdin=b"a\nb\nc\n", env=environment).lines, [b"a", b"b"])
        self.bloomery("build", "-q", "--grow", "-n", 100, "-o", self.server.address("f2"), stdin=text(keys(3000)), env=environment)

    def test_no_server_is_an_error(self) -> None:
        self.refused("redis", "doctor", "--timeout", "200ms", "unix:///no/such/socket?name=f", says="socket")
        self.refused("redis", "doctor", "file", says="address")


class Replicas(CommandTest):
    def test_replicas_and_those_that_take_no_keys(self) -> None:
        master = RedisServer("--repl-diskless-sync-delay", "0", tcp=True)
        self.addCleanup(master.end)
        replica = RedisServer("--replicaof", "127.0.0.1", str(master.port))
        self.addCleanup(replica.end)
        end = time.monotonic() + 30
        while time.monotonic() < end and "master_link_status:up" not in replica.client("INFO", "replication").decode():
            time.sleep(0.02)

        def of(server: RedisServer) -> dict[str, dict]:
            result = self.bloomery("redis", "doctor", "--json", server.address("f"), status=1).json
            return {finding["check"]: finding for finding in result["findings"]}

        self.assertRegex(of(master)["replicas"]["text"], "1 replica: a failover may lose keys")
        master.client("CONFIG", "SET", "min-replicas-to-write", 1)
        self.assertEqual(of(master)["replicas"]["status"], "OK")
        self.assertEqual(of(replica)["role"]["status"], "BAD")
        self.bloomery("build", "-q", "-n", 100, "--wait-replicas", 1, "-o", master.address("f"), stdin=text(keys(50)))
        self.assert_has_all(replica.address("f"), keys(50), "--replicas")


if __name__ == "__main__":
    unittest.main()
