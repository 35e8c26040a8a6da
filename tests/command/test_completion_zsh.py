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

    def completes(self, line: str, to: str) -> None:
        with self.subTest(line=line):
            self.typed(line + "\t", to)
            os.write(self.terminal, b"\x15")  # Ctrl-U: an empty line

    def test_verbs_options_values_and_files(self) -> None:
        self.completes("bloomery bui", "bloomery build ")
        self.completes("bloomery redis doc", "bloomery redis doctor ")
        self.completes("bloomery check --cou", "bloomery check --count")
        self.completes("bloomery noisy split --cop", "bloomery noisy split --copies")
        self.completes("bloomery redis gc --with", "bloomery redis gc --without-description")
        self.completes("bloomery build --prefer sp", "bloomery build --prefer speed")
        self.completes("bloomery check -v users.b", "bloomery check -v users.bloom")
        self.completes("bloomery completion fi", "bloomery completion fish")


if __name__ == "__main__":
    unittest.main()
