"""The parsing of command lines into options, values and arguments, and the errors for invalid words."""

import unittest

from support import LAYOUTS, CommandTest, text

COMMANDS = """plan build seal add check dedup remove info verify explain union intersect overlap fold import export pull push redis playground analyze keygen
    noisy rebuild completion help""".split()
KEYS = [b"[a,b]", b"[a]", b"--json", b"-5", b"-x", b"-", b"", b"plan"]


class Words(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.bloomery("build", "-q", "-o", "f", "-n", 1000, "-p", "1e-9", stdin=text([*KEYS, b"one", b"two"]))

    def test_a_key_is_taken_as_it_is(self) -> None:
        for key in (k.decode() for k in KEYS):
            with self.subTest(key=key):
                explained = self.bloomery("explain", "--json", "f", "--", key).json

                self.assertEqual([(one["key"], one["maybe_present"]) for one in explained["keys"]], [(key, True)])
        for key in "[a,b]", "-5", "-":  # not like an option
            with self.subTest(key=key):
                self.assertEqual(len(self.bloomery("explain", "--json", "f", key).json["keys"]), 1)

    def test_options_come_before_between_and_after_arguments(self) -> None:
        self.write("lines", b"one\nnone\n")
        for words in (
            ["-v", "-c", "f", "lines"],
            ["-vc", "f", "lines"],
            ["-cv", "f", "lines"],
            ["f", "-v", "lines", "-c"],
            ["f", "lines", "--invert", "--count"],
            ["--invert", "f", "lines", "-c", "-c"],
            ["-cvj2", "f", "lines"],
            ["-cv", "-j", "2", "--", "f", "lines"],
            ["-cv", "--threads=2", "f", "lines"],
        ):
            with self.subTest(words=words):
                self.assertEqual(self.bloomery("check", *words).out, b"1\n")

    def test_a_value_follows_its_option_in_one_word_or_two(self) -> None:
        for words in ["-n", "7"], ["-n7"], ["--capacity", "7"], ["--capacity=7"], ["-qn7"]:
            with self.subTest(words=words):
                self.bloomery("build", "-q", "-o", "g", *words, stdin=b"one\n")
                self.assertEqual(self.info("g")["capacity"], 7)

    def test_words_that_do_not_fit_are_named(self) -> None:
        empty = "empty value: expected a name, found ''; see bloomery [a-z ]+ --help"
        self.refuse_all({
            "check": "FILTER: missing argument; see bloomery check --help",
            "explain f": "KEY: missing argument; see bloomery explain --help",
            "fold f": "--output: missing required option: expected --output FILE; see bloomery fold --help",
            "redis expire 'unix:///x?name=y'": "DURATION: missing argument; see bloomery redis expire --help",
            "keygen -o k y": "unexpected argument: found 'y'; see bloomery keygen --help",
            "check f -j": "--threads: missing value: expected N; see bloomery check --help",
            "check f -qj": "--threads: missing value: expected N; see bloomery check --help",
            "build --capacity": "--capacity: missing value: expected N; see bloomery build --help",
            "build -o g -n5 --capacity 6": "--capacity: option given more than once; give it once",
            "check f --json=5": "--json: takes no value: found '5'; see bloomery check --help",
            "check f --json=true": "--json: takes no value: found 'true'; see bloomery check --help",
            "check f --json=": "--json: takes no value: found ''; see bloomery check --help",
            "check f --frobnicate -- --json": "unknown option: found '--frobnicate'; see bloomery check --help",
            "check f -qz": "unknown option: found '-z'; see bloomery check --help",
            "check f -j 257": "--threads: invalid value: expected a whole number from 1 to 256, found '257'",
            "check f -j 0": "--threads: invalid value: .*found '0'",
            "check f -j 2x": "--threads: invalid value: .*found '2x'",
            "check f -j ''": "--threads: invalid value: .*found ''",
            "build -o g --seed -1": "--seed: invalid value: .*found '-1'",
            "build -o g --seed 18446744073709551616": "--seed: .*to 18446744073709551615, found",
            "check f --on-damage perhaps": "--on-damage: invalid value: expected error or maybe, found 'perhaps'",
            "plan --nodes 3": "--nodes: requires --redis; add --redis, or leave --nodes out",
            "plan --log --no-log": "--log and --no-log exclude each other; give one of them",
            "build -o g -n x": "--capacity: invalid value: .*found 'x'; see bloomery build --help",
            "explain f -0.5": "unknown option: found '-0.5'; to pass a KEY that begins with -, put -- before it",
            "explain f -x": "unknown option: found '-x'; to pass a KEY that begins with -, put -- before it",
            "help -- -x": "unknown command: expected one of plan, .*, found '-x'; see bloomery --help",
            "-x": "unknown option: found '-x'; see bloomery --help",
            "add" * 40: rf"unknown command: .*, found '{('add' * 40)[:57]}\.\.\.'; see",
            "check f --" + "x" * 200: rf"unknown option: found '--{'x' * 55}\.\.\.'; see",
            "completion tcsh": "SHELL: invalid value: expected bash, zsh or fish, found 'tcsh'",
            "plan --grow --max-keys 9": "--grow and --max-keys exclude each other; give one of them",
            "redis frobnicate": "unknown command: .*; see bloomery redis --help",
            "noisy frobnicate": "unknown command: expected one of split, check, found 'frobnicate'; see bloomery noisy --help",
            "explain f -05": "unknown option: found '-05'",
            "explain f -q5": "unknown option: found '-q5'",
            "explain f -00.5": "unknown option: found '-00.5'",
            "build": "--output",
            "info": "FILTER or --build",
            "frobnicate": "one of " + ", ".join(COMMANDS),
            "--frobnicate": "bloomery --help",
            "build -o f -n 10 -m 1000 --layout x": ", ".join(LAYOUTS),
            "build -o f -n 10 --layout x": ", ".join(LAYOUTS),
            "build -o f -n 10 --hash x": "xxh3_64, xxh3,.*murmur3",
            "build -o f -n 10 --scheme x": "guava, guava32, spark, spark2, dcso, bits_and_blooms, pharo, python, perl, redisbloom, datasketches, bloom_filters, bloomfilter_js, leveldb, rocksdb, rocksdb_4, valkey_bloom",
            "build -o f -n 10 --hash mix": "integer",
            "build -o f -n 10 --scheme guava --seed 1": "seed",
        })  # fmt: skip
        self.refuse_all({f"{command} --frobnicate": f"--frobnicate.*bloomery {command} --help" for command in COMMANDS})
        self.refuse_all({command: "FILTER|--output" for command in ("add", "info", "verify", "explain", "fold", "union", "intersect", "keygen")})
        for line in ("build -o ''", "build -o g ''", "union -o '' f f", "union -o g f ''", "intersect -o g '' f", "overlap f ''", "fold f -o ''",
                     "verify f --present ''", "verify f --absent ''", "explain f a --keys ''", "noisy check ''", "noisy check f -i ''"):  # fmt: skip
            self.refuse_all({line: empty})

    def test_the_right_word_is_suggested_for_a_mistyped_one(self) -> None:
        mistyped = "chekc check, biuld build, dedupe dedup, ad add, inof info, paln plan, anlayse analyze, intresect intersect, dedpu dedup"
        for typed, meant in (pair.split() for pair in mistyped.split(", ")):
            self.refused(typed, "x", says=f"did you mean 'bloomery {meant}'")
        self.refuse_all({
            "help chekc": "did you mean 'bloomery check'",
            "help redis lsit": "did you mean 'bloomery redis list'",
            "help check x": "has no subcommands",
            "build --capactiy": "unknown option: found '--capactiy'; did you mean '--capacity'",
            "check --invret=1": "unknown option: found '--invret=1'; did you mean '--invert'",
            "plan --max-key": "unknown option: found '--max-key'; did you mean '--max-keys'",
            "dedup --stat": "unknown option: found '--stat'; did you mean '--state'",
            "info --hlep": "unknown option: found '--hlep'; did you mean '--help'",
        })  # fmt: skip
        for typed in "make", "lists", "foo", "pull-all", "bxxld":  # too far from any command
            self.assertNotIn("did you mean", self.refused(typed).err)

    def test_an_error_is_one_line_whatever_it_quotes(self) -> None:
        self.refused("check", "two\nlines\x1b[2J", says=r"two\\x0Alines\\x1B")
        self.refused("two\nlines", says="unknown command")
        self.bloomery("build", "-q", "-o", "numbers", "--u64", "-n", 1)
        self.refused("check", "-0", "numbers", stdin=b"a\nb\0", says=r"a\\x0Ab")

    def test_an_empty_value_is_the_value_and_not_the_next_word(self) -> None:
        self.write("lines", b"mine\n")
        self.refuse_all({"dedup --suspects= lines": "--suspects: empty value", "build --output= lines": "--output: empty value",
                         "union --output= f f f": "--output: empty value", "build -o g --layout= lines": "--layout: empty value",
                         "build -o g --hash '' lines": "--hash: empty value", "plan -n 1 -p 1% --scheme=": "--scheme: empty value"})  # fmt: skip
        self.assertEqual(self.read("lines"), b"mine\n")
        self.bloomery("build", "-q", "-o", "g", "-n", 10, "--note=", "lines")
        self.assertEqual(self.bloomery("check", "-c", "g", stdin=b"mine\n").out, b"1\n")
        self.assertEqual(self.bloomery("dedup", "--", "lines").out, b"mine\n")

    def test_whole_numbers_may_be_hexadecimal(self) -> None:
        for seed in "0x1f", "31":
            self.bloomery("build", "-q", "-o", "g", "--seed", seed, stdin=b"one\n")
            self.assertEqual(self.info("g")["seed"], 31)

    def test_help_of_a_verb_needs_nothing_else(self) -> None:
        for words in ["build", "--help"], ["build", "-h"], ["--help", "build"], ["build", "-p", "x", "--help"], ["build", "--help", "-n"]:
            with self.subTest(words=words):
                self.assertIn(b"Usage: bloomery build ", self.bloomery(*words).out)


if __name__ == "__main__":
    unittest.main()
