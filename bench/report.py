#!/usr/bin/env python3
"""Report generator: turns benchmark results into tables and charts, and publishes them in the documentation.

    bench/report.py tables build/bench/compare-axes.json  Markdown on standard output
    bench/report.py goals build/bench/compare-goals.json  ratios to peers and to the machine's limits
    bench/report.py families build/bench                  counting, scalable, rebuilding, sliding-window, static filters
    bench/report.py publish build/bench                  the results in a folder to docs/performance.md and its charts

A ratio is the median of the ratios of the rounds: the speedup of ours over the other; for families, its time divided by
that of split_block512.
"""

import json
import os
import re
import statistics
import sys

import charts

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCS = os.path.join(ROOT, "docs")

# ---- results -----------------------------------------------------------------------------------------------


class Setting:
    """A measurement is named "contestant: operation way threads", for example "bloomery split_block: lookup bulk 1"."""

    def __init__(self, measured: dict) -> None:
        self.measured = measured
        self.rows = {row["name"]: row for row in measured["contestants"]}
        measurements = {f"{m['name']}: {m['operation']} {m['way']} {m['threads']}": m for m in measured["measurements"]}
        self.samples = {name: m["samples"] for name, m in measurements.items()}
        self.wall = {name: m.get("wall", m["samples"]) for name, m in measurements.items()}

    def median(self, what: str) -> float | None:
        samples = self.samples.get(what)
        return statistics.median(samples) if samples else None

    def quickest(self, measurements: list[str]) -> str | None:
        there = [what for what in measurements if what in self.samples]
        return min(there, key=self.median, default=None)

    def ratio(self, slower: str, faster: str, wall: bool = False) -> float:
        samples = self.wall if wall else self.samples
        above, below = samples[slower], samples[faster]
        if len(above) != len(below):  # one was too slow for more than one round
            return statistics.median(above) / statistics.median(below)
        return statistics.median(a / b for a, b in zip(above, below))

    def fpr(self, what: str) -> str:
        """The measured FPR of the contestant in this measurement, in percent."""
        row = self.rows.get(what.partition(": ")[0], {})
        return f"{100 * row['rate']:.2g}" if row.get("wrong") else ""

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
    """A Markdown table with right-aligned numbers."""
    columns = [[row[i] for row in rows if row[i]] for i in range(len(head))]
    rule = ["---:" if i > 0 and column and column[0][0].isdigit() else "---" for i, column in enumerate(columns)]
    return ["".join(f"| {cell} " if cell else "| " for cell in row) + "|" for row in (head, rule, *rows)]


# ---- tables ----------------------------------------------------------------------------------------------------------


def is_busy(machine_facts: dict) -> bool:
    return max(machine_facts["load_at_begin"], machine_facts["load_at_end"]) > machine_facts["cores"]


def machine(results: dict) -> str:
    m = results["machine"]
    warning = " Other programs ran at the same time: the times are too high, and the ratios are more reliable."
    busy = warning if is_busy(m) else ""
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    missing = f" Not installed: {', '.join(results['missing'])}." if results["missing"] else ""
    return (
        f"{m['cpu']}, {m['cores']} cores, {caches}; {m['system']}; huge pages {m['huge_pages']}; "
        f"kernels {m['kernels']}; {m['compiler']}; {m['date'][:10]}, load {m['load_at_begin']:.1f} at the start, "
        f"{m['load_at_end']:.1f} at the end. Plan {results['plan']}, medians of {results['rounds']} rounds."
        f"{missing}{busy}"
    )


LIMITS = [f"limit lines huge{ahead}: lookup limit 1" for ahead in ("", " to L1", " to L2")]


def title(s: dict) -> str:
    kind = "integers" if s["keys"] == "u64" else "strings of 43 bytes"
    words = f"{short(s['n'])} {kind}, {s['bits']} bits per key, {s['hits']}% present"
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
    head = ["ns per key", *columns.values()] + (["lookup / limit"] if limit else []) + ["bits per key"]
    lines = table(head + (["FPR, %"] if with_rates else []), rows)
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

TEN_K, ONE_M, TEN_M, LARGE = (["u64/%d/12/50/1" % n] for n in (10_000, 1_000_000, 10_000_000, 100_000_000))
SMALL = TEN_K + ONE_M
PAIR = ["u64/100000000/12/50/2"]  # of threads

STRINGS = ["string/10000/12/50/1", "string/1000000/12/50/1"]

NATIVE = ["boost BLOCK native: lookup bulk 1", "boost BLOCK native: lookup single 1"]
PORTABLE = ["boost BLOCK portable: lookup bulk 1", "boost BLOCK portable: lookup single 1"]

# Description, settings, ours, the alternatives it is compared with (the quickest counts), target, ideal. A row with
# LAYOUT applies to both layouts: split_block with Boost's BLOCK fmb32<8>, and split_block512 with fmb64<8>; a pair has
# a figure for each. A figure below 1 allows ours to be slower.
LAYOUTS = [("split_block", "fmb32<8>"), ("split_block512", "fmb64<8>")]
ROCKSDB_WAYS = [("lookup one by one", "lookup single 1"), ("bulk lookup", "lookup bulk 1"),
                ("insert one by one", "insert single 1"), ("bulk insert", "insert bulk 1")]  # fmt: skip
FUSE_WAYS = [("lookup one by one", "lookup single 1", "lookup single 1"),
             ("bulk lookup", "lookup bulk 1", "lookup single 1"), ("build at once", "build bulk 1", "build bulk 1")]  # fmt: skip
GOALS = [
    ("lookup one by one / Boost native", TEN_K, "bloomery LAYOUT: lookup single 1", NATIVE[1:], (0.66, 1.2), (1.0, 1.5)),
    ("lookup one by one / Boost native", ONE_M, "bloomery LAYOUT: lookup single 1", NATIVE[1:], (0.66, 1.0), (1.0, 1.2)),
    ("lookup one by one / Boost native", TEN_M, "bloomery LAYOUT: lookup single 1", NATIVE[1:], 0.66, 1.0),
    ("lookup one by one / Boost native, huge pages", LARGE, "bloomery LAYOUT: lookup single 1",
     ["boost BLOCK native huge: lookup single 1"], 0.75, 1.0),
    ("lookup one by one / Boost portable", SMALL, "bloomery LAYOUT: lookup single 1", PORTABLE[1:], (1.5, 2.0), 2.5),
    ("insert one by one / Boost native", ONE_M + TEN_M, "bloomery LAYOUT: insert single 1",
     ["boost BLOCK native: insert single 1"], 0.75, 1.0),
    ("bulk lookup / Boost native, using the faster of its two calls", TEN_K, "bloomery LAYOUT: lookup bulk 1", NATIVE, (1.1, 1.45), (1.6, 1.9)),
    ("bulk lookup / Boost native, using the faster of its two calls", ONE_M, "bloomery LAYOUT: lookup bulk 1", NATIVE, (1.25, 1.45), (1.6, 1.9)),
    ("bulk lookup / Boost portable, using the faster of its two calls", SMALL, "bloomery LAYOUT: lookup bulk 1", PORTABLE, 2.8, 3.5),
    ("bulk lookup / Boost native, huge pages", LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK native huge: lookup bulk 1"], (1.24, 1.15), (1.6, 1.3)),
    ("bulk lookup / Boost native, no huge pages", LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["boost BLOCK native: lookup bulk 1"], 1.7, 1.95),
    ("bulk lookup / random lines, the limit", LARGE, "bloomery LAYOUT: lookup bulk 1", LIMITS, 1 / 1.15, 1.0),
    ("build at once / Boost native, bulk, huge pages", LARGE, "bloomery LAYOUT: build bulk 1",
     ["boost BLOCK native huge: insert bulk 1"], 1.6, 2.7),
    ("bulk lookup, two threads / one", PAIR, "bloomery LAYOUT: lookup bulk 2",
     ["bloomery LAYOUT: lookup bulk 1"], 1.8, 1.95),
    ("build at once, two threads / one", PAIR, "bloomery LAYOUT: build bulk 2",
     ["bloomery LAYOUT: build bulk 1"], 1.8, 1.95),
    ("any_filter / filter, lookup one by one", SMALL, "any_filter LAYOUT: lookup single 1",
     ["bloomery LAYOUT: lookup single 1"], 1 / 2.0, 1 / 1.5),
    ("any_filter / filter, insert one by one", ONE_M, "any_filter LAYOUT: insert single 1",
     ["bloomery LAYOUT: insert single 1"], 0.66, 0.8),
    ("classic, bulk lookup / Boost native, using the faster of its two calls", ONE_M, "bloomery classic: lookup bulk 1",
     ["boost classic k=9 native: lookup bulk 1", "boost classic k=9 native: lookup single 1"], 1.0, 1.3),
    ("bulk lookup / textbook", SMALL + LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["textbook: lookup single 1"], None, None),
    ("bulk lookup / LevelDB", SMALL + LARGE, "bloomery LAYOUT: lookup bulk 1",
     ["leveldb: lookup single 1"], None, None),
]  # fmt: skip
GOALS += [
    (f"{words} / RocksDB {build}", SMALL + STRINGS, f"bloomery split_block512: {way}", [f"rocksdb {build}: {way}"],
     None, None)
    for build in ("native", "portable") for words, way in ROCKSDB_WAYS
]  # fmt: skip
GOALS += [
    (f"{words} / xor_singleheader {build}", SMALL, f"static {width}: {ours}", [f"binary_{width} {build}: {theirs}"],
     None, None)
    for width in ("fuse8", "fuse16") for build in ("native", "portable") for words, ours, theirs in FUSE_WAYS
]  # fmt: skip


def spread_of(times: list[float]) -> str:
    """The median, and the lowest and highest."""
    return f"{number(statistics.median(times))} ({number(min(times))} to {number(max(times))})"


def goals(results: dict) -> str:
    settings, busy = settings_of(results), is_busy(results["machine"])
    rows = []
    for words, names, ours, theirs, least, dream in GOALS:
        only = ours.partition(":")[0].split()[-1]
        for i, (layout, block) in enumerate(LAYOUTS if only == "LAYOUT" else [(only, "")]):
            aims = [aim[i] if isinstance(aim, tuple) else aim for aim in (least, dream)]
            for s in (settings[name] for name in names if name in settings):
                mine = ours.replace("LAYOUT", layout)
                peer = s.quickest([one.replace("LAYOUT", layout).replace("BLOCK", block) for one in theirs])
                if mine not in s.samples or peer is None or (s.measured["threads"] > 1 and busy):
                    continue
                ratio = s.ratio(peer, mine)
                figures = [spread_of(s.wall[mine]), spread_of(s.wall[peer]), f"{s.ratio(peer, mine, wall=True):.2f}"]
                figures += [number(min(s.samples[mine])), number(min(s.samples[peer])), f"{ratio:.2f}"]
                figures += [s.fpr(mine), s.fpr(peer)]
                if aims[0] is None:
                    figures += ["", "", ""]
                else:
                    reached = sum(ratio >= aim for aim in aims)
                    figures += [f"{aims[0]:.2f}", f"{aims[1]:.2f}", ("short", "met", "dream")[reached]]
                keys = short(s.measured["n"]) + (" strings" if s.measured["keys"] == "string" else "")
                rows.append([words, layout, keys, *figures])
    head = ["ours / against", "layout", "keys", "ours, wall ns", "theirs, wall ns", "times as fast", "ours, CPU ns",
            "theirs, CPU ns", "times as fast", "FPR, %, ours", "theirs", "at least", "dream", ""]  # fmt: skip
    lines = [machine(results), "", *table(head, rows)]
    if busy and any(s.measured["threads"] > 1 for s in settings.values()):
        lines += ["", "Ratios for two threads are left out: other work took the second core."]
    return "\n".join(lines)


# ---- families --------------------------------------------------------------------------------------------------------

CALLS = [("batch", "batch"), ("single", "one by one"), ("chained", "chained")]


def against_reference(s: Setting, what: str) -> str:
    """Nanoseconds per key, and their ratio to those of the split_block512 filter."""
    ours, reference = f"{s.measured['family']}: {what}", f"split_block512: {what}"
    if ours not in s.samples:
        return ""
    ratio = f" ({s.ratio(ours, reference):.2f})" if reference in s.samples else ""
    return number(s.median(ours)) + ratio


def family_tables(results: dict) -> list[str]:
    settings = [Setting(measured) for measured in results["settings"]]
    rows, notes = [], []
    for s in settings:
        family = s.measured["family"]
        ours, reference = s.rows[family], s.rows["split_block512"]
        added = "build" if f"{family}: build batch 1" in s.samples else "insert"
        fprs = [f"{100 * ours['exact_rate']:.4g}", f"{100 * ours['wrong'] / ours['asked']:.3g}"]
        cells = [family, f"{ours['bits_a_key']:.2f}", f"{reference['bits_a_key']:.2f}", *fprs]
        cells += [against_reference(s, f"{added} {way} 1") for way in ("batch", "single")]
        cells += [against_reference(s, f"{kind} {way} 1") for kind in ("present", "absent") for way, _ in CALLS]
        rows.append(cells)
        if removed := against_reference(s, "remove batch 1"):
            notes.append(f"{family}: removing a key, batch: {removed} ns.")
        if built := against_reference(s, "build batch 2"):
            notes.append(f"{family}: building with two threads, wall-clock time: {built} ns per key.")
    head = ["ns per key (ours / split_block512)", "bits per key", "of split_block512", "FPR, %, expected", "measured",
            "insert or build, batch", "one by one"] + [f"{kind}, {words}" for kind in ("present", "absent") for _, words in CALLS]  # fmt: skip
    title = f"#### {short(settings[0].measured['n'])} keys"
    return ["", title, "", machine(results), "", *table(head, rows), "", *(" ".join(notes),)]


def family_goals(tables: list[dict], growth: dict[str, dict]) -> list[str]:
    rows = []

    def row(words: str, keys: int, value: float, most: float, unit: str = "") -> None:
        digits = f"{value:.2f}"
        met = "met" if float(digits) <= most else "short"
        rows.append([words, short(keys), digits + unit, f"{most:g}{unit}", met])

    def longest(words: str, of: dict, figures: dict) -> None:
        row(f"{words}, in each of {of['rounds']} rounds", of["keys"], figures["each_time_us"] / 1000, 1, " ms")
        row(f"{words}, at worst", of["keys"], figures["ever_us"] / 1000, 1, " ms")

    if log := growth.get("log"):
        row("rebuilding: highest bits per key at rest", log["keys"], log["bits_at_rest"], 13)
        row("rebuilding: bits per key during a rebuild, both files", log["keys"], log["bits_growing"], 23)
        row("rebuilding: measured FPR, %", log["keys"], 100 * log["measured"], 1)
    if layers := growth.get("growing"):
        for when, most in (("full", 17), ("grown", 33)):
            words = "newest layer full" if when == "full" else "just after growth"
            rule = f"RedisBloom's rule: {layers[f'redis_bits_{when}']:.0f}"
            row(f"scalable: highest bits per key, {words} ({rule})", layers["keys"], layers[f"bits_{when}"], most)
        row("scalable: highest measured FPR, %", layers["keys"], 100 * layers["measured"], 1)
        longest("scalable: longest insert", layers, layers)
    if window := growth.get("window"):
        for layout in ("sliding", "sliding64"):
            longest(f"{layout}: longest insert near the start of a new generation", window, window[layout])
    for results in tables:
        for s in map(Setting, results["settings"]):
            family, n = s.measured["family"], s.measured["n"]
            if family == "fuse8":
                row("fuse8: bits per key", n, s.rows[family]["bits_a_key"], 9.02)
            for name, most in (("rebuilding", 1.3), ("scalable", 3)):
                if family != name:
                    continue
                for way, words in CALLS:
                    calls = [f"{kind} {way} 1" for kind in ("present", "absent")]
                    worse = max(s.ratio(f"{name}: {call}", f"split_block512: {call}") for call in calls)
                    row(f"{name}: lookups, {words}: time / split_block512, present or absent keys, the higher", n, worse, most)
    order = ["rebuilding", "scalable", "sliding", "sliding64", "fuse8"]
    rows.sort(key=lambda cells: order.index(cells[0].partition(":")[0]))
    return table(["", "keys", "reached", "at most", ""], rows)


def families(folder: str) -> str:
    """Tables of the results in a folder of time_families, time_growing, time_log and time_window."""
    names = [name for name in os.listdir(folder) if re.fullmatch(r"families-\d+\.json", name)]
    tables = sorted((load(os.path.join(folder, name)) for name in names), key=lambda r: r["settings"][0]["n"])
    growth = {}
    for name in ("growing", "log", "window"):
        if os.path.exists(path := os.path.join(folder, f"time_{name}.json")):
            with open(path, encoding="utf-8") as file:
                growth[name] = json.load(file)
    lines = ["#### Targets", "", *family_goals(tables, growth)]
    if growth:
        if "window" in growth:
            reference = growth["window"]["split_block512"]
            each_time, ever = reference["each_time_us"] / 1000, reference["ever_us"] / 1000
            lines += [
                "",
                "The longest insert of the split_block512 filter, which has no generations, shows how much of this is due "
                f"to the machine: {each_time:.2f} ms in each round, {ever:.2f} ms at worst.",
            ]
        loads = ", ".join(f"time_{name} {figures['load_at_end']:.1f}" for name, figures in growth.items())
        lines += ["", f"Load of the machine when these ended: {loads}."]
    for results in tables:
        lines += family_tables(results)
    return "\n".join(lines)


# ---- documentation ---------------------------------------------------------------------------------------------------


def place(name: str, text: str) -> None:
    """Replaces the text between the marks of this name in docs/performance.md."""
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
    """Publishes the results of the plan that was run last, and those of the families and the command."""
    plans = [os.path.join(folder, f"compare-{plan}.json") for plan in ("all", "axes", "quick", "goals")]
    if measured := list(filter(os.path.exists, plans)):
        results = load(max(measured, key=os.path.getmtime))
        place("ratios", goals(results))
        place("library", tables(results))
        for name, picture in charts.all_of(settings_of(results)).items():
            with open(os.path.join(DOCS, name), "w", encoding="utf-8") as file:
                file.write(picture)
    if any(name.startswith("families-") for name in os.listdir(folder)):
        place("families", families(folder))
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
        case ["families", folder]:
            print(families(folder))
        case ["publish", folder]:
            publish(folder)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
