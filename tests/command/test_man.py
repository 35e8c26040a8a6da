"""Manual pages: one for each command, with the options that --help prints and no others, and free of formatting errors.

A page of a group, bloomery-redis(1), has a subsection for each of its commands, and one for options of several commands. An
option there begins with a list of those commands (".Cm drop , clear :"); without a list it belongs to all.
"""

import glob
import os
import re
import shutil
import subprocess
import unittest

from support import CommandTest

FOLDER = os.path.join(os.environ["BLOOMERY_SOURCE"], "docs", "man")
SHARED = "Options of several commands"
LEFT_OUT = {"help", "version", "color"}  # options of every command; described in bloomery(1)


def page(name: str) -> list[str]:
    with open(os.path.join(FOLDER, name + ".1"), encoding="utf-8") as file:
        return file.read().splitlines()


def names() -> list[str]:
    return sorted(os.path.basename(path).removesuffix(".1") for path in glob.glob(os.path.join(FOLDER, "*.1")))


def section(lines: list[str], heading: str) -> list[str]:
    start = lines.index(f".Sh {heading}") + 1
    end = next((i for i in range(start, len(lines)) if lines[i].startswith(".Sh ")), len(lines))
    return lines[start:end]


def options_of_item(line: str) -> list[str]:
    """'.It Fl n , Fl -capacity Ar keys': n, capacity."""
    return [name.removeprefix("-") for name in re.findall(r"\bFl (\S+)", line)]


def items(lines: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """Subsection and options of each item of a list of options, and the commands that its text begins with."""
    found = []
    heading = ""
    for i, line in enumerate(lines):
        if line.startswith(".Ss "):
            heading = line[4:]
        if line.startswith(".It Fl "):
            commands = re.match(r"(?:\.Cm [a-z]+ ,\n)*\.Cm [a-z]+ :\n", "\n".join(lines[i + 1 :]))
            found.append((heading, options_of_item(line), re.findall(r"\.Cm ([a-z]+)", commands[0]) if commands else []))
    return found


class Man(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.helps: dict[str, str] = {}
        for verb in self.verbs(self.help()):
            said = self.help(verb)
            below = self.verbs(said)
            self.helps.update({f"{verb} {name}": self.help(verb, name) for name in below} if below else {verb: said})
        self.assertGreater(len(self.helps), 30)

    def help(self, *words: str) -> str:
        return self.bloomery(*words, "--help").out.decode()

    @staticmethod
    def verbs(text: str) -> list[str]:
        return re.findall(r"(?m)^  ([a-z]+)  +[a-z]", text)

    def options(self, verb: str) -> set[str]:
        """All names that --help prints at the left: -n, --capacity."""
        left = re.findall(r"(?m)^  (?:-(\w), |    )--([a-z0-9-]+)", self.helps[verb])
        return {name for pair in left for name in pair if name} - LEFT_OUT - {"h", "V"}

    def groups(self) -> dict[str, list[str]]:
        """Verbs by page: {"redis": ["list", ...], "build": []}"""
        found: dict[str, list[str]] = {}
        for verb in self.helps:
            name, _, below = verb.partition(" ")
            found.setdefault(name, []).extend([below] if below else [])
        return found

    def test_each_command_has_a_page(self) -> None:
        self.assertEqual(names(), sorted(["bloomery", *(f"bloomery-{verb}" for verb in self.groups())]))

    def test_a_page_has_the_options_of_its_commands_and_no_others(self) -> None:
        for group, below in self.groups().items():
            lines = page(f"bloomery-{group}")
            listed: dict[str, list[str]] = {name: [] for name in below or [group]}
            for heading, options, commands in items(lines if below else section(lines, "OPTIONS") if ".Sh OPTIONS" in lines else []):
                for name in (commands or listed) if heading == SHARED else [heading] if below else [group]:
                    listed[name] += options
            for name, options in listed.items():
                with self.subTest(f"{group} {name}"):
                    self.assertEqual(sorted(options), sorted(self.options(f"{group} {name}" if below else group)))

    def test_a_synopsis_has_the_required_options(self) -> None:
        for verb, text in self.helps.items():
            with self.subTest(verb):
                usage = re.search(r"(?m)^Usage: bloomery (.*)$", text)[1].removeprefix(verb)
                required = re.findall(r"(?<!\[)-(\w)\b", usage)
                forms = "\n".join(section(page(f"bloomery-{verb.split()[0]}"), "SYNOPSIS")).split(".Nm ")[1:]
                [form, *_] = [form for form in forms if form.startswith(f'"bloomery {verb}"')]
                self.assertEqual(re.findall(r"(?m)^\.Fl (\w)\b", form), required)

    def test_every_page_has_the_usual_sections_in_their_order_and_refers_to_pages(self) -> None:
        usual = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]
        for name in names():
            with self.subTest(name):
                found = [line[4:] for line in page(name) if line.startswith(".Sh ")]
                self.assertEqual([heading for heading in usual if heading in found], [heading for heading in found if heading in usual])
                self.assertLessEqual(set(usual) - {"OPTIONS"}, set(found))
                referred = set(re.findall(r"(?m)^\.Xr (bloomery\S*) 1", "\n".join(page(name))))
                self.assertLessEqual(referred, set(names()) - {name})
                self.assertTrue(referred == set(names()) - {"bloomery"} if name == "bloomery" else "bloomery" in referred, referred)

    def test_pages_are_free_of_warnings(self) -> None:
        formatters = [["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8"], ["groff", "-mdoc", "-ww", "-z"], ["mandoc", "-Tlint", "-Wwarning"]]
        installed = [formatter for formatter in formatters if shutil.which(formatter[0])]
        if not installed:
            self.skipTest("NO FORMATTER: install man-db, groff or mandoc")
        for formatter in installed:
            for name in names():
                with self.subTest(formatter=formatter[0], name=name):
                    ran = subprocess.run([*formatter, os.path.join(FOLDER, name + ".1")], capture_output=True, text=True)
                    self.assertEqual(ran.stderr, "")
                    self.assertEqual(ran.returncode, 0, ran.stdout)
                    if formatter[0] == "man":
                        self.assertIn("bloomery", re.sub("\\x08.", "", ran.stdout))  # man overstrikes bold letters


if __name__ == "__main__":
    unittest.main()
