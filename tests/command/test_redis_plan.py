"""bloomery plan --redis: what it says is what a server then has; large filters follow from formulas."""

import math
import unittest

from redis_server import RedisTest
from support import CommandTest, keys


class PlanOnAServer(RedisTest):
    def test_the_plan_is_what_is_made(self) -> None:
        for options in (["-n", 50_000], ["-n", 300_000, "-p", "0.1%"], ["--deletes", "-n", 20_000], ["--grow", "-n", 5000], ["--max-keys", "1M", "-n", 5000]):
            with self.subTest(options=options):
                self.redis("FLUSHALL")
                plan = self.bloomery("plan", "--redis", "--json", *options).json
                self.bloomery("build", "-q", *["--counting" if word == "--deletes" else word for word in options], "-o", self.f, stdin=b"")

                made = self.info(self.f)
                self.assertEqual((made["shards"], made["lines_of_a_shard"], made["layout"], made["probes"]), (plan["shards"], plan["lines_of_a_shard"], plan["layout"], plan["probes"]))
                self.assertEqual(len(self.server.keys()), plan["server_keys"])
                self.assertEqual(self.redis("STRLEN", self.server.shard(0) + b":0"), plan["bytes_of_a_string"])
                uses = sum(self.redis("MEMORY", "USAGE", key) for key in self.server.keys())
                self.assertAlmostEqual(plan["memory_bytes"] / uses, 1, delta=0.5 if uses < 200_000 else 0.1)

    def test_the_command_that_it_names_makes_it(self) -> None:
        command = self.bloomery("plan", "--redis", "--json", "-n", 20_000, "-p", "0.5%", "--window", "24h").json["command"]
        self.write("keys", keys(100))

        words = [{"redis://HOST/NAME": self.f, "INPUT": "keys"}.get(word, word) for word in command.split()[1:]]
        self.bloomery(*words, "-q")

        made = self.info(self.f)
        self.assertEqual((made["capacity"], made["target_rate"], made["window_seconds"]), (20_000, 0.005, 86_400))
        self.assert_has_all(self.f, keys(100))


class Plan(CommandTest):
    def plan(self, *options: object) -> dict:
        return self.bloomery("plan", "--redis", "--json", *options).json

    def test_a_trillion_keys_on_any_number_of_nodes(self) -> None:
        one = self.plan("-n", 10**12, "-p", "1%")
        many = self.plan("-n", 10**12, "-p", "1%", "--nodes", 100)

        self.assertEqual(one["shards"], many["shards"])
        self.assertLessEqual(one["bytes_of_a_string"], 1 << 20)
        self.assertAlmostEqual(many["bytes_of_a_node"] * 100 / one["full_memory_bytes"], 1, delta=1e-6)
        self.assertAlmostEqual(one["bits_a_key"], 10.5, delta=0.7)
        self.assertAlmostEqual(one["lower_bound_bits_a_key"], math.log2(100))
        self.assertEqual(many["lookups_a_second"], 100 * one["lookups_a_second"])
        self.assertGreater(many["most_bytes_of_a_node"], many["bytes_of_a_node"])
        self.assertEqual(one["lookups_a_second"], 2_500_000)

    def test_growing_costs_bits(self) -> None:
        fixed, declared = self.plan("-n", "1G"), self.plan("-n", "1M", "--max-keys", "1G")

        self.assertGreater(declared["layers"], 3)
        self.assertGreater(declared["full_memory_bytes"], 1.1 * fixed["full_memory_bytes"])
        self.assertLess(declared["full_memory_bytes"], 2 * fixed["full_memory_bytes"])
        self.assertLess(declared["memory_bytes"], 0.1 * declared["full_memory_bytes"])

    def test_the_page_has_all_lines(self) -> None:
        page = self.bloomery("plan", "--redis", "-n", "1M", "--nodes", 8).out.decode()

        for name in ("filter", "layout", "shards", "memory", "nodes", "speed", "command"):
            self.assertRegex(page, rf"(?m)^{name} +\S")
        self.assertRegex(page, r"\n +1\.\d\d times the lower bound of 6\.64 bits per key\n")
        self.assertIn("16 shards are too few for an even distribution; use --shards 32", page)
        self.assertIn("redis+cluster://", page)

    def test_requirements_that_redis_cannot_meet_are_refused(self) -> None:
        cannot = "cannot be combined with --redis"
        self.refuse_all({
            "plan --redis -n 1000 --sealed": f"--sealed: {cannot}",
            "plan --redis -n 1000 --never-for 9": f"--never-for: {cannot}",
            "plan --redis -n 1000 --table": f"--table: {cannot}",
            "plan --redis -n 1000 --threat": f"--threat: {cannot}",
            "plan --redis -n 1000 --memory 1GiB": f"--memory: {cannot}",
            "plan --redis -n 1000 -m 1MiB": "--bits: the size of a shared filter follows from its capacity and FPR",
            "plan --redis -n 1000 --window-keys 5": "--window-keys: a shared filter can only have a window of time",
            "plan --redis -n 1000 --prefer speed": "--prefer: not available for shared filters",
            "plan --redis": "needs a number of keys",
            "plan --nodes 3 -n 5 -p 1%": "--nodes: requires --redis",
        })  # fmt: skip


if __name__ == "__main__":
    unittest.main()
