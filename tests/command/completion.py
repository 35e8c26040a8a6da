"""What tests of the completions of all shells share."""

import subprocess

from support import CommandTest
from test_help import GROUPS, options_in

VERBS = " ".join(GROUPS.values()).split()


class Completion(CommandTest):
    shell = ""

    def setUp(self) -> None:
        super().setUp()
        self.script = self.path("completion")
        with open(self.script, "wb") as file:
            file.write(self.bloomery("completion", self.shell or "bash").out)
        for name in "users.bloom", "users.txt", "with blank.txt":
            with open(self.path(name), "wb"):
                pass

    def of_shell(self, *words: str) -> str:
        said = subprocess.run(words, cwd=self.folder, capture_output=True, timeout=60, check=False)
        self.assertEqual((said.returncode, said.stderr), (0, b""), words)
        return said.stdout.decode()

    def options_of(self, *verb: str) -> set[str]:
        return options_in(self.bloomery(*verb, "--help").out.decode())
