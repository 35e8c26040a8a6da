#!/usr/bin/env python3
"""Breached passwords as a static filter: is the SHA-1 of a password in a list of leaked ones?

    breached_passwords.py build HASHES FILTER    from lines HASH or HASH:COUNT, as "Have I Been Pwned" publishes them
    breached_passwords.py check FILTER           reads passwords, one per line, and prints "breached" or "not found"

A fingerprint of 16 bits takes 2.3 bytes per password and wrongly reports one of 65,536 others. "not found" is always right.
Keys are the hashes in upper-case hexadecimal, so the command opens the same file. The build reads the list once.
"""

import hashlib
import sys
from typing import Iterator

import bloomery


def hashes_in(path: str) -> Iterator[str]:
    with open(path, encoding="ascii") as lines:
        for line in lines:
            yield line.split(":", 1)[0].strip().upper()


def is_breached(leaked: bloomery.BaseFilter, password: str) -> bool:
    return hashlib.sha1(password.encode()).hexdigest().upper() in leaked


def main() -> None:
    if sys.argv[1] == "build":
        bloomery.StaticFilter(hashes_in(sys.argv[2]), bits=16).save(sys.argv[3])
        return
    leaked = bloomery.open(sys.argv[2])  # mapped: processes share its pages
    for line in sys.stdin:
        print("breached" if is_breached(leaked, line.rstrip("\n")) else "not found")


if __name__ == "__main__":
    main()
