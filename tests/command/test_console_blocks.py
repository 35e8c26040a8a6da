"""The examples of README.md, docs/ and the manual pages print what is shown: tools/run-console-blocks, and the tool itself."""

import os
import re
import subprocess
import sys
import unittest

import redis_server
from support import COMMAND, CommandTest

TOOL = os.path.join(os.environ["BLOOMERY_SOURCE"], "tools", "run-console-blocks")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, TOOL, "--command", COMMAND, *arguments], env={**os.environ, **environment}, capture_output=True, text=True)


class Documents(unittest.TestCase):
    def test_every_example_prints_what_is_shown(self) -> None:
        ran = run()

        for line in re.findall(r"(?m)^SKIP .*$", ran.stdout):
            print(line)  # run.py reports the test as skipped
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)


class Tool(CommandTest):
    def document(self, text: str, name: str = "document.md") -> str:
        self.write(name, text.encode())
        return self.path(name)

    def console(self, *lines: str) -> str:
        return self.document("\n".join(["Text", "```console", *lines, "```", ""]))

    def text(self, path: str) -> str:
        with open(path, encoding="utf-8") as file:
            return file.read()

    def accept(self, *arguments: str, **environment: str) -> None:
        ran = run(*arguments, **environment)
        self.assertEqual((ran.stdout, ran.returncode), ("", 0), ran.stderr)

    def refuse(self, *arguments: str, says: str, **environment: str) -> None:
        ran = run(*arguments, **environment)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertRegex(ran.stdout, says)

    def test_shown_output_is_compared_with_what_is_printed(self) -> None:
        for shown, says in (
            ("$ echo one|one||$ echo two|two", ""),
            ("$ echo one >&2|one", ""),
            ("$ ls -A|$ word=one; echo $word > file|$ cat file \\|    && echo $word|one|one", ""),  # one shell in an empty folder
            ("$ seq 5|1|...|5", ""),
            ("$ echo 17 seconds, 3 files|... seconds, 3 files", ""),
            ("$ echo one|one|$ echo two|three", r"document\.md:5: .*echo two\n  - three\n  \+ two"),
            ("$ echo one", r"\+ one"),
            ("$ true|one", "- one"),
            ("$ seq 5|1|...|6", "the output differs"),
            ("$ echo 17 seconds, 4 files|... seconds, 3 files", "the output differs"),
            ("$ bloomery info missing.bloom", "exit status 2"),
        ):
            with self.subTest(shown=shown):
                document = self.console(*shown.split("|"))
                self.refuse(document, says=says) if says else self.accept(document)
        self.refuse("--update", self.console("$ bloomery info missing.bloom", "filter  missing.bloom"), says="exit status 2")

    def test_update_writes_what_was_printed_and_keeps_dots(self) -> None:
        path = self.console("$ seq 4", "1", "...", "9", "", "$ echo it took 12 s", "that took ... s", "$ echo 5", "...", "$ echo two", "one")

        run("--update", path)

        shown = ["$ seq 4", "1", "...", "4", "", "$ echo it took 12 s", "it took ... s", "$ echo 5", "...", "$ echo two", "two"]
        self.assertEqual(self.text(path), "\n".join(["Text", "```console", *shown, "```", ""]))
        self.accept(path)

    def test_a_manual_page_is_run_where_it_shows_output(self) -> None:
        page = ".Bd -literal -offset indent\n$ printf '%s\\en' .one\n\\&.two\n.Ed\n.Bd -literal\n$ bloomery build -o missing missing.txt\n.Ed\n"
        path = self.document(page, "page.1")
        self.refuse(path, says=r"page\.1:2: .*\n  - \.two\n  \+ \.one")

        run("--update", path)

        self.assertEqual(self.text(path), page.replace("two", "one"))
        self.accept(path)

    def test_command_lines_that_are_not_run_must_have_known_options(self) -> None:
        self.accept(self.document("```sh\nzcat x | bloomery add -d ' ' -f 1 x.bloom && bloomery check -c x.bloom  # counts\nbloomery \\\n  redis list redis://host\n```\n"))
        for text, says in {
            "```sh\nbloomery bild -o x.bloom\n```\n": r"document\.md:2: there is no command 'bild'",
            "```sh\ncat x | bloomery check --coun x.bloom\n```\n": r"document\.md:2: 'bloomery check' has no option --coun",
            "```sh\nbloomery redis list --yes redis://host\n```\n": "'bloomery redis list' has no option --yes",
            "Use `bloomery fold -q --time 3` for it.\n": "'bloomery fold' has no option --time",
        }.items():
            self.refuse(self.document(text), says=says)

    def test_numbers_are_ignored_with_another_package_index(self) -> None:
        self.write("apt-cache", b"#!/bin/sh\nprintf 'Homepage: %s\\n' a b a\n")
        os.chmod(self.path("apt-cache"), 0o755)
        path = os.path.dirname(self.path("apt-cache")) + ":" + os.environ["PATH"]

        self.accept(self.console("$ bloomery dedup urls.txt | wc -l", "bloomery: 59,226 lines in, 30,089 out, 29,137 dropped; no false drops", "30089"), PATH=path)
        self.refuse(self.console("$ wc -l < urls.txt", "3 lines"), says="the output differs", PATH=path)

    def test_hosts_are_servers_of_their_own_whose_address_is_not_shown(self) -> None:
        redis_server.program()  # skips the test if there is none
        shown = ["$ seq 10 | bloomery build -q -n 100 -o redis://one/f", "$ echo 7 | bloomery check redis://one/f", "7", "$ bloomery redis list redis://two", "...two...", "$ bloomery redis list --json redis://one | grep -c redis://one", "1"]
        self.accept(self.console(*shown))


if __name__ == "__main__":
    unittest.main()
