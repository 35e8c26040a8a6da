"""Which layout is taken when none is named: the quickest within the allowance, with keys and rate as with a given size."""

import os
import shlex
import unittest

from support import BLOCK_BITS, LAYOUTS, CommandTest, keys, rate_of

SOURCE = os.environ["BLOOMERY_SOURCE"]
SHARE = {"speed": 1.25, "memory": 1.03}
ALWAYS = 4096 * 8  # bits that count as nothing


def by_the_rule(rows: list[dict], prefer: str) -> tuple[str, list[str]]:
    """The layout to take and those within the allowance, from the sizes of all."""
    possible = [row for row in rows if row["ok"]]
    best = min(row["bits"] for row in possible)
    most = max(best * SHARE[prefer], best + ALWAYS)
    within = [row["layout"] for row in possible if row["bits"] <= most]
    return within[0], within


def best_rate(bits: int, n: int) -> float:
    """The lowest FPR that any layout has in a given number of bits."""
    rates = []
    for layout in LAYOUTS:
        whole = bits // BLOCK_BITS[layout] * BLOCK_BITS[layout]
        ideal = bits / n * 0.6931
        for probes in [8] if layout in LAYOUTS[:2] else range(max(1, int(ideal * 0.7)), int(ideal) + 2):
            if whole:
                rates.append(rate_of(layout, whole, probes, n))
    return min(rates)


class Choice(CommandTest):
    def plan(self, *arguments: object) -> dict:
        return self.bloomery("plan", "--json", *arguments).json

    # ---- keys and rate

    def test_it_is_the_quickest_within_the_allowance_of_the_least_memory(self) -> None:
        seen = set()
        for n in 10, 3000, 1_000_000, 10**12:
            for p in 0.5, 0.2, 0.1, 0.01, 5e-4, 1e-4, 1e-5, 1e-6, 1e-9:
                for prefer in "speed", "memory":
                    with self.subTest(n=n, p=p, prefer=prefer):
                        plan = self.plan("-n", n, "-p", p, "--prefer", prefer)

                        chosen, within = by_the_rule(plan["layouts"], prefer)
                        self.assertEqual((plan["prefer"], plan["chosen"]), (prefer, chosen))
                        self.assertEqual([row["layout"] for row in plan["layouts"] if row["within"]], within)
                        self.assertIn("the only layout" if len(within) == 1 else f"the fastest of {len(within)} ", plan["reason"])
                        seen.add(chosen)
        self.assertEqual(seen, set(LAYOUTS))

    def test_speed_is_preferred_unless_memory_is(self) -> None:
        preferences = [], ["--prefer", "speed"], ["--prefer", "memory"]
        usual, speed, memory = (self.plan("-n", "1M", "-p", "1%", *prefer) for prefer in preferences)

        self.assertEqual(usual, speed)
        self.assertEqual((speed["chosen"], memory["chosen"]), ("split_block", "blocked_page"))

    def test_a_number_of_probes_narrows_it(self) -> None:
        plan = self.plan("-n", "1M", "-p", "1%", "-k", 6)

        self.assertEqual([row["within"] for row in plan["layouts"]], [False, False, True, True, True])
        self.assertEqual(plan["chosen"], "blocked")

    def test_every_layout_that_is_not_taken_has_its_reason(self) -> None:
        rows = self.plan("-n", "1M", "-p", "1e-6")["layouts"]

        least = min(row["bits"] for row in rows)
        self.assertEqual(
            [row["reason"] for row in rows],
            [
                f"needs {100 * (rows[0]['bits'] / least - 1):.0f}% more memory than classic",
                f"needs {100 * (rows[1]['bits'] / least - 1):.0f}% more memory than classic",
                f"needs {100 * (rows[2]['bits'] / least - 1):.0f}% more memory than classic",
                f"the fastest of 2 within 25% of the least memory (classic, {rows[4]['bits_a_key']:.2f} bits per key)",
                "slower than blocked_page",
            ],
        )

    # ---- a given size

    def test_with_keys_and_size_it_errs_no_more_than_the_best_would_in_a_smaller_one(self) -> None:
        n = 100_000
        for bits in 400_000, 1_000_000, 1_300_000, 2_500_000, 4_000_000:
            for prefer, share in SHARE.items():
                with self.subTest(bits=bits, prefer=prefer):
                    plan = self.plan("-n", n, "-m", bits, "--prefer", prefer)

                    limit = best_rate(int(min(bits / share, bits - ALWAYS)), n)
                    for row in plan["layouts"]:
                        if abs(row["rate"] / limit - 1) > 3e-3:  # so near, the formulas are not exact enough
                            self.assertEqual(row["within"], row["rate"] <= limit, row)
                    self.assertEqual(plan["chosen"], next(row["layout"] for row in plan["layouts"] if row["within"]))

    def test_with_size_and_rate_it_holds_what_the_best_would_in_a_smaller_one(self) -> None:
        for p in 0.05, 1e-3, 1e-5:
            for prefer, share in SHARE.items():
                with self.subTest(p=p, prefer=prefer):
                    plan = self.plan("-m", "1MiB", "-p", p, "--prefer", prefer)

                    smaller = int(min((8 << 20) / share, (8 << 20) - ALWAYS))
                    limit = max(row["capacity"] for row in self.plan("-m", smaller, "-p", p)["layouts"])
                    self.assertEqual([row["within"] for row in plan["layouts"]],
                                     [row["capacity"] >= limit for row in plan["layouts"]])  # fmt: skip
                    self.assertEqual(plan["chosen"], next(row["layout"] for row in plan["layouts"] if row["within"]))

    def test_in_up_to_4096_bytes_the_quickest_is_taken(self) -> None:
        self.assertEqual(self.plan("-n", 10, "-m", "4KiB", "--prefer", "memory")["chosen"], "split_block")
        self.assertEqual(self.plan("-m", 256, "-p", "1%")["chosen"], "split_block")
        self.assertEqual(self.plan("-m", 255, "-p", "1%")["chosen"], "classic")

    # ---- the commands that make filters

    def test_build_and_dedup_take_what_plan_says(self) -> None:
        self.write("lines", keys(20_000))
        for options in ["-p", "1%"], ["-p", "1e-4"], ["-p", "1e-6"], ["-p", "20%"]:
            for prefer in [], ["--prefer", "memory"]:
                with self.subTest(options=options, prefer=prefer):
                    plan = self.plan("-n", 20_000, *options, *prefer)
                    taken = next(row for row in plan["layouts"] if row["layout"] == plan["chosen"])

                    self.bloomery("build", "-q", "-o", "f", *options, *prefer, "lines")
                    self.bloomery("dedup", "-q", "--state", "s", "-n", 20_000, *options, *prefer, "lines")

                    for name in "f", "s":
                        made = self.info(name)
                        self.assertEqual([made[fact] for fact in ("layout", "bits", "probes")],
                                         [taken[fact] for fact in ("layout", "bits", "probes")])  # fmt: skip
                    self.assert_has_all("f", keys(20_000))
                    os.unlink(self.path("s"))

    def test_build_with_a_size_takes_what_plan_says(self) -> None:
        self.write("lines", keys(20_000))
        for options in ["-m", 200_000], ["-m", "100kB"], ["-m", 200_000, "-k", 5], ["-m", 200_000, "--prefer", "memory"]:
            with self.subTest(options=options):
                plan = self.plan("-n", 20_000, *options)

                self.bloomery("build", "-q", "-o", "f", *options, "lines")

                taken = next(row for row in plan["layouts"] if row["layout"] == plan["chosen"])
                made = self.info("f")
                self.assertEqual([made[fact] for fact in ("layout", "bits", "probes", "target_rate")],
                                 [taken[fact] for fact in ("layout", "bits", "probes", "rate")])  # fmt: skip

    def test_a_state_stays_what_it_is_and_says_so(self) -> None:
        self.bloomery("dedup", "-q", "--state", "s", "-n", "100k", "-p", "1e-4", stdin=b"x\n")

        same = self.bloomery("dedup", "--state", "s", "--prefer", "speed", stdin=b"x\n")
        other = self.bloomery("dedup", "--state", "s", "--prefer", "memory", stdin=b"x\n")

        self.assertNotIn("options that contradict the existing filter are ignored", same.err)
        self.assertIn("s: note: options that contradict the existing filter are ignored", other.err)
        self.assertEqual(self.info("s")["layout"], "split_block512")

    def test_a_preference_beside_a_name_is_refused(self) -> None:
        build = ["build", "-o", "f", "-n", 10]
        self.refused(*build, "--prefer", "memory", "--layout", "blocked_page", says="--prefer.*found --layout blocked_page; leave out")
        self.refused(*build, "--prefer", "speed", "--scheme", "guava", says="--prefer.*found --scheme guava; leave out")
        self.refused("dedup", "-n", 10, "--prefer", "memory", "--layout", "blocked_page", stdin=b"x\n", says="leave out --prefer or")
        self.refused(*build, "--prefer", "fast", says="--prefer.*speed or memory, found 'fast'")
        self.assertEqual(os.listdir(self.folder), [])

    # ---- the table of choices

    def test_the_table_of_choices_follows_the_rule(self) -> None:
        for prefer in "speed", "memory":
            table = self.bloomery("plan", "--table", "--prefer", prefer, "--json").json

            self.assertEqual((list(table), table["prefer"], table["keys"]), (["prefer", "keys", "choices"], prefer, 1_000_000))
            self.assertEqual(len(table["choices"]), 11)
            for row in table["choices"]:
                plan = self.plan("-n", "1M", "-p", row["rate"], "--prefer", prefer)
                least = min(plan["layouts"], key=lambda r: r["bits"])
                taken = next(r for r in plan["layouts"] if r["layout"] == plan["chosen"])
                self.assertEqual(
                    (row["layout"], row["bits"], row["probes"], row["least_layout"], row["least_bits"]),
                    (taken["layout"], taken["bits"], taken["probes"], least["layout"], least["bits"]),
                )

    def test_the_documentation_shows_what_is_printed(self) -> None:
        with open(os.path.join(SOURCE, "docs", "choice.md"), encoding="utf-8") as file:
            blocks = file.read().split("```console\n")[1:]
        runs = [run for block in blocks for run in block.split("```")[0].split("$ ")[1:]]

        self.assertGreaterEqual(len(runs), 2)
        for run in runs:
            command, _, shown = run.partition("\n")
            program, *arguments = shlex.split(command)
            self.assertEqual(program, "bloomery")
            self.assertEqual(self.bloomery(*arguments).out.decode().strip(), shown.strip(), command)


if __name__ == "__main__":
    unittest.main()
