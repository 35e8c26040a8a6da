"""Completions of bash, asked of bash itself."""

import shutil
import unittest

from completion import VERBS, Completion
from test_help import OF_VERBS


class Script(Completion):
    def test_there_are_three_shells(self) -> None:
        self.refused("completion", "tcsh", says="SHELL: invalid value: expected bash, zsh or fish, found 'tcsh'")
        self.refused("completion", says="SHELL: missing argument")


@unittest.skipUnless(shutil.which("bash"), "SKIP: no bash")
class Bash(Completion):
    shell = "bash"

    def completed(self, *words: str) -> list[str]:
        program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bloomery; printf "%s\\n" "${COMPREPLY[@]}"'
        return self.of_shell("bash", "--norc", "-c", program, "bash", self.script, "bloomery", *words).split("\n")[:-1]

    def test_it_is_registered(self) -> None:
        said = self.of_shell("bash", "--norc", "-c", f"source {self.script}; complete -p bloomery")

        self.assertEqual(said.strip(), "complete -o bashdefault -F _bloomery bloomery")

    def test_verbs(self) -> None:
        self.assertEqual(self.completed(""), VERBS)
        self.assertEqual(self.completed("re"), ["remove", "redis", "rebuild"])
        self.assertEqual(self.completed("redis", ""), OF_VERBS["redis"].split())
        self.assertEqual(self.completed("noisy", "s"), ["split"])
        self.assertEqual(self.completed("help", "bui"), ["build"])
        self.assertEqual(self.completed("completion", ""), ["bash", "zsh", "fish"])

    def test_options_are_those_of_the_help_for_each_verb(self) -> None:
        for verb in [[verb] for verb in VERBS if verb not in OF_VERBS] + [[v, sub] for v, subs in OF_VERBS.items() for sub in subs.split()]:
            with self.subTest(verb=verb):
                self.assertEqual(set(self.completed(*verb, "--")), self.options_of(*verb))
        self.assertEqual(set(self.completed("-")), {"--help", "--version"})

    def test_values(self) -> None:
        self.assertEqual(self.completed("build", "--prefer", ""), ["speed", "memory"])
        self.assertEqual(self.completed("build", "--prefer", "=", "m"), ["memory"])
        self.assertEqual(self.completed("build", "--prefer", "="), ["speed", "memory"])
        self.assertEqual(set(self.completed("seal", "--hash", "xxh")), {"xxh3_64", "xxh3"})
        self.assertEqual(self.completed("build", "-n", ""), [""])

    def test_help_completes_two_words(self) -> None:
        self.assertEqual(self.completed("help", "redis", ""), OF_VERBS["redis"].split())
        self.assertEqual(self.completed("help", "noisy", "s"), ["split"])
        for words in ["help", "build", ""], ["help", "redis", "list", ""]:
            self.assertEqual(self.completed(*words), [""])

    def test_only_arguments_are_offered_after_two_dashes(self) -> None:
        self.write("-x.bloom", b"")
        self.assertEqual(self.completed("check", "--", "-"), ["-x.bloom"])
        self.assertEqual(self.completed("check", "--", "users.b"), ["users.bloom"])
        self.assertEqual(self.completed("explain", "users.bloom", "--", "-"), ["-x.bloom"])

    def test_files(self) -> None:
        everything = {"completion", "users.bloom", "users.txt", "with blank.txt"}
        self.assertEqual(set(self.completed("check", "")), everything)
        self.assertEqual(self.completed("check", "-v", "users.b"), ["users.bloom"])
        self.assertEqual(self.completed("build", "-o", "with"), ["with blank.txt"])
        self.assertEqual(self.completed("redis", "list", ""), [""])


if __name__ == "__main__":
    unittest.main()
