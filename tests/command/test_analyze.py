"""bloomery analyze: filters are filled and their error is measured as they fill, beside the theory."""

import fcntl
import json
import math
import os
import pty
import re
import signal
import struct
import termios
import threading
import unittest
import xml.etree.ElementTree

from interrupts import wait_until_it_handles_interrupts
from support import LAYOUTS, CommandTest, keys, rate_of

FACTS = ["layout", "scheme", "hash", "bits", "probes", "capacity", "target_rate", "source", "runs", "queries", "seed", "points"]
BLOCKS = "▁▂▃▄▅▆▇█"


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
        expected = {"layout": "split_block", "scheme": "", "hash": "xxh3_64", "capacity": 100, "target_rate": 0.03, "source": "addresses"}
        expected |= {"runs": 10, "queries": math.ceil(100 / 0.03), "seed": 0}
        self.assertEqual({name: result[name] for name in expected}, expected)
        self.assertEqual([p["keys"] for p in result["points"]], sorted({*range(10, 151, 10), 25, 75, 125}))
        for point in result["points"]:
            self.assertEqual(list(point), ["keys", "predicted", "mean", "deviation", "rates"])
            rates = point["rates"]
            self.assertEqual(len(rates), 10)
            if point["keys"] == 150:
                self.assertGreater(len(set(rates)), 5, "each run has keys of its own")
            mean = sum(rates) / 10
            self.assertAlmostEqual(point["mean"], mean, delta=1e-12)
            self.assertAlmostEqual(point["deviation"], math.sqrt(sum((r - mean) ** 2 for r in rates) / 9), delta=1e-12)

    def test_every_layout_and_scheme_keeps_to_its_theory(self) -> None:
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                result = self.analyze("-n", 20_000, "-p", "1%", "--layout", layout, "--seed", 3)

                self.assertEqual(result["layout"], layout)
                self.assert_measured_as_predicted(result)
                for point in result["points"][::30]:
                    expected = rate_of(layout, result["bits"], result["probes"], point["keys"])
                    self.assertAlmostEqual(point["predicted"], expected, delta=0.01 * expected + 1e-9)
        for scheme in "guava", "python", "perl", "pharo":
            with self.subTest(scheme=scheme):
                result = self.analyze("-n", 2000, "-p", "5%", "--scheme", scheme)
                self.assertEqual((result["layout"], result["scheme"], result["hash"]), ("", scheme, ""))
                self.assert_measured_as_predicted(result, allowed=8)

    def test_size_and_probes_can_be_given_as_to_build(self) -> None:
        result = self.analyze("-n", 1000, "-m", 8000, "-k", 3, "--layout", "classic", "--runs", 2)

        self.assertEqual((result["bits"], result["probes"]), (8000, 3))
        self.assert_measured_as_predicted(result, allowed=8)

    def test_results_depend_on_the_seed_and_not_on_threads(self) -> None:
        common = ["analyze", "--json", "-n", 100, "-p", "5%", "--runs", 5, "-o", "chart.svg", "-o", "chart.png"]
        for kind in ["--layout", "split_block512"], ["--scheme", "guava"]:
            alone, *others = [(self.bloomery(*common, *kind, "-j", threads).out, self.read("chart.svg"), self.read("chart.png")) for threads in (1, 2, 3, 8)]
            self.assertEqual(others, [alone] * 3)
            other = self.bloomery(*common, *kind, "--seed", 1).json
            self.assertNotEqual(other["points"], json.loads(alone[0])["points"])

    def test_a_note_names_the_queries_that_a_small_rate_needs(self) -> None:
        note = r"\Abloomery: note: at 1e-09 [^\n]*; 100,000,000,000 would give 100\n\Z"
        for options, says in (["-p", "1e-9"], note), (["-p", "3%"], r"\A\Z"), (["-q", "-p", "1e-9"], r"\A\Z"):
            seen = self.bloomery("analyze", "-n", 100, *options, "--runs", 1)
            self.assertRegex(seen.err, says)
            self.assertEqual(seen.out == b"", "-q" in options)

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
        self.write("table", [b"x,%d,%d" % (i % 3000, i) for i in range(6000)])
        self.assertEqual(self.analyze("-p", "5%", "-d", ",", "-f", 2, "table")["capacity"], 1000)



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

    def test_bad_input_is_refused_with_advice(self) -> None:
        os.mkdir(self.path("folder.svg"))
        self.write("keys.svg", keys(1000))
        self.write("lines", keys(160))
        self.write("empty", b"")
        type = r"--output: .*expected NAME\.svg or NAME\.png.*add \.svg or \.png"
        self.refuse_all({
            "analyze -p 3%": "--capacity.*for example",
            "analyze -n 100 -o ''": "--output: empty value",
            "analyze -n 100 -o chart.pdf": type,
            "analyze -n 100 -o chart": type,
            "analyze -n 100 -o chart.SVG.txt": type,
            "analyze -n 100 -o no/such/chart.svg": r"no/such/chart\.svg: cannot create: no such file",
            "analyze -n 100 -o folder.svg": "a directory",
            "analyze -o keys.svg keys.svg": "would replace the input",
            "analyze -n 100 -p 0": "--rate: .*above 0",
            "analyze -n 0": "--capacity: .*expected 1 or more",
            "analyze -n 100 --runs 0": "--runs: .*1 to 1,000",
            "analyze -n 100 --queries 0": "--queries: .*1 to ",
            "analyze -n 100 --layout round": "round",
            "analyze -n 100 --scheme guava --layout split_block512": "scheme",
            "analyze -n 1e15": "too many keys",
            "analyze -n 1000 -k 3": "add --bits",
            "analyze -n 1000 -m 8000 -p 1%": "give --bits or --rate",
            "analyze -n 100 -p 1% lines": "the input has 160, 150 are inserted.*at least 100 left, found 10",
            "analyze -n 200 lines": "found 0; give more lines, a smaller --capacity",
            "analyze -n 100 --queries 11 lines": "fewer --queries",
            "analyze empty": "too few distinct lines: the input has 0",
            "analyze missing": "missing: .*no such file",
        })  # fmt: skip
        self.analyze("-n", 100, "--queries", 10, "lines")

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
        wait_until_it_handles_interrupts(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

        self.assertEqual((process.returncode, out, err), (-signal.SIGINT, b"", b""))
        self.assertEqual(os.listdir(self.folder), ["old.svg"])
        self.assertEqual(self.read("old.svg"), b"old")

    def test_a_full_disk_is_an_error(self) -> None:
        with open("/dev/full", "wb") as full:
            result = self.bloomery("analyze", "-n", "50", "--runs", "1", stdout=full, status=2)
        self.assertIn("standard output: cannot write: No space left", result.err)


if __name__ == "__main__":
    unittest.main()
