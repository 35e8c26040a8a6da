"""tools/audit: the adapters of examples/audit run in it, are short, and print what the command reads."""

import glob
import os
import re
import subprocess
import sys
import unittest

from support import COMMAND

SOURCE = os.environ["BLOOMERY_SOURCE"]
ROW = r"\| (?P<library>[\w:-]+) \| (?P<version>[\w.+~]+) \| (?P<n>[\d,]+) \| \S+ \| (?P<measured>[\d.e-]+)%? \(.*\) \| (?P<verdict>[\w ,]+) \| .* \|"


class Adapters(unittest.TestCase):
    def test_an_adapter_has_at_most_20_lines(self) -> None:
        files = glob.glob(os.path.join(SOURCE, "examples", "audit", "*.*"))
        self.assertGreater(len(files), 5)
        for path in files:
            with open(path, encoding="utf-8") as file:
                self.assertLessEqual(len(file.readlines()), 20, path)

    def test_every_library_is_measured_or_skipped_with_the_reason(self) -> None:
        tool = [sys.executable, os.path.join(SOURCE, "tools", "audit"), "--queries", "10000"]
        ran = subprocess.run(tool, env={**os.environ, "BLOOMERY": COMMAND}, capture_output=True, text=True)

        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        skipped = [line for line in lines if line.startswith("SKIP ")]
        rows = [re.fullmatch(ROW, line) for line in lines[2:] if line not in skipped]
        self.assertNotIn(None, rows, ran.stdout)
        for row in rows:
            # The sizes of these libraries keep 1%, and no library loses a key.
            self.assertNotIn("missing", row["verdict"])
            if row["n"] == "100,000":
                self.assertIn(row["verdict"], ("kept", "kept, within chance"), row[0])
                self.assertLess(float(row["measured"]), 2)
        self.assertEqual(len({row["library"] for row in rows}) + len(skipped), 6)
        for line in skipped:
            self.assertRegex(line, r"^SKIP [\w:-]+: .+")
            print(line)  # run.py reports the test as skipped


if __name__ == "__main__":
    unittest.main()
