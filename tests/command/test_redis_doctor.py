"""bloomery redis doctor: what a server's settings mean for a filter. Each risk is created on a real server, and fixed."""

import glob
import os
import re
import socket
import threading
import unittest

from redis_server import SOURCE, RedisServer, RedisTest, documented_rights, environment_of, start_with_replica
from support import CommandTest, keys, text, xxh3_64

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
        def changes() -> bytes:
            return re.search(rb"rdb_changes_since_last_save:(\d+)", self.redis("INFO", "persistence"))[1]

        before = changes()
        found = self.bloomery("redis", "doctor", "--json", self.f, status=1).json
        self.assertEqual((self.server.keys(), changes()), ([], before))
        page = self.bloomery("redis", "doctor", self.f, status=1).out.decode()

        self.assertEqual(list(found), ["filter", "status", "nodes", "findings"])
        self.assertEqual((found["filter"], found["status"], len(found["nodes"])), (self.f, "RISK", 1))
        self.assertEqual([finding["check"] for finding in found["findings"]], CHECKS)
        for finding in found["findings"]:
            self.assertEqual(list(finding), ["check", "status", "text", "mend", "nodes"])
            self.assertEqual(finding["mend"] is None, finding["status"] == "OK", finding)
            self.assertRegex(page, rf"(?m)^{finding['status']} +{finding['check']} +\S")
        self.assertEqual(page.count(" fix: "), sum(finding["mend"] is not None for finding in found["findings"]))
        version = dict(line.split(":", 1) for line in self.redis("INFO", "server").decode().splitlines() if ":" in line)
        self.assertIn(version.get("valkey_version", version["redis_version"]), found["findings"][0]["text"])

    def test_each_setting_is_judged(self) -> None:
        used = int(self.redis("INFO", "memory").decode().split("used_memory:")[1].split()[0])
        for check, settings, status, says in (
            ("persistence", {}, "RISK", "no persistence"),
            ("persistence", {"save": "3600 1"}, "RISK", "last snapshot.*3600 1"),
            ("persistence", {"appendonly": "yes", "appendfsync": "everysec"}, "RISK", "everysec.*last second"),
            ("persistence", {"appendonly": "yes", "appendfsync": "no"}, "RISK", "last 30 seconds"),
            ("persistence", {"appendonly": "yes", "appendfsync": "always"}, "OK", r"\S"),
            ("eviction", {"maxmemory": "1gb", "maxmemory_policy": "allkeys-lru"}, "BAD", "allkeys-lru"),
            ("eviction", {"maxmemory": "0", "maxmemory_policy": "allkeys-random"}, "RISK", "allkeys-random"),
            ("eviction", {"maxmemory": "1gb", "maxmemory_policy": "volatile-ttl"}, "RISK", "volatile-ttl"),
            ("eviction", {"maxmemory": "1gb", "maxmemory_policy": "noeviction"}, "OK", "noeviction"),
            ("memory", {"maxmemory": str(int(used * 1.05))}, "RISK", r"\A[\d.]+ \w+ of [\d.]+ \w+ used\Z"),
            ("memory", {"maxmemory": str(10 * used)}, "OK", r"\A[\d.]+ \w+ of "),
        ):
            with self.subTest(check=check, settings=settings):
                self.set(**settings)
                found = self.findings()[check]
                self.assertEqual(found["status"], status)
                self.assertRegex(found["text"], says)
                if (check, status) == ("memory", "RISK"):
                    self.assertIn("raise maxmemory with CONFIG SET", found["mend"])

    def test_the_filter_itself(self) -> None:
        self.assertIn("no filter with this name", self.findings()["filter"]["text"])

        self.bloomery("build", "-q", "-n", 200_000, "-o", self.f, stdin=text(keys(1000)))
        found = self.findings()["filter"]
        self.assertEqual(found["status"], "OK")
        self.assertRegex(found["text"], r"200,000 keys at 1%.*16 shards; .*keys, current FPR.*\d+ KiB of server memory")
        says = float(re.search(r"([\d.]+) KiB of server memory", found["text"])[1]) * 1024
        uses = sum(self.redis("MEMORY", "USAGE", key) for key in self.server.keys())
        self.assertAlmostEqual(says / uses, 1, delta=0.02)

        self.redis("DEL", self.server.shard(7) + b":0")
        lost = self.findings()["filter"]
        self.assertEqual(lost["status"], "BAD")
        self.assertIn("shard 7 of 16", lost["text"])

        self.redis("FLUSHALL")
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=text(keys(1000)), status=3)
        self.assertRegex(self.findings()["filter"]["mend"], "larger filter")

        self.redis("FLUSHALL")
        self.redis("SET", b"{f}:m", b"not ours")
        other = self.findings()["filter"]
        self.assertEqual(other["status"], "BAD")
        self.assertIn("the key with this name is not a filter", other["text"])

    def test_a_description_of_which_one_copy_was_evicted(self) -> None:
        self.bloomery("build", "-q", "-n", 200_000, "-o", self.f, stdin=text(keys(1000)))
        self.redis("DEL", b"{f}:m")

        self.assertRegex(self.findings()["filter"]["text"], r"200,000 keys at 1%.*\d+ KiB of server memory")
        [told] = self.bloomery("explain", "--json", self.f, "key-5").json["keys"]
        self.assertEqual((told["maybe_present"], told["shard"]), (True, xxh3_64(b"key-5")[0] * 16 >> 64))

    def test_a_chain_is_known(self) -> None:
        self.bloomery("build", "-q", "--scheme", "guava-chain", "-n", 100, "-o", self.f, stdin=b"a\n")

        found = self.findings()

        self.assertEqual((found["filter"]["status"], found["permissions"]["status"]), ("OK", "OK"))
        self.assertIn("--scheme guava-chain", found["filter"]["text"])

    def test_build_and_dedup_warn_once_of_a_server_that_evicts_any_key(self) -> None:
        commands = (["build", "-q", "-n", 100, "-o", self.f], ["dedup", "-q", "-n", 100, "--state", self.server.address("g")], ["build", "-q", "--scheme", "guava-chain", "-n", 100, "-o", self.server.address("c")])
        for policy, warns in (("allkeys-lru", 1), ("allkeys-random", 1), ("volatile-ttl", 0), ("noeviction", 0)):
            self.set(maxmemory_policy=policy)
            for words in commands:
                with self.subTest(policy=policy, words=words):
                    said = self.bloomery(*words, stdin=b"a\nb\n").err
                    self.assertEqual(said.count(f"warning: maxmemory-policy is {policy}"), warns, said)
                    self.assertEqual(said.count("\n"), warns, said)


class Permissions(RedisTest):
    """Users with and without rights; what the documentation lists is enough, and the doctor says the same."""

    ASKING = ["+info", "+config|get", "+acl|dryrun", "+acl|whoami"]

    def setUp(self) -> None:
        super().setUp()
        self.env = environment_of("user", "pw")
        self.rights = documented_rights("f")

    def allow(self, *rules: str) -> None:
        self.redis("ACL", "SETUSER", "user", "reset", "on", ">pw", *rules)

    def findings(self) -> dict[str, dict]:
        return {finding["check"]: finding for finding in self.bloomery("redis", "doctor", "--json", self.f, status=1, env=self.env).json["findings"]}

    def permissions(self, *rules: str, options: list[str] = [], address: str = "") -> dict:
        self.allow(*rules)
        result = self.bloomery("redis", "doctor", "--json", *options, address or self.f, status=None, env=self.env)
        [found] = [finding for finding in result.json["findings"] if finding["check"] == "permissions"]
        self.assertEqual(result.status, 1)  # the server keeps nothing on its disk
        return found

    def test_what_is_documented_is_enough_and_what_the_doctor_asks_for(self) -> None:
        waiting = ["--wait-replicas", "1"]
        for case, more, options in (("a filter", [], []), ("a filter", self.rights["--wait-replicas"], waiting), ("a chain", [], [])):
            with self.subTest(case=case, more=more):
                self.redis("FLUSHALL")
                if case == "a chain":
                    self.bloomery("build", "-q", "--scheme", "guava-chain", "-n", 100, "-o", self.f, stdin=b"a\n")
                rules = self.rights[case] + more
                self.assertEqual(self.permissions(*rules, *self.ASKING, options=options)["status"], "OK")
                for right in rules:
                    if right[0] == "+":
                        less = [rule for rule in rules if rule != right]
                        found = self.permissions(*less, *self.ASKING, options=options)
                        name = right[1:].replace("|", " ").upper()
                        self.assertEqual(found["status"], "BAD", right)
                        if case == "a chain" and name in ("STRLEN", "PTTL"):
                            continue  # without these it does not see that there is one
                        self.assertRegex(found["text"], rf"\Athis user has no permission for {name}(, [GS]ET on \S+)* on the filter's keys\Z")
                        self.assertEqual(sorted(found["mend"].split()[3:]), sorted(rules))

    def test_patterns_of_keys(self) -> None:
        rules = self.rights["a filter"]
        patterns = [rule for rule in rules if rule[0] == "~"]
        self.assertEqual(len(patterns), 2)
        for pattern in patterns:
            found = self.permissions(*[rule for rule in rules if rule != pattern], *self.ASKING)
            self.assertEqual(found["status"], "BAD", pattern)
            self.assertIn(" on the filter's keys", found["text"])
        odd = self.server.address("a*%5Bb")  # names are no patterns
        proposed = self.permissions("+info", *self.ASKING, address=odd)["mend"].split()[3:]
        self.assertEqual(proposed[0], r"~{a\*\[b}:*")
        self.assertEqual(self.permissions(*proposed, *self.ASKING, address=odd)["status"], "OK")

    def test_with_the_documented_rights_everything_works(self) -> None:
        f, g = self.f, self.server.address("g")
        self.allow(*self.rights["a filter"], *documented_rights("g")["a filter"], *self.rights["--wait-replicas"])
        self.write("keys", keys(3000))

        def run(*words: object, stdin: bytes = b"", status: int = 0):
            return self.bloomery(*words, stdin=stdin, status=status, env=self.env)

        self.redis("CONFIG", "RESETSTAT")
        for making in (["-n", 4000], ["--grow", "-n", 100], ["--max-keys", 9000, "-n", 100], ["--window", "1h", "-n", 30_000], ["--counting", "-n", 4000]):
            with self.subTest(making=making):
                for key in self.server.keys():
                    self.redis("DEL", key)
                run("build", *making, "--ttl", "1h", "-o", f, "keys")
                run("build", *making, "-o", f, "keys")
                run("add", "--wait-replicas", 0, f, stdin=text(keys(100, "more")))
                run("check", f, stdin=text(keys(3000)))
                run("info", f)
                run("verify", f, "--present", "keys", "--queries", 1000)
                run("explain", f, "key-1")
                run("dedup", "--state", f, stdin=text(keys(10, "line")))
                run("redis", "doctor", f, status=1)
                if making == ["-n", 4000]:
                    run("pull", f, "-o", "file")
                    run("push", "file", g)
                    run("push", "file", g)
                    run("union", "-o", g, f, "file")
                    run("union", "-o", "both", f, g)
                if "--grow" in making or "--window" in making:
                    run("pull", f, "-o", "layers")
                    run("push", "layers", g)
                    self.assertEqual(run("check", "-c", g, "keys").out, b"3000\n")
                    run("redis", "drop", "--yes", g)
                if "--counting" in making:
                    run("remove", f, stdin=text(keys(10)))
                    run("pull", f, "-o", "counters")
        self.refused_in_time("add", "--wait-replicas", 1, f, stdin=b"one\n", env=self.env, says="not on the required number of replicas")
        self.allow(*self.rights["a filter, to check"])
        self.assertEqual(run("check", f, stdin=b"key-20\n").out, b"key-20\n")

        self.redis("FLUSHALL")
        self.allow(*self.rights["a chain"])
        chain = ["--scheme", "guava-chain"]
        run("build", *chain, "-n", 300, "-p", "1%", "--ttl", "1h", "-o", f, stdin=text(keys(500)))
        run("build", *chain, "-o", f, stdin=text(keys(500)))
        run("add", *chain, f, stdin=text(keys(1000)))
        run("check", *chain, f, stdin=text(keys(1000)))
        self.assertGreater(run("info", "--json", *chain, f).json["growths"], 1)

    def test_sources_send_what_is_documented(self) -> None:
        sent = set()
        for path in glob.glob(os.path.join(SOURCE, "src", "redis", "**", "*.[ch]pp"), recursive=True):
            with open(path) as file:
                source = file.read()
            if not path.endswith("rights.hpp"):
                sent |= {found.rstrip(" ") for found in re.findall(r"""(?:redis\.p?call\('|\{"|word\("|, ")([A-Z_]{3,}(?=['"]))""", source)}
                sent |= {f"{a} {b}" for a, b in re.findall(r'\{"(SCRIPT|CLUSTER)", "([A-Z]+)"', source)}
                sent |= {"ASKING"} if r"*1\r\n$6\r\nASKING\r\n" in source else set()
        listed = {rule[1:].replace("|", " ").upper() for rules in self.rights.values() for rule in rules if rule[0] == "+"}

        # AUTH needs no right; the others are no commands but words of them, and beginnings of errors.
        others = {"AUTH", "SENTINEL", "MATCH", "COUNT", "SCRIPT", "CLUSTER", "LOAD", "SLOTS", "OVERFLOW", "SAT", "INCRBY", "PXAT", "XX", "NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "WRONGTYPE", "OOM", "MISCONF", "BLOOMERY_REDIS_USER"}
        self.assertEqual(sent - others, listed)

    def test_what_could_not_be_asked_is_not_well(self) -> None:
        rules = self.rights["a filter"]
        found = self.permissions(*rules)

        self.assertEqual(found["status"], "UNKNOWN")
        self.assertRegex(found["text"], r"\Aunknown whether this user has permission for BITOP, DEL, .*SETRANGE, UNLINK, .*the reply to ACL DRYRUN is 'NOPERM")
        self.assertIn("ACL DRYRUN", found["mend"])
        asked = found["text"].split(":")[0].split("permission for ")[1].split(", ")
        self.assertFalse({"GET", "GETRANGE", "BITFIELD"} & set(asked), "these were tried")
        page = self.bloomery("redis", "doctor", self.f, status=1, env=self.env).out.decode()
        self.assertRegex(page, r"(?m)^UNKNOWN permissions +unknown whether")
        # What was tried and refused is known.
        self.assertRegex(self.permissions(*rules, "-getrange")["text"], r"\Athis user has no permission for GETRANGE on the filter's keys; unknown")

    def test_a_minimal_user_gets_every_check_and_why_some_were_not_made(self) -> None:
        self.allow(*self.rights["a filter, to check"])
        self.bloomery("build", "-q", "-n", 100, "-o", self.f, stdin=b"a\n")

        found = self.findings()

        self.assertEqual(list(found), CHECKS)
        for check in ("server", "persistence", "eviction", "memory", "replicas"):
            self.assertEqual(found[check]["status"], "UNKNOWN", check)
            self.assertRegex(found[check]["text"], r"\Anot checked: the reply to INFO is 'NOPERM ")
        self.assertEqual((found["filter"]["status"], found["latency"]["status"]), ("UNKNOWN", "OK"))
        self.assertRegex(found["filter"]["text"], r"\Acapacity 100 keys .*; number of keys not checked: .*NOPERM")
        self.allow(*self.rights["a filter"], "+info")
        found = self.findings()
        self.assertRegex(found["persistence"]["text"], "save not checked: the reply to CONFIG GET is 'NOPERM ")
        self.assertEqual((found["server"]["status"], found["eviction"]["status"]), ("OK", "OK"))
        self.allow(*self.rights["a filter"], "+config|get")
        found = self.findings()
        self.assertEqual((found["server"]["status"], found["eviction"]["status"]), ("UNKNOWN", "OK"))

    def test_any_answer_but_ok_is_a_refusal_or_unknown(self) -> None:
        words = b"User default has no permissions to run the 'get' command"
        for answer, status, says in (
            (b"-ERR Unknown subcommand or wrong number of arguments for 'DRYRUN'. Try ACL HELP.\r\n", "UNKNOWN", r"SETRANGE.*Unknown subcommand"),  # an old server
            (b"+QUEUED\r\n", "BAD", "BITCOUNT, BITFIELD,"),
            (b"$%d\r\n%s\r\n" % (len(words), words), "BAD", "BITCOUNT, BITFIELD,"),
            (b"-ERR Command 'GET' not found\r\n", "BAD", "BITCOUNT, BITFIELD,"),
            (b"$-1\r\n", "BAD", "BITCOUNT, BITFIELD,"),
        ):
            with self.subTest(answer=answer):
                found = self.answered(answer)
                self.assertEqual(found["status"], status)
                self.assertRegex(found["text"], says)

    def answered(self, answer: bytes) -> dict:
        """What the doctor says if a server answers so to ACL DRYRUN, and as the real one to all else."""
        path = os.path.join(self.server.folder, "between")
        between = Between(path, self.server.path, answer)
        try:
            result = self.bloomery("redis", "doctor", "--json", f"unix://{path}?name=f", status=1)
        finally:
            between.end()
        [found] = [finding for finding in result.json["findings"] if finding["check"] == "permissions"]
        return found


class Between:
    """Hands commands on to a server, but answers ACL DRYRUN itself."""

    def __init__(self, path: str, server: str, answer: bytes) -> None:
        self.path, self.server, self.answer = path, server, answer
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as asked, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.connect(self.server)
            with server.makefile("rb") as answers:
                while first := asked.readline():
                    command = first
                    for _ in range(int(first[1:])):
                        size = asked.readline()
                        command += size + asked.read(int(size[1:]) + 2)
                    if b"\r\nDRYRUN\r\n" in command:
                        connection.sendall(self.answer)
                    else:
                        server.sendall(command)
                        connection.sendall(self.reply(answers))

    def reply(self, answers) -> bytes:
        line = answers.readline()
        size = int(line[1:]) if line[:1] in b"$*" else -1
        if line[:1] == b"$" and size >= 0:
            return line + answers.read(size + 2)
        return line + b"".join(self.reply(answers) for _ in range(size))

    def end(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)


class Replicas(CommandTest):
    def test_replicas_and_those_that_take_no_keys(self) -> None:
        master, replica = start_with_replica(self)

        def of(server: RedisServer) -> dict[str, dict]:
            result = self.bloomery("redis", "doctor", "--json", server.address("f"), status=1).json
            return {finding["check"]: finding for finding in result["findings"]}

        self.assertRegex(of(master)["replicas"]["text"], "1 replica: a failover may lose the last acknowledged keys")
        master.client("CONFIG", "SET", "min-replicas-to-write", 1)
        self.assertEqual(of(master)["replicas"]["status"], "OK")
        self.assertEqual(of(replica)["role"]["status"], "BAD")
        self.bloomery("build", "-q", "-n", 100, "--wait-replicas", 1, "-o", master.address("f"), stdin=text(keys(50)))
        self.assert_has_all(replica.address("f"), keys(50), "--replicas")


if __name__ == "__main__":
    unittest.main()
