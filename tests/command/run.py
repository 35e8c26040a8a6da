"""Runs one file of tests of the command, for ctest: run.py TEST_FILE

Exit status 0: all passed; 77: none failed but some were skipped, which ctest shows as "Skipped" with the file's name, so
that nothing is left out unseen; 1: some failed, or there were none. A test is skipped by unittest's means, or says so with
a line of output starting with SKIP. What can be skipped therefore best stands in a file of its own.
"""

import os
import re
import subprocess
import sys

PASSED, FAILED, SKIPPED = 0, 1, 77


def main() -> int:
    directory, name = os.path.split(os.path.abspath(sys.argv[1]))
    environment = dict(os.environ, PYTHONPATH=directory, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
    command = [sys.executable, "-m", "unittest", "-v", os.path.splitext(name)[0]]
    tests = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    skips = []
    ran = 0
    for line in tests.stdout:
        text = line.decode(errors="replace")
        sys.stdout.write(text)
        sys.stdout.flush()
        if re.search(r"(^|\.\.\. )SKIP\b|\.\.\. skipped ['\"]", text):
            skips.append(text.strip())
        if match := re.match(r"Ran (\d+) tests? in ", text):
            ran = int(match[1])
    if tests.wait() != 0:
        return FAILED
    if skips:
        for skip in skips:
            print(skip if skip.startswith("SKIP") else f"SKIP {skip}")
        return SKIPPED
    if ran == 0:
        print(f"{name} has no tests")
        return FAILED
    return PASSED


if __name__ == "__main__":
    sys.exit(main())
