"""bloomery seal --memory: hashes in a temporary file give the same filter, and failures leave nothing behind."""

import hashlib
import os
import resource
import signal
import subprocess
import time
import unittest

from support import CommandTest, keys, text

ON_DISK = ("--memory", "1B")
TOLD = "the keys do not fit into 1 B of memory; their hashes are kept in a temporary file in "


class SealOnDisk(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        os.mkdir(self.path("temporary"))
        self.elsewhere = dict(os.environ, TMPDIR=self.path("temporary"))

    def test_the_file_is_the_same(self) -> None:
        self.write("lines", keys(50_000) + keys(20_000))
        for options in [], ["--ribbon", "--width", 7], ["-p", "1e-6"], ["--note", "of lines", "--seed", 3], ["-j", 1]:
            in_memory = self.bloomery("seal", "--json", *options, "lines", "-o", "in-memory").json
            on_disk = self.bloomery("seal", "--json", *ON_DISK, *options, "lines", "-o", "on-disk").json

            self.assertEqual(self.read("in-memory"), self.read("on-disk"), options)
            self.assertEqual((in_memory.pop("temporary_bytes"), on_disk.pop("temporary_bytes")), (0, 8 * 70_000))
            self.assertEqual({**in_memory, "filter": ""}, {**on_disk, "filter": ""})
        self.assert_has_all("on-disk", keys(50_000))

    def test_several_partitions_from_a_pipe(self) -> None:
        numbers = text(b"%d" % i for i in range(1_500_000))
        self.bloomery("seal", "-q", "--u64", "-o", "in-memory", stdin=numbers)
        self.bloomery("seal", "-q", "--u64", *ON_DISK, "-o", "on-disk", stdin=numbers)

        self.assertEqual(self.read("in-memory"), self.read("on-disk"))

    def test_hashes_with_counts(self) -> None:
        hashes = [hashlib.sha1(key).hexdigest().upper().encode() for key in keys(3000)]
        self.write("hashes", [b"%s:%d" % (line, i) for i, line in enumerate(hashes)])

        made = self.bloomery("seal", "--json", "-d", ":", "-f", 1, "--width", 7, *ON_DISK, "hashes", "-o", "breached").json

        self.assertEqual((made["keys"], made["layout"]), (3000, "fuse7"))
        self.assert_has_all("breached", hashes)

    def test_the_log_of_a_filter(self) -> None:
        self.bloomery("build", "--grow", "-q", "-o", "f", stdin=text(keys(20_000) + keys(3000)))
        self.bloomery("seal", "-q", "f", "-o", "in-memory")
        self.bloomery("seal", "-q", *ON_DISK, "f", "-o", "on-disk")

        self.assertEqual(self.read("in-memory"), self.read("on-disk"))

    def test_no_key(self) -> None:
        self.bloomery("seal", "-q", "-o", "in-memory", stdin=b"")
        self.bloomery("seal", "-q", *ON_DISK, "-o", "on-disk", stdin=b"")

        self.assertEqual(self.read("in-memory"), self.read("on-disk"))

    # ---- the temporary file

    def test_the_folder_is_named(self) -> None:
        self.write("lines", keys(1000))

        run = self.bloomery("seal", *ON_DISK, "lines", "-o", "f", env=self.elsewhere)

        self.assertRegex(run.err.splitlines()[0], TOLD + self.path("temporary"))
        self.assertEqual(os.listdir(self.path("temporary")), [])
        self.refused("seal", *ON_DISK, "lines", "-o", "g", env=dict(os.environ, TMPDIR="/nowhere"), says="/nowhere: cannot create a temporary file")
        self.refused("seal", *ON_DISK, "lines", "-o", "no/g", says="no/g")

    def test_without_a_temporary_folder_it_is_beside_the_output(self) -> None:
        run = self.bloomery("seal", *ON_DISK, "-o", self.path("f"), stdin=b"a\n", env={k: v for k, v in os.environ.items() if k != "TMPDIR"})

        self.assertRegex(run.err.splitlines()[0], TOLD + self.folder)

    def test_a_full_disk_leaves_the_old_file(self) -> None:
        self.write("lines", keys(200_000))
        self.bloomery("seal", "-q", "-o", "f", stdin=b"old\n")
        before = self.read("f")
        self.mount("temporary", "64k")

        warned = self.bloomery("seal", *ON_DISK, "lines", "-o", "f", env=self.elsewhere, status=2)
        self.assertRegex(warned.err, "(?s)warning: .*not enough disk space.*TMPDIR.*temporary file: cannot write: No space")
        with open(self.path("lines"), "rb") as lines:
            self.refused("seal", "-q", *ON_DISK, "-o", "f", stdin=lines.read(), env=self.elsewhere, says="temporary file: cannot write: No space.*TMPDIR")

        self.assertEqual(self.read("f"), before)

    def test_a_full_disk_of_the_filter_leaves_nothing(self) -> None:
        os.mkdir(self.path("small"))
        self.mount("small", "64k")

        self.refused("seal", "-q", *ON_DISK, "-o", "small/f", stdin=text(keys(200_000)), env=self.elsewhere, says="space")

        self.assertEqual(os.listdir(self.path("small")), [])

    def test_a_limit_on_file_sizes_is_an_error(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        self.refused("seal", "-q", *ON_DISK, "-o", "f", stdin=text(keys(100_000)), preexec_fn=limit, says="temporary file: cannot write: File too large")
        self.assertEqual(os.listdir(self.folder), ["temporary"])

    def test_a_device_needs_memory_for_all_keys(self) -> None:
        self.bloomery("seal", "-q", "-o", "/dev/null", stdin=b"a\n")
        self.refused("seal", *ON_DISK, "-o", "/dev/null", stdin=b"a\n", says="a device or pipe cannot be written in pieces.*allow more memory")

    def test_a_signal_or_a_kill_leaves_nothing(self) -> None:
        self.bloomery("seal", "-q", "-o", "f", stdin=b"old\n")
        before = self.read("f")
        for number in signal.SIGINT, signal.SIGKILL:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            process = self.start("seal", *ON_DISK, "-o", "f", env=self.elsewhere)
            process.stdin.write(text(keys(100_000)))
            process.stdin.flush()
            self.assertIn(b"temporary file", process.stderr.readline())
            time.sleep(0.05)

            process.send_signal(number)

            self.assertEqual(process.wait(60), -number)
            self.assertEqual((self.read("f"), sorted(os.listdir(self.folder)), os.listdir(self.path("temporary"))), (before, ["f", "temporary"], []))

    def mount(self, name: str, size: str) -> None:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.path(name)], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.path(name)], check=True)


if __name__ == "__main__":
    unittest.main()
