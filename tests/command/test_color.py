"""Colour: on terminals only, unless NO_COLOR, TERM or --color say otherwise."""

import os
import pty
import re
import subprocess
import unittest

from support import CommandTest, keys, text

RED, YELLOW, GREEN, PLAIN_RED = "\x1b[1;31m", "\x1b[33m", "\x1b[32m", "\x1b[31m"
END = "\x1b[0m"


class Color(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "sound", "-n", 1000, stdin=text(keys(1000)))
        self.bloomery("build", "-q", "-o", "full", "-n", 100, stdin=text(keys(2000)), status=3)

    def on_terminal(self, *arguments: object, **environment: str) -> str:
        """Both outputs of a command, which are a terminal."""
        ours, theirs = pty.openpty()
        base = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
        process = self.start(*arguments, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=base | {"TERM": "xterm"} | environment)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        process.wait(timeout=60)
        return shown.decode().replace("\r\n", "\n")

    def test_errors_warnings_and_judgements_are_coloured_on_a_terminal(self) -> None:
        self.assertRegex(self.on_terminal("info", "missing"), re.escape(f"{RED}bloomery:{END} missing: "))
        self.assertRegex(self.on_terminal("add", "full"), re.escape(f"bloomery: full: {YELLOW}warning:{END} the filter exceeds"))
        self.assertIn(f"target FPR    {PLAIN_RED}above target{END}: current FPR", self.on_terminal("info", "full"))
        self.assertRegex(self.on_terminal("info", "sound"), re.escape(f"target FPR    {GREEN}met") + "( within chance)?" + re.escape(f"{END}: current FPR"))
        self.assertRegex(self.on_terminal("verify", "sound"), re.escape(f"verdict       {GREEN}sound{END}: all rates agree"))
        self.assertRegex(self.on_terminal("verify", "full"), re.escape(f"{PLAIN_RED}above target{END}: current FPR"))

    def test_no_colour_without_a_capable_terminal(self) -> None:
        for arguments in ["info", "missing"], ["info", "full"], ["verify", "full"], ["add", "full"]:
            for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}:
                with self.subTest(arguments=arguments, environment=environment):
                    self.assertNotIn("\x1b", self.on_terminal(*arguments, **environment))
            with self.subTest(arguments=arguments):
                self.assertNotIn("\x1b", self.on_terminal(*arguments, "--color=never"))
                piped = self.bloomery(*arguments, status=None)
                self.assertNotIn("\x1b", piped.out.decode() + piped.err)
        self.assertIn(RED, self.on_terminal("info", "missing", NO_COLOR=""))  # empty: not set

    def test_always_colours_a_pipe_too_and_adds_nothing_else(self) -> None:
        for arguments in ["info", "missing"], ["info", "full"], ["verify", "--queries", "1000", "full"], ["info", "--json", "full"]:
            for color in ["--color", "always"], ["--color=always"]:
                with self.subTest(arguments=arguments, color=color):
                    plain = self.bloomery(*arguments, status=None)
                    painted = self.bloomery(*arguments, *color, status=None, env=dict(os.environ, NO_COLOR="1"))

                    self.assertEqual("\x1b" in painted.out.decode() + painted.err, "--json" not in arguments)
                    self.assertEqual(re.sub(r"\x1b\[[0-9;]*m", "", painted.out.decode() + painted.err), plain.out.decode() + plain.err)
                    self.assertEqual(painted.status, plain.status)

    def test_a_results_column_keeps_its_width(self) -> None:
        self.write("other", b"x\n")
        self.patch("sound", inserted=10)
        plain = self.bloomery("info", "sound").out.decode()
        painted = self.bloomery("info", "--color=always", "sound").out.decode()

        self.assertRegex(plain, "(?m)^WARNING       more bits are set than the key count explains, ")
        self.assertIn(f"{YELLOW}WARNING       {END}more bits", painted)

    def test_another_mode_is_refused(self) -> None:
        self.refused("info", "sound", "--color", "yes", says="--color: invalid value: expected auto, always or never, found 'yes'")


if __name__ == "__main__":
    unittest.main()
