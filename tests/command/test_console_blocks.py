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

    def test_other_output_is_found_at_its_line(self) -> None:
        self.accept(self.console("$ echo one", "one", "", "$ echo two", "two"))
        self.refuse(self.console("$ echo one", "one", "$ echo two", "three"), says=r"document\.md:5: .*echo two\n  - three\n  \+ two")
        self.refuse(self.console("$ echo one"), says=r"\+ one")
        self.refuse(self.console("$ true", "one"), says="- one")

    def test_messages_on_standard_error_are_output_too(self) -> None:
        self.accept(self.console("$ echo one >&2", "one"))

    def test_commands_share_a_shell_and_an_empty_folder(self) -> None:
        self.accept(self.console("$ ls -A", "$ word=one; echo $word > file", "$ cat file \\", "    && echo $word", "one", "one"))

    def test_dots_stand_for_text_and_for_lines(self) -> None:
        self.accept(self.console("$ seq 5", "1", "...", "5"))
        self.accept(self.console("$ echo 17 seconds, 3 files", "... seconds, 3 files"))
        self.refuse(self.console("$ seq 5", "1", "...", "6"), says="the output differs")
        self.refuse(self.console("$ echo 17 seconds, 4 files", "... seconds, 3 files"), says="the output differs")

    def test_an_error_is_not_taken_for_output(self) -> None:
        self.refuse(self.console("$ bloomery info missing.bloom"), says="exit status 2")
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
        self.refuse(self.document("```sh\nbloomery bild -o x.bloom\n```\n"), says=r"document\.md:2: there is no command 'bild'")
        self.refuse(self.document("```sh\ncat x | bloomery check --coun x.bloom\n```\n"), says=r"document\.md:2: 'bloomery check' has no option --coun")
        self.refuse(self.document("```sh\nbloomery redis list --yes redis://host\n```\n"), says="'bloomery redis list' has no option --yes")
        self.refuse(self.document("Use `bloomery fold -q --time 3` for it.\n"), says="'bloomery fold' has no option --time")

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
