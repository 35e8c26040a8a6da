"""bloomery build: no key is lost, wrong answers keep to the formula, and every option does what it says."""

import os
import re
import unittest

from support import BLOCK_BITS, LAYOUTS, LONG, CommandTest, classic_rate, cut, keys, mix64, packed, rate_of, split_block_rate, text, zstd


class Build(CommandTest):
    def build(self, name: str, *options: object, **more) -> dict:
        return self.bloomery("build", "--json", "-o", name, *options, **more).json

    # ---- what a filter promises

    def test_every_layout_and_hash_finds_all_keys_and_errs_as_often_as_the_formula_says(self) -> None:
        n, p = 100_000, 0.01
        present, absent = text(keys(n)), keys(n, "absent")
        for layout in LAYOUTS:
            for hash_name in "xxh3", "xxh3_64", "murmur3":
                with self.subTest(layout=layout, hash=hash_name):
                    self.build("f", "-n", n, "-p", p, "--layout", layout, "--hash", hash_name, stdin=present)

                    facts = self.info("f")
                    exact = rate_of(layout, facts["bits"], facts["probes"], n)
                    self.assertEqual((facts["layout"], facts["hash"]), (layout, hash_name))
                    self.assert_has_all("f", cut(present))
                    self.assert_chance(self.count("f", absent), n, exact)

    def test_integer_keys_are_numbers_not_texts(self) -> None:
        present, absent = [b"%d" % i for i in range(0, 200_000, 2)], [b"%d" % i for i in range(1, 200_000, 2)]
        self.build("f", "--u64", "-n", 100_000, stdin=text(present))

        facts = self.info("f")
        self.assertEqual((facts["keys"], facts["hash"]), ("u64", "mix"))
        self.assert_has_all("f", present)
        self.assert_has_all("f", [b"0" + key for key in present])
        self.assert_chance(self.count("f", absent), len(absent), split_block_rate(facts["bits"], 100_000))

    def test_identity_is_for_random_integers(self) -> None:
        random_keys = [b"%d" % mix64(i) for i in range(200_000)]  # a bijection that scatters them
        self.build("f", "--u64", "--hash", "identity", "-n", 100_000, stdin=text(random_keys[:100_000]))

        facts = self.info("f")
        self.assertEqual((facts["keys"], facts["hash"]), ("u64", "identity"))
        self.assert_has_all("f", random_keys[:100_000])
        self.assert_chance(self.count("f", random_keys[100_000:]), 100_000, split_block_rate(facts["bits"], 100_000))
        self.refused("build", "-n", 10, "--hash", "identity", "-o", "g", stdin=b"a", says="integer")
        self.refused("build", "--u64", "-n", 10, "--hash", "identity", "--seed", 1, "-o", "g", stdin=b"1", says="seed")

    def test_integer_keys_reach_from_zero_to_the_largest_of_64_bits(self) -> None:
        self.build("f", "--u64", "-n", 10, stdin=b"0\n18446744073709551615\n")

        self.assertEqual(self.count("f", [b"0", b"18446744073709551615"]), 2)
        for wrong in b"18446744073709551616", b"-1", b"1.0", b"", b"1 ":
            self.refused("build", "-o", "g", "--u64", "-n", 10, stdin=wrong + b"\n", says="integer")
        self.assertFalse(os.path.exists(self.path("g")))

    def test_the_layout_follows_the_rate_unless_it_is_named(self) -> None:
        layouts = []
        for p in "20%", "1%", "1e-4", "1e-5", "1e-6":
            self.build("f", "--allow-empty", "-n", 1_000_000, "-p", p)
            layouts.append(self.info("f")["layout"])
        self.build("f", "--allow-empty", "-n", 1_000_000, "-p", "1e-6", "--layout", "split_block512")

        self.assertEqual(layouts, ["blocked", "split_block", "split_block512", "blocked", "blocked_page"])
        self.assertEqual(self.info("f")["layout"], "split_block512")

    def test_the_rate_is_one_percent_by_default(self) -> None:
        self.build("f", "-n", 1000)

        self.assertEqual(self.info("f")["target_rate"], 0.01)

    def test_size_and_probes_can_be_chosen_instead_of_the_rate(self) -> None:
        size = ["-n", 10_000, "-m", "100_000"]
        self.build("f", *size, "--layout", "classic", "-k", 3, stdin=text(keys(10_000)))
        self.build("g", *size, "--layout", "classic", stdin=text(keys(10_000)))

        f, g = self.info("f"), self.info("g")
        self.assertEqual((f["bits"], f["probes"], f["layout"]), (100_000, 3, "classic"))
        self.assertAlmostEqual(f["target_rate"] / classic_rate(100_000, 3, 10_000), 1, delta=1e-3)
        self.assertEqual(g["probes"], 7)
        for layout in LAYOUTS:
            self.build("h", *size, "--layout", layout, stdin=text(keys(10_000)))
            h = self.info("h")
            self.assertEqual(h["bits"], 100_000 // BLOCK_BITS[layout] * BLOCK_BITS[layout])
            self.assertAlmostEqual(h["target_rate"] / rate_of(layout, h["bits"], h["probes"], 10_000), 1, delta=1e-3)

    def test_a_seed_gives_other_bits_and_the_same_keys(self) -> None:
        for name, seed in ("f", 0), ("g", 1), ("h", 2**32):
            self.build(name, "-n", 1000, "--seed", seed, stdin=text(keys(1000)))
            self.assertEqual(self.info(name)["seed"], seed)
            self.assert_has_all(name, keys(1000))

        size = self.info("f")["bytes"]
        self.assertEqual(len({self.payload(name, size) for name in "fgh"}), 3)

    # ---- where the number of keys comes from

    def test_without_n_the_lines_of_files_are_counted(self) -> None:
        self.write("a", keys(700))
        self.write("b", text(keys(300, "other"))[:-1])  # the last line has no end

        built = self.build("f", "a", "b")

        self.assertEqual((built["capacity"], built["keys"]), (1000, 1000))
        self.assert_has_all("f", keys(700) + keys(300, "other"))

    def test_without_n_the_distinct_keys_of_a_pipe_are_counted_exactly(self) -> None:
        built = self.build("f", stdin=text(keys(5000) * 3))

        self.assertEqual((built["capacity"], built["keys"]), (5000, 15_000))
        self.assert_has_all("f", keys(5000))

    def test_a_pipe_gives_the_same_bits_as_a_file_with_the_same_n(self) -> None:
        self.write("keys", keys(5000))

        self.build("f", "keys")
        self.build("g", stdin=text(keys(5000)))

        size = self.info("f")["bytes"]
        self.assertEqual(self.payload("f", size), self.payload("g", size))

    def test_standard_input_that_is_a_file_is_counted_like_one(self) -> None:
        self.write("keys", keys(1000))

        with open(self.path("keys"), "rb") as file:
            built = self.build("f", stdin=file)

        self.assertEqual(built["capacity"], 1000)
        self.assert_has_all("f", keys(1000))

    def test_a_dash_among_the_files_is_standard_input(self) -> None:
        self.write("a", keys(100))
        self.write("c", keys(100, "c"))

        built = self.build("f", "a", "-", "c", stdin=text(keys(100, "b")))

        self.assertEqual(built["capacity"], 300)
        self.assert_has_all("f", keys(100) + keys(100, "b") + keys(100, "c"))

    def test_no_keys_make_a_filter_that_has_none(self) -> None:
        self.build("f")

        self.assertEqual(self.bloomery("check", "f", stdin=b"\nkey\n", status=1).out, b"")

    def test_more_keys_than_n_break_the_target(self) -> None:
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

    def test_the_number_of_keys_is_said_to_be_an_estimate_where_it_is_one(self) -> None:
        few = self.bloomery("build", "-o", "f", "-n", 400_000, "-p", "1%", stdin=text(keys(10)))
        many = self.bloomery("build", "-o", "f", "-n", 400_000, "-p", "1%", stdin=text(keys(400_000)))
        full = self.bloomery("build", "-o", "f", "-n", 1000, "-p", "1%", stdin=text(keys(400_000)), status=3)

        self.assertIn("10 lines, 10 keys;", few.err)
        about = int(re.search("400,000 lines, about ([0-9,]+) keys;", many.err)[1].replace(",", ""))
        self.assertAlmostEqual(about, 400_000, delta=120)
        self.assertRegex(full.err, "400,000 lines, at least [0-9,]+ keys;")

    # ---- how keys are cut out

    def test_gzip_and_zstd_are_recognised_and_give_the_same_file(self) -> None:
        plain = text(keys(40_000))
        self.build("plain", self.write("keys", plain))
        for name, data in ("gz", packed(plain)), ("zst", zstd(plain)), ("two.zst", zstd(plain[:99]) + zstd(plain[99:])):
            self.build("file", self.write(name, data))
            self.build("pipe", "-n", 40_000, stdin=data)

            self.assertEqual(self.read("file"), self.read("plain"), name)
            self.assertEqual(self.read("pipe"), self.read("plain"), name)

    def test_lines_can_end_with_nul_and_then_hold_line_feeds(self) -> None:
        names = [b"one\ntwo", b"three", b"", b"four\r\n"]

        for flag in "-0", "--null":
            built = self.build("f", flag, "-n", 10, stdin=text(names, b"\0"))

            self.assertEqual(built["keys"], 4)
            self.assertEqual(cut(self.bloomery("check", flag, "f", stdin=text([*names, b"one"], b"\0")).out, b"\0"), names)

    def test_the_carriage_return_of_crlf_is_no_part_of_the_key_if_asked(self) -> None:
        self.build("f", "--crlf", "-n", 10, stdin=b"one\r\ntwo\nthr\ree\r\n")
        self.build("g", "-n", 10, stdin=b"one\r\n")

        self.assertEqual(self.count("f", [b"one", b"two", b"thr\ree", b"one\r"]), 3)
        self.assertEqual(self.count("g", [b"one", b"one\r"]), 1)

    def test_the_key_can_be_a_field(self) -> None:
        lines = [b"1,ann,x", b"2,bob,y", b"3", b",,"]

        self.build("f", "-d", ",", "-f", 2, "-n", 10, stdin=text(lines))
        self.build("tab", "--field", 2, "-n", 10, stdin=b"1\tann\n")
        self.build("last", "--delimiter", ",", "--field", 3, "-n", 10, stdin=text(lines))

        asked = [b"ann", b"bob", b"", b"1", b"x", b"y"]
        self.assertEqual(self.bloomery("check", "f", stdin=text(asked)).lines, [b"ann", b"bob", b""])
        self.assertEqual(self.bloomery("check", "tab", stdin=text(asked)).lines, [b"ann"])
        self.assertEqual(self.bloomery("check", "last", stdin=text(asked)).lines, [b"", b"x", b"y"])

    # ---- the rest

    def test_any_number_of_threads_gives_the_same_file(self) -> None:
        self.write("keys", keys(300_000))
        layouts = [["--layout", layout] for layout in LAYOUTS]
        for options in [], *layouts, ["--layout", "classic", "-p", "1e-6"], ["--scheme", "guava"]:
            for name, threads in ("one", 1), ("four", 4), ("many", 64):
                self.build(name, *options, "-j", threads, "keys")

            self.assertEqual(self.read("four"), self.read("one"), options)
            self.assertEqual(self.read("many"), self.read("one"), options)

    def test_a_note_is_kept_as_it_is(self) -> None:
        self.build("f", "-n", 10, "--note", "users of May, è")

        self.assertEqual(self.info("f")["note"], "users of May, è")

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

    def test_an_old_file_is_replaced_where_its_link_points(self) -> None:
        self.build("old", stdin=b"old\n")
        os.symlink("old", self.path("link"))

        self.build("link", stdin=b"new\n")

        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(self.count("old", [b"new", b"old"]), 1)

    def test_a_build_that_fails_leaves_the_old_file_and_nothing_else(self) -> None:
        self.build("f", stdin=b"old\n")
        before = self.read("f")

        self.refused("build", "-q", "-o", "f", "-n", 10, "--u64", stdin=b"1\nx\n")
        self.refused("build", "-q", "-o", "f", "missing", says="missing")

        self.assertEqual(self.read("f"), before)
        self.assertEqual(os.listdir(self.folder), ["f"])

    def test_an_input_is_not_replaced_by_the_filter(self) -> None:
        self.write("keys", keys(10))

        self.refused("build", "-o", "keys", "keys", says="replace the input")
        with open(self.path("keys"), "rb") as file:
            self.refused("build", "-o", "./keys", stdin=file, says="replace the input")

        self.assertEqual(self.read("keys"), text(keys(10)))

    KINDS = [["-n", 1000], ["-n", 1000, "--counting"], ["-n", 1000, "--window-keys", 1000], ["-n", 1000, "--grow"],
             ["-n", 1000, "--scheme", "guava"], ["-n", 1000, "--layout", "classic", "-p", "0.1%"]]  # fmt: skip

    def test_an_empty_input_replaces_no_filter_unless_that_is_asked_for(self) -> None:
        for i, old in enumerate(self.KINDS):
            others = [[], *self.KINDS]
            for new in others if LONG else (others[0], others[1 + i], others[1 + (i + 1) % len(self.KINDS)]):
                with self.subTest(old=old, new=new):
                    self.bloomery("build", "-q", "-o", "f", *old, stdin=text(keys(100)))
                    before = {name: self.read(name) for name in os.listdir(self.folder)}
                    self.refused("build", "-o", "f", *new, stdin=b"", says="empty filter would replace the filter f: expected input with keys, found no key; .*--allow-empty")
                    with open("/dev/null", "rb") as null:
                        self.refused("build", "-q", "-o", "f", *new, stdin=null, says="--allow-empty")
                    self.assertEqual({name: self.read(name) for name in os.listdir(self.folder)}, before)

                    self.bloomery("build", "-q", "--allow-empty", "-o", "f", *new, stdin=b"")
                    self.assertEqual(self.count("f", keys(100)), 0)
                    for name in os.listdir(self.folder):
                        os.unlink(self.path(name))
        self.bloomery("build", "-q", "-o", "f", stdin=b"")  # where there is none, an empty one is made
        self.assertEqual(self.count("f", keys(100)), 0)

    def test_it_tells_which_filter_it_replaces(self) -> None:
        for options, kind in (["-n", 1000, "-p", "0.1%", "--layout", "blocked"], r"blocked"), (["--scheme", "guava", "-p", "0.1%"], "scheme guava"), (["--grow", "-p", "0.1%"], r"\w+, with a log"):
            for new in ["-n", 10], ["--grow"]:
                with self.subTest(old=options, new=new):
                    self.bloomery("build", "-q", "-o", "f", *options, stdin=text(keys(50)))
                    said = self.bloomery("build", "-o", "f", *new, stdin=b"x\n").err
                    self.assertRegex(said, rf"\Abloomery: f: 1 line, 1 key; .*\nbloomery: f: replaced a filter \({kind}\) with 50 keys, target FPR 0\.1%\n\Z")
                    for name in os.listdir(self.folder):
                        os.unlink(self.path(name))
        first = self.bloomery("build", "--json", "-o", "f", "-n", 100, "--layout", "blocked", stdin=text(keys(50))).json
        again = self.bloomery("build", "--json", "-o", "f", stdin=b"x\n").json
        self.assertNotIn("replaced", first)
        self.assertEqual(again["replaced"], {"layout": "blocked", "scheme": "", "keys": 50, "capacity": 100, "target_rate": 0.01})

    def test_a_file_that_is_no_filter_is_not_replaced(self) -> None:
        self.write("notes", b"important\n")
        self.write("keys", keys(10))
        for options in [], ["-n", 10], ["--grow"], ["--counting"], ["--scheme", "guava"], ["--allow-empty"]:
            with self.subTest(options=options):
                self.refused("build", "-o", "notes", *options, "keys", says="the output would replace a file that is not a filter: notes")
                self.assertEqual(self.read("notes"), b"important\n")
        self.refused("union", "-o", "notes", "a", "b", says="the output would replace a file that is not a filter: notes")
        self.write("notes", b"")
        self.bloomery("build", "-q", "-o", "notes", "keys")  # an empty file loses nothing
        self.assert_has_all("notes", keys(10))

    def test_lines_are_counted_alike_by_any_number_of_threads(self) -> None:
        lines = keys(200_000) + [b"", b"x" * 300_000, b"", b"last"]
        self.write("a", lines)
        self.write("b", text(lines)[:-1])
        for threads in 1, 2, 3:
            built = self.build("f", "-j", threads, "a", "b")
            self.assertEqual((built["keys"], built["capacity"]), (2 * len(lines), 2 * len(lines)))
            os.unlink(self.path("f"))


if __name__ == "__main__":
    unittest.main()
