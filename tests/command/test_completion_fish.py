"""Completions of fish, asked of fish itself."""

import shutil
import unittest

from completion import VERBS, Completion
from test_help import OF_VERBS


@unittest.skipUnless(shutil.which("fish"), "SKIP: no fish")
class Fish(Completion):
    shell = "fish"

    def completed(self, line: str) -> list[str]:
        said = self.of_shell("fish", "-N", "-c", f"source {self.script}; complete -C {line!r}")
        return [entry.split("\t")[0] for entry in said.splitlines()]

    def test_verbs(self) -> None:
        self.assertEqual(set(self.completed("bloomery ")), set(VERBS))
        self.assertEqual(set(self.completed("bloomery redis ")), set(OF_VERBS["redis"].split()))
        self.assertEqual(set(self.completed("bloomery completion ")), {"bash", "zsh", "fish"})

    def test_options_are_those_of_the_help_for_each_verb(self) -> None:
        for verb in ["check"], ["build"], ["noisy", "check"], ["redis", "gc"]:
            with self.subTest(verb=verb):
                self.assertEqual(set(self.completed(f"bloomery {' '.join(verb)} --")), self.options_of(*verb))

    def test_values_and_files(self) -> None:
        self.assertEqual(set(self.completed("bloomery build --prefer ")), {"speed", "memory"})
        self.assertEqual(self.completed("bloomery check users.b"), ["users.bloom"])
        self.assertEqual(self.completed("bloomery build -o users.t"), ["users.txt"])
        self.assertEqual(self.completed("bloomery build -n users"), [])


if __name__ == "__main__":
    unittest.main()
