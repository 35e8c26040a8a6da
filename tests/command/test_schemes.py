"""bloomery build --scheme: the bits of Guava, PharoPDS, the Python class and Perl, as spec/systems.md has them."""

import hashlib
import struct
import unittest

from support import CommandTest, keys, text

ANIMALS = b"""dog cat giraffe fly mosquito horse eagle bird bison boar butterfly ant anaconda bear chicken dolphin donkey crow
crocodile""".split()
PROBES = b"""badger cow pig sheep bee wolf fox whale shark fish turkey duck dove deer elephant frog falcon goat gorilla
hawk""".split()


def md5_key(i: int) -> bytes:
    return hashlib.md5(struct.pack("<I", i)).hexdigest().encode()


class Schemes(CommandTest):
    def test_pharo_sets_the_bits_of_the_tutorial(self) -> None:
        self.bloomery("build", "-o", "cities", "--scheme", "pharo", "-n", 10, "-p", 0.1, stdin=b"Madrid\nBarcelona\n")

        self.assertEqual(self.payload("cities", 6), bytes.fromhex("008040041241"))
        self.assertEqual((self.info("cities")["bits"], self.info("cities")["probes"]), (48, 4))

    def test_python_sets_85_bits_and_takes_four_animals_for_others(self) -> None:
        self.bloomery("build", "-o", "animals", "--scheme", "python", "-m", 100, "-k", 10, stdin=text(ANIMALS))

        found = self.bloomery("check", "animals", stdin=text(PROBES)).lines
        self.assertEqual(int.from_bytes(self.payload("animals", 13), "little").bit_count(), 85)
        self.assertEqual(found, [b"sheep", b"shark", b"fish", b"elephant"])
        self.assert_has_all("animals", ANIMALS)

    def test_guava_has_its_size_and_its_known_answers_after_30000_keys(self) -> None:
        made = text(md5_key(i) for i in range(30_000))
        asked = [md5_key(99_999), md5_key(9_999), b"abcdefghijklmnopqrstuvwxyz123456"]

        built = self.bloomery("build", "-o", "fixed", "--scheme", "guava", "-n", 10_000, "-p", 0.0005, stdin=made, status=3)

        facts = self.info("fixed")
        self.assertEqual((facts["bits"], facts["probes"], facts["scheme"]), (158_208, 11, "guava"))
        self.assertEqual(self.bloomery("check", "fixed", stdin=text(asked)).lines, asked[1:])
        self.assertIn("warning", built.err)

    def test_perl_searches_the_shortest_length(self) -> None:
        self.bloomery("build", "-o", "perl", "--scheme", "perl", "-n", 1000, "-p", 0.01, stdin=b"key\n")

        facts = self.info("perl")
        self.assertEqual((facts["bits"], facts["probes"]), (9593, 7))

    def test_no_scheme_loses_a_key_and_all_but_pharo_keep_their_rate(self) -> None:
        for scheme, count in ("guava", 20_000), ("python", 20_000), ("perl", 20_000), ("pharo", 100_000):
            with self.subTest(scheme=scheme):
                present, absent = keys(count), keys(count, "absent")
                status = 3 if scheme == "pharo" else 0
                self.bloomery("build", "-o", scheme, "--scheme", scheme, "-n", count, "-p", "1%", stdin=text(present), status=status)

                wrong = self.count(scheme, absent)
                self.assert_has_all(scheme, present)
                if scheme == "pharo":  # its known defect: the hash is too narrow for large filters
                    self.assertGreater(wrong, 2 * 1000)
                else:
                    self.assert_chance(wrong, count, self.info(scheme)["rate_now"])

    def test_add_and_check_go_on_in_the_scheme_of_the_file(self) -> None:
        for scheme in "guava", "python", "perl", "pharo":
            with self.subTest(scheme=scheme):
                whole, parts = scheme + "-whole", scheme + "-parts"
                self.bloomery("build", "-o", whole, "--scheme", scheme, "-n", 100, "-p", 0.01, stdin=text(keys(100)))
                self.bloomery("build", "-o", parts, "--scheme", scheme, "-n", 100, "-p", 0.01, stdin=text(keys(50)))

                self.bloomery("add", parts, stdin=text(keys(100)[50:]))

                size = self.info(whole)["bytes"]
                self.assertEqual(self.payload(parts, size), self.payload(whole, size))
                self.assert_has_all(parts, keys(100))

    def test_a_pipe_without_n_is_kept_as_text_and_counted(self) -> None:
        self.bloomery("build", "-o", "f", "--scheme", "guava", stdin=text(keys(500) + keys(500)))

        self.assertEqual(self.info("f")["capacity"], 1000)
        self.assert_has_all("f", keys(500))

    def test_a_scheme_has_its_own_layout_hash_and_key_kind(self) -> None:
        for option in ["--layout", "classic"], ["--hash", "xxh3"], ["--u64"]:
            self.refused("build", "-o", "f", "-n", 10, "--scheme", "guava", *option, says="scheme")
        self.refused("build", "-o", "f", "-n", 10, "--scheme", "guave", says="guava, pharo, python, perl")

    def test_plan_computes_the_parameters_of_a_filter_that_build_makes(self) -> None:
        for scheme in "guava", "pharo", "python", "perl":
            for number, options in enumerate((["-n", 1000, "-p", "1%"], ["-n", 30_000, "-p", "0.1%"], ["-n", 500, "-m", 8000], ["-n", 500, "-m", 8000, "-k", 3])):
                with self.subTest(scheme=scheme, options=options):
                    name = f"{scheme}{number}"
                    planned = self.bloomery("plan", "--json", "--scheme", scheme, *options).json
                    self.bloomery("build", "-q", "-o", name, "--scheme", scheme, *options, stdin=text(keys(options[1])), status=None)

                    facts = self.info(name)
                    for field in "scheme", "bits", "bytes", "probes", "capacity", "target_rate":
                        self.assertEqual(planned[field], facts[field], field)
                    self.assertAlmostEqual(planned["rate"], facts["predicted_rate"], delta=0.05 * planned["rate"])  # for an estimated number of keys
                    self.assertAlmostEqual(planned["bits_a_key"], facts["bits"] / options[1])

    def test_plan_knows_the_rules_of_the_systems(self) -> None:
        for scheme, options, bits, probes in (
            ("pharo", ["-n", 10, "-p", 0.1], 48, 4),
            ("guava", ["-n", 10_000, "-p", 0.0005], 158_208, 11),
            ("perl", ["-n", 1000, "-p", 0.01], 9593, 7),
        ):
            with self.subTest(scheme=scheme):
                planned = self.bloomery("plan", "--json", "--scheme", scheme, *options).json
                self.assertEqual((planned["bits"], planned["probes"]), (bits, probes))
        said = self.bloomery("plan", "--scheme", "perl", "-n", 1000, "-p", "1%").out.decode()
        self.assertRegex(said, r"\Ascheme +perl\nsize +1\.17 KiB \(9,593 bits\), 9\.59 bits per key\nprobes +7 per key\ncapacity +1,000 keys\nexpected FPR +(1|0\.9\d+|1\.0\d)%.*\n\Z")

    def test_plan_says_that_the_hash_of_pharo_is_too_narrow_for_large_filters(self) -> None:
        planned = self.bloomery("plan", "--scheme", "pharo", "-n", "2M", "-p", "2%")

        self.assertRegex(planned.out.decode(), r"expected FPR +9\d(\.\d)?%, above the target of 2%")
        self.assertFalse(self.bloomery("plan", "--json", "--scheme", "pharo", "-n", "2M", "-p", "2%").json["ok"])
        self.assertTrue(self.bloomery("plan", "--json", "--scheme", "guava", "-n", "2M", "-p", "2%").json["ok"])

    def test_plan_refuses_what_a_scheme_does_not_have(self) -> None:
        self.refused("plan", "--scheme", "guava", "-p", "1%", says="expected --capacity and one of --rate and --bits")
        self.refused("plan", "--scheme", "guava", "-n", 10, says="expected --capacity and one of --rate and --bits")
        self.refused("plan", "--scheme", "guava", "-n", 10, "-p", "1%", "-m", 80, says="--bits")
        self.refused("plan", "--scheme", "guave", "-n", 10, "-p", "1%", says="guava, pharo, python, perl")
        self.refused("plan", "--scheme", "guava", "-n", 10, "-p", "1%", "--deletes", says="requirements")
        for option in ["--table"], ["--redis"], ["--prefer", "memory"]:
            self.refused("plan", "--scheme", "guava", "-n", 10, "-p", "1%", *option, says=option[0])


if __name__ == "__main__":
    unittest.main()
