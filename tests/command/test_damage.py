"""A file with damaged bytes is reported, or answered correctly: by every command that reads it, for every kind of filter."""

import os
import pty
import random
import re
import resource
import signal
import struct
import unittest

from support import LAYOUTS, LONG, PAYLOAD_AT, CommandTest, checksum, keys, sample_if_sanitized, text

GIB = 1 << 30
DAMAGE = r"page \d+ \(bytes \d+ to \d+\)( and \d+ other pages?)? do(es)? not match (its|their) checksums?: expected 0x[0-9a-f]{16}, found 0x[0-9a-f]{16}; restore"
KINDS = {
    **{layout: ["--layout", layout] for layout in LAYOUTS},
    **{scheme: ["--scheme", scheme] for scheme in ("guava", "python", "perl")},
    **({"pharo": ["--scheme", "pharo"]} if LONG else {}),  # whose rates take seconds to compute
    "counting": ["--counting"],
    "grow": ["--grow"],
    "window": ["--window-keys", 40_000],
    "sealed": None,
}


class Damage(CommandTest):
    COUNT = 5000

    def make(self, name: str, kind: str) -> None:
        lines = text(keys(self.COUNT))
        if KINDS[kind] is None:
            self.bloomery("seal", "-q", "-o", name, stdin=lines)
        else:
            capacity = [] if kind == "window" else ["-n", 20_000]
            self.bloomery("build", "-q", "-o", name, *capacity, *KINDS[kind], stdin=lines)

    def damage(self, name: str, whole: bytes, chance: random.Random) -> None:
        """Some bytes of the filter's own are zeroed, at least one of which was not 0."""
        size = -(-int.from_bytes(whole[128:136], "little") // 8)
        at = PAYLOAD_AT + chance.choice([i for i in range(size) if whole[PAYLOAD_AT + i] != 0])
        file = bytearray(whole)
        file[at : at + 50] = bytes(len(file[at : min(at + 50, PAYLOAD_AT + size)]))
        self.write(name, bytes(file[: len(whole)]))

    def reports(self, *lines: str, stdin: bytes = b"") -> None:
        for line in lines:
            result = self.bloomery(*line.split(), stdin=stdin, status=None)
            self.assertEqual(result.status, 2, line)
            self.assertRegex(result.err, rf"\Abloomery: (\S*/)?f: {DAMAGE}", line)

    def test_every_command_reports_it_for_every_kind_of_filter(self) -> None:
        chance = random.Random(1)
        for kind in sample_if_sanitized(KINDS, 5):
            with self.subTest(kind=kind):
                self.make("f", kind)
                self.make("g", kind)
                whole = self.read("f")
                for _ in range(3 if LONG else 1):
                    self.damage("f", whole, chance)

                    self.reports("check f", "info f", "info --json f", "verify f", "explain f key-1", stdin=text(keys(1)))
                    self.reports("check -c f", stdin=text(keys(2 * self.COUNT)))
                    if kind not in ("sealed", "counting"):
                        self.reports("dedup -q --state f", "add -q f", stdin=text(keys(1)))
                    if kind not in ("sealed", "grow"):
                        self.reports("union -q -o u f g")
                    if kind not in ("sealed", "grow", "counting", "window"):
                        self.reports("overlap g f", "intersect -q -o u g f")
                    if kind in LAYOUTS:
                        self.reports("fold -q -o u --times 1 f")
                    self.assertFalse(os.path.exists(self.path("u")))

    def test_damage_is_never_written_over(self) -> None:
        self.make("f", "classic")
        self.damage("f", self.read("f"), random.Random(2))
        before = self.read("f")

        self.reports("dedup -q --state f", "add -q f", stdin=b"new\n")

        self.assertEqual(self.read("f")[PAYLOAD_AT:], before[PAYLOAD_AT:])

    def test_without_verification_present_keys_are_denied(self) -> None:
        self.make("f", "classic")
        whole = self.read("f")
        self.write("f", whole[:PAYLOAD_AT] + bytes(4096) + whole[PAYLOAD_AT + 4096 :])

        found = self.bloomery("check", "--no-verify", "f", stdin=text(keys(self.COUNT)))

        self.assertLess(len(found.lines), self.COUNT)
        for line in "info f", "explain f key-1", "overlap f f", "union -q -o u f f", "fold -q -o u f":
            self.assertIn(self.bloomery(*line.split(), "--no-verify", status=None).status, (0, 1) if "explain" in line else (0,))

    def test_a_large_file_is_verified_where_it_is_used(self) -> None:
        # 48 MiB, above the size that is verified at open.
        lines = keys(1000)
        self.bloomery("build", "-q", "-o", "f", "-m", "48MiB", "-k", 7, "--layout", "blocked", stdin=text(lines))
        file = bytearray(self.read("f"))
        used = next(i for i in range(PAYLOAD_AT, len(file)) if file[i] != 0)
        unused = next(i for i in range(PAYLOAD_AT, len(file), 4096) if not any(file[i : i + 4096]))
        file[unused] = 1
        self.write("f", bytes(file))
        self.assertEqual(self.bloomery("check", "f", stdin=text(lines)).lines, lines)
        self.reports("info f")
        self.reports("check -c f", stdin=text(keys(20_000)))  # more keys than pages: all are verified

        file[used] = 0
        self.write("f", bytes(file))

        self.reports("check f", "check -j 2 f", stdin=text(lines))

    def test_a_file_without_valid_checksums_is_reported_as_unverified_once(self) -> None:
        self.make("f", "classic")
        writer = self.start("add", "f")
        while self.bloomery("info", "--header", "--json", "f").json["clean"]:
            pass

        checked = self.bloomery("check", "f", stdin=text(keys(self.COUNT)))
        quiet = self.bloomery("check", "-q", "f", stdin=text(keys(1)))
        writer.communicate(b"")

        self.assertEqual(len(checked.lines), self.COUNT)
        self.assertEqual(len(re.findall("pages cannot be verified", checked.err)), 1)
        self.assertEqual(quiet.err, "")


class Header(CommandTest):
    def test_header_of_a_file_with_the_layout_of_another_program_is_shown(self) -> None:
        self.make_filter("f", [b"Madrid"], "-n", 10, "--layout", "blocked", "--note", "mine")
        data = bytearray(self.read("f"))
        struct.pack_into("32s", data, 16, b"own_layout")
        struct.pack_into("<Q", data, 504, checksum(bytes(data[:504])))
        self.write("f", bytes(data))

        refusal = self.refused("info", "f", says="'own_layout'")
        facts = self.bloomery("info", "--header", "--json", "f").json

        self.assertIn("'bloomery info --header'", refusal.err)
        self.assertEqual((facts["layout"], facts["inserted"], facts["capacity"], facts["note"]), ("own_layout", 1, 10, "mine"))

    def huge(self, size: int) -> None:
        """An empty filter of this size, which takes no room on the disk."""
        self.bloomery("build", "-q", "-o", "huge", "-n", 10, "-m", 4096, "-k", 7, "--layout", "classic", stdin=b"")
        header = bytearray(self.read("huge")[:PAYLOAD_AT])
        pages = size // 4096
        file_bytes = PAYLOAD_AT + 4096 * pages + 8 * pages
        struct.pack_into("<Q", header, 128, 8 * size)
        struct.pack_into("<Q", header, 176, file_bytes)
        struct.pack_into("<Q", header, 504, checksum(bytes(header[:504])))
        self.write("huge", bytes(header))
        os.truncate(self.path("huge"), file_bytes)

    def test_header_of_a_huge_file_is_shown_without_reading_the_file(self) -> None:
        self.huge(20 * GIB)

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (2, 2))  # reading the file takes more

        facts = self.bloomery("info", "--header", "--json", "huge", preexec_fn=limit).json
        said = self.bloomery("info", "--header", "huge", preexec_fn=limit).out.decode()

        self.assertEqual((facts["bytes"], facts["bits"], facts["probes"], facts["layout"]), (20 * GIB, 160 * GIB, 7, "classic"))
        self.assertRegex(said, r"(?m)^size +20(\.0)? GiB \(171,798,691,840 bits, 7 probes per key\)$")

    def test_a_terminal_shows_how_much_of_a_huge_file_is_read_until_ctrl_c(self) -> None:
        self.huge(20 * GIB)
        ours, theirs = pty.openpty()
        process = self.start("info", "huge", stderr=theirs)
        os.close(theirs)
        said = ""
        while "checked: " not in said:
            said += os.read(ours, 65536).decode()
        process.send_signal(signal.SIGINT)
        status = process.wait(60)
        os.close(ours)

        self.assertEqual(status, -signal.SIGINT)
        self.assertRegex(said, r"\Abloomery: huge: reading 20(\.0)? GiB; 'bloomery info --header' shows the parameters without reading the file\r\n")
        self.assertRegex(said, r"checked: [\d.]+ [MG]iB of 20(\.0)? GiB  \[[#.]{20}\] \d+%")

    def test_header_says_what_info_says(self) -> None:
        for options in [], ["--counting"], ["--window", "7d"], ["--grow"], ["--scheme", "guava"], ["--seed", 5, "--note", "hello"]:
            with self.subTest(options=options):
                self.bloomery("build", "-q", "-o", "f", "-n", 1000, *options, stdin=text(keys(100)))

                header = self.bloomery("info", "--header", "--json", "f").json
                info = self.bloomery("info", "--json", "f").json

                for field in header.keys() & info.keys() - {"window", "log"}:
                    self.assertEqual(header[field], info[field], field)
                self.assertEqual(header["log"], "f.log" if options == ["--grow"] else None)
                self.assertEqual(header["window_milliseconds"], 7 * 86_400_000 if "7d" in options else None)

    def test_header_excludes_what_needs_more(self) -> None:
        self.bloomery("build", "-q", "-o", "f", "-n", 10, stdin=b"")
        self.refuse_all({f"info --header {option} f": "leave out one of the two options" for option in ("--check", "--queries 5", "--build")})
        self.refused("info", "--header", "redis://127.0.0.1/f", says="no file header")
        self.write("f", b"text")
        self.refused("info", "--header", "f", says="not a bloomery filter")


if __name__ == "__main__":
    unittest.main()
