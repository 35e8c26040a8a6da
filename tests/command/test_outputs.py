"""What union, intersect, fold and seal have in common: which files they read, and which files they replace."""

import os
import unittest

from support import PAYLOAD_AT, CommandTest, keys

VERBS = {"union": "a b", "intersect": "a b", "fold": "a", "seal": "keys"}


class Outputs(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        for name, first in ("a", 0), ("b", 300):
            self.make_filter(name, keys(900)[first : first + 600], "-n", 1200)
        self.write("keys", keys(600))

    def test_a_file_that_is_no_filter_is_not_replaced(self) -> None:
        self.bloomery("keygen", "-o", "secret")
        self.write("text", keys(10))
        for name in "secret", "text":
            before = self.read(name)
            self.refuse_all({f"{verb} -o {name} {inputs}": f"the output would replace a file that is not a filter: {name}|not a filter" for verb, inputs in VERBS.items()})
            self.assertEqual(self.read(name), before)
        for verb, inputs in VERBS.items():
            self.write("empty", b"")
            for name in "empty", "new":
                self.bloomery(verb, "-q", "-o", name, *inputs.split())
            self.assertEqual(self.read("empty"), self.read("new"), verb)

    def test_a_filter_with_a_key_log_is_not_replaced(self) -> None:
        self.bloomery("build", "--grow", "-q", "-o", "g", "keys")
        before = self.read("g")

        self.refuse_all({f"{verb} -o g {inputs}": "a filter with a key log: .*g.log" for verb, inputs in (VERBS | {"fold": "g"}).items()})

        self.assertEqual(self.read("g"), before)
        self.assert_has_all("g", keys(600))

    def test_an_input_that_cannot_be_read_and_an_output_that_cannot_be_written_are_errors(self) -> None:
        before = sorted(os.listdir(self.folder))
        for verb, inputs in VERBS.items():
            self.refuse_all({
                f"{verb} -o missing/u {inputs}": "missing.*No such file",
                f"{verb} -o . {inputs}": "directory",
                f"{verb} -o u {inputs.replace(inputs.split()[-1], 'gone')}": "gone: cannot (open|read)",
            })  # fmt: skip
        self.refuse_all({"union a b": "--output", "intersect a b": "--output", "fold a": "--output", "union -o u a": "FILTER", "overlap a": "B: missing argument"})
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_a_damaged_page_of_any_input_is_an_error(self) -> None:
        self.make_filter("c", keys(900)[150:750], "-n", 1200)
        for name in "a", "b", "c":
            whole = self.read(name)
            damaged = bytearray(whole)
            damaged[PAYLOAD_AT + 100] ^= 1
            self.write(name, bytes(damaged))

            self.refuse_all({line: f"{name}: .*(checksum|damaged)" for line in ("union -o u a b c", "intersect -o u a b c", f"fold -o u {name}", f"overlap {name} a")})
            self.write(name, whole)


if __name__ == "__main__":
    unittest.main()
