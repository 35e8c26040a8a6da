"""Completions of zsh, typed at a terminal."""

import os
import pty
import re
import select
import shutil
import time
import unittest

from completion import Completion


@unittest.skipUnless(shutil.which("zsh"), "SKIP: no zsh")
class Zsh(Completion):
    shell = "zsh"

    def setUp(self) -> None:
        super().setUp()
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], os.environ | {"TERM": "dumb", "COLUMNS": "200", "HOME": self.folder})
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, self.terminal)
        self.typed(f"PS1= RPS1=; autoload -Uz compinit && compinit -u -D; source {self.script}; unsetopt zle_bracketed_paste; print rea''dy\n", "ready\r\n")

    def typed(self, keys: str, until: str) -> str:
        """Types, and returns what the terminal shows up to `until`."""
        os.write(self.terminal, keys.encode())
        shown = ""
        end = time.monotonic() + 30
        while until not in shown:
            if not select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))[0]:
                self.fail(f"{keys!r}: no {until!r} in {shown!r}")
            shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x07", "", os.read(self.terminal, 65536).decode())
        return shown

    def test_verbs_options_values_and_files(self) -> None:
        for line, to in {
            "bui": "build ",
            "redis doc": "redis doctor ",
            "check --cou": "check --count",
            "noisy split --cop": "noisy split --copies",
            "redis gc --with": "redis gc --without-description",
            "build --prefer sp": "build --prefer speed",
            "check -v users.b": "check -v users.bloom",
            "completion fi": "completion fish",
        }.items():
            with self.subTest(line=line):
                self.typed(f"bloomery {line}\t", f"bloomery {to}")
                os.write(self.terminal, b"\x15")  # Ctrl-U: an empty line


if __name__ == "__main__":
    unittest.main()
