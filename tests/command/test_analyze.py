"""bloomery analyze: filters are filled and their error is measured as they fill, beside the theory."""

import fcntl
import json
import math
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest
import xml.etree.ElementTree

from support import LAYOUTS, CommandTest, keys, rate_of, split_block_rate

FACTS = ["layout", "scheme", "hash", "bits", "probes", "capacity", "target_rate", "source", "runs", "queries", "seed", "points"]
BLOCKS = "▁▂▃▄▅▆▇█"


def exact_classic_rate(bits: int, probes: int, n: int) -> float:
    """Balls in cells: the chance of each number of cells that are not empty, and then that all probes meet such cells."""
    full = [1.0] + [0.0] * bits
    for ball in range(probes * n):
        for i in range(min(ball + 1, bits), 0, -1):
            full[i] = full[i] * i / bits + full[i - 1] * (bits - i + 1) / bits
        full[0] = 0.0
    return sum(share * (i / bits) ** probes for i, share in enumerate(full))


class Analyze(CommandTest):
    def analyze(self, *arguments: object, **options) -> dict:
        return self.bloomery("analyze", "--json", *arguments, **options).json

    def assert_measured_as_predicted(self, result: dict, allowed: float = 6) -> None:
        """Within so many standard errors, at every point; a run's deviation is that of chance, or what was seen."""
        asked = result["runs"] * result["queries"]
        for point in result["points"]:
            rate = point["predicted"]
            error = max(math.sqrt(rate * (1 - rate) / asked), point["deviation"] / math.sqrt(result["runs"]))
            self.assertLessEqual(abs(point["mean"] - rate), allowed * error + 3 / asked, f"{result['layout']}: {point}")

    # ---- what is measured --------------------------------------------------------------------------------------------

    def test_json_has_the_filter_the_experiment_and_every_measurement(self) -> None:
        result = self.analyze("-n", 100, "-p", "3%")

        self.assertEqual(list(result), FACTS)
        self.assertEqual((result["layout"], result["scheme"], result["hash"]), ("split_block", "", "xxh3_64"))
        self.assertEqual((result["capacity"], result["target_rate"], result["source"]), (100, 0.03, "addresses"))
        self.assertEqual((result["runs"], result["queries"], result["seed"]), (10, math.ceil(100 / 0.03), 0))
        self.assertEqual([p["keys"] for p in result["points"]], sorted({*range(10, 151, 10), 25, 75, 125}))
        for point in result["points"]:
            self.assertEqual(list(point), ["keys", "predicted", "mean", "deviation", "rates"])
            rates = point["rates"]
            self.assertEqual(len(rates), 10)
            mean = sum(rates) / 10
            self.assertAlmostEqual(point["mean"], mean, delta=1e-12)
            self.assertAlmostEqual(point["deviation"], math.sqrt(sum((r - mean) ** 2 for r in rates) / 9), delta=1e-12)

    def test_predictions_are_the_exact_rates(self) -> None:
        classic = self.analyze("-n", 100, "-p", "3%", "--layout", "classic", "--runs", 1)
        for point in classic["points"]:
            expected = exact_classic_rate(classic["bits"], classic["probes"], point["keys"])
            self.assertAlmostEqual(point["predicted"] / expected, 1, delta=1e-9)

        blocks = self.analyze("-n", 1000, "-p", "1%", "--layout", "split_block", "--runs", 1)
        for point in blocks["points"]:
            # Keys of one block and the same 32 bits for its cells cannot be told apart.
            expected = split_block_rate(blocks["bits"], point["keys"]) + point["keys"] / (blocks["bits"] / 256 * 2**32)
            self.assertAlmostEqual(point["predicted"] / expected, 1, delta=1e-6)

    def test_every_layout_keeps_to_its_theory(self) -> None:
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                result = self.analyze("-n", 20_000, "-p", "1%", "--layout", layout, "--seed", 3)

                self.assertEqual(result["layout"], layout)
                self.assert_measured_as_predicted(result)
                for point in result["points"][::30]:
                    expected = rate_of(layout, result["bits"], result["probes"], point["keys"])
                    self.assertAlmostEqual(point["predicted"], expected, delta=0.01 * expected + 1e-9)

    def test_the_promise_is_kept_at_n_and_broken_beyond(self) -> None:
        result = self.analyze("-n", 10_000, "-p", "1%", "--layout", "classic")

        at = {point["keys"]: point for point in result["points"]}
        self.assertLessEqual(at[10_000]["predicted"], 0.01)
        self.assertAlmostEqual(at[10_000]["mean"], 0.01, delta=0.0012)
        self.assertGreater(at[15_000]["mean"], 0.03)

    def test_pharo_breaks_at_a_million_keys(self) -> None:
        result = self.analyze("-n", "1M", "-p", "1%", "--scheme", "pharo", "--runs", 2, "--queries", 4000)

        self.assertEqual((result["layout"], result["scheme"], result["hash"]), ("", "pharo", ""))
        at = {point["keys"]: point["mean"] for point in result["points"]}
        self.assertAlmostEqual(at[1_000_000], 0.97, delta=0.015)
        self.assertLess(at[10], 0.01)

    def test_other_schemes_keep_to_their_theory(self) -> None:
        for scheme in "guava", "python", "perl":
            with self.subTest(scheme=scheme):
                self.assert_measured_as_predicted(self.analyze("-n", 2000, "-p", "5%", "--scheme", scheme), allowed=8)

    def test_size_and_probes_can_be_given_as_to_build(self) -> None:
        result = self.analyze("-n", 1000, "-m", 8000, "-k", 3, "--layout", "classic", "--runs", 2)

        self.assertEqual((result["bits"], result["probes"]), (8000, 3))
        self.assert_measured_as_predicted(result, allowed=8)
        self.refused("analyze", "-n", 1000, "-k", 3, says="add --bits")
        self.refused("analyze", "-n", 1000, "-m", 8000, "-p", "1%", says="give --bits or --rate")

    def test_results_depend_on_the_seed_and_not_on_threads(self) -> None:
        common = ["analyze", "--json", "-n", 500, "-p", "5%", "--runs", 5]
        for kind in [["--layout", "split_block512"], ["--scheme", "guava"]]:
            alone = self.bloomery(*common, *kind, "-j", 1).out
            for threads in 2, 3, 8:
                self.assertEqual(self.bloomery(*common, *kind, "-j", threads).out, alone)
            other = self.bloomery(*common, *kind, "--seed", 1).json
            self.assertNotEqual(other["points"], json.loads(alone)["points"])

    def test_runs_have_keys_of_their_own(self) -> None:
        result = self.analyze("-n", 1000, "-p", "10%", "--layout", "classic")

        self.assertGreater(len(set(result["points"][-1]["rates"])), 5)

    def test_a_rate_too_small_to_measure_is_said_with_the_queries_it_needs(self) -> None:
        seen = self.bloomery("analyze", "-n", 100, "-p", "1e-9", "--runs", 1)

        self.assertRegex(seen.err, r"\Abloomery: note: at 1e-09 [^\n]*; 100,000,000,000 would give 100\n\Z")
        self.assertEqual(self.bloomery("analyze", "-n", 100, "-p", "3%", "--runs", 1).err, "")

    # ---- keys of one's own -------------------------------------------------------------------------------------------

    def test_keys_can_come_from_a_file(self) -> None:
        lines = keys(9000)
        self.write("lines", lines + lines[:1000])

        result = self.analyze("-p", "5%", "--layout", "classic", "lines")

        self.assertEqual((result["source"], result["capacity"], result["queries"]), ("lines", 3000, 2000))
        self.assert_measured_as_predicted(result)
        piped = self.analyze("-p", "5%", "--layout", "classic", "-", stdin=self.read("lines"))
        self.assertEqual(piped, result)
        guava = self.analyze("-n", 2000, "-p", "5%", "--scheme", "guava", "--queries", 6000, "lines")
        self.assertEqual((guava["capacity"], guava["queries"]), (2000, 6000))
        self.assert_measured_as_predicted(guava, allowed=8)

    def test_keys_can_be_fields(self) -> None:
        self.write("lines", [b"x,%d,%d" % (i % 3000, i) for i in range(6000)])

        self.assertEqual(self.analyze("-p", "5%", "-d", ",", "-f", 2, "lines")["capacity"], 1000)

    def test_too_few_lines_are_refused(self) -> None:
        self.write("lines", keys(160))

        few = "the input has 160, 150 are inserted.*at least 100 left, found 10"
        self.refused("analyze", "-n", 100, "-p", "1%", "lines", says=few)
        self.refused("analyze", "-n", 200, "lines", says="found 0; give more lines, a smaller --capacity")
        self.refused("analyze", "-n", 100, "--queries", 11, "lines", says="fewer --queries")
        self.analyze("-n", 100, "--queries", 10, "lines")
        self.write("empty", b"")
        self.refused("analyze", "empty", says="too few distinct lines: the input has 0")
        self.refused("analyze", "missing", says="missing: .*no such file")

    # ---- charts ------------------------------------------------------------------------------------------------------

    def test_charts_are_written_as_their_names_say(self) -> None:
        self.bloomery("analyze", "-q", "-n", 100, "-p", "3%", "-o", "chart.svg", "-o", "chart.png")

        svg = xml.etree.ElementTree.fromstring(self.read("chart.svg"))
        self.assertEqual(svg.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual(svg.get("viewBox"), "0 0 960 600")
        png = self.read("chart.png")
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual(struct.unpack(">II", png[16:24]), (1920, 1200))
        self.assertEqual(sorted(os.listdir(self.folder)), ["chart.png", "chart.svg"])

    def test_charts_are_the_same_every_time_and_replace_old_ones(self) -> None:
        charts = []
        for threads in 1, 2:
            some = ["-n", 100, "-p", "1e-6", "--queries", 1000]
            self.bloomery("analyze", "-q", *some, "-j", threads, "-o", "chart.svg", "-o", "chart.png")
            charts.append((self.read("chart.svg"), self.read("chart.png")))

        self.assertEqual(charts[0], charts[1])

    def test_the_text_says_what_json_says(self) -> None:
        result = self.analyze("-n", 1000, "-p", "3%", "--layout", "split_block512")
        printed = self.bloomery("analyze", "-n", 1000, "-p", "3%", "--layout", "split_block512").out.decode()

        rows = re.findall(r"^ +([\d,]+) +(\d+)%  +(\S+?)(%)?  +(\S+?)(%)?  +(\S+?)(%)?$", printed, re.MULTILINE)
        self.assertEqual([row[0] for row in rows], ["250", "500", "750", "1,000", "1,250", "1,500"])
        self.assertEqual([row[1] for row in rows], ["25", "50", "75", "100", "125", "150"])
        at = {f"{point['keys']:,}": point for point in result["points"]}
        for row in rows:
            for text, unit, name in (row[2], row[3], "predicted"), (row[4], row[5], "mean"), (row[6], row[7], "deviation"):
                value = float(text) / (100 if unit else 1)
                self.assertAlmostEqual(value, at[row[0]][name], delta=0.006 * value + 1e-12)
        title = f"split_block512, {result['bits']:,} bits, 8 probes: n = 1,000, p = 3%"
        for part in title, "keys inserted", "false-positive rate", "█ measured":
            self.assertIn(part, printed)
        self.assertLessEqual(max(map(len, printed.splitlines()[2:])), 80)

    def test_a_locale_without_utf8_gets_ascii(self) -> None:
        for locale, ascii in {"C": True, "de_DE.ISO-8859-1": True, "C.UTF-8": False, "": False}.items():
            environment = os.environ | {"LC_ALL": locale, "LC_CTYPE": "", "LANG": ""}
            printed = self.bloomery("analyze", "-n", 50, "-p", "3%", "--runs", 2, env=environment)
            self.assertEqual(printed.out.isascii(), ascii, locale)

    def test_quiet_prints_nothing(self) -> None:
        seen = self.bloomery("analyze", "-q", "-n", 100, "-p", "1e-9", "--runs", 1)

        self.assertEqual((seen.out, seen.err), (b"", ""))

    def on_a_terminal(self, columns: int, *arguments: object) -> tuple[str, str]:
        """What a terminal of this width shows: on standard output, on standard error."""
        shown: list[bytearray] = [bytearray(), bytearray()]
        ends = [pty.openpty(), pty.openpty()]
        fcntl.ioctl(ends[0][1], termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

        def listen(ours: int, to: bytearray) -> None:
            try:
                while piece := os.read(ours, 65536):
                    to.extend(piece)
            except OSError:  # the other side is closed
                pass

        unset = ("NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG")
        environment = {name: value for name, value in os.environ.items() if name not in unset}
        process = self.start("analyze", *arguments, stdout=ends[0][1], stderr=ends[1][1], env=environment | {"TERM": "xterm"})
        listeners = []
        for (ours, theirs), to in zip(ends, shown):
            os.close(theirs)
            listeners.append(threading.Thread(target=listen, args=(ours, to)))
            listeners[-1].start()
        self.assertEqual(process.wait(timeout=60), 0)
        for listener, (ours, _) in zip(listeners, ends):
            listener.join()
            os.close(ours)
        return shown[0].decode(), shown[1].decode()

    def test_a_chart_is_as_wide_as_the_terminal(self) -> None:
        for columns, widest in (100, 100), (60, 60), (300, 120), (0, 80):
            out, err = self.on_a_terminal(columns, "-n", 1000, "-p", "3%", "--runs", 3, "--no-progress")

            self.assertIn("\x1b[34m", out)
            plain = re.sub(r"\x1b\[\d*m", "", out)
            self.assertRegex(plain, f"[{BLOCKS}]")
            self.assertIn("keys inserted", plain)
            chart = plain[plain.index("false-positive rate") : plain.index("keys inserted")]
            lengths = [len(line) for line in chart.splitlines()]
            self.assertIn(max(lengths), (widest, widest - 1))
            self.assertEqual(err, "")
        out, _ = self.on_a_terminal(30, "-n", 1000, "-p", "3%", "--runs", 3)
        self.assertNotRegex(out, f"[{BLOCKS}]")
        self.assertIn("expected", out)

    def test_long_work_shows_how_far_it_is(self) -> None:
        _, err = self.on_a_terminal(80, "-n", "200k", "-p", "1e-3", "--layout", "classic", "--runs", 4, "-j", 1)

        self.assertRegex(err, r"analyze: [\d,]+ keys, [\d,]+/s  \[#*\.+\] \d+%, \d+ s left")
        self.assertTrue(err.endswith("\r\x1b[K"), repr(err[-40:]))

    # ---- what goes wrong ---------------------------------------------------------------------------------------------

    def test_bad_input_is_refused_with_the_way_out(self) -> None:
        self.refused("analyze", "-p", "3%", says="--capacity.*for example")
        self.refused("analyze", "-n", 100, "-o", "", says="--output: empty value")
        for name in "chart.pdf", "chart", "chart.SVG.txt":
            self.refused("analyze", "-n", 100, "-o", name, says=r"--output: .*expected NAME\.svg or NAME\.png.*add \.svg or \.png")
        self.refused("analyze", "-n", 100, "-o", "no/such/chart.svg", says=r"no/such/chart\.svg: cannot create: no such file")
        os.mkdir(self.path("folder.svg"))
        self.refused("analyze", "-n", 100, "-o", "folder.svg", says="a directory")
        self.write("keys.svg", keys(1000))
        self.refused("analyze", "-o", "keys.svg", "keys.svg", says="would replace the input")
        self.refused("analyze", "-n", 100, "-p", 0, says="--rate: .*above 0")
        self.refused("analyze", "-n", 0, says="--capacity: .*expected 1 or more")
        self.refused("analyze", "-n", 100, "--runs", 0, says="--runs: .*1 to 1,000")
        self.refused("analyze", "-n", 100, "--queries", 0, says="--queries: .*1 to ")
        self.refused("analyze", "-n", 100, "--layout", "round", says="round")
        self.refused("analyze", "-n", 100, "--scheme", "guava", "--layout", "split_block512", says="scheme")
        self.refused("analyze", "-n", "1e15", says="too many keys")

    def test_few_keys_and_full_filters_are_no_special_case(self) -> None:
        for n in 1, 2, 3, 4, 9, 11:
            result = self.analyze("-n", n, "-p", "30%", "--layout", "classic")
            self.assertEqual(result["points"][-1]["keys"], n * 3 // 2)
            self.assertIn(n, [point["keys"] for point in result["points"]])
            self.bloomery("analyze", "-n", n, "-p", "30%", "-o", "chart.svg", "-o", "chart.png", "--runs", 1)
        full = self.analyze("-n", 100, "-m", 8, "--layout", "classic", "-o", "chart.png")
        self.assertGreater(full["points"][-1]["mean"], 0.99)

    def test_an_interrupt_leaves_no_chart_and_the_old_one(self) -> None:
        self.write("old.svg", b"old")
        process = self.start("analyze", "-n", "1M", "-p", "1e-4", "--layout", "classic", "-o", "new.png", "-o", "old.svg")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

        self.assertEqual((process.returncode, out, err), (-signal.SIGINT, b"", b""))
        self.assertEqual(os.listdir(self.folder), ["old.svg"])
        self.assertEqual(self.read("old.svg"), b"old")

    def test_a_full_disk_is_said(self) -> None:
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "wb") as full:
            process = subprocess.run(
                [os.environ["BLOOMERY"], "analyze", "-n", "50", "--runs", "1"], stdout=full, stderr=subprocess.PIPE, check=False
            )
        self.assertEqual(process.returncode, 2)
        self.assertIn(b"standard output: cannot write: No space left", process.stderr)


if __name__ == "__main__":
    unittest.main()
