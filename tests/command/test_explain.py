"""bloomery explain: the bits of a key as docs/format.md computes them, which are set, and who set them."""

import re
import unittest

from support import LAYOUTS, CommandTest, cells_of, default_hash, keys, mix, text, xxh3

# Madrid with xxh3, from the tables of docs/format.md.
MADRID = {
    "classic": (1000, 4, [374, 632, 260, 71]),
    "split_block": (1024, 8, [267, 295, 333, 380, 387, 444, 458, 495]),
    "split_block512": (2048, 8, [539, 589, 702, 728, 798, 843, 958, 972]),
    "blocked": (2048, 4, [523, 756, 761, 853]),
    "blocked_page": (131_072, 4, [33534, 48414, 48758, 54648]),
}
# The bits of the schemes, in the payload's own count: key, size, probes, bits.
SCHEMES = {
    "guava": (b"hello", 128, 7, [2, 27, 52, 77, 102, 127, 24]),
    "pharo": (b"Madrid", 48, 4, [22, 15, 40, 33]),
    "python": (b"Madrid", 100, 4, [89, 28, 28, 52]),
    "perl": (b"Madrid", 100, 4, [78, 62, 65, 37]),
}
HASH_OF_MADRID = "5FC239A7E5ECD77B 1951C1D260462712"


class Explain(CommandTest):
    def explain(self, *arguments: object, status: int = 0, **options) -> list[dict]:
        return self.bloomery("explain", "--json", *arguments, status=status, **options).json["keys"]

    def said(self, *arguments: object, status: int = 0, **options) -> str:
        return self.bloomery("explain", *arguments, status=status, **options).out.decode()

    def make(self, layout: str, lines: list[bytes], bits: int, probes: int, *options: object) -> None:
        chosen = [] if layout in ("split_block", "split_block512") else ["-k", probes]
        self.make_filter("f", lines, "-n", 100, "-m", bits, "--layout", layout, *chosen, *options, status=None)

    def test_the_bits_are_those_of_the_documented_example(self) -> None:
        for layout, (bits, probes, cells) in MADRID.items():
            self.make(layout, [b"Madrid"], bits, probes, "--hash", "xxh3")

            (madrid,) = self.explain("f", "Madrid")

            block = None if layout == "classic" else 1
            with self.subTest(layout=layout):
                self.assertEqual(list(madrid), ["key", "maybe_present", "hash", "block", "bits"])
                self.assertEqual((madrid["key"], madrid["maybe_present"]), ("Madrid", True))
                self.assertEqual((madrid["hash"], madrid["block"]), (HASH_OF_MADRID, block))
                self.assertEqual(madrid["bits"], [{"bit": cell, "set": True} for cell in cells])
                self.assertEqual(sum(byte.bit_count() for byte in self.bits_of("f")), len(cells))

    def test_the_bits_of_schemes_are_those_of_the_documented_examples(self) -> None:
        for scheme, (key, bits, probes, cells) in SCHEMES.items():
            self.make_filter("f", [key], "-n", 10, "-m", bits, "-k", probes, "--scheme", scheme)

            (found,) = self.explain("f", key.decode())
            said = self.said("f", key.decode())

            with self.subTest(scheme=scheme):
                self.assertEqual([bit["bit"] for bit in found["bits"]], cells)
                self.assertEqual((found["hash"], found["block"], found["maybe_present"]), (None, None, True))
                self.assertEqual(len(cut_bits(said)), len(cells))

    def test_other_keys_and_hashes_have_the_bits_of_the_formulas(self) -> None:
        lines = keys(50)
        for layout in LAYOUTS:
            for options, hash in (
                ([], lambda key: default_hash(layout, key)),
                (["--seed", 99], lambda key: default_hash(layout, key, 99)),
                (["--hash", "xxh3"], lambda key: xxh3(key)),
            ):
                self.make_filter("f", lines, "-n", 5000, "--layout", layout, *options)
                facts = self.info("f")

                found = self.explain("f", *[key.decode() for key in lines])

                expected = [cells_of(layout, facts["bits"], facts["probes"], *hash(key)) for key in lines]
                self.assertEqual([[bit["bit"] for bit in key["bits"]] for key in found], expected, (layout, options))

    def test_integers_are_hashed_as_integers(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", [b"42", b"7"], "--u64", "-n", 1000, "--layout", layout)
            facts = self.info("f")

            found = self.explain("f", "42", "0042")

            expected = cells_of(layout, facts["bits"], facts["probes"], *mix(42))
            self.assertEqual([bit["bit"] for bit in found[0]["bits"]], expected)
            self.assertEqual(found[0]["hash"], "2CB4A7EE46CB76CC 9C53E46EF2CE9A12")
            self.assertEqual(found[1]["bits"], found[0]["bits"])
        self.refused("explain", "f", "forty-two", says="KEY: the filter's keys are integers")

    def test_an_integer_is_there_however_it_was_written(self) -> None:
        self.make_filter("f", [b"007", b"8"], "--u64", "-n", 1000)
        self.write("numbers", [b"007", b"8"])

        (seven,) = self.explain("f", "7", "--keys", "numbers")

        self.assertTrue(seven["put_in"])
        self.assertEqual({tuple(bit["owners"]) for bit in seven["bits"]}, {("007",)})

    def test_owners_are_the_keys_that_have_the_bit(self) -> None:
        lines = keys(300)
        self.write("lines", lines + lines[:100] + lines)  # repetitions own nothing twice
        for layout in LAYOUTS:
            self.make(layout, lines, {"blocked_page": 32_768}.get(layout, 2560), 3)
            facts = self.info("f")
            owners: dict[int, list[str]] = {}
            for key in lines:
                for cell in set(cells_of(layout, facts["bits"], facts["probes"], *default_hash(layout, key))):
                    owners.setdefault(cell, []).append(key.decode())

            found = self.explain("f", "key-7", "stranger", "other", "--keys", "lines")

            for key in found:
                self.assertEqual(key["put_in"], key["key"] == "key-7")
                for bit in key["bits"]:
                    expected = owners.get(bit["bit"], [])
                    self.assertEqual((bit["set"], bit["owner_count"]), (bool(expected), len(expected)), (layout, bit))
                    self.assertEqual(bit["owners"], expected[:3], layout)

    def test_long_names_that_begin_alike_are_different_owners(self) -> None:
        long = [b"x" * 80 + b"%d" % i for i in range(5)]
        self.make_filter("f", long, "-m", 64, "-k", 20, "-n", 5, "--layout", "classic")
        self.write("long", long)

        (found,) = self.explain("f", long[0].decode(), "--keys", "long")

        expected = {cell: 0 for cell in range(64)}
        for key in long:
            for cell in set(cells_of("classic", 64, 20, *xxh3(key))):
                expected[cell] += 1
        self.assertEqual([bit["owner_count"] for bit in found["bits"]], [expected[bit["bit"]] for bit in found["bits"]])
        self.assertIn("x" * 60 + "...", self.said("f", long[0].decode(), "--keys", "long"))

    def test_a_false_positive_is_called_by_its_name(self) -> None:
        self.make_filter("f", keys(500), "-n", 500, "-p", "10%")
        self.write("lines", keys(500))
        wrong = self.bloomery("check", "f", stdin=text(keys(500, "absent"))).lines[0].decode()

        said = self.said("f", wrong, "--keys", "lines")
        (found,) = self.explain("f", wrong, "--keys", "lines")
        unknown = self.said("f", wrong)

        self.assertRegex(said, rf"\A{wrong}: a FALSE POSITIVE: it was never inserted, and other keys set all its bits\n")
        self.assertEqual((found["maybe_present"], found["put_in"]), (True, False))
        self.assertTrue(all(bit["owner_count"] > 0 for bit in found["bits"]))
        self.assertRegex(unknown, rf"\A{wrong}: maybe present\n")

    def test_keys_that_do_not_account_for_all_bits_do_not_make_a_false_positive(self) -> None:
        self.make_filter("f", keys(20), "-n", 1000)
        self.write("some", keys(10))

        said = self.said("f", "key-15", "--keys", "some")

        self.assertRegex(said, r"\Akey-15: maybe present: it is not in the list of keys, but the listed keys do not set all its bits\n")
        self.assertRegex(said, "set by a key that is not in the list")

    def test_a_clear_bit_proves_absence(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(10), "-n", 1000, "--layout", layout)

            said = self.said("f", "stranger", status=1)

            self.assertRegex(said, r"\Astranger: certainly absent\n")
            self.assertEqual(len(re.findall("clear: this proves that the key was never inserted", said)), 1)
            self.assertRegex(cut_bits(said)[0], "clear: this proves|set")

    def test_a_bit_that_a_key_meets_twice_is_told_so(self) -> None:
        twice = next(key for key in keys(100) if len(set(cells_of("classic", 64, 6, *xxh3(key)))) == 5)
        self.make_filter("f", [twice], "-m", 64, "-k", 6, "-n", 5, "--layout", "classic")

        self.assertEqual(len(re.findall("the same bit again", self.said("f", twice.decode()))), 1)

    def test_the_block_is_told_with_its_bits(self) -> None:
        self.make("split_block512", [b"Madrid"], 2048, 8, "--hash", "xxh3")

        said = self.said("f", "Madrid")

        self.assertRegex(said, rf"xxh3 +{HASH_OF_MADRID}\n")
        self.assertRegex(said, "block 1 +of 4: bits 512 to 1,023\n")

    def test_the_exit_status_is_that_of_check(self) -> None:
        self.make_filter("f", keys(10), "-n", 1000)

        self.said("f", "key-1", status=0)
        self.said("f", "stranger", status=1)
        self.said("f", "stranger", "key-1", status=0)
        self.refused("explain", "f", says="KEY")
        self.refused("explain", "missing", "x", says="missing: cannot open")
        self.refused("explain", "f", "x", "--keys", "missing", says="missing: cannot (read|open)")
        self.write("lines", [b"a"])
        self.bloomery("build", "-q", "--window-keys", 100, "-o", "window", stdin=b"a\n")
        said = self.refused("explain", "window", "a", "--keys", "lines", says="window: .*leave out --keys").err
        self.assertNotIn("found", said)

    def test_keys_may_come_by_standard_input_and_as_fields(self) -> None:
        self.make_filter("f", keys(10), "-n", 1000)

        (piped,) = self.explain("f", "key-1", "--keys", "-", stdin=text(keys(10)))
        (cut,) = self.explain("f", "key-1", "-d", ",", "-f", 2, "--keys", "-", stdin=b"a,key-1\nb,key-2\n")

        self.assertTrue(piped["put_in"] and cut["put_in"])

    def test_odd_keys_are_shown_without_harm(self) -> None:
        self.make_filter("f", [b"", b"\x1b[2J"], "-n", 1000)

        self.assertRegex(self.said("f", ""), r"\A\(the empty key\): maybe present\n")
        self.assertRegex(self.said("f", "\x1b[2J"), r"\A\\x1B\[2J: maybe present\n")

    def test_a_keyed_filter_takes_its_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("f", keys(100), "-n", 1000, "--secret", "key")
        self.write("lines", keys(100))

        (found,) = self.explain("f", "key-1", "--secret", "key", "--keys", "lines")

        self.assertTrue(found["put_in"] and all("key-1" in bit["owners"] for bit in found["bits"] if bit["owner_count"] < 4))
        self.refused("explain", "f", "key-1", says="--secret")


def cut_bits(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("  bit ")]

    def test_an_owner_without_a_name_is_told(self) -> None:
        self.make_filter("nameless", [b""], "-n", 10)
        self.write("empty-lines", b"\n\n")

        said = self.bloomery("explain", "nameless", "", "--keys", "empty-lines").out.decode()

        self.assertRegex(said, r"\A\(the empty key\): present: it was inserted\n")
        self.assertEqual(said.count("set by (the empty key)\n"), 8)


if __name__ == "__main__":
    unittest.main()
