"""bloomery info --build: what the program is made of, judged by what the system says of the processor."""

import os
import re
import subprocess
import unittest

from support import LAYOUTS, CommandTest, keys, text

FACTS = "version compiler kernel kernel_reason kernels own_cache_bytes layouts hashes schemes".split()


def processor_features() -> set[str]:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return set(re.search(r"^(?:flags|Features)\s*:(.*)$", file.read(), re.MULTILINE)[1].split())


class InfoBuild(CommandTest):
    def facts(self, kernel: str = "") -> dict:
        return self.bloomery("info", "--build", "--json", env=dict(os.environ, BLOOMERY_KERNEL=kernel)).json

    def test_json_has_every_fact(self) -> None:
        facts = self.facts()

        version = self.bloomery("--version").out.decode().split()[1]
        self.assertEqual(list(facts), FACTS)
        self.assertEqual(facts["version"], version)
        self.assertRegex(facts["compiler"], r"^(g\+\+|clang) \d+")
        self.assertEqual(facts["layouts"], LAYOUTS)
        self.assertEqual(facts["hashes"], ["xxh3_64", "xxh3", "mix", "identity", "murmur3", "siphash", "xxh64"])
        self.assertEqual(facts["schemes"], ["guava", "guava32", "spark", "spark2", "dcso", "bits_and_blooms", "pharo", "python", "perl", "redisbloom", "datasketches", "bloom_filters", "bloomfilter_js", "leveldb", "rocksdb", "rocksdb_4", "valkey_bloom"])
        self.assertGreaterEqual(facts["own_cache_bytes"], 1 << 15)

    def test_the_cache_is_the_second_level_that_the_system_tells_of(self) -> None:
        told = subprocess.run(["getconf", "LEVEL2_CACHE_SIZE"], capture_output=True, text=True, check=False).stdout.strip()
        if not told.isdigit() or told == "0":
            self.skipTest("SKIP the system does not tell the size of its cache")

        self.assertEqual(self.facts()["own_cache_bytes"], int(told))

    def test_a_set_of_kernels_is_supported_if_the_processor_has_all_it_needs(self) -> None:
        has = processor_features()

        sets = self.facts()["kernels"]

        self.assertEqual([row["name"] for row in sets][0], "scalar")
        for kernels in sets:
            lacks = [need for need in kernels["needs"] if need not in has]
            self.assertEqual(list(kernels), ["name", "needs", "supported", "lacks", "chosen"])
            self.assertEqual((kernels["supported"], kernels["lacks"]), (not lacks, lacks), kernels["name"])

    def test_the_best_supported_set_is_chosen_unless_another_is_forced(self) -> None:
        supported = [row["name"] for row in self.facts()["kernels"] if row["supported"]]
        for name in "", *supported:
            facts = self.facts(name)

            self.assertEqual(facts["kernel"], name or supported[-1])
            self.assertEqual([row["name"] for row in facts["kernels"] if row["chosen"]], [facts["kernel"]])
            self.assertEqual(facts["kernel_reason"], f"BLOOMERY_KERNEL={name}" if name else "the best this processor supports")

    def test_the_text_says_what_json_says(self) -> None:
        facts = self.facts()
        lines = self.bloomery("info", "--build", env=dict(os.environ, BLOOMERY_KERNEL="")).out.decode().splitlines()

        said = {line[:14].strip() or line[14:].split()[0]: line[14:] for line in lines}
        self.assertEqual((said["version"], said["compiler"]), (facts["version"], facts["compiler"]))
        for fact in "layouts", "hashes", "schemes":
            self.assertEqual(said[fact].split(", "), facts[fact])
        rows = [line[14:] for line in lines if "; needs " in line]
        self.assertEqual(len(rows), len(facts["kernels"]))
        for row, kernels in zip(rows, facts["kernels"]):
            verdict = f"chosen: {facts['kernel_reason']}" if kernels["chosen"] else (
                "available" if kernels["supported"] else f"not available: lacks {' '.join(kernels['lacks'])}")  # fmt: skip
            needs = " ".join(kernels["needs"]) or "nothing"
            self.assertEqual(row.split(maxsplit=1), [kernels["name"], f"{verdict}; needs {needs}"])

    def test_kernels_that_cannot_be_had_are_an_error_of_every_command(self) -> None:
        unsupported = [row["name"] for row in self.facts()["kernels"] if not row["supported"]]
        for name in "sse9", *unsupported:
            for command in ["info", "--build"], ["plan", "-n", 10, "-p", "1%"], ["dedup", "-n", 10]:
                self.refused(*command, env=dict(os.environ, BLOOMERY_KERNEL=name), says="BLOOMERY_KERNEL.*; unset BLOOMERY_KERNEL .*info --build")

    def test_every_set_makes_the_same_file(self) -> None:
        supported = [row["name"] for row in self.facts()["kernels"] if row["supported"]]
        for layout in LAYOUTS:
            files = set()
            for name in supported:
                env = dict(os.environ, BLOOMERY_KERNEL=name)
                self.bloomery("build", "-q", "-o", "f", "-n", 30_000, "--layout", layout, stdin=text(keys(30_000)), env=env)
                files.add(self.read("f"))
            self.assertEqual(len(files), 1, layout)

    def test_it_is_about_the_program_or_about_a_filter(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10)

        self.refused("info", "--build", "f", says="--build.*expected no FILTER, found 'f'; leave out one")
        self.refused("info", "--build", "--check", says="--build.*found --check; leave out one")
        self.refused("info", says="FILTER or --build")
        self.refused("info", "", says="empty value")


if __name__ == "__main__":
    unittest.main()
