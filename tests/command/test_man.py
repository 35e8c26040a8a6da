"""The man page and the command's own --help have the same options, command by command."""

import os
import re
import unittest
from collections.abc import Iterator

from support import CommandTest

GROUPS = {"noisy": ("split", "check"), "redis": ("list", "drop", "clear", "reset", "expire", "persist", "rotate", "replace", "repair", "gc", "doctor")}
SERVERS = "With an address"  # the heading of --help for options of filters on Redis


def page() -> list[str]:
    with open(os.path.join(os.environ["BLOOMERY_SOURCE"], "docs", "bloomery.1"), encoding="utf-8") as file:
        return file.read().splitlines()


def long_options(line: str) -> set[str]:
    """Of a line of mdoc: Fl -shards."""
    return set(re.findall(r"(?<!\S)-([a-z0-9][a-z0-9-]+)", line)) if "Fl" in line.split() or line.startswith(".Fl") else set()


SHORT = {"n": "capacity", "p": "rate", "m": "bits", "k": "probes", "o": "output", "v": "invert", "c": "count", "q": "quiet", "i": "input"}


def synopses(lines: list[str]) -> Iterator[tuple[list[str], set[str], bool]]:
    """Commands, their options, and whether there are more (`options`)."""
    start = lines.index(".Sh SYNOPSIS") + 1
    for form in "\n".join(lines[start : lines.index(".Sh DESCRIPTION")]).split(".Nm\n")[1:]:
        words = form.splitlines()
        commands = words[0].removeprefix(".Cm ").split(" Fl ")[0].split(" | ")
        options = {name for line in [words[0].partition(" Fl ")[1] + words[0].partition(" Fl ")[2], *words[1:]] for name in long_options(line)}
        options |= {SHORT[short] for line in words for short in re.findall(r"Fl ([a-z])(?!\S)", line)}
        yield commands, options, ".Op Ar options" in words


def entries(lines: list[str]) -> Iterator[tuple[str, set[str], set[str] | None]]:
    """Section, options of an item of a list, and the commands that its text begins with: 'build , dedup :', or None."""
    section = ""
    for i, line in enumerate(lines):
        if line.startswith((".Sh ", ".Ss ")):
            section = line[4:]
        if not line.startswith(".It Fl "):
            continue
        commands = None
        text = " ".join(lines[i + 1 : i + 5])
        if match := re.match(r"\.Cm ((?:[a-z]+(?: [a-z]+)?(?: Fl -[a-z]+)?)(?: , [a-z]+(?: [a-z]+)?(?: Fl -[a-z]+)?)*)(?: with a filter of \.Fl -window)? :", text):
            commands = {name.split(" Fl ")[0] for name in match[1].split(" , ")}
        if section == "Needs of a filter, for plan":
            commands = {"plan"}
        yield section, long_options(line), commands


class Man(CommandTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.lines = page()

    def setUp(self) -> None:
        super().setUp()
        help = self.bloomery("--help").out.decode()
        verbs = re.findall(r"(?m)^  ([a-z]+)  +[a-z]", help)
        self.options: dict[str, set[str]] = {}
        self.of_servers: dict[str, set[str]] = {}
        for verb in (name for verb in verbs for name in ([f"{verb} {sub}" for sub in GROUPS[verb]] if verb in GROUPS else [verb])):
            said = self.bloomery(*verb.split(), "--help").out.decode()
            group = re.search(rf"(?ms)^{SERVERS}:.*?(?=^\S|\Z)", said)
            self.options[verb] = set(re.findall(r"(?m)^  (?:-\w,)? *--([a-z0-9-]+)", said)) - {"help"}
            self.of_servers[verb] = set(re.findall(r"(?m)^  (?:-\w,)? *--([a-z0-9-]+)", group[0])) if group else set()
        self.assertGreater(len(self.options), 20)

    def test_every_option_is_on_the_page_and_none_else(self) -> None:
        on_page = {name for _, names, _ in entries(self.lines) for name in names} - {"help", "version"}

        self.assertEqual(on_page, set().union(*self.options.values()))

    def test_commands_that_the_page_names_for_an_option_are_those_that_have_it(self) -> None:
        named: dict[str, list[set[str] | None]] = {}
        for section, names, commands in entries(self.lines):
            for name in names - {"help", "version"}:
                if section == "FILTERS ON REDIS":
                    servers = {verb for verb, options in self.of_servers.items() if options}
                    with self.subTest(option=name, section=section):
                        self.assertEqual(commands or servers, {verb for verb in servers if name in self.options[verb]})
                else:
                    named.setdefault(name, []).append(commands)
        for name, commands in named.items():
            if None in commands:
                continue
            with self.subTest(option=name):
                have = {verb for verb, options in self.options.items() if name in options - self.of_servers[verb]}
                self.assertEqual(set().union(*commands), have)

    def test_synopses_have_options_of_their_commands(self) -> None:
        seen: dict[str, set[str]] = {}
        open_ended = set()
        for commands, options, more in synopses(self.lines):
            for command in commands:
                with self.subTest(command=command):
                    self.assertLessEqual(options, self.options[command])
                seen.setdefault(command, set()).update(options)
                open_ended |= {command} if more else set()
        self.assertEqual(set(seen), set(self.options))
        for command, options in seen.items():
            if command not in open_ended:
                with self.subTest(command=command):
                    self.assertEqual(options, self.options[command])


if __name__ == "__main__":
    unittest.main()
