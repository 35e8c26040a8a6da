"""SVG bar charts of the results of compare, with one group per filter size."""

from html import escape

BAR, GAP, LABEL, WIDTH, RIGHT = 18, 14, 230, 460, 60

SHOWN = {  # contestant: color
    "bloomery split_block512": "#1565c0",
    "bloomery split_block": "#42a5f5",
    "boost fmb64<8> native": "#e65100",
    "boost fmb32<8> native": "#ff9800",
    "boost fmb64<8> portable": "#ffb74d",
    "boost fmb32<8> portable": "#ffcc80",
    "rocksdb native": "#00897b",
    "rocksdb portable": "#80cbc4",
    "leveldb": "#ab47bc",
    "textbook": "#757575",
    "absl::flat_hash_set": "#9e9e9e",
    "std::unordered_set": "#bdbdbd",
}
LIMIT = "#2e7d32"


def bars(title: str, groups: list[tuple[str, list[tuple[str, float, str]]]]) -> str:
    """groups: for each a heading and its bars (name, value, color). Each group has a scale of its own."""
    parts, y = [], 30
    for heading, rows in groups:
        y += GAP + 6
        parts.append(f'<text x="8" y="{y}" font-weight="bold">{escape(heading)}</text>')
        y += 8
        most = max(value for _, value, _ in rows)
        for name, value, color in rows:
            length = max(1.0, WIDTH * value / most)
            parts.append(
                f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
                f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 4}" fill="{color}"/>'
                f'<text x="{LABEL + length + 6:.1f}" y="{y + 12}">{value:.2f}</text>'
            )
            y += BAR
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + WIDTH + RIGHT}" height="{y + GAP}" '
        f'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="8" y="22" font-size="15">{escape(title)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def chart(title: str, settings: dict, names: list[str], ways: list[str]) -> str:
    """The fastest of `ways` for each contestant; for lookups also the limit, random cache lines."""
    groups = []
    for s in (settings[name] for name in names if name in settings):
        rows = []
        for contestant, color in SHOWN.items():
            best = s.quickest([f"{contestant}: {way} 1" for way in ways])
            if best:
                rows.append((contestant, s.median(best), color))
        limit = s.quickest([what for what in s.samples if what.startswith("limit lines huge")])
        if limit and ways[0].startswith("lookup"):
            rows.append(("random cache lines", s.median(limit), LIMIT))
        if rows:
            groups.append((f"{s.measured['n']:,} keys, {s.measured['bits']} bits per key", rows))
    return bars(title, groups) if groups else ""


def all_of(settings: dict) -> dict[str, str]:
    """A picture per file name."""
    sizes = [f"u64/{n}/12/50/1" for n in (10_000, 1_000_000, 20_000_000, 100_000_000, 1_000_000_000)]
    pictures = {
        "lookup.svg": chart("Lookup of integers, ns per key, one thread, fastest call", settings, sizes,
                            ["lookup bulk", "lookup single"]),
        "build.svg": chart("Building a filter of integers, ns per key, one thread, fastest call", settings, sizes,
                           ["build bulk", "insert bulk", "insert single"]),
    }  # fmt: skip
    return {name: picture for name, picture in pictures.items() if picture}
