"""The SQL of docs/sqlite.md, in the shell of SQLite: its output is the text block that follows."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

EXTENSION = os.environ["BLOOMERY_SQLITE"]
DOCUMENT = Path(os.environ["BLOOMERY_SOURCE"]) / "docs/sqlite.md"
SHELL = shutil.which("sqlite3", path="/usr/bin:" + os.environ.get("PATH", ""))
END = "-- end of block --"


def blocks() -> list[tuple[str, str]]:
    """Each sql block, and the text block that follows it without other text between, or nothing."""
    return re.findall(r"^```sql\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)


@unittest.skipUnless(SHELL and os.environ.get("BLOOMERY_SANITIZED", "0") == "0", "the shell sqlite3 is not installed, or the extension has a sanitizer")
class Documentation(unittest.TestCase):
    def test_shows_the_output_of_its_SQL(self):
        with tempfile.TemporaryDirectory() as work:
            shutil.copy(EXTENSION, Path(work) / "bloomery.so")
            script = "".join(f"{sql}.print {END}\n" for sql, _ in blocks())
            done = subprocess.run([SHELL, "-batch", "-bail"], input=script, cwd=work, capture_output=True, text=True, check=False)

        self.assertEqual(done.stderr, "")
        printed = done.stdout.split(END + "\n")
        self.assertEqual(len(printed), len(blocks()) + 1)
        self.assertEqual(len([shown for _, shown in blocks() if shown]), 3)
        for (sql, shown), output in zip(blocks(), printed):
            self.assertEqual(output, shown, sql)


if __name__ == "__main__":
    unittest.main()
