"""bloomery plan: any two of keys, error rate and size give the third, and the third is right."""

import math
import unittest

from support import BLOCK_BITS, LAYOUTS, CommandTest, rate_of

COLUMNS = ["layout", "bits", "bytes", "bits_a_key", "lower_bound_bits_a_key", "probes", "capacity", "rate", "ok", "within", "reason"]
SLACK = 1.002  # classic's and page's are Bloom's formula, not the exact one


def rate(row: dict, keys: int, bits: int | None = None) -> float:
    return rate_of(row["layout"], bits or row["bits"], row["probes"], keys)


class Plan(CommandTest):
    def plan(self, *arguments: object) -> list[dict]:
        return self.bloomery("plan", "--json", *arguments).json["layouts"]

    def test_keys_and_rate_give_the_smallest_size_that_keeps_the_rate(self) -> None:
        for n, p in (1000, 0.01), (100_000, 0.05), (100_000, 0.01), (1_000_000, 1e-3), (1_000_000, 1e-4), (1_000_000, 1e-6):
            rows = self.plan("-n", n, "-p", p)
            self.assertEqual([row["layout"] for row in rows], LAYOUTS)
            for row in rows:
                with self.subTest(n=n, p=p, layout=row["layout"]):
                    block = BLOCK_BITS[row["layout"]]
                    self.assertEqual(row["bits"] % block, 0)
                    self.assertLessEqual(row["rate"], p)
                    self.assertLessEqual(rate(row, n), p * SLACK)
                    smaller = int(row["bits"] * 0.99) // block * block
                    if smaller:
                        self.assertGreater(rate(row, n, smaller), p)

    def test_keys_and_size_give_the_rate(self) -> None:
        for bits in 8_000_000, 10_000_000, 20_000_000:
            for row in self.plan("-n", "1M", "-m", bits):
                with self.subTest(bits=bits, layout=row["layout"]):
                    self.assertLessEqual(row["bits"], bits)
                    self.assertGreater(row["bits"], bits - BLOCK_BITS[row["layout"]])
                    self.assertAlmostEqual(row["rate"] / rate(row, 1_000_000), 1, delta=SLACK - 1)
                    if row["probes"] != 8:
                        for other in row["probes"] - 1, row["probes"] + 1:
                            self.assertGreaterEqual(rate_of(row["layout"], row["bits"], other, 1_000_000) * SLACK, row["rate"])

    def test_size_and_rate_give_the_most_keys_that_keep_the_rate(self) -> None:
        for p in 0.02, 1e-3, 1e-5:
            for row in self.plan("-m", "1MiB", "-p", p):
                with self.subTest(p=p, layout=row["layout"]):
                    self.assertEqual(row["bytes"], 1 << 20)
                    self.assertLessEqual(rate(row, row["capacity"]), p * SLACK)
                    for probes in {row["probes"]} | ({row["probes"] + 1} if row["layout"] not in LAYOUTS[:2] else set()):
                        more = int(row["capacity"] * 1.01)
                        self.assertGreater(rate_of(row["layout"], row["bits"], probes, more), p)

    def test_the_best_number_of_probes_is_chosen_unless_it_is_given(self) -> None:
        for row in [*self.plan("-m", "1MiB", "-p", "1e-4", "-k", 5)[2:], *self.plan("-m", "1MiB", "-n", "300k", "-k", 5)[2:]]:
            self.assertEqual(row["probes"], 5)
            self.assertAlmostEqual(row["rate"] / rate(row, row["capacity"]), 1, delta=0.01)

        best, worse = (self.plan("-n", "1M", "-p", "1%", *more) for more in ([], ["-k", 4]))

        self.assertEqual([row["probes"] for row in best], [8, 8, 6, 7, 7])
        for row, other in zip(worse[2:], best[2:]):
            self.assertEqual(row["probes"], 4)
            self.assertLess(other["bits"], row["bits"])
            self.assertLessEqual(rate(row, 1_000_000), 0.01 * SLACK)
            self.assertGreater(rate(row, 1_000_000, int(row["bits"] * 0.99) // BLOCK_BITS[row["layout"]] * BLOCK_BITS[row["layout"]]), 0.01)

    def test_split_block_and_line_have_no_other_number_of_probes_than_eight(self) -> None:
        for given in ["-n", 1000, "-p", "1%"], ["-n", 1000, "-m", "4KiB"], ["-m", "4KiB", "-p", "1%"]:
            for row in self.plan(*given, "-k", 5)[:2]:
                self.assertEqual((row["ok"], row["within"]), (False, False))
                self.assertIn("always has 8 probes", row["problem"])
            for row in self.plan(*given, "-k", 8):
                self.assertEqual(row["probes"], 8)

    def test_json_has_all_layouts_with_the_same_columns_and_the_choice(self) -> None:
        plan = self.bloomery("plan", "-n", "1M", "-p", "1%", "--json").json

        self.assertEqual(list(plan), ["layouts", "advice", "prefer", "chosen", "reason"])
        self.assertEqual([row["layout"] for row in plan["layouts"]], LAYOUTS)
        for row in plan["layouts"]:
            self.assertEqual(list(row), COLUMNS)
            self.assertEqual(row["bytes"], (row["bits"] + 7) // 8)
            self.assertAlmostEqual(row["bits_a_key"], row["bits"] / row["capacity"])
            self.assertAlmostEqual(row["lower_bound_bits_a_key"], math.log2(1 / row["rate"]))
        self.assertEqual((plan["prefer"], plan["chosen"]), ("speed", "split_block"))
        self.assertEqual(plan["reason"], plan["layouts"][0]["reason"])
        self.assertEqual(plan["advice"], f"Choose split_block: {plan['reason']}.")

    def test_the_text_says_what_json_says(self) -> None:
        printed = self.bloomery("plan", "-n", "1M", "-p", "1e-4").out.decode().splitlines()

        plan = self.bloomery("plan", "--json", "-n", "1M", "-p", "1e-4").json
        self.assertEqual(len(printed), 8)
        for line, row in zip(printed[1:], plan["layouts"]):
            times = row["bits_a_key"] / row["lower_bound_bits_a_key"]
            self.assertEqual(line.split()[:3], [row["layout"], f"{row['bits_a_key']:.2f}", f"{times:.2f}"])
            name = row["layout"]
            self.assertTrue(line.endswith("  chosen" if name == plan["chosen"] else f"  {row['reason']}"), line)
        self.assertEqual(printed[6], plan["advice"])
        self.assertTrue(printed[7].startswith("x bound: "))
        full = self.bloomery("plan", "-n", "1G", "-m", 64).out.decode()  # an FPR of 100%, whose lower bound is 0
        self.assertRegex(full, r"\nclassic +0\.00 +- +8 B .* 100%  chosen\n")

    def test_the_table_has_the_right_figures(self) -> None:
        printed = [line.split() for line in self.bloomery("plan", "--table").out.decode().splitlines()[1:9]]

        table = self.bloomery("plan", "--table", "--json").json["table"]
        self.assertEqual([f"{row['rate'] * 100:.4g}% {row['keys']:,} {row['bits'] / 8 / row['keys']:.2f}" for row in table], [f"{p} {n} {words[-1]}" for p, n, *words in printed])
        self.assertTrue(all(row["bytes_a_key"] == row["bits"] / 8 / row["keys"] for row in table))
        # Perl's own table is wrong; these follow from its formula (spec/systems.md 3).
        self.assertEqual(
            [" ".join(words) for words in printed],
            [
                "1% 1,000 1.17 KiB 1.20",
                "0.1% 1,000 1.76 KiB 1.80",
                "0.01% 1,000 2.34 KiB 2.40",
                "0.01% 10,000 23.4 KiB 2.40",
                "0.01% 100,000 234 KiB 2.40",
                "0.01% 1,000,000 2,340 KiB 2.40",
                "0.001% 1,000,000 2,926 KiB 3.00",
                "0.0001% 1,000,000 3,510 KiB 3.59",
            ],
        )

    def test_numbers_and_sizes_may_have_units(self) -> None:
        usual = self.plan("-n", "1000000", "-p", "0.01")
        for n, p in ("1M", "1%"), ("1e6", "1 in 100"):
            self.assertEqual(self.plan("-n", n, "-p", p), usual)
        for size, bits in {"64KiB": 64 * 1024 * 8, "8Mbit": 8_000_000, "512000": 512_000}.items():
            self.assertEqual(self.plan("-n", 1000, "-m", size)[-1]["bits"], bits, size)

    def test_impossible_and_incomplete_requests_are_refused(self) -> None:
        for given in "", "-n 10", "-p 0.1", "-m 80", "-k 3", "-n 10 -k 3", "-n 10 -p 0.1 -m 80":
            self.refused("plan", *given.split(), says="two of --capacity, --rate and --bits")
        self.refuse_all(dict.fromkeys(["plan -n 1e18 -p 1%", "plan -n 10 -p 1e-300", "plan -m 8 -p 1e-9"], "no layout is possible"))


if __name__ == "__main__":
    unittest.main()
