"""A second server program for the tests of shared filters: Valkey, or another version of Redis.

BLOOMERY_TEST_SERVER names it; without that, valkey-server if it is installed. Run by ctest, with the program of the
library's tests: another_server.py PROGRAM ARGUMENT..., which ends with 77, and says so, if there is no second server.
"""

import os
import shutil
import sys

HOW_TO_GET_ONE = "NO OTHER SERVER: install valkey-server, or let BLOOMERY_TEST_SERVER name a server's program"
SKIPPED = 77


def find() -> str | None:
    for name in ("BLOOMERY_TEST_SERVER", "BLOOMERY_VALKEY_SERVER"):
        if named := os.environ.get(name):
            return named
    return shutil.which("valkey-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/bin")


def main() -> int:
    server = find()
    if server is None:
        print(f"SKIP {HOW_TO_GET_ONE}")
        return SKIPPED
    sys.stdout.flush()
    os.execve(sys.argv[1], sys.argv[1:], dict(os.environ, BLOOMERY_VALKEY_SERVER=server))


if __name__ == "__main__":
    sys.exit(main())
