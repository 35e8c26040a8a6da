"""bloomery analyze --exec: filters of other programs are measured and judged, and programs that fail are named."""

import functools
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from interrupts import wait_until_it_handles_interrupts
from support import CommandTest, keys

FACTS = ["program", "capacity", "target_rate", "bits", "probes", "source", "runs", "queries", "seed", "points", "present", "measured", "causes", "fpr_verdict"]
FOLDER = os.path.dirname(os.path.abspath(__file__))

# An exact set, which loses one key in 1000 if its first argument is 1, and reports absent keys with the probability
# that its second argument gives.
SET = """
import random, sys
loses, lies = int(sys.argv[1]), float(sys.argv[2])
chance, known = random.Random(7), {}
for line in sys.stdin:
    verb, key = line.rstrip("\\n").split(" ", 1)
    if verb == "add":
        print("" if loses else int(key not in known))
        known[key] = len(known) % 1000 if loses else 1
    else:
        print(int(known.get(key, 0) != 0 or (key not in known and chance.random() < lies)))
"""


@functools.cache
def historic_filters() -> str:
    """The program of historic_filters.cpp, compiled once."""
    folder = tempfile.mkdtemp(prefix="bloomery-audit-")
    program = os.path.join(folder, "historic_filters")
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, "-std=c++20", "-O2", "-o", program, os.path.join(FOLDER, "historic_filters.cpp"), "-lxxhash"], check=True)
    return program


def children_of(pid: int) -> list[int]:
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as file:
                text = file.read()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append(int(text.split()[0]))
    return found


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Audit(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("set.py", SET.encode())

    @classmethod
    def tearDownClass(cls) -> None:
        if historic_filters.cache_info().currsize:
            shutil.rmtree(os.path.dirname(historic_filters()))
        super().tearDownClass()

    @staticmethod
    def set(loses: int = 0, lies: float = 0) -> str:
        return f"{shlex.quote(sys.executable)} set.py {loses} {lies}"

    def audit(self, program: str, *arguments: object, status: int = 0, **options) -> dict:
        return self.bloomery("analyze", "--json", "--exec", program, *arguments, status=status, **options).json

    # ---- what is measured --------------------------------------------------------------------------------------------

    def test_an_exact_set_keeps_every_target_and_misses_no_key(self) -> None:
        result = self.audit(self.set(), "-n", 1001, "-p", "1%", "--queries", 5000)

        self.assertEqual([name for name in result if name in FACTS], FACTS)
        self.assertEqual((result["capacity"], result["target_rate"], result["bits"], result["queries"]), (1001, 0.01, None, 5000))
        self.assertEqual([p["keys"] for p in result["points"]], [250, 500, 750, 1001])
        self.assertEqual([p["hits"] for p in result["points"]], [0] * 4)
        self.assertEqual([p["queries"] for p in result["points"]], [5000] * 4)
        self.assertEqual(result["present"], {"keys": 1001, "missing": 0, "first_missing": None})
        self.assertEqual((result["fpr_verdict"], result["causes"]), ("kept", []))
        self.assertAlmostEqual(result["points"][-1]["predicted"], 0.01, delta=0.0001)

    def test_the_share_of_false_positives_is_measured_and_judged(self) -> None:
        for lies, verdict, status in (0.005, {"kept"}, 0), (0.01, {"kept", "within_chance"}, 0), (0.014, {"broken"}, 1):
            result = self.audit(self.set(lies=lies), "-n", 5000, "-p", "1%", "--queries", 100_000, status=status)

            self.assertIn(result["fpr_verdict"], verdict, lies)
            for point in result["points"]:
                self.assert_chance(point["hits"], 100_000, lies)
                self.assertLess(point["low"], point["rate"])
                self.assertGreater(point["high"], point["rate"])

    def test_a_lost_key_is_a_failure_and_named(self) -> None:
        result = self.audit(self.set(loses=1), "-n", 3000, "-p", "5%", "--queries", 100, status=1)

        self.assertEqual((result["present"]["keys"], result["present"]["missing"]), (3000, 3))
        self.assertRegex(result["present"]["first_missing"], r"\A\w+\.\w+@[\w.]+\Z")
        self.assertEqual(result["fpr_verdict"], "kept")
        shown = self.bloomery("analyze", "-n", 3000, "-p", "5%", "--queries", 100, "--exec", self.set(loses=1), status=1).out.decode()
        self.assertIn(f"3 MISSING, the first: '{result['present']['first_missing']}'", shown)

    def test_keys_can_come_from_a_file_and_contain_spaces(self) -> None:
        self.write("lines", [b"key of  %d " % i for i in range(900)])
        self.write("answer.py", SET.replace("import random, sys", "import random, sys\nseen = open('seen', 'w')").replace("    verb, key", "    seen.write(line)\n    verb, key").encode())

        result = self.audit(f"{sys.executable} answer.py 0 0", "-n", 300, "-p", "1%", "lines")

        self.assertEqual((result["source"], result["queries"], result["measured"]["hits"]), ("lines", 600, 0))
        lines = self.read("seen").decode().splitlines()
        added = [line[4:] for line in lines if line.startswith("add ")]
        looked_up = {line[4:] for line in lines if line.startswith("has ")}
        self.assertEqual(len(added), 300)
        self.assertLessEqual(set(added), looked_up)
        self.assertEqual({line.encode() for line in looked_up}, {b"key of  %d " % i for i in range(900)})

    def test_every_run_starts_the_program_again_with_other_keys(self) -> None:
        program = f"echo x >> starts; {self.set(lies=0.02)}"
        result = self.audit(program, "-n", 100, "-p", "3%", "--queries", 5000, "--runs", 3)

        self.assertEqual(self.read("starts"), b"x\n" * 3)
        self.assertEqual((result["measured"]["queries"], result["present"]["keys"]), (15_000, 300))
        self.assert_chance(result["measured"]["hits"], 15_000, 0.02)

    def test_a_program_may_answer_at_the_end_of_its_input_or_at_once(self) -> None:
        whole = "import sys; lines = sys.stdin.readlines(); print('0\\n' * len(lines), end='')"
        at_once = "import sys\nfor line in sys.stdin: print(0, flush=True)"
        for text in whole, at_once:
            self.write("answers.py", text.encode())
            result = self.audit(f"{sys.executable} answers.py", "-n", 20_000, "-p", "1%", "--queries", 50_000, status=1)
            self.assertEqual(result["present"]["missing"], 20_000)

    def test_size_and_target_can_both_be_given(self) -> None:
        result = self.audit(self.set(lies=0.0101), "-n", 500, "-m", 4793, "-k", 7, "--queries", 100_000)

        self.assertEqual((result["bits"], result["probes"]), (4793, 7))
        self.assertAlmostEqual(result["target_rate"], 0.0101, delta=0.0002)
        with_target = self.audit(self.set(lies=0.0101), "-n", 500, "-m", 4793, "-k", 7, "-p", "0.5%", "--queries", 100_000, status=1)
        self.assertEqual((with_target["target_rate"], with_target["fpr_verdict"]), (0.005, "broken"))

    def test_the_text_says_what_json_says(self) -> None:
        options = ["-n", 1000, "-p", "1%", "--queries", 20_000, "--exec", self.set(lies=0.2)]
        result = self.bloomery("analyze", "--json", *options, status=1).json
        shown = self.bloomery("analyze", *options, status=1).out.decode()

        self.assertIn(f"above target: measured FPR {result['measured']['rate'] * 100:.3g}%", shown)
        self.assertRegex(shown, rf"(?m)^likely cause +{re.escape(result['causes'][0]['text'])} ")
        self.assertEqual(re.findall(r"(?m)^ +([\d,]+) +(\d+)% ", shown), [("250", "25"), ("500", "50"), ("750", "75"), ("1,000", "100")])
        quiet = self.bloomery("analyze", "-q", *options, status=1)
        self.assertEqual((quiet.out, quiet.err), (b"", ""))

    def test_a_verdict_on_few_lookups_claims_little(self) -> None:
        shown = self.bloomery("analyze", "-n", 100, "-p", "1e-6", "--queries", 1000, "--exec", self.set()).out.decode()
        self.assertRegex(shown, r"(?m)^verdict +no excess found, but few lookups: measured FPR 0% ")

    # ---- historic faults ---------------------------------------------------------------------------------------------

    def historic(self, *words: object) -> str:
        return subprocess.run([historic_filters(), *map(str, words)], stdout=subprocess.PIPE, check=True, text=True).stdout

    def cause(self, result: dict) -> str:
        self.assertEqual(result["present"]["missing"], 0)
        self.assertEqual(result["fpr_verdict"], "broken")
        return result["causes"][0]["cause"] if result["causes"] else "none"

    def test_positions_of_31_bits_are_found(self) -> None:
        """Guava's MITZ_32, which Guava replaced for this reason; Spark's filters had the same fault."""
        self.assertEqual(self.historic("guava32", 128, 3, "positions", "hello"), "53 23 100 \n")

        result = self.audit(f"{historic_filters()} guava32 {2**33} 1", "-n", "1M", "-m", 2**33, "-k", 1, "--queries", "500k", status=1)

        self.assertEqual(self.cause(result), "reach31")
        self.assert_chance(result["measured"]["hits"], 500_000, 1e6 / 2**31)

    def test_halves_of_16_bits_are_found(self) -> None:
        """PharoPDS."""
        published = "18 9 48 39 \n48 42 36 30 \n27 30 33 36 \n36 36 36 36 \n"
        self.assertEqual(self.historic("pharo", 10, 0.1, "positions", "Madrid", "Barcelona", "Berlin", "Roma"), published)

        result = self.audit(f"{historic_filters()} pharo 100000 0.01", "-n", "100k", "-p", "1%", "--queries", "100k", status=1)

        self.assertEqual(self.cause(result), "hash16")
        self.assertGreater(result["measured"]["rate"], 0.25)

    def test_parquets_size_rule_is_found(self) -> None:
        """1.46% for a target of 1%."""
        positions = [int(word) for word in self.historic("parquet", 1, 0.9, "positions", "hello").split()]
        low = 0x26C7827D889F6DA3 & 0xFFFFFFFF  # XXH64 of "hello"
        salts = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]
        self.assertEqual(positions, [32 * i + ((low * salt & 0xFFFFFFFF) >> 27) for i, salt in enumerate(salts)])

        result = self.audit(f"{historic_filters()} parquet 100000 0.01", "-n", "100k", "-p", "1%", "--queries", "1M", status=1)

        self.assertEqual(self.cause(result), "parquet_blocks")
        self.assertAlmostEqual(result["measured"]["rate"], 0.0146, delta=0.0006)

    def test_a_folded_filter_is_found(self) -> None:
        self.assertEqual(self.historic("guava64", 128, 7, "positions", "hello"), "2 27 52 77 102 127 24 \n")
        whole = self.audit(f"{historic_filters()} guava64 958528 7", "-n", "100k", "-m", 958528, "-k", 7, "--queries", "100k")
        self.assertIn(whole["fpr_verdict"], ("kept", "within_chance"))

        for size in ["-m", 958528, "-k", 7], ["-p", "1%"]:
            result = self.audit(f"{historic_filters()} folded 958528 7", "-n", "100k", *size, "--queries", "100k", status=1)
            self.assertEqual(self.cause(result), "half")

    def test_double_hashing_in_a_small_filter_is_found(self) -> None:
        """It adds about 6n/m^2."""
        program = f"{historic_filters()} guava64 4800 17"
        result = self.audit(program, "-n", 200, "-p", "1e-5", "--runs", 3, "--queries", "200k", status=1)

        self.assertEqual(self.cause(result), "double_hashing")
        self.assertAlmostEqual(result["measured"]["rate"], 1e-5 + 6 * 200 / 4800**2, delta=4e-5)

    def test_growth_from_small_layers_is_found(self) -> None:
        """RedisBloom, whose filter of 200,000 keys that grew from 100 takes 24.6 bits per key and has 18 probes in its last layer."""
        bits, probes = map(int, self.historic("redisbloom", 100, 0.01, "fill", 200_000).split())
        self.assertEqual((round(bits / 200_000, 1), probes), (24.6, 18))

        result = self.audit(f"{historic_filters()} redisbloom 100 0.01", "-n", "200k", "-p", "1%", "--seed", 3, "--queries", "1M", status=1)
        self.assertEqual(self.cause(result), "layers")
        low = self.audit(f"{historic_filters()} redisbloom 100 0.0001", "-n", "50k", "-p", "0.01%", "--queries", "1M", status=1)
        self.assertEqual(self.cause(low), "layers")
        self.assertGreater(low["measured"]["rate"], 0.0002)

    # ---- what goes wrong ---------------------------------------------------------------------------------------------

    def test_a_program_that_fails_is_named_with_its_line(self) -> None:
        fails = {
            "no-such-command": r"'no-such-command': no answer to line 1 \(an add\): .*exited with status 127; the shell did not find",
            "echo hello": r"'echo hello': wrong answer to line 1 \(an add\): expected 0, 1 or an empty line, found 'hello'",
            "sed s/.*/maybe/": r"wrong answer to line 1 \(an add\): .* found 'maybe'",
            "sed 's/add.*//; s/has.*/-1/'": r"wrong answer to line 251 \(has \w+\.\w+@[\w.]+\): expected 0 or 1, found '-1'",
            "sed 's/add.*//; s/has.*//'": r"line 251 .* expected 0 or 1, found ''",
            "head -n 300 | sed s/.*/1/": r"no answer to line 301 \(has .*\): expected one line per line of input, found the end of the output; the program exited with status 0",
            "cat > /dev/null": r"no answer to line 1 ",
            "exit 7": r"no answer to line 1 .*exited with status 7",
            "kill -SEGV $$": r"ended by signal 11",
            "sed s/.*/1/; echo 1": r"more answers than lines: expected 9,000 lines of output, found '1' after them",
            "yes 1": r"more answers than lines",
            "sed s/.*/1/; exit 3": r"failed after its last answer: expected exit status 0, found a program that exited with status 3",
            "tr -d '\\n' < /dev/zero": r"wrong answer to line 1 ",
        }
        for program, says in fails.items():
            with self.subTest(program=program):
                ended = self.bloomery("analyze", "-n", 1000, "-p", "1%", "--queries", 1750, "--exec", program, status=2)
                self.assertEqual(ended.out, b"")
                self.assertRegex(ended.err.splitlines()[-1], r"\Abloomery: " + f".*{says}")

    def test_a_program_that_hangs_is_stopped(self) -> None:
        for program in "sleep 1000", "exec < /dev/null; sleep 1000", "sed s/.*/1/; sleep 1000", "sed s/.*/1/; exec > /dev/null; sleep 1000":
            with self.subTest(program=program):
                line = f"echo $$ > pid; {program}"
                ended = self.bloomery("analyze", "-n", 1000, "-p", "1%", "--timeout", "500ms", "--exec", line, status=2)
                self.assertRegex(ended.err, r"no answer to line .* for 500 ms: .* longer --timeout|the program did not exit: expected the end within 500 ms")
                self.assertFalse(is_alive(int(self.read("pid"))))

    def test_a_program_that_answers_ahead_and_reads_nothing_is_stopped(self) -> None:
        line = "yes 1 | head -n 9000; exec > /dev/null; sleep 1000"
        ended = self.bloomery("analyze", "-n", 1000, "-p", "1%", "--queries", 1750, "--timeout", "500ms", "--exec", line, status=2)
        self.assertIn("the program did not exit", ended.err)

    def test_an_interrupt_ends_the_program_too(self) -> None:
        process = self.start("analyze", "-n", "1M", "-p", "1%", "--exec", "echo $$ > pid; sleep 1000 & echo $! >> pid; wait")
        wait_until_it_handles_interrupts(process)
        while not (os.path.exists(self.path("pid")) and self.read("pid").count(b"\n") == 2):
            time.sleep(0.01)
        pids = [int(word) for word in self.read("pid").split()]
        self.assertEqual(len(children_of(process.pid)), 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

        self.assertEqual((process.returncode, out, err), (-signal.SIGINT, b"", b""))
        while any(map(is_alive, pids)):  # the orphan is killed as well, by the same signal
            time.sleep(0.01)

    def test_bad_options_are_refused(self) -> None:
        self.write("lines", keys(160))
        self.refuse_all({
            "analyze -n 10 --timeout 1s": "--timeout.*--exec",
            "analyze -n 10 --exec ''": "--exec: empty value",
            "analyze -n 10 --exec cat -o chart.svg": "--exec|--output",
            "analyze -n 10 --exec cat --hash xxh3": "--exec|--hash",
            "analyze -n 10 --exec cat --prefer memory": "--exec|--prefer",
            "analyze -n 10 --exec cat --timeout 0s": "--timeout: .*a duration",
            "analyze --exec cat": "--capacity",
            "analyze -n 10 -k 3 --exec cat": "add --bits",
            "analyze -n 150 -p 1% --exec cat lines": "the input has 160, 150 are inserted",
        })  # fmt: skip
        self.write("nul", b"\0".join(b"a\n%d" % i for i in range(3000)) + b"\0")
        self.refused("analyze", "-n", 100, "-p", "5%", "-0", "--exec", "cat", "nul", says="a key contains a line feed")


if __name__ == "__main__":
    unittest.main()
