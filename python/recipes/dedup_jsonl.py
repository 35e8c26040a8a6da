#!/usr/bin/env python3
"""Drops repeated documents from JSON Lines, as for training data: two documents are the same if their texts differ in case
and white space only.

    dedup_jsonl.py STATE < documents.jsonl > distinct.jsonl

STATE is a filter file that remembers the texts of earlier runs. It is created if it is missing, and it grows. With an FPR
of 1e-6, one new document in a million is dropped. A document is written before its text enters the filter: if the program is
killed, the next run may write some documents again, but loses none.
"""

import hashlib
import itertools
import json
import os
import sys
from typing import Iterator

import bloomery

BATCH = 1000


def key_of(line: str) -> bytes:
    text = json.loads(line)["text"]
    return hashlib.blake2b(" ".join(text.lower().split()).encode(errors="surrogatepass"), digest_size=16).digest()


def distinct(lines: Iterator[str], seen: bloomery.BaseFilter) -> Iterator[str]:
    while batch := list(itertools.islice(lines, BATCH)):
        keys = [key_of(line) for line in batch]
        first = {key: line for key, line in zip(reversed(keys), reversed(batch))}  # the first of equal documents
        fresh = [key for key, found in zip(dict.fromkeys(keys), seen.contains_many(dict.fromkeys(keys))) if not found]
        yield from (first[key] for key in fresh)
        sys.stdout.flush()
        seen.update(fresh)


def main() -> None:
    state = sys.argv[1]
    opened = bloomery.open(state, "r+") if os.path.exists(state) else bloomery.ScalableFilter.create(state, 1e-6)
    with opened as seen:
        sys.stdout.writelines(distinct(iter(sys.stdin), seen))


if __name__ == "__main__":
    main()
