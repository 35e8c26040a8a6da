"""Completions of bash, asked of bash itself."""

import shutil
import unittest

from completion import VERBS, Completion
from test_help import OF_VERBS


@unittest.skipUnless(shutil.which("bash"), "SKIP: no bash")
class Bash(Completion):
    shell = "bash"

    def completed(self, *words: str) -> list[str]:
        program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bloomery; printf "%s\\n" "${COMPREPLY[@]}"'
        return self.of_shell("bash", "--norc", "-c", program, "bash", self.script, "bloomery", *words).split("\n")[:-1]

    def test_it_is_registered(self) -> None:
        said = self.of_shell("bash", "--norc", "-c", f"source {self.script}; complete -p bloomery")

        self.assertEqual(said.strip(), "complete -o bashdefault -F _bloomery bloomery")

    def test_options_are_those_of_the_help_for_each_verb(self) -> None:
        for verb in [[verb] for verb in VERBS if verb not in OF_VERBS] + [[v, sub] for v, subs in OF_VERBS.items() for sub in subs.split()]:
            with self.subTest(verb=verb):
                self.assertEqual(set(self.completed(*verb, "--")), self.options_of(*verb))

    def test_words(self) -> None:
        self.write("-x.bloom", b"")
        for line, expected in {
            "": VERBS,
            "re": ["remove", "redis", "rebuild"],
            "redis |": OF_VERBS["redis"].split(),
            "noisy s": ["split"],
            "help bui": ["build"],
            "help redis |": OF_VERBS["redis"].split(),
            "help noisy s": ["split"],
            "help build |": [""],
            "help redis list |": [""],
            "completion |": ["bash", "zsh", "fish"],
            "-": ["--help", "--version"],
            "build --prefer |": ["speed", "memory"],
            "build --prefer = m": ["memory"],
            "build --prefer =": ["speed", "memory"],
            "seal --hash xxh": ["xxh3_64", "xxh3", "xxh64"],
            "build -n |": [""],
            "check |": ["completion", "users.bloom", "users.txt", "with blank.txt", "-x.bloom"],
            "check -v users.b": ["users.bloom"],
            "check -- -": ["-x.bloom"],
            "check -- users.b": ["users.bloom"],
            "explain users.bloom -- -": ["-x.bloom"],
            "build -o with": ["with blank.txt"],
            "redis list |": [""],
        }.items():
            with self.subTest(line=line):
                found = self.completed(*[word.removeprefix("|") for word in line.split(" ")])
                self.assertEqual((set(found), len(found)), (set(expected), len(expected)))


if __name__ == "__main__":
    unittest.main()
