"""bloomery build: all keys are found, other keys as often as the formula says, and every option does what it says."""

import os
import re
import unittest

from support import BLOCK_BITS, LAYOUTS, LONG, CommandTest, classic_rate, cut, keys, mix64, rate_of, split_block_rate, text


class Build(CommandTest):
    def build(self, name: str, *options: object, **more) -> dict:
        return self.bloomery("build", "--json", "-o", name, *options, **more).json

    # ---- the filter

    def test_all_keys_are_found_and_others_as_often_as_the_formula_says(self) -> None:
        n = 100_000
        texts = keys(2 * n)
        numbers = [b"%d" % i for i in (*range(0, 2 * n, 2), *range(1, 2 * n, 2))]
        scattered = [b"%d" % mix64(i) for i in range(2 * n)]
        rows = [(["--layout", layout, "--hash", name], texts) for layout in LAYOUTS for name in ("xxh3", "xxh3_64", "murmur3")]
        rows += [(["--layout", "split_block", "--u64", "--hash", "mix"], numbers), (["--layout", "split_block", "--u64", "--hash", "identity"], scattered)]
        for options, every in rows:
            with self.subTest(options=options):
                self.build("f", "-n", n, "-p", 0.01, *options, stdin=text(every[:n]))

                facts = self.info("f")
                self.assertEqual((facts["layout"], facts["hash"], facts["keys"]), (options[1], options[-1], "u64" if "--u64" in options else "bytes"))
                self.assert_has_all("f", every[:n])
                self.assert_chance(self.count("f", every[n:]), n, rate_of(facts["layout"], facts["bits"], facts["probes"], n))

    def test_integers_are_numbers_from_zero_to_the_largest_of_64_bits(self) -> None:
        self.build("f", "--u64", "-n", 10, stdin=b"0\n18446744073709551615\n007\n")

        facts = self.info("f")
        self.assertEqual((facts["keys"], facts["hash"]), ("u64", "mix"))
        self.assert_has_all("f", [b"0", b"00", b"18446744073709551615", b"7"])
        for wrong in b"18446744073709551616", b"-1", b"1.0", b"", b"1 ":
            self.refused("build", "-o", "g", "--u64", "-n", 10, stdin=wrong + b"\n", says="integer")
        self.refused("build", "-n", 10, "--hash", "identity", "-o", "g", stdin=b"a", says="integer")
        self.refused("build", "--u64", "-n", 10, "--hash", "identity", "--seed", 1, "-o", "g", stdin=b"1", says="seed")
        self.assertFalse(os.path.exists(self.path("g")))

    def test_the_layout_follows_the_rate_unless_it_is_named(self) -> None:
        for p, layout in {"20%": "blocked", "1%": "split_block", "1e-4": "split_block512", "1e-5": "blocked", "1e-6": "blocked_page"}.items():
            self.assertEqual(self.build("f", "--allow-empty", "-n", 1_000_000, "-p", p)["layout"], layout)
        named = self.build("f", "--allow-empty", "-n", 1_000_000, "-p", "1e-6", "--layout", "split_block512")
        self.assertEqual(named["layout"], "split_block512")
        self.assertEqual(self.build("g", "-n", 1000)["target_rate"], 0.01)

    def test_size_and_probes_can_be_chosen_instead_of_the_rate(self) -> None:
        size = ["-n", 10_000, "-m", "100_000"]
        self.build("f", *size, "--layout", "classic", "-k", 3, stdin=text(keys(10_000)))

        f = self.info("f")
        self.assertEqual((f["bits"], f["probes"], f["layout"]), (100_000, 3, "classic"))
        self.assertAlmostEqual(f["target_rate"] / classic_rate(100_000, 3, 10_000), 1, delta=1e-3)
        for layout in LAYOUTS:
            self.build("h", *size, "--layout", layout, stdin=text(keys(10_000)))
            h = self.info("h")
            self.assertEqual(h["bits"], 100_000 // BLOCK_BITS[layout] * BLOCK_BITS[layout])
            self.assertAlmostEqual(h["target_rate"] / rate_of(layout, h["bits"], h["probes"], 10_000), 1, delta=1e-3)
        self.assertEqual(h["probes"], 7)  # of classic

    def test_a_seed_gives_other_bits_and_the_same_keys(self) -> None:
        for name, seed in ("f", 0), ("g", 1), ("h", 2**32):
            self.build(name, "-n", 1000, "--seed", seed, "--note", "users of May, è", stdin=text(keys(1000)))
            facts = self.info(name)
            self.assertEqual((facts["seed"], facts["note"]), (seed, "users of May, è"))
            self.assert_has_all(name, keys(1000))

        self.assertEqual(len({self.bits_of(name) for name in "fgh"}), 3)

    def test_any_number_of_threads_gives_the_same_file(self) -> None:
        self.write("keys", keys(300_000))
        layouts = [["--layout", layout] for layout in LAYOUTS]
        for options in [], *layouts, ["--layout", "classic", "-p", "1e-6"], ["--scheme", "guava"]:
            for name, threads in ("one", 1), ("four", 4), ("many", 64):
                self.build(name, *options, "-j", threads, "keys")

            self.assertEqual(self.read("four"), self.read("one"), options)
            self.assertEqual(self.read("many"), self.read("one"), options)

    # ---- the number of keys

    def test_without_a_capacity_the_keys_are_counted(self) -> None:
        lines = keys(5000) + [b"", b"x" * 300_000, b"", b"last"]
        self.write("a", lines)
        self.write("b", text(lines)[:-1])  # the last line has no end
        self.write("c", keys(300, "other"))
        for arguments, stdin, capacity, count in (
            (["a", "b"], b"", 10_008, 10_008),
            (["-j", 1, "a", "b"], b"", 10_008, 10_008),
            (["-j", 3, "a", "b"], b"", 10_008, 10_008),
            (["c"], b"", 300, 300),
            ([], "a", 5004, 5004),  # standard input that is a file
            (["a", "-", "c"], text(keys(100, "piped")), 5403, 5404),  # distinct keys
            ([], text(keys(5000) * 3), 5000, 15_000),
            ([], b"", 1, 0),
        ):
            with self.subTest(arguments=arguments), open(self.path("a"), "rb") as file:
                built = self.build("f", "--allow-empty", *arguments, stdin=file if stdin == "a" else stdin)
                self.assertEqual((built["capacity"], built["keys"]), (capacity, count))
                inputs = [stdin] if isinstance(stdin, bytes) else [self.read(stdin)]
                inputs += [self.read(name) for name in arguments if name in ("a", "b", "c")]
                self.assert_has_all("f", sum(map(cut, inputs), []))
        self.assertEqual(self.bloomery("check", "f", stdin=b"\nkey\n", status=1).out, b"")

        self.build("from_file", "c")
        self.build("from_pipe", stdin=self.read("c"))
        self.assertEqual(self.bits_of("from_file"), self.bits_of("from_pipe"))

    def test_more_keys_than_the_capacity_break_the_target(self) -> None:
        built = self.bloomery("build", "-o", "f", "-n", 100, "--json", stdin=text(keys(10_000)), status=3)

        self.assertRegex(built.err.splitlines()[-1], r"f: warning: the filter exceeds its target FPR: current FPR (9\d\.\d|100)%, target 1%")
        self.assertEqual(built.json["fpr_verdict"], "broken")
        self.assertGreater(built.json["rate"], 0.9)  # of the keys that were new before all bits were set: a random number
        self.assert_has_all("f", keys(10_000))

    def test_a_scheme_that_cannot_keep_the_target_at_capacity_is_warned_of(self) -> None:
        far = self.bloomery("build", "-o", "f", "--scheme", "pharo", "-n", 2_000_000, "-p", "2%", stdin=b"one\n")
        near = self.bloomery("build", "-o", "f", "--scheme", "guava", "-n", 2_000_000, "-p", "2%", stdin=b"one\n")

        self.assertRegex(far.err, r"f: warning: with 2,000,000 keys the FPR will be 9[0-9.]+%, target 2%, because scheme pharo does not suit this number")
        self.assertNotIn("warning", near.err)

    # ---- the report

    def test_the_number_of_keys_is_said_to_be_an_estimate_where_it_is_one(self) -> None:
        few = self.bloomery("build", "-o", "f", "-n", 400_000, "-p", "1%", stdin=text(keys(10)))
        many = self.bloomery("build", "-o", "f", "-n", 400_000, "-p", "1%", stdin=text(keys(400_000)))
        full = self.bloomery("build", "-o", "f", "-n", 1000, "-p", "1%", stdin=text(keys(400_000)), status=3)

        self.assertIn("10 lines, 10 keys;", few.err)
        about = int(re.search("400,000 lines, about ([0-9,]+) keys;", many.err)[1].replace(",", ""))
        self.assertAlmostEqual(about, 400_000, delta=120)
        self.assertRegex(full.err, "400,000 lines, at least [0-9,]+ keys;")

    def test_json_has_the_counts_and_the_rate(self) -> None:
        built = self.build("f", "-n", 1000, "-p", "2%", stdin=text(keys(500) + keys(500)))

        self.assertEqual(list(built), ["filter", "keys", "new", "capacity", "bytes", "target_rate", "rate", "layout", "scheme",
                                       "bits", "probes", "fpr_verdict"])
        known = self.info("f")
        self.assertEqual([built[name] for name in ("layout", "bits", "probes")],
                         [known[name] for name in ("layout", "bits", "probes")])
        self.assertEqual((built["filter"], built["keys"], built["capacity"], built["target_rate"]), ("f", 1000, 1000, 0.02))
        self.assert_chance(built["new"], 500, 1)
        self.assertAlmostEqual(built["rate"] / split_block_rate(built["bytes"] * 8, 500), 1, delta=0.05)

    def test_it_reports_on_standard_error_unless_quiet(self) -> None:
        said = self.bloomery("build", "-o", "f", stdin=text(keys(3)))
        quiet = self.bloomery("build", "-q", "-o", "f", stdin=text(keys(3)))

        self.assertRegex(said.err, r"\Abloomery: f: 3 lines, 3 keys; capacity 3 keys at 1%: .*\n\Z")
        self.assertEqual((said.out, quiet.out, quiet.err), (b"", b"", ""))

    # ---- the file that is replaced

    def test_an_old_file_is_replaced_where_its_link_points(self) -> None:
        self.build("old", stdin=b"old\n")
        os.symlink("old", self.path("link"))

        self.build("link", stdin=b"new\n")

        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(self.count("old", [b"new", b"old"]), 1)

    def test_it_tells_which_filter_it_replaces(self) -> None:
        for options, kind in {"-n 1000 --layout blocked": "blocked", "--scheme guava": "scheme guava", "--grow": r"\w+, with a log"}.items():
            for new in "-n 10", "--grow":
                with self.subTest(old=options, new=new):
                    self.bloomery("build", "-q", "-o", "f", "-p", "0.1%", *options.split(), stdin=text(keys(50)))
                    said = self.bloomery("build", "-o", "f", *new.split(), stdin=b"x\n").err
                    self.assertRegex(said, rf"\Abloomery: f: 1 line, 1 key; .*\nbloomery: f: replaced a filter \({kind}\) with 50 keys, target FPR 0\.1%\n\Z")
                    self.remove("f", "f.log")
        first = self.bloomery("build", "--json", "-o", "f", "-n", 100, "--layout", "blocked", stdin=text(keys(50))).json
        again = self.bloomery("build", "--json", "-o", "f", stdin=b"x\n").json
        self.assertNotIn("replaced", first)
        self.assertEqual(again["replaced"], {"layout": "blocked", "scheme": "", "keys": 50, "capacity": 100, "target_rate": 0.01})

    def test_an_empty_input_replaces_no_filter_unless_that_is_asked_for(self) -> None:
        kinds = ["", "--counting", "--window-keys 1000", "--grow", "--scheme guava", "--layout classic -p 0.1%"]
        for i, old in enumerate(kinds):
            for new in kinds if LONG else ("", kinds[i], kinds[(i + 1) % len(kinds)]):
                with self.subTest(old=old, new=new):
                    self.bloomery("build", "-q", "-o", "f", "-n", 1000, *old.split(), stdin=text(keys(100)))
                    before = {name: self.read(name) for name in os.listdir(self.folder)}
                    build = ["build", "-q", "-o", "f", *(["-n", 1000, *new.split()] if new else [])]
                    self.refused(*build, stdin=b"", says="empty filter would replace the filter f: expected input with keys, found no key; .*--allow-empty")
                    with open("/dev/null", "rb") as null:
                        self.refused(*build, stdin=null, says="--allow-empty")
                    self.assertEqual({name: self.read(name) for name in os.listdir(self.folder)}, before)

                    self.bloomery(*build, "--allow-empty", stdin=b"")
                    self.assertEqual(self.count("f", keys(100)), 0)
                    self.remove("f", "f.log")
        self.bloomery("build", "-q", "-o", "f", stdin=b"")  # where there is none, an empty one is made
        self.assertEqual(self.count("f", keys(100)), 0)

    def test_a_build_that_fails_leaves_the_old_file_and_nothing_else(self) -> None:
        self.build("f", stdin=b"old\n")
        self.write("notes", b"important\n")
        self.write("keys", keys(10))
        before = {name: self.read(name) for name in os.listdir(self.folder)}
        no_filter = "the output would replace a file that is not a filter: notes"

        self.refuse_all({"build -q -o f -n 10 --u64": "", "build -q -o f missing": "missing", "build -o keys keys": "replace the input",
                         "union -o notes a b": no_filter}, stdin=b"1\nx\n")  # fmt: skip
        for options in "", "-n 10", "--grow", "--counting", "--scheme guava", "--allow-empty":
            self.refused("build", "-o", "notes", *options.split(), "keys", says=no_filter)
        with open(self.path("keys"), "rb") as file:
            self.refused("build", "-o", "./keys", stdin=file, says="replace the input")

        self.assertEqual({name: self.read(name) for name in os.listdir(self.folder)}, before)
        self.write("notes", b"")
        self.bloomery("build", "-q", "-o", "notes", "keys")  # an empty file loses nothing
        self.assert_has_all("notes", keys(10))


if __name__ == "__main__":
    unittest.main()
