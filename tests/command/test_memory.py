"""Memory at its peak: the filter and 64 MiB; for --exact the filter and 256 MiB, whatever the share of duplicates; for
seal --memory as much as it says."""

import subprocess
import unittest
from collections.abc import Iterator

from support import LONG, CommandTest, peak_memory

COUNT = 20_000_000 if LONG else 3_000_000
MIB = 1 << 20


def urls(count: int, distinct: int) -> Iterator[bytes]:
    for first in range(0, count, 50_000):
        yield b"".join(b"https://example.org/%020d\n" % (i * 48271 % distinct) for i in range(first, min(first + 50_000, count)))


class Memory(CommandTest):
    def peak(self, *arguments: object, **options) -> int:
        return peak_memory([*arguments, "-q"], cwd=self.folder, **({"stdout": subprocess.DEVNULL} | options))

    def write_urls(self, distinct: int) -> str:
        with open(self.path("urls"), "wb") as file:
            file.writelines(urls(COUNT, distinct))
        return "urls"

    def filter_bytes(self, rate: float) -> int:
        return self.bloomery("plan", "--json", "-n", COUNT, "-p", rate).json["layouts"][0]["bytes"]

    def test_commands_need_the_filter_and_64_mib(self) -> None:
        self.write_urls(COUNT)
        dedup, build = self.filter_bytes(1e-4), self.filter_bytes(0.01)
        for threads in 1, 4:
            for line, filter in (
                ("dedup -p 1e-4", dedup),
                (f"dedup --state state{threads} -n {COUNT} -p 1e-4", dedup),
                ("build -o f", build),
                ("check f", build),
                ("add f", build),
            ):
                with self.subTest(line=line, threads=threads):
                    peak = self.peak(*line.split(), "-j", threads, "urls")
                    self.assertLess(peak, filter + 64 * MIB)
                    if line == "dedup -p 1e-4":
                        self.assertGreater(peak, filter * 0.9)  # the measure sees the filter

    def test_exact_needs_no_more_for_many_very_short_lines_or_a_filter_that_is_far_too_small(self) -> None:
        alphabet = [bytes([i]) for i in range(40, 240)]
        with open(self.path("short"), "wb") as file:
            for a in alphabet[: 200 if LONG else 104]:
                file.write(b"".join(a + b + c + b"\n" for b in alphabet for c in alphabet))
        for name in "short", self.write_urls(COUNT):
            self.assertLess(self.peak("dedup", "--memory", "64MiB", "-n", 1000, name), 256 * MIB)

    def test_on_disk_it_needs_the_filter_and_256_mib_whatever_the_share_of_duplicates(self) -> None:
        allowed = self.filter_bytes(1e-4) + 256 * MIB
        for distinct in COUNT, COUNT // 2, COUNT // 100, 1:
            with self.subTest(distinct=distinct):
                self.assertLess(self.peak("dedup", "--memory", "64MiB", self.write_urls(distinct)), allowed)

    def test_a_pipe_is_counted_in_256_mib(self) -> None:
        with open(self.path(self.write_urls(COUNT)), "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)

        peak = self.peak("build", "-o", "f", stdin=cat.stdout)

        cat.stdout.close()
        self.assertEqual(cat.wait(), 0)
        self.assertLess(peak, self.filter_bytes(0.01) + (256 + 64) * MIB)
        self.assertEqual(self.info("f")["capacity"], COUNT)

    def test_seal_needs_no_more_than_it_may(self) -> None:
        base = self.peak("seal", "-j", 1, "-o", "few", input=b"1\n")
        with open(self.path("numbers"), "wb") as numbers:
            subprocess.run(["seq", "12000000"], stdout=numbers, check=True)
        line = "seal", "-j", 1, "--u64", "numbers", "-o", "f"

        self.assertLess(self.peak(*line, "--memory", "128MiB"), base + 128 * MIB)
        self.assertGreater(self.peak(*line, "--memory", "1GiB"), base + 128 * MIB)


if __name__ == "__main__":
    unittest.main()
