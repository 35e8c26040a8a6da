"""bloomery check: prints the lines whose key may be present, and answers by its exit status as grep does."""

import os
import unittest

from support import CommandTest, cut, keys, packed, text, zstd


class Check(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 1000, "-p", "1e-9", stdin=text(keys(1000)))
        self.mixed = [key for pair in zip(keys(1000), keys(1000, "absent")) for key in pair]

    def check(self, *arguments: object, status: int = 0, **options) -> list[bytes]:
        return self.bloomery("check", *arguments, status=status, **options).lines

    def test_the_lines_of_present_keys_come_out_in_order(self) -> None:
        self.assertEqual(self.check("f", stdin=text(self.mixed)), keys(1000))

    def test_inverted_it_prints_the_absent_ones_in_order(self) -> None:
        for flag in "-v", "--invert":
            self.assertEqual(self.check(flag, "f", stdin=text(self.mixed)), keys(1000, "absent"))

    def test_it_can_print_their_number_only(self) -> None:
        self.assertEqual(self.check("-c", "f", stdin=text(self.mixed + keys(5))), [b"1005"])
        self.assertEqual(self.check("-v", "--count", "f", stdin=text(self.mixed)), [b"1000"])
        self.assertEqual(self.check("-c", "f", stdin=b"absent\n", status=1), [b"0"])

    def test_the_exit_status_is_0_for_some_1_for_none_2_for_an_error(self) -> None:
        for options, found, none in ([], 0, 1), (["-q"], 0, 1), (["-c"], 0, 1), (["--json"], 0, 1), (["-v"], 1, 0):
            self.bloomery("check", *options, "f", stdin=b"key-1\n", status=found)
            self.bloomery("check", *options, "f", stdin=b"absent\n", status=none)
        self.bloomery("check", "f", stdin=b"", status=1)
        self.refused("check", "missing", stdin=b"key-1\n", says="missing: cannot open")
        self.refused("check", "f", "missing", says="missing: cannot read")

    def test_quiet_prints_nothing_and_does_not_wait_for_the_end(self) -> None:
        process = self.start("check", "-q", "f")
        process.stdin.write(text(keys(1)))
        process.stdin.flush()

        self.assertEqual(process.wait(60), 0)  # though standard input is still open
        self.assertEqual((process.stdout.read(), process.stderr.read()), (b"", b""))

    def test_json_is_one_object_and_nothing_else(self) -> None:
        present = self.bloomery("check", "--json", "f", stdin=text(self.mixed)).json
        absent = self.bloomery("check", "--json", "-v", "-c", "f", stdin=text(self.mixed[:7])).json

        self.assertEqual(present, {"filter": "f", "keys": 2000, "maybe_present": 1000})
        self.assertEqual(absent, {"filter": "f", "keys": 7, "absent": 3})

    def test_lines_come_out_as_soon_as_they_are_known(self) -> None:
        process = self.start("check", "f")

        for key in keys(3):
            process.stdin.write(key + b"\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), key + b"\n")

    def test_any_number_of_threads_gives_the_same_output(self) -> None:
        many = [b"%s/%d" % (key, i) for i in range(100) for key in self.mixed] + self.mixed
        self.write("many", many)

        outputs = [self.check("-v", "-j", threads, "f", "many") for threads in (1, 2, 4, 64)]

        present = set(keys(1000))
        self.assertEqual(outputs[0], [line for line in many if line not in present])
        self.assertEqual(outputs[1:], outputs[:1] * 3)

    def test_the_whole_line_comes_out_when_its_key_is_a_field(self) -> None:
        lines = [b"1,key-1,x", b"2,absent,y", b"3,key-3"]

        self.assertEqual(self.check("-d", ",", "-f", 2, "f", stdin=text(lines)), [lines[0], lines[2]])

    def test_the_carriage_return_stays_on_the_line(self) -> None:
        self.assertEqual(self.bloomery("check", "--crlf", "f", stdin=b"key-1\r\nabsent\r\nkey-2\n").out, b"key-1\r\nkey-2\n")
        self.bloomery("check", "f", stdin=b"key-1\r\n", status=1)

    def test_lines_that_end_with_nul_come_out_so(self) -> None:
        found = self.bloomery("check", "-0", "f", stdin=b"key-1\0absent\n\0key-2\0")

        self.assertEqual(cut(found.out, b"\0"), [b"key-1", b"key-2"])

    def test_a_last_line_without_its_end_gets_one(self) -> None:
        self.assertEqual(self.bloomery("check", "f", stdin=b"key-1\nkey-2").out, b"key-1\nkey-2\n")

    def test_files_and_standard_input_are_read_one_after_another(self) -> None:
        self.write("a.gz", packed(text(keys(10))))
        self.write("b.zst", zstd(text(keys(5))))

        found = self.check("f", "b.zst", "-", "a.gz", stdin=b"key-99\nabsent\n")

        self.assertEqual(found, keys(5) + [b"key-99"] + keys(10))

    def test_a_filter_of_integers_refuses_what_is_none(self) -> None:
        self.bloomery("build", "-q", "-o", "numbers", "--u64", stdin=b"1\n22\n")

        self.assertEqual(self.check("numbers", stdin=b"22\n3\n"), [b"22"])
        for line in b"x", b"1x", b"", b"-1", b"99999999999999999999", b"0x1":
            self.refused("check", "numbers", stdin=line + b"\n", says="standard input: the filter's keys are integers")
        self.write("list", b"x\n")
        self.refused("check", "numbers", "list", says="list: the filter's keys are integers")

    def test_checking_changes_nothing(self) -> None:
        before = self.read("f"), os.stat(self.path("f")).st_mtime_ns

        self.check("f", stdin=text(self.mixed))

        self.assertEqual((self.read("f"), os.stat(self.path("f")).st_mtime_ns), before)


if __name__ == "__main__":
    unittest.main()
