"""Tests of tools/fuzz: a failure is the end of its output, and --runs is deterministic."""

import base64
import gzip
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "fuzz")
FOUND = bytes(range(256)) * 40

# Prints its arguments and fails like a libFuzzer program whose assertion fails.
BREAKS = f"""#!{sys.executable}
import os, sys
print(*sys.argv[1:], os.environ.get("BLOOMERY_KERNEL"))
prefix = next(word.split("=")[1] for word in sys.argv if word.startswith("-artifact_prefix="))
with open(prefix + "crash-1", "wb") as file:
    file.write(bytes(range(256)) * 40)
print("#7\\tNEW    cov: 1")
print("broken promise: it never breaks", file=sys.stderr)
print(f"artifact_prefix='{{prefix}}'; Test unit written to {{prefix}}crash-1", file=sys.stderr)
print("stat::peak_rss_mb: 1", file=sys.stderr)
sys.exit(77)
"""


class Tool(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name

    def path(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def run_tool(self, program: str, seeds: str) -> tuple[int, str]:
        with open(self.path("program"), "w", encoding="utf-8") as file:
            file.write(program)
        os.chmod(self.path("program"), 0o755)
        command = [sys.executable, TOOL, "--runs", "9", "--findings", self.path("findings"), self.path("program"), seeds]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return ended.returncode, ended.stdout

    def seeds(self, name: str, files: list[str]) -> str:
        os.mkdir(self.path(name))
        for file in files:
            with open(self.path(name, file), "wb"):
                pass
        return self.path(name)

    def test_what_broke_is_the_end_of_the_output(self) -> None:
        status, output = self.run_tool(BREAKS, self.seeds("seeds", ["a"]))

        self.assertEqual(status, 1)
        self.assertNotIn("NEW", output)
        end = output[output.index("ended with status 77") :]
        self.assertIn("broken promise: it never breaks", end)
        self.assertEqual(gzip.decompress(base64.b64decode(end[end.index("alone.\n") + len("alone.\n") :])), FOUND)

    def test_runs_by_number_do_not_depend_on_the_folder_the_processor_or_the_clock(self) -> None:
        seeds = self.seeds("seeds", ["c", "a", "b"])

        _, output = self.run_tool(BREAKS, seeds)

        # The program's standard error may come first.
        self.assertIn(f"-seed=1 -runs=9 -reload=0 -use_cmp=0 -timeout=300 -seed_inputs={seeds}/a,{seeds}/b,{seeds}/c scalar", output)

    def test_a_program_that_ends_well_is_left_alone(self) -> None:
        status, output = self.run_tool("#!/bin/sh\necho DONE\n", self.seeds("seeds", ["a"]))

        self.assertEqual((status, output), (0, "DONE\n"))


if __name__ == "__main__":
    unittest.main()
