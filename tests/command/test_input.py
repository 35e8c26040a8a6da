"""Inputs that are not plain text: compressed data, which is read, and archives and binary data, which are refused."""

import bz2
import gzip
import io
import lzma
import os
import shutil
import struct
import subprocess
import tarfile
import unittest
import zipfile
import zlib
from collections.abc import Callable

from support import COMMAND, CommandTest, cut, first_occurrences, keys, packed, sample_if_sanitized, text, zstd

READ = "gzip, zstd, lz4, xz or bzip2"


def lz4(data: bytes, *options: str) -> bytes:
    """A frame of the lz4 tool."""
    return subprocess.run(["lz4", "-zc", *options], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def skippable(data: bytes, number: int = 0) -> bytes:
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


FORMATS: dict[str, Callable[[bytes], bytes]] = {"xz": lzma.compress, "bz2": bz2.compress, "gz": gzip.compress, "zst": zstd, "lz4": lz4}
if shutil.which("lz4") is None:
    del FORMATS["lz4"]


class Compressed(CommandTest):
    def test_zeros_behind_and_between_gzip_members_are_padding(self) -> None:
        one, two = keys(3000), keys(3000, "other")
        for zeros in sample_if_sanitized((1, 511, 65_536, 300_000), 2):
            for data, lines in (
                (gzip.compress(text(one)) + bytes(zeros), one),
                (gzip.compress(text(one)) + bytes(zeros) + gzip.compress(text(two)) + bytes(zeros), one + two),
            ):
                with self.subTest(zeros=zeros):
                    self.assertEqual(gzip.decompress(data), text(lines))
                    self.assertEqual(self.bloomery("dedup", "-q", stdin=data).lines, lines)
            for rest in b"garbage", bytes(8) + gzip.compress(text(two))[:-4]:
                self.refused("build", "-q", "-o", "g", stdin=gzip.compress(text(one)) + bytes(zeros) + rest, says="compressed data is (damaged|truncated)")

    def built(self, *arguments: object, stdin: bytes = b"") -> bytes:
        self.bloomery("build", "-q", "-n", 50_000, "-o", "f", *arguments, stdin=stdin)
        whole = self.read("f")
        os.unlink(self.path("f"))
        return whole

    def test_every_format_gives_the_filter_of_its_text(self) -> None:
        self.assertIn("lz4", FORMATS, "the package lz4 is not installed")
        plain = text(keys(50_000))
        self.write("plain", plain)
        expected = self.built("plain")
        half = plain.index(b"\n", len(plain) // 2) - 3  # within a line
        for name, compress in FORMATS.items():
            one, empty = compress(plain), compress(b"")
            for data in one, compress(plain[:half]) + compress(plain[half:]), empty + one, one + empty:
                with self.subTest(format=name, bytes=len(data)):
                    self.write("compressed", data)
                    self.assertEqual(self.built("compressed"), expected, "a file")
                    self.assertEqual(self.built(stdin=data), expected, "a pipe")

    @unittest.skipUnless("lz4" in FORMATS, "the package lz4 is not installed")
    def test_every_kind_of_lz4_frame_is_read(self) -> None:
        plain = text(keys(50_000))
        expected = self.built(stdin=plain)
        for options in ["-B4", "-BD"], ["-B7"], ["-BX"], ["--no-frame-crc"], ["-9"], ["--content-size"]:
            with self.subTest(options=options):
                self.assertEqual(self.built(stdin=lz4(plain, *options)), expected)

    def test_skippable_frames_are_skipped(self) -> None:
        plain = text(keys(50_000))
        expected = self.built(stdin=plain)
        for name in {"lz4", "zst"} & FORMATS.keys():
            data = FORMATS[name](plain)
            for before in skippable(b""), skippable(b"x" * 200_000, 15), skippable(b"a", 1) + skippable(gzip.compress(b"b"), 7):
                with self.subTest(format=name, bytes=len(before)):
                    self.assertEqual(self.built(stdin=before + data), expected, "before")
                    self.assertEqual(self.built(stdin=data + before), expected, "after")
                    self.assertEqual(self.built(stdin=data + before + FORMATS[name](b"key-1\n")), expected, "between")

    def test_xz_padding_is_read(self) -> None:
        plain = text(keys(1000))
        data = lzma.compress(plain) + bytes(8)
        if shutil.which("xz"):
            self.assertEqual(subprocess.run(["xz", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout, plain)

        self.assertEqual(self.built(stdin=data), self.built(stdin=plain))

    def test_damaged_data_is_refused(self) -> None:
        # The unit tests of Decompress cut at every byte and flip every bit.
        plain = text(keys(300))
        cut_short = [data[:length] for data in (compress(plain) for compress in FORMATS.values()) for length in (11, len(data) - 1)]
        frame = skippable(b"abc")
        rows = [(data, rf"compressed data is truncated: expected further data, found the end after {len(data)} bytes") for data in cut_short]
        rows += [(compress(b"key-1\n") + b"rubbish, and more of it", "compressed data is damaged: expected valid .* data, found") for compress in FORMATS.values()]
        rows += [(gzip.compress(compress(b"key-1\n")), "compressed twice.* data within compressed data") for compress in FORMATS.values()]
        rows += [
            (gzip.compress(plain)[:60] + b"\xff" + gzip.compress(plain)[61:], "compressed data is (damaged|truncated)"),
            (lzma.compress(plain) + bytes(3), "damaged"),
            (frame[:-1], "damaged: expected the rest of a skippable frame"),
            (frame[:6], "damaged: expected the rest of a skippable frame"),
            (frame + b"key-1\n", "after a skippable frame, found other data"),
            (frame + gzip.compress(b"a"), "skippable frame, found gzip data"),
        ]
        for data, says in rows:
            with self.subTest(says=says, data=data[:20]):
                self.write("data", data)
                for command in ["build", "-q", "-o", "f"], ["dedup", "-q", "--exact"]:
                    self.refused(*command, "data", says="data: .*" + says)
        self.assertFalse(os.path.exists(self.path("f")))

    def test_a_header_that_asks_for_gigabytes_is_refused_by_its_size(self) -> None:
        data = bytearray(lzma.compress(text(keys(1000))))
        header = 4 * (data[12] + 1)  # of the block, behind 12 bytes of header of the stream
        self.assertEqual(data[14:16], b"\x21\x01")  # LZMA2 has one byte of properties: the size of its dictionary
        data[16] = 40  # 4 GiB - 1
        struct.pack_into("<I", data, 12 + header - 4, zlib.crc32(data[12 : 12 + header - 4]))
        self.write("hostile.xz", bytes(data))
        self.refused("build", "-o", "f", "hostile.xz", says=r"hostile.xz: decompression needs too much memory: expected at most 256 MiB, found 4(\.0+\d*)? GiB; .*xz -dc FILE")

        window = bytes([(31 - 10) << 3])  # 2 GiB
        self.write("hostile.zst", b"\x28\xb5\x2f\xfd\x00" + window + struct.pack("<I", 2 << 3 | 1)[:3] + b"a\n")
        self.refused("build", "-o", "f", "hostile.zst", says="hostile.zst: decompression needs too much memory: expected .*128 MiB.*zstd -dc --long=31")


def zip_of(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return file.getvalue()


def tar_of(name: str, data: bytes, format: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


class NotText(CommandTest):
    READERS = ["build -o new", "add f", "check f", "remove counting", "dedup -q -n 10", "dedup -q --exact", "seal -o new", "analyze -n 100 --runs 1",
               "build --grow -o new", "build --scheme guava -o new"]  # fmt: skip

    def setUp(self) -> None:
        super().setUp()
        self.make_filter("f", keys(10), "-n", 10)
        self.make_filter("counting", keys(10), "-n", 10, "--counting")

    def test_archives_and_other_compressions_are_refused_by_name(self) -> None:
        plain = text(keys(1000))
        kinds = {
            "zip": (zip_of("keys", plain), "a zip archive; decompress it first: unzip -p FILE"),
            "empty.zip": (b"PK\x05\x06" + bytes(18), "zip archive"),
            "posix.tar": (tar_of("keys", plain, tarfile.PAX_FORMAT), "a tar archive; .*tar -xOf FILE"),
            "gnu.tar": (tar_of("keys", plain, tarfile.GNU_FORMAT), "a tar archive"),
            "tar.gz": (gzip.compress(tar_of("keys", plain, tarfile.GNU_FORMAT)), "a tar archive"),
            "tar.xz": (lzma.compress(tar_of("keys", plain, tarfile.PAX_FORMAT)), "a tar archive"),
            "7z": (b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(24), "a 7z archive; .*7z x -so FILE"),
            "rar": (b"Rar!\x1a\x07\x01\x00" + bytes(24), "a RAR archive; .*unrar p"),
            "Z": (b"\x1f\x9d\x90k\xca", "compress.*gzip -dc FILE"),
            "lz": (b"LZIP\x01\x0c\x01\x02", "lzip data; .*lzip -dc FILE"),
            "lzo": (b"\x89LZO\x00\r\n\x1a\n\x10\x40", "lzop data; .*lzop -dc FILE"),
            "sz": (b"\xff\x06\x00\x00sNaPpY\x01", "snappy data"),
            "utf16": (("\ufeff" + "key-1\n" * 9).encode("utf-16-le"), "text in UTF-16; .*iconv -f UTF-16 -t UTF-8 FILE"),
            "utf16be": (("\ufeff" + "key-1\n" * 9).encode("utf-16-be"), "text in UTF-16"),
        }
        if shutil.which("lz4"):
            kinds["legacy.lz4"] = (lz4(plain, "-l"), "LZ4 data in the legacy format; .*lz4 -dc FILE")
        for name, (data, says) in kinds.items():
            with self.subTest(kind=name):
                self.write(name, data)
                self.refused("check", "f", name, says=rf"\Abloomery: {name}: this input is not a text file: expected text, .*{READ}, found .*{says}")
                with open(self.path(name), "rb") as file:
                    self.refused("check", "f", stdin=file, says=rf"standard input: this input is not a text file.*{says}")

    def test_the_real_tools_decompress_what_the_hint_says(self) -> None:
        self.write("z.zip", zip_of("keys", text(keys(10))))
        self.write("t.tar", tar_of("keys", text(keys(10)), tarfile.PAX_FORMAT))
        for name, tool in ("z.zip", "unzip"), ("t.tar", "tar"):
            if shutil.which(tool) is None:
                continue
            says = self.refused("check", "f", name).err
            command = says[says.index("first: ") + 7 :].split(" | ")[0].replace("FILE", name)
            plain = subprocess.run(command.split(), cwd=self.folder, stdout=subprocess.PIPE, check=True).stdout
            self.assertEqual(plain, text(keys(10)))

    def test_every_command_that_reads_keys_refuses_binary_data_and_filters(self) -> None:
        binary = text(keys(100)) + b"\x00\x01\x02\n" + text(keys(100))
        self.write("binary", binary)
        self.make_filter("log", keys(10), "--grow")
        self.make_filter("other", keys(10))
        before = self.bits_of("f"), self.bits_of("counting")
        nul = r"binary: this input is binary data: expected lines of text, found a NUL byte at offset 690; .*--null .*--text"
        no_text = "other: this input is not a text file: expected text.*, found a bloomery filter; give a file of keys"
        for reader in sample_if_sanitized(self.READERS, 4):
            self.refuse_all({
                f"{reader} binary": nul,
                f"{reader} -": "standard input: this input is binary data",
                f"{reader} other": "other: .*cannot list its keys" if "seal" in reader else no_text,
                f"{reader} log.log": "found the log of a bloomery filter",
            }, stdin=binary)  # fmt: skip
        self.assertEqual((self.bits_of("f"), self.bits_of("counting")), before)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_binary_data_is_read_when_that_is_asked_for(self) -> None:
        archive = zip_of("keys", text(keys(10)))
        self.bloomery("build", "-q", "--text", "-o", "g", stdin=archive)
        self.assert_has_all("g", archive.split(b"\n"), "--text")
        self.refused("build", "-0", "-o", "new", stdin=archive, says="a zip archive")

    def test_nul_bytes_count_among_the_first_64_kib_only(self) -> None:
        line = b"x" * 63 + b"\n"
        for at in 65_535, 0:
            data = line * 2048
            data = data[:at] + b"\0" + data[at + 1 :]
            self.refused("build", "-o", "g", stdin=data, says=f"offset {at};")
            self.refused("build", "-o", "g", stdin=gzip.compress(data), says=f"offset {at};")
        self.bloomery("build", "-q", "-o", "g", stdin=line * 1024 + b"\0" + line)
        self.assertEqual(self.count("g", [b"\0" + line[:-1]], "--text"), 1)

    def test_binary_data_after_text_ends_with_its_place(self) -> None:
        lines = keys(100_000)  # 1 MB, several chunks of input
        start = text(lines)
        with open(COMMAND, "rb") as program:
            elf = program.read(100_000)
        for data in sample_if_sanitized((bytes(65), elf, "x".encode("utf-16-le") * 200, bytes(1 << 20)), 2):
            for whole in start + data, start + data + start, start + b"cut off " + data:
                first = whole.index(0)
                says = rf"line {whole[:first].count(10) + 1:,}: binary data in this input; earlier lines may have been processed: .* from offset {first} on; .*--text"
                with self.subTest(size=len(whole)):
                    run = self.bloomery("dedup", "-q", stdin=whole, status=2)
                    self.assertRegex(run.err, says)
                    self.assertEqual(run.lines, lines[: len(run.lines)])
                    self.refused("build", "-o", "g", stdin=gzip.compress(whole, 1), says=says)
                    self.write("data", whole)
                    self.refused("dedup", "-q", "data", says=says)
                    self.assertEqual(len(self.bloomery("dedup", "-q", "--text", stdin=whole).lines), len(set(cut(whole))))

    def test_few_nul_bytes_after_the_first_64_kib_are_part_of_lines(self) -> None:
        lines = keys(100_000)
        data = bytearray(text(lines))
        for window in range(1, len(data) >> 16):
            for i in range(64):
                data[(window << 16) + 1000 * i + 7] = 0
        self.assertEqual(self.bloomery("dedup", "-q", stdin=bytes(data)).lines, first_occurrences(cut(bytes(data))))
        at = (3 << 16) + 5
        data[at] = 0
        self.assertIn(f"from offset {at} on", self.bloomery("dedup", "-q", stdin=bytes(data), status=2).err)

    def test_text_is_never_taken_for_another_kind(self) -> None:
        starts = [b"PK", b"7z", b"Rar!", b"BZh9", b"BZh91AY&S", b"LZIP", b"LZIP\t", b"ustar", b"\x1f", b"\xff\xfe", b"\xfe\xff", b"P*M", b"\xfd7zXZ"]
        latin1 = [bytes([i]) * 3 for i in range(1, 256) if i != 10]
        alone = [[start] for start in starts]
        for lines in sample_if_sanitized(alone, 3) + [starts, latin1, ["Zürich".encode(), "日本".encode()], [b"x" * 256, b"ustar"]]:
            with self.subTest(lines=lines):
                self.assertEqual(self.bloomery("build", "--json", "-n", 1000, "-o", "g", stdin=text(lines)).json["keys"], len(lines))
                self.assert_has_all("g", lines)

    def test_slow_input_is_recognised_byte_by_byte(self) -> None:
        for data, expected in (b"BZ", b"BZ\n"), (packed(b"key-1\n"), b"key-1\n"):
            self.make_filter("g", [b"BZ", b"key-1"])
            process = self.start("check", "g")
            for byte in data:
                process.stdin.write(bytes([byte]))
                process.stdin.flush()
            out, err = process.communicate(timeout=60)
            self.assertEqual((out, process.returncode), (expected, 0), err)
