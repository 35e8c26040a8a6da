"""bloomery build and plan --scheme: the bits of Guava, PharoPDS, the Python class and Perl, as spec/systems.md has them."""

import hashlib
import struct
import unittest

from support import CommandTest, keys, text

SCHEMES = ["guava", "guava32", "spark", "spark2", "dcso", "bits_and_blooms", "pharo", "python", "perl", "redisbloom", "datasketches", "bloom_filters", "bloomfilter_js", "leveldb", "rocksdb", "rocksdb_4", "valkey_bloom"]
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

        self.assertEqual(int.from_bytes(self.payload("animals", 13), "little").bit_count(), 85)
        self.assertEqual(self.bloomery("check", "animals", stdin=text(PROBES)).lines, [b"sheep", b"shark", b"fish", b"elephant"])
        self.assert_has_all("animals", ANIMALS)

    def test_guava_has_its_size_and_its_known_answers_after_30000_keys(self) -> None:
        asked = [md5_key(99_999), md5_key(9_999), b"abcdefghijklmnopqrstuvwxyz123456"]

        built = self.bloomery("build", "-o", "fixed", "--scheme", "guava", "-n", 10_000, "-p", 0.0005, stdin=text(map(md5_key, range(30_000))), status=3)

        facts = self.info("fixed")
        self.assertEqual((facts["bits"], facts["probes"], facts["scheme"]), (158_208, 11, "guava"))
        self.assertEqual(self.bloomery("check", "fixed", stdin=text(asked)).lines, asked[1:])
        self.assertIn("warning", built.err)

    def test_no_scheme_loses_a_key_and_all_but_pharo_keep_their_rate(self) -> None:
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                count, status = (100_000, 3) if scheme == "pharo" else (20_000, 0)
                self.bloomery("build", "-o", scheme, "--scheme", scheme, "-n", count, "-p", "1%", stdin=text(keys(count)), status=status)

                wrong = self.count(scheme, keys(count, "absent"))
                self.assert_has_all(scheme, keys(count))
                if scheme == "pharo":  # its known defect: the hash is too narrow for large filters
                    self.assertGreater(wrong, 2 * 1000)
                else:
                    self.assert_chance(wrong, count, self.info(scheme)["rate_now"])

    def test_add_continues_in_the_scheme_of_the_file(self) -> None:
        for scheme in SCHEMES:
            with self.subTest(scheme=scheme):
                self.make_filter("whole", keys(100), "--scheme", scheme, "-n", 100, "-p", 0.01)
                self.make_filter("parts", keys(50), "--scheme", scheme, "-n", 100, "-p", 0.01)

                self.bloomery("add", "parts", stdin=text(keys(100)[50:]))

                self.assertEqual(self.bits_of("parts"), self.bits_of("whole"))
        self.make_filter("piped", keys(500) * 2, "--scheme", "guava")  # kept as text and counted
        self.assertEqual(self.info("piped")["capacity"], 1000)
        self.assert_has_all("piped", keys(500))

    def test_plan_computes_the_parameters_of_a_filter_that_build_makes(self) -> None:
        for scheme in SCHEMES:
            bits = 7680 if scheme.startswith("rocksdb") else 8000  # whole lines
            for options in ["-n", 1000, "-p", "1%"], ["-n", 30_000, "-p", "0.1%"], ["-n", 500, "-m", bits], ["-n", 500, "-m", bits, "-k", 3]:
                with self.subTest(scheme=scheme, options=options):
                    planned = self.bloomery("plan", "--json", "--scheme", scheme, *options).json
                    self.make_filter("f", keys(options[1]), "--scheme", scheme, *options, status=None)

                    facts = self.info("f")
                    for field in "scheme", "bits", "bytes", "probes", "capacity", "target_rate":
                        self.assertEqual(planned[field], facts[field], field)
                    self.assertAlmostEqual(planned["rate"], facts["predicted_rate"], delta=0.05 * planned["rate"])  # for an estimated number of keys
                    self.assertAlmostEqual(planned["bits_a_key"], facts["bits"] / options[1])

    def test_plan_knows_the_rules_of_the_systems(self) -> None:
        for scheme, n, p, bits, probes in ("pharo", 10, 0.1, 48, 4), ("guava", 10_000, 0.0005, 158_208, 11), ("perl", 1000, 0.01, 9593, 7):
            planned = self.bloomery("plan", "--json", "--scheme", scheme, "-n", n, "-p", p).json
            self.assertEqual((planned["bits"], planned["probes"]), (bits, probes), scheme)
        for scheme, ok in ("pharo", False), ("guava", True):  # the hash of pharo is too narrow for large filters
            self.assertEqual(self.bloomery("plan", "--json", "--scheme", scheme, "-n", "2M", "-p", "2%").json["ok"], ok)
        self.check_runs([
            ("plan --scheme perl -n 1000 -p 1%", r"\Ascheme +perl\nsize +1\.17 KiB \(9,593 bits\), 9\.59 bits per key\nprobes +7 per key\ncapacity +1,000 keys\nexpected FPR +(1|0\.9\d+|1\.0\d)%.*\nmemory +1\.44 times the lower bound of 6\.6\d bits per key\n\Z"),
            ("plan --scheme pharo -n 2M -p 2%", r"expected FPR +9\d(\.\d)?%, above the target of 2%"),
        ], status=0)  # fmt: skip

    def test_options_that_contradict_a_scheme_are_refused(self) -> None:
        names = ", ".join(SCHEMES)
        self.refuse_all({
            "build -o f -n 10 --scheme guava --layout classic": "scheme",
            "build -o f -n 10 --scheme guava --hash xxh3": "scheme",
            "build -o f -n 10 --scheme guava --u64": "scheme",
            "build -o f -n 10 --scheme guave": names,
            "plan --scheme guave -n 10 -p 1%": names,
            "plan --scheme guava -p 1%": "expected --capacity and one of --rate and --bits",
            "plan --scheme guava -n 10": "expected --capacity and one of --rate and --bits",
            "plan --scheme guava -n 10 -p 1% -m 80": "--bits",
            "plan --scheme guava -n 10 -p 1% --deletes": "requirements",
            "plan --scheme guava -n 10 -p 1% --table": "--table",
            "plan --scheme guava -n 10 -p 1% --redis": "--redis",
            "plan --scheme guava -n 10 -p 1% --prefer memory": "--prefer",
        })  # fmt: skip


if __name__ == "__main__":
    unittest.main()
