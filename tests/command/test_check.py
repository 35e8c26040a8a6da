"""bloomery check: prints the lines whose key may be present, and answers by its exit status as grep does."""

import os
import unittest

from support import CommandTest, keys, text


class Check(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 1000, "-p", "1e-9", stdin=text(keys(1000)))
        self.mixed = [key for pair in zip(keys(1000), keys(1000, "absent")) for key in pair]

    def test_it_prints_present_lines_or_absent_ones_or_their_number(self) -> None:
        for options, some, none, everything in (
            ("", text(keys(1000)), b"", text(keys(5))),
            ("-v", text(keys(1000, "absent")), text(keys(5, "absent")), b""),
            ("--invert", text(keys(1000, "absent")), text(keys(5, "absent")), b""),
            ("-c", b"1000\n", b"0\n", b"5\n"),
            ("-v --count", b"1000\n", b"5\n", b"0\n"),
            ("--json", b'{"filter":"f","keys":2000,"maybe_present":1000}\n', b'{"filter":"f","keys":5,"maybe_present":0}\n', b'{"filter":"f","keys":5,"maybe_present":5}\n'),
            ("--json -v -c", b'{"filter":"f","keys":2000,"absent":1000}\n', b'{"filter":"f","keys":5,"absent":5}\n', b'{"filter":"f","keys":5,"absent":0}\n'),
            ("-q", b"", b"", b""),
        ):
            inverted = "-v" in options or "--invert" in options
            for lines, out, status in (self.mixed, some, 0), (keys(5, "absent"), none, 0 if inverted else 1), (keys(5), everything, 1 if inverted else 0):
                with self.subTest(options=options, lines=lines[0]):
                    run = self.bloomery("check", *options.split(), "f", stdin=text(lines), status=status)
                    self.assertEqual((run.out, run.err), (out, ""))
        self.bloomery("check", "f", stdin=b"", status=1)
        self.refuse_all({"check missing": "missing: cannot open", "check f missing": "missing: cannot read"}, stdin=b"key-1\n")

    def test_quiet_prints_nothing_and_does_not_wait_for_the_end(self) -> None:
        process = self.start("check", "-q", "f")
        process.stdin.write(text(keys(1)))
        process.stdin.flush()

        self.assertEqual(process.wait(60), 0)  # though standard input is still open
        self.assertEqual((process.stdout.read(), process.stderr.read()), (b"", b""))

    def test_lines_come_out_as_soon_as_they_are_known(self) -> None:
        process = self.start("check", "f")

        for key in keys(3):
            process.stdin.write(key + b"\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), key + b"\n")

    def test_any_number_of_threads_gives_the_same_output(self) -> None:
        many = [b"%s/%d" % (key, i) for i in range(100) for key in self.mixed] + self.mixed
        self.write("many", many)
        before = self.read("f"), os.stat(self.path("f")).st_mtime_ns

        outputs = [self.bloomery("check", "-v", "-j", threads, "f", "many").lines for threads in (1, 2, 4, 64)]

        present = set(keys(1000))
        self.assertEqual(outputs[0], [line for line in many if line not in present])
        self.assertEqual(outputs[1:], outputs[:1] * 3)
        self.assertEqual((self.read("f"), os.stat(self.path("f")).st_mtime_ns), before)

    def test_a_filter_of_integers_refuses_other_lines(self) -> None:
        self.bloomery("build", "-q", "-o", "numbers", "--u64", stdin=b"1\n22\n")

        self.assertEqual(self.bloomery("check", "numbers", stdin=b"22\n3\n").lines, [b"22"])
        for line in b"x", b"1x", b"", b"-1", b"99999999999999999999", b"0x1":
            self.refused("check", "numbers", stdin=line + b"\n", says="standard input: the filter's keys are integers")
        self.write("list", b"x\n")
        self.refused("check", "numbers", "list", says="list: the filter's keys are integers")


if __name__ == "__main__":
    unittest.main()
