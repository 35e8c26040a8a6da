#!/usr/bin/env python3
"""Makes tables of what compare measured, and puts them and its charts into the documentation.

    bench/report.py tables build/bench/compare-axes.json  Markdown on standard output
    bench/report.py goals build/bench/compare-goals.json  ratios to peers and to the machine's limits
    bench/report.py publish build/bench                  what bench/run left there into docs/performance.md, and charts

A ratio is the median of the ratios of the single rounds. It says how many times as fast ours is.
"""

import json
import os
import re
import statistics
import sys

import charts

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCS = os.path.join(ROOT, "docs")

# ---- what was measured -----------------------------------------------------------------------------------------------


class Setting:
    """A measurement is named "contestant: operation way threads", as in "bloomery line: lookup bulk 1"."""

    def __init__(self, measured: dict) -> None:
        self.measured = measured
        self.rows = {row["name"]: row for row in measured["contestants"]}
        self.samples = {
            f"{m['name']}: {m['operation']} {m['way']} {m['threads']}": m["samples"] for m in measured["measurements"]
        }

    def median(self, what: str) -> float | None:
        samples = self.samples.get(what)
        return statistics.median(samples) if samples else None

    def quickest(self, measurements: list[str]) -> str | None:
        there = [what for what in measurements if what in self.samples]
        return min(there, key=self.median, default=None)

    def ratio(self, slower: str, faster: str) -> float:
        above, below = self.samples[slower], self.samples[faster]
        if len(above) != len(below):  # one was too slow for more than one round
            return statistics.median(above) / statistics.median(below)
        return statistics.median(a / b for a, b in zip(above, below))

    def names(self) -> list[str]:
        return list(dict.fromkeys(what.partition(": ")[0] for what in self.samples if not what.startswith("limit")))


def settings_of(results: dict) -> dict[str, Setting]:
    return {s["name"]: Setting(s) for s in results["settings"]}


def short(n: int) -> str:
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if n >= size:
            return f"{n / size:g} {unit}"
    return str(n)


def number(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return ""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """In Markdown; columns of numbers stand to the right."""
    columns = [[row[i] for row in rows if row[i]] for i in range(len(head))]
    rule = ["---:" if i > 0 and column and column[0][0].isdigit() else "---" for i, column in enumerate(columns)]
    return ["".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in (head, rule, *rows)]


# ---- tables ----------------------------------------------------------------------------------------------------------


def machine(results: dict) -> str:
    m = results["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    missing = f" Not installed: {', '.join(results['missing'])}." if results["missing"] else ""
    return (
        f"{m['cpu']}, {m['cores']} cores, {caches}; {m['system']}; huge pages {m['huge_pages']}; "
        f"kernels {m['kernels']}; {m['compiler']}; {m['date'][:10]}, load {m['load_at_begin']:.1f} at the start, "
        f"{m['load_at_end']:.1f} at the end. Plan {results['plan']}, medians of {results['rounds']} rounds.{missing}"
    )


LIMITS = [f"limit lines huge{ahead}: lookup limit 1" for ahead in ("", " to L1", " to L2")]


def title(s: dict) -> str:
    kind = "integers" if s["keys"] == "u64" else "strings of 43 bytes"
    words = f"{short(s['n'])} {kind}, {s['bits']} bits a key, {s['hits']} % present"
    return words + (f", up to {s['threads']} threads" if s["threads"] > 1 else "")


WAYS = [("lookup bulk", "lookup, bulk"), ("lookup single", "lookup, one by one"), ("insert bulk", "insert, bulk"),
        ("insert single", "insert, one by one"), ("build bulk", "build at once")]  # fmt: skip


def setting_table(s: Setting) -> list[str]:
    limit = s.quickest(LIMITS)
    with_rates = any("rate" in row for row in s.rows.values())
    columns = {}
    for way, words in WAYS:
        for threads in range(1, s.measured["threads"] + 1):
            if any(what.endswith(f": {way} {threads}") for what in s.samples):
                columns[f"{way} {threads}"] = words + (f", {threads} threads" if threads > 1 else "")
    rows = []
    for name in s.names():
        row = s.rows[name]
        cells = [name] + [number(s.median(f"{name}: {column}")) for column in columns]
        if limit:
            best = s.quickest([f"{name}: lookup bulk 1", f"{name}: lookup single 1"])
            cells.append(number(s.ratio(best, limit)))
        cells.append(f"{row['bits_a_key']:.2f}")
        if with_rates:
            half = (row["rate_most"] - row["rate_least"]) / 2
            cells.append(f"{100 * row['rate']:.3f} ± {100 * half:.3f}" if row["wrong"] else "0")
        rows.append(cells)
    head = ["ns a key", *columns.values()] + (["lookup / limit"] if limit else []) + ["bits a key"]
    lines = table(head + (["errs, %"] if with_rates else []), rows)
    limits = {what.partition(": ")[0]: s.median(what) for what in s.samples if what.startswith("limit")}
    if limits:
        words = [f"{name.removeprefix('limit ')} {number(limits[name])}" for name in limits]
        lines += ["", f"Limits: {'; '.join(words)}."]
    return lines


def tables(results: dict) -> str:
    lines = [machine(results)]
    for s in settings_of(results).values():
        lines += ["", f"#### {title(s.measured)}", "", *setting_table(s)]
    return "\n".join(lines)


# ---- goals -----------------------------------------------------------------------------------------------------------

SMALL = ["u64/10000/12/50/1", "u64/1000000/12/50/1"]
LARGE = ["u64/100000000/12/50/1"]
PAIR = ["u64/100000000/12/50/2"]  # of threads

# Words, settings, ours, what it is compared with, at least, dream. Each line is for both layouts: LAYOUT is split_block
# with Boost's BLOCK fmb32<8>, or line with fmb64<8>; two figures in a pair are for the one and the other. A figure below
# 1 allows ours to be slower.
GOALS = [
    ("bulk lookup / Boost native, its quicker call", SMALL, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK native: lookup bulk 1", "boost BLOCK native: lookup single 1"], (1.35, 1.9), (1.6, 2.3)),
    ("bulk lookup / Boost portable, its quicker call", SMALL, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK portable: lookup bulk 1", "boost BLOCK portable: lookup single 1"], 2.8, 3.5),
    ("lookup one by one / Boost native", SMALL, "bloomery LAYOUT: lookup single 1",
     ["boost BLOCK native: lookup single 1"], 1.0, 1.2),
    ("lookup one by one / Boost portable", SMALL, "bloomery LAYOUT: lookup single 1",
     ["boost BLOCK portable: lookup single 1"], 2.2, 2.5),
    ("bulk lookup / Boost native, huge pages", LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK native huge: lookup bulk 1"], 1.15, 1.3),
    ("bulk lookup / Boost native, as its users run it", LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK native: lookup bulk 1"], 1.7, 1.95),
    ("bulk lookup / random lines, the limit", LARGE, "bloomery LAYOUT: lookup bulk 1", LIMITS, 1 / 1.15, 1.0),
    ("build at once / Boost native, bulk, huge pages", LARGE, "bloomery LAYOUT: build bulk 1",
     ["boost BLOCK native huge: insert bulk 1"], 1.9, 2.7),
    ("bulk lookup, two threads / one", PAIR, "bloomery LAYOUT: lookup bulk 2",
     ["bloomery LAYOUT: lookup bulk 1"], 1.8, 1.95),
    ("build at once, two threads / one", PAIR, "bloomery LAYOUT: build bulk 2",
     ["bloomery LAYOUT: build bulk 1"], 1.8, 1.95),
    ("any_filter / filter, one by one", SMALL, "any_filter LAYOUT: lookup single 1",
     ["bloomery LAYOUT: lookup single 1"], 1 / 2.0, 1 / 1.5),
    ("bulk lookup / textbook", SMALL + LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["textbook: lookup single 1"], None, None),
    ("bulk lookup / LevelDB", SMALL + LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["leveldb: lookup single 1"], None, None),
]  # fmt: skip


def goals(results: dict) -> str:
    settings = settings_of(results)
    rows = []
    for words, names, ours, theirs, least, dream in GOALS:
        for i, (layout, block) in enumerate((("split_block", "fmb32<8>"), ("line", "fmb64<8>"))):
            aims = [aim[i] if isinstance(aim, tuple) else aim for aim in (least, dream)]
            for s in (settings[name] for name in names if name in settings):
                mine = ours.replace("LAYOUT", layout)
                peer = s.quickest([one.replace("LAYOUT", layout).replace("BLOCK", block) for one in theirs])
                if mine not in s.samples or peer is None:
                    continue
                ratio = s.ratio(peer, mine)
                figures = [number(s.median(mine)), number(s.median(peer)), f"{ratio:.2f}"]
                if aims[0] is None:
                    figures += ["", "", ""]
                else:
                    reached = sum(ratio >= aim for aim in aims)
                    figures += [f"{aims[0]:.2f}", f"{aims[1]:.2f}", ("short", "met", "dream")[reached]]
                rows.append([words, layout, short(s.measured["n"]), *figures])
    head = ["ours / against", "layout", "keys", "ours, ns", "theirs, ns", "times as fast", "at least", "dream", ""]
    return "\n".join(table(head, rows))


# ---- documentation ---------------------------------------------------------------------------------------------------


def place(name: str, text: str) -> None:
    """Replaces what stands between the marks of that name in docs/performance.md."""
    path = os.path.join(DOCS, "performance.md")
    with open(path, encoding="utf-8") as file:
        page = file.read()
    marks = re.compile(rf"(<!-- begin {name}\b[^>]*-->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not marks.search(page):
        sys.exit(f"report: {path} has no marks for {name}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(marks.sub(lambda found: f"{found[1]}{text.strip()}\n{found[2]}", page))


def load(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    if results["schema"] != 1:
        sys.exit(f"report: {path} is of schema {results['schema']}, not 1")
    return results


def publish(folder: str) -> None:
    """The library's figures come from the plan that was run last."""
    plans = [os.path.join(folder, f"compare-{plan}.json") for plan in ("all", "axes", "quick", "goals")]
    if measured := list(filter(os.path.exists, plans)):
        results = load(max(measured, key=os.path.getmtime))
        place("ratios", goals(results))
        place("library", tables(results))
        for name, picture in charts.all_of(settings_of(results)).items():
            with open(os.path.join(DOCS, name), "w", encoding="utf-8") as file:
                file.write(picture)
    command = os.path.join(folder, "command.md")
    if os.path.exists(command):
        with open(command, encoding="utf-8") as file:
            place("command", file.read())


def main() -> None:
    match sys.argv[1:]:
        case ["tables", path]:
            print(tables(load(path)))
        case ["goals", path]:
            print(goals(load(path)))
        case ["publish", folder]:
            publish(folder)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
