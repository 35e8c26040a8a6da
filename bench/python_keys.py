#!/usr/bin/env python3
"""Times the Python package: one key per call, and many keys per call; beside set, and beside Flor if it is installed.

    bench/python_keys.py [--package build/release/python] [--keys 1000000] [--rounds 5]

Prints nanoseconds per key, the best of the rounds. Calls on one key include the loop of Python. rbloom and pybloomfiltermmap3
are not packaged by Debian and cannot be measured here. Their row has the figures that rbloom's README publishes: 10 million
keys inserted and looked up, one per call, on a Core i5-9300H; Flor took 6,442 ns per call there. The ratio of Flor's two
figures shows how much faster this machine is, and divides the published figures.
"""

import argparse
import platform
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

SOURCE = Path(__file__).resolve().parent.parent
PUBLISHED = {"rbloom": 5.956e9 / 2e7, "pybloomfiltermmap3": 11.280e9 / 2e7, "Flor": 128.837e9 / 2e7}  # ns per call


def best_of(rounds: int, keys: int, work: Callable[[], Any]) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return min(times) / keys


def call_each(call: Callable[[Any], Any], keys: Iterable[Any]) -> None:
    for key in keys:
        call(key)


def look_up_each(filter: Any, keys: Iterable[Any]) -> None:
    for key in keys:
        key in filter


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", default=SOURCE / "build/release/python")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sys.path[:0] = [str(options.package), str(SOURCE / "tests/python")]
    import bloomery
    import numpy
    from arrow_by_hand import texts

    n, rate = options.keys, 0.01
    names = [f"key-{i:012d}" for i in range(n)]
    fixed = numpy.array(names, "S16")
    numbers = numpy.random.default_rng(1).integers(0, 2**63, n, dtype="u8")
    arrow = texts([name.encode() for name in names])
    text, integers = bloomery.Filter(n, rate), bloomery.Filter(n, rate, keys=int)
    rows: dict[str, tuple[float, float]] = {}

    def measure(name: str, insert: Callable[[], Any], look_up: Callable[[], Any], keys: Optional[int] = None) -> None:
        rows[name] = best_of(options.rounds, keys or n, insert), best_of(options.rounds, keys or n, look_up)
        print(f"{name:44} {rows[name][0]:9.1f} {rows[name][1]:9.1f}")

    print(f"{n:,} keys, capacity {n:,}, target FPR {rate:.0%}; Python {platform.python_version()}, NumPy {numpy.__version__}")
    print(f"{'ns per key':44} {'insert':>9} {'look up':>9}")
    measure("one str per call: bloomery", lambda: call_each(text.add, names), lambda: look_up_each(text, names))
    exact: set = set()
    measure("one str per call: set", lambda: call_each(exact.add, names), lambda: look_up_each(exact, names))
    listed = numbers.tolist()
    measure("one int per call: bloomery, keys=int", lambda: call_each(integers.add, listed), lambda: look_up_each(integers, listed))
    measure("list of str", lambda: text.update(names), lambda: text.contains_many(names))
    measure("NumPy bytes of width 16", lambda: text.update(fixed), lambda: text.contains_many(fixed))
    measure("Arrow utf8", lambda: text.update(arrow), lambda: text.contains_many(arrow))
    measure("NumPy uint64, keys=int", lambda: integers.update(numbers), lambda: integers.contains_many(numbers))
    speed = 1.0
    try:
        import flor
    except ImportError:
        print("SKIP Flor: python3-flor is not installed")
    else:
        few = [name.encode() for name in names[:20_000]]
        peer = flor.BloomFilter(n=n, p=rate)
        measure("one bytes per call: Flor", lambda: call_each(peer.add, few), lambda: look_up_each(peer, few), len(few))
        speed = PUBLISHED["Flor"] / (sum(rows["one bytes per call: Flor"]) / 2)
        print(f"this machine runs Flor {speed:.2f} times as fast as published; the figures below are divided by this")
    single, batch = (sum(rows[name]) / 2 for name in ("one str per call: bloomery", "list of str"))
    for peer_name in ("rbloom", "pybloomfiltermmap3"):
        ns = PUBLISHED[peer_name] / speed
        print(f"{peer_name}: {ns:.0f} ns per call (published: {PUBLISHED[peer_name]:.0f}); bloomery: {ns / single:.1f} times as fast per call, {ns / batch:.1f} times in batches")
    for name, filter, others in (("text", text, [f"other-{i}" for i in range(n)]), ("integers", integers, numbers + numpy.uint64(2**63))):
        found = sum(filter.contains_many(others))
        facts = filter.info()
        print(f"{name}: {facts['layout']}, {facts['bits'] / n:.2f} bits per key, FPR expected {facts['expected_fpr']:.4%}, measured {found / n:.4%} ({n:,} lookups)")


if __name__ == "__main__":
    main()
