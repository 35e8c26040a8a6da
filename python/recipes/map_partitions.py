#!/usr/bin/env python3
"""A filter built by many processes: each builds the filter of its part, and the union is the filter of all keys, bit for bit.

    map_partitions.py FILTER FILE...    one process per file; the keys are the lines

The filters need the same parameters: the capacity is that of all keys together. On Spark and Ray, the same two functions run
on many machines:

    filters = spark.sparkContext.textFile("keys/").mapPartitions(lambda lines: [filter_of(lines)])
    united(filters.toLocalIterator()).save("all.bloom")

    build = ray.remote(filter_of_file)
    united(ray.get(build.remote(path)) for path in paths).save("all.bloom")

A filter is pickled as the bytes of its file. The result of `united` needs memory for two filters.
"""

import multiprocessing
import sys
from typing import Iterable

import bloomery

CAPACITY, FPR = 1_000_000, 0.01


def filter_of(keys: Iterable[str]) -> bytes:
    """The bytes of the filter of one part."""
    part = bloomery.Filter(CAPACITY, FPR)
    part.update(keys)
    return part.to_bytes()


def filter_of_file(path: str) -> bytes:
    with open(path, encoding="utf-8") as lines:
        return filter_of(line.rstrip("\n") for line in lines)


def united(parts: Iterable[bytes]) -> bloomery.Filter:
    result = bloomery.Filter(CAPACITY, FPR)
    for part in parts:
        result |= bloomery.from_bytes(part)
    return result


def main() -> None:
    with multiprocessing.Pool() as pool:
        united(pool.imap_unordered(filter_of_file, sys.argv[2:])).save(sys.argv[1])


if __name__ == "__main__":
    main()
