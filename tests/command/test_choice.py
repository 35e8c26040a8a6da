"""Which layout is taken when none is named: the quickest within the allowance, with keys and rate as with a given size."""

import os
import unittest

from support import LAYOUTS, CommandTest, keys

SHARE = {"speed": 1.25, "memory": 1.03}
ALWAYS = 4096 * 8  # bits that count as nothing


def by_the_rule(rows: list[dict], prefer: str) -> tuple[str, list[str]]:
    """The layout to take and those within the allowance, from the sizes of all."""
    possible = [row for row in rows if row["ok"]]
    best = min(row["bits"] for row in possible)
    most = max(best * SHARE[prefer], best + ALWAYS)
    within = [row["layout"] for row in possible if row["bits"] <= most]
    return within[0], within


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
        self.assertEqual(self.plan("-n", "1M", "-p", "1%"), self.plan("-n", "1M", "-p", "1%", "--prefer", "speed"))

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

    def test_with_a_size_it_is_the_quickest_that_the_best_of_a_smaller_size_does_not_exceed(self) -> None:
        size = 8 << 20
        for asked, fact, best, sign in [
            *((["-p", p], "capacity", max, 1) for p in (0.05, 1e-3, 1e-5)),
            *((["-n", n], "rate", min, -1) for n in (200_000, 500_000, 1_000_000, 2_000_000)),
        ]:
            for prefer, share in SHARE.items():
                with self.subTest(asked=asked, prefer=prefer):
                    plan = self.plan("-m", size, *asked, "--prefer", prefer)

                    smaller = self.plan("-m", int(min(size / share, size - ALWAYS)), *asked)["layouts"]
                    limit = best(row[fact] for row in smaller)
                    for row in plan["layouts"]:
                        if fact == "capacity" or abs(row[fact] / limit - 1) > 3e-3:  # rates of other sizes in whole blocks
                            self.assertEqual(row["within"], sign * row[fact] >= sign * limit, row)
                    self.assertEqual(plan["chosen"], next(row["layout"] for row in plan["layouts"] if row["within"]))

    def test_in_up_to_4096_bytes_the_quickest_is_taken(self) -> None:
        self.assertEqual(self.plan("-n", 10, "-m", "4KiB", "--prefer", "memory")["chosen"], "split_block")
        self.assertEqual(self.plan("-m", 256, "-p", "1%")["chosen"], "split_block")
        self.assertEqual(self.plan("-m", 255, "-p", "1%")["chosen"], "classic")

    # ---- the commands that make filters

    def test_build_and_dedup_take_what_plan_says(self) -> None:
        self.write("lines", keys(20_000))
        rates = [["-p", p, *prefer] for p in ("1%", "1e-4", "1e-6", "20%") for prefer in ([], ["--prefer", "memory"])]
        sizes = [["-m", 200_000], ["-m", "100kB"], ["-m", 200_000, "-k", 5], ["-m", 200_000, "--prefer", "memory"]]
        for options in rates + sizes:
            with self.subTest(options=options):
                plan = self.plan("-n", 20_000, *options)
                taken = next(row for row in plan["layouts"] if row["layout"] == plan["chosen"])

                self.bloomery("build", "-q", "-o", "f", *options, "lines")
                self.bloomery("dedup", "-q", "--state", "s", "-n", 20_000, *(options if options in rates else rates[0]), "lines")

                for name in ["f", "s"] if options in rates else ["f"]:
                    made = self.info(name)
                    self.assertEqual([made[fact] for fact in ("layout", "bits", "probes")], [taken[fact] for fact in ("layout", "bits", "probes")])
                if options in sizes:
                    self.assertEqual(made["target_rate"], taken["rate"])
                os.unlink(self.path("s"))

    def test_a_state_stays_what_it_is_and_says_so(self) -> None:
        self.bloomery("dedup", "-q", "--state", "s", "-n", "100k", "-p", "1e-4", stdin=b"x\n")

        same = self.bloomery("dedup", "--state", "s", "--prefer", "speed", stdin=b"x\n")
        other = self.bloomery("dedup", "--state", "s", "--prefer", "memory", stdin=b"x\n")

        self.assertNotIn("options that contradict the existing filter are ignored", same.err)
        self.assertIn("s: note: options that contradict the existing filter are ignored", other.err)
        self.assertEqual(self.info("s")["layout"], "split_block512")

    def test_a_preference_beside_a_name_is_refused(self) -> None:
        self.refuse_all({
            "build -o f -n 10 --prefer memory --layout blocked_page": "--prefer.*found --layout blocked_page; leave out",
            "build -o f -n 10 --prefer speed --scheme guava": "--prefer.*found --scheme guava; leave out",
            "build -o f -n 10 --prefer fast": "--prefer.*speed or memory, found 'fast'",
            "dedup -n 10 --prefer memory --layout blocked_page": "leave out --prefer or",
        })  # fmt: skip
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


if __name__ == "__main__":
    unittest.main()
