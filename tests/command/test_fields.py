"""Keys of fields: -f with lists and ranges, separators of any length, and the same keys whatever the form of the input."""

import csv
import io
import itertools
import json
import random
import shlex
import unittest

from support import CommandTest, cut, first_occurrences, sample_if_sanitized, text

EXACT = "-n", 100_000, "-p", "1e-9"


def key_of(fields: list[bytes]) -> bytes:
    """The documented key of several fields."""
    if len(fields) == 1:
        return fields[0]
    return b"\x1f".join(f.replace(b"\x1b", b"\x1b\x1b").replace(b"\x1f", b"\x1b\x1f") for f in fields)


class Fields(CommandTest):
    def dedup(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", *EXACT, *arguments, **options).lines

    def chosen(self, line: bytes, delimiter: bytes, numbers: list[int]) -> list[bytes]:
        fields = line.split(delimiter)
        return [fields[n - 1] if n <= len(fields) else b"" for n in numbers]

    def test_lists_and_ranges_choose_what_a_tuple_of_the_fields_chooses(self) -> None:
        chance = random.Random(3)
        for option, delimiter in sample_if_sanitized(((";", b";"), ("||", b"||"), ("aa", b"aa"), ("\\t", b"\t"), ("\\x1f", b"\x1f"), ("\\0", b"\0"),
                                  ("\\\\", b"\\"), ("\\", b"\\"), ("::", b"::")), 3):
            pieces = [b"", b"a", b"b", b"\x1b", b"\x1f", delimiter[:1] if len(delimiter) > 1 else b"c"]
            lines = [delimiter.join(chance.choice(pieces) for _ in range(chance.randrange(1, 6))) for _ in range(3000)]
            for fields, numbers in (("2", [2]), ("1,3", [1, 3]), ("3,1", [3, 1]), ("2-4", [2, 3, 4]), ("-2,5", [1, 2, 5])):
                with self.subTest(delimiter=option, fields=fields):
                    out = self.dedup("-d", option, "-f", fields, stdin=text(lines))
                    expected = first_occurrences(lines, lambda line: tuple(self.chosen(line, delimiter, numbers)))
                    self.assertEqual(out, expected)

    def test_every_command_cuts_lines_into_the_same_keys(self) -> None:
        nul, crlf, fields = b"one\ntwo\0three\0\0four\r\n\0", b"one\r\ntwo\nthr\ree\r\n", b"1,ann,x\n2,bob,y\n3\n,,\n"
        for options, data, keys in (
            ("", b"one\n\ntwo\r\ntw\ro\n\xff\xc3\xa9\nlast", [b"one", b"", b"two\r", b"tw\ro", b"\xff\xc3\xa9", b"last"]),
            ("--text", b"a\0b\n\0\n\0\0\na\n", [b"a\0b", b"\0", b"\0\0", b"a"]),
            ("-0", nul, [b"one\ntwo", b"three", b"", b"four\r\n"]),
            ("--null", nul, [b"one\ntwo", b"three", b"", b"four\r\n"]),
            ("--crlf", crlf, [b"one", b"two", b"thr\ree"]),
            ("-d , -f 2", fields, [b"ann", b"bob", b"", b""]),
            ("--delimiter , --field 3", fields, [b"x", b"y", b"", b""]),
            ("--field 2", b"1\tann\n2\ta\x1fb", [b"ann", b"a\x1fb"]),
            ("-d ' ' -f 2-", b"1 a b\n2 a\n3 a \n4\n5 ", [b"a\x1fb", b"a", b"a\x1f", b"", b""]),
        ):
            with self.subTest(options=options, data=data):
                end = b"\0" if data == nul else b"\n"
                lines, cut_as_asked = cut(data, end), shlex.split(options)
                if options == "--text":
                    escaped = b"".join(b'{"k":%s}\n' % json.dumps(key.decode()).encode() for key in keys)
                    self.bloomery("build", "-q", "--jsonl", ".k", "-o", "expected", *EXACT, stdin=escaped)
                else:
                    self.bloomery("build", "-q", "-0", "-o", "expected", *EXACT, stdin=text(keys, b"\0"))

                self.bloomery("build", "-q", "-o", "built", *EXACT, *cut_as_asked, stdin=data)
                self.bloomery("build", "-q", "--allow-empty", "-o", "added", *EXACT)
                self.bloomery("add", "-q", *cut_as_asked, "added", stdin=data)
                self.bloomery("build", "-q", *cut_as_asked, "-o", "first", *EXACT, stdin=lines[0] + end)
                found = self.bloomery("check", *cut_as_asked, "first", stdin=data).out

                self.assertEqual(self.bits_of("built"), self.bits_of("expected"))
                self.assertEqual(self.bits_of("added"), self.bits_of("expected"))
                self.assertEqual(found, text([line for line, key in zip(lines, keys) if key == keys[0]], end))
                printed = first_occurrences(range(len(keys)), lambda i: keys[i])
                self.assertEqual(self.bloomery("dedup", "-q", *EXACT, *cut_as_asked, stdin=data).out, text([lines[i] for i in printed], end))

    def test_no_two_tuples_share_a_key_and_the_key_is_the_documented_one(self) -> None:
        values = [b"", b"a", b"\x1f", b"\x1b", b"\x1b\x1f", b"\x1f\x1b", b"a\x1f", b"\x1fa", b"\x1b\x1b"]
        tuples = list(itertools.product(values, repeat=3))
        lines = [b"\t".join(t) for t in tuples]
        self.assertEqual(self.dedup("-f", "1-3", stdin=text(lines)), lines)
        self.make_filter("f", [key_of(list(t)) for t in tuples[::2]], *EXACT)
        self.assertEqual(self.bloomery("check", "-f", "1-3", "f", stdin=text(lines)).lines, lines[::2])

    def test_text_csv_and_json_give_one_tuple_one_key(self) -> None:
        rows = [(f"user {i}", str(i * i), f"a,{i}") for i in range(100)]
        self.bloomery("build", "-q", "-o", "f", *EXACT, "-d", "::", "-f", "2,3",
                      stdin="".join("::".join(row) + "\n" for row in rows[:50]).encode())
        table = io.StringIO()
        csv.writer(table).writerows([("who", "square", "what"), *rows])
        found = self.bloomery("check", "-c", "--csv", "-f", "square,what", "f", stdin=table.getvalue().encode())
        self.assertEqual(found.lines, [b"50"])
        lines = "".join(json.dumps({"u": {"n": int(n)}, "w": [w]}) + "\n" for _, n, w in rows).encode()
        self.assertEqual(self.bloomery("check", "-c", "--jsonl", ".u.n,.w[0]", "f", stdin=lines).lines, [b"50"])

    def test_verify_remove_and_explain_cut_keys_alike(self) -> None:
        lines = [b"%d,%d,x" % (i, i % 7) for i in range(50)]
        self.bloomery("build", "-q", "--counting", "-o", "f", "-n", 100, "-p", "1e-9", "-d", ",", "-f", "1,2", stdin=text(lines))
        self.write("lines", lines)
        result = self.bloomery("verify", "--json", "--queries", 1000, "-d", ",", "-f", "1,2", "f", "--present", "lines").json
        self.assertEqual(result["present"], {"keys": 50, "missing": 0, "first_missing": None})
        found = self.bloomery("explain", "--json", "f", "3\x1f3", "-d", ",", "-f", "1,2", "--keys", "lines").json
        self.assertTrue(found["keys"][0]["put_in"])
        self.bloomery("remove", "-q", "-d", ",", "-f", "1,2", "f", stdin=text(lines[:20]))
        self.assertEqual(self.bloomery("check", "-d", ",", "-f", "1,2", "f", "lines").lines, lines[20:])

    def test_options_that_do_not_fit_together_are_refused(self) -> None:
        fields, path, separator = "--field: invalid list of fields", "invalid JSON path", "--delimiter: invalid field separator"
        for command in "build -o f -n 10 ", "dedup -n 10 ":
            self.refuse_all({
                "-f 0": fields, "-f 1,,2": fields, "-f ''": fields, "-f 1000001": fields, "-f 1-257": "at most 256 fields",
                "-f 2-1": "give the lower number of a range first", "-f name": "only CSV has column names", "-d ,": "add --field 1",
                "-f 1 -d '\\q'": separator, "-f 1 -d '\\x1'": separator, "-f 1 -d ''": "empty", "-f 1 -d 'a\\n'": "choose another separator",
                "--header": "requires --csv", "-0 --crlf": "--crlf and --null exclude each other", "--csv -0": "--csv and --null exclude each other",
                "--csv -d ';;'": "one byte", "--csv -d '\"'": "one byte", "--csv --jsonl .a": "--csv and --jsonl exclude each other",
                "--jsonl .a -f 1": "paths, not fields", "--jsonl a": path, "--jsonl .a..b": path, "--jsonl .a[x]": path, "--jsonl .a,": path,
                "--jsonl '.\"a'": path, "-j 0": "threads", "-j 1000": "threads",
            }, before=command)  # fmt: skip


if __name__ == "__main__":
    unittest.main()
