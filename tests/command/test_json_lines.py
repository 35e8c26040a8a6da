"""--jsonl: keys from JSON Lines by paths, beside Python's json module."""

import json
import random
import unittest

from support import CommandTest, sample_if_sanitized, text

EXACT = "-n", 100_000, "-p", "1e-9"


class JsonLines(CommandTest):
    def dedup(self, *arguments: object, **options) -> list[bytes]:
        return self.bloomery("dedup", "-q", *EXACT, *arguments, **options).lines

    def keys(self, path: str, lines: list[bytes], expected: list[bytes]) -> None:
        """Each line has exactly this key: a filter of the expected one has it, and one of any other text has not."""
        self.bloomery("build", "-q", "-0", "-o", "f", "-n", 1000, "-p", "1e-9", stdin=text(expected, b"\0"))
        self.assertEqual(self.bloomery("check", "--jsonl", path, "f", stdin=text(lines)).lines, lines)
        for line, key in sample_if_sanitized(zip(lines, expected), 3):
            self.bloomery("build", "-q", "-0", "-o", "g", "-n", 1000, "-p", "1e-9", stdin=key + b"\0")
            found = self.bloomery("check", "--jsonl", path, "g", stdin=text(lines), status=None).lines
            self.assertEqual(found, [other for other, its in zip(lines, expected) if its == key], line)

    def test_each_kind_of_value_has_its_documented_key(self) -> None:
        self.keys(".a", [rb'{"a":"x"}', rb'{"a":"\u00e9\n\"\\\/\ud83d\ude00"}', b'{"a": 1.0 }', b'{"a":1}', b'{"a":1e400}',
                         b'{"a":-123456789012345678901234567890}', b'{"a":true}', b'{"a":false ,"b":1}', b'{"a":null}',
                         b'{"a": {"b" : [1, 2] } , "c": 1}', b'{"a":[1, {"x":"]"}]}', b'{"a":""}', b'{"b":"x"}', b" ", b"[]", b"7"],
                  [b"x", "é\n\"\\/😀".encode(), b"1.0", b"1", b"1e400", b"-123456789012345678901234567890", b"true", b"false", b"null",
                   b'{"b" : [1, 2] }', b'[1, {"x":"]"}]', b"", b"", b"", b"", b""])

    def test_paths_go_through_objects_and_arrays(self) -> None:
        self.keys('.a."odd . name"[1].c', [b'{"a":{"odd . name":[0,{"c":"x"}]}}', b'{"a":{"odd . name":[{"c":"x"}]}}', b'{"a":[0,{"c":"y"}]}'],
                  [b"x", b"", b""])
        self.keys('.["a"]["b"]', [b'{"a":{"b":1}}', b'{"a":{"b":2,"b":3}}', b'{"a":{"b":4},"a":5}', rb'{"\u0061":{"b":6}}'],
                  [b"1", b"3", b"", b"6"])
        self.keys(".[1]", [b'["a","b"]', b'["a"]'], [b"b", b""])
        self.keys(".a,.a.b", [b'{"a": {"b":1} }'], [b'{"b":1}\x1f1'])

    def test_random_records_agree_with_pythons_json_module(self) -> None:
        chance = random.Random(5)

        def value(depth: int):
            kind = chance.randrange(7 if depth else 5)
            if kind == 0:
                return "".join(chance.choices('ab"\\\n\té€😀/{}[],:', k=chance.randrange(6)))
            if kind < 5:
                return chance.choice([None, True, False, chance.randrange(-5, 5)])
            if kind == 5:
                return [value(depth - 1) for _ in range(chance.randrange(3))]
            return {name: value(depth - 1) for name in chance.sample(["u", "id", "x", "é"], chance.randrange(1, 4))}

        def spelled(found) -> str:
            if isinstance(found, str):
                return found
            return json.dumps(found, separators=(",", ":"), ensure_ascii=False)

        def at(record, path):
            for step in path:
                if not isinstance(record, list if isinstance(step, int) else dict):
                    return ""
                if isinstance(step, int) and step >= len(record) or isinstance(step, str) and step not in record:
                    return ""
                record = record[step]
            return spelled(record)

        records = [{"u": value(2), "id": value(1), "x": value(3)} for _ in range(4000)]
        lines = [json.dumps(r, separators=(",", ":"), ensure_ascii=chance.random() < 0.5).encode() for r in records]
        for text_of_paths, paths in ((".u.id", [["u", "id"]]), (".id", [["id"]]), (".x[0],.id,.u", [["x", 0], ["id"], ["u"]])):
            raw = [json.dumps(r, separators=(",", ":"), ensure_ascii=False).encode() for r in records]
            seen, expected = set(), []
            for record, line in zip(records, raw):
                key = tuple(at(record, path) for path in paths)
                if key not in seen:
                    seen.add(key)
                    expected.append(line)
            for threads in 1, 4:
                self.assertEqual(self.dedup("-j", threads, "--jsonl", text_of_paths, stdin=text(raw)), expected, text_of_paths)
        # However text is escaped, it is one key: a filter of one spelling has the other.
        self.bloomery("build", "-q", "-o", "f", *EXACT, "--jsonl", ".id", stdin=text(lines))
        scalars = [line for record, line in zip(records, raw) if not isinstance(record["id"], (list, dict))]
        self.assertEqual(self.bloomery("check", "--jsonl", ".id", "f", stdin=text(scalars)).lines, scalars)

    def test_records_without_the_value_are_counted(self) -> None:
        run = self.bloomery("dedup", "-q", *EXACT, "--jsonl", ".id,.x", stdin=b'{"id":1,"x":2}\n{"id":1}\n\n{"id":null,"x":2}\n')
        self.assertEqual(len(run.lines), 4)
        self.assertIn("2 records have no value for the key", run.err)
        self.assertNotIn("no value", self.bloomery("dedup", "-q", *EXACT, "--jsonl", ".id", stdin=b'{"id":null}\n').err)

    def test_a_line_that_is_not_json_is_an_error_with_its_file_and_line(self) -> None:
        good = b'{"id":1}\n' * 70_000
        for bad in b'{"id":1', b'{"id":1} {"id":2}', b'{"id":01}', b"plain text":  # JsonReader.RefusesWhatAnotherParserRefuses has many more
            for threads in 1, 3:
                self.write("log.jsonl", good + bad + b"\n" + good)
                run = self.bloomery("build", "-q", "-j", threads, "-o", "f", *EXACT, "--jsonl", ".id", "log.jsonl", status=2)
                self.assertIn("log.jsonl, line 70,001: invalid JSON", run.err, bad)

    def test_half_of_a_surrogate_pair_is_named(self) -> None:
        half = r"invalid JSON string: \\[uU][dD]800 is half of a surrogate pair"
        for options, bad, says in (
            ([".id"], rb'{"id":"a\\\ud800"}', half),
            ([".id"], rb'{"id":"\ud83d\ude00\ud800\u0041"}', half),
            ([".id"], rb'"\ud800"', half),
            ([".id"], rb'{"\ud800":1,"id":2}', half),
            ([".x,.id"], rb'{"x":"\ud83d\ude00","id":"\uD800x"}', half),
            ([".t", "--time-field", ".id", "--window", "24h"], rb'{"id":"\ud800"}', half),
            ([".id"], rb'{"id":"\udc00\ud800"}', r"invalid JSON string: \\udc00 is half"),
            ([".id"], rb'{"x":"\ud800","id":"\q\ud800"}', r"invalid JSON: \\q is not an escape sequence"),
        ):
            run = self.bloomery("build", "-q", "-o", "f", *EXACT, "--jsonl", *options, stdin=b'{"id":"2026-01-05"}\n' + bad + b"\n", status=2)
            self.assertRegex(run.err, "line 2: " + says, bad)

    def test_whole_lines_are_printed_and_the_last_needs_no_end(self) -> None:
        data = b'\xef\xbb\xbf{"id": 1, "x": 1}\r\n{"id": 1, "x": 2}\n{"id": 2}'
        self.assertEqual(self.bloomery("dedup", "-q", *EXACT, "--jsonl", ".id", stdin=data).out, b'{"id": 1, "x": 1}\r\n{"id": 2}\n')
        self.assertEqual(self.bloomery("dedup", "-q", *EXACT, "-0", "--jsonl", ".id", stdin=b'{"id":\n1}\0{"id":1}\0').out, b'{"id":\n1}\0')

    def test_numbers_are_keys_of_filters_of_integers(self) -> None:
        self.bloomery("build", "-q", "--u64", "-o", "f", *EXACT, "--jsonl", ".id", stdin=b'{"id":18446744073709551615}\n{"id":"7"}\n')
        self.assertEqual(self.bloomery("check", "f", stdin=b"007\n8\n18446744073709551615\n").lines, [b"007", b"18446744073709551615"])


if __name__ == "__main__":
    unittest.main()
