"""bloomery explain: the bits of a key as docs/format.md computes them, which are set, and which keys set them."""

import unittest

from support import LAYOUTS, CommandTest, cells_of, default_hash, keys, mix, text, xxh3

# Madrid with xxh3, from the tables of docs/format.md: size, probes, bits.
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

    def make(self, layout: str, lines: list[bytes], bits: int, probes: int, *options: object) -> None:
        chosen = [] if layout in ("split_block", "split_block512") else ["-k", probes]
        self.make_filter("f", lines, "-n", 100, "-m", bits, "--layout", layout, *chosen, *options, status=None)

    def test_the_bits_are_those_of_the_documented_examples(self) -> None:
        for layout, (bits, probes, cells) in MADRID.items():
            self.make(layout, [b"Madrid"], bits, probes, "--hash", "xxh3")

            (madrid,) = self.explain("f", "Madrid")

            bits_set = [{"bit": cell, "set": True} for cell in cells]
            expected = {"key": "Madrid", "maybe_present": True, "hash": HASH_OF_MADRID, "block": None if layout == "classic" else 1, "bits": bits_set}
            with self.subTest(layout=layout):
                self.assertEqual(list(madrid.items()), list(expected.items()))
                self.assertEqual(sum(byte.bit_count() for byte in self.bits_of("f")), len(cells))
        for scheme, (key, bits, probes, cells) in SCHEMES.items():
            self.make_filter("f", [key], "-n", 10, "-m", bits, "-k", probes, "--scheme", scheme)

            (found,) = self.explain("f", key.decode())

            with self.subTest(scheme=scheme):
                self.assertEqual([bit["bit"] for bit in found["bits"]], cells)
                self.assertEqual((found["hash"], found["block"], found["maybe_present"]), (None, None, True))
                self.assertEqual(self.bloomery("explain", "f", key.decode()).out.count(b"\n  bit "), len(cells))

    def test_other_keys_and_hashes_have_the_bits_of_the_formulas(self) -> None:
        lines, numbers = keys(50), [b"42", b"7"]
        for layout in LAYOUTS:
            for options, some, hash in (
                ([], lines, lambda key: default_hash(layout, key)),
                (["--seed", 99], lines, lambda key: default_hash(layout, key, 99)),
                (["--hash", "xxh3"], lines, lambda key: xxh3(key)),
                (["--u64"], numbers, lambda key: mix(int(key))),
            ):
                self.make_filter("f", some, "-n", 5000, "--layout", layout, *options)
                facts = self.info("f")

                found = self.explain("f", *[key.decode() for key in some])

                expected = [cells_of(layout, facts["bits"], facts["probes"], *hash(key)) for key in some]
                self.assertEqual([[bit["bit"] for bit in key["bits"]] for key in found], expected, (layout, options))
        self.assertEqual(found[0]["hash"], "2CB4A7EE46CB76CC 9C53E46EF2CE9A12")
        self.assertEqual(self.explain("f", "0042")[0]["bits"], found[0]["bits"])
        self.refused("explain", "f", "forty-two", says="KEY: the filter's keys are integers")

        self.write("numbers", [b"042", b"7"])
        (seven,) = self.explain("f", "42", "--keys", "numbers")
        self.assertTrue(seven["put_in"])
        self.assertEqual({tuple(bit["owners"]) for bit in seven["bits"]}, {("042",)})

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

            for key in self.explain("f", "key-7", "stranger", "other", "--keys", "lines"):
                self.assertEqual(key["put_in"], key["key"] == "key-7")
                for bit in key["bits"]:
                    expected = owners.get(bit["bit"], [])
                    self.assertEqual((bit["set"], bit["owner_count"], bit["owners"]), (bool(expected), len(expected), expected[:3]), (layout, bit))

    def test_long_names_that_begin_alike_are_different_owners(self) -> None:
        long = [b"x" * 80 + b"%d" % i for i in range(5)]
        self.make_filter("f", long, "-m", 64, "-k", 20, "-n", 5, "--layout", "classic")
        self.write("long", long)

        (found,) = self.explain("f", long[0].decode(), "--keys", "long")

        cells = [set(cells_of("classic", 64, 20, *xxh3(key))) for key in long]
        self.assertEqual([bit["owner_count"] for bit in found["bits"]], [sum(bit["bit"] in of_key for of_key in cells) for bit in found["bits"]])
        self.assertIn(b"x" * 60 + b"...", self.bloomery("explain", "f", long[0].decode(), "--keys", "long").out)

    def test_a_false_positive_is_named_as_one(self) -> None:
        self.make_filter("f", keys(500), "-n", 500, "-p", "10%")
        self.write("lines", keys(500))
        self.write("some", keys(10))
        wrong = self.bloomery("check", "f", stdin=text(keys(500, "absent"))).lines[0].decode()

        (found,) = self.explain("f", wrong, "--keys", "lines")

        self.assertEqual((found["maybe_present"], found["put_in"]), (True, False))
        self.assertTrue(all(bit["owner_count"] > 0 for bit in found["bits"]))
        self.check_runs([
            (f"explain f {wrong} --keys lines", rf"\A{wrong}: a FALSE POSITIVE: it was never inserted, and other keys set all its bits\n"),
            (f"explain f {wrong}", rf"\A{wrong}: maybe present\n"),
            ("explain f key-15 --keys some", r"\Akey-15: maybe present: it is not in the list of keys, but the listed keys do not set all its bits\n", "set by a key that is not in the list"),
        ], status=0)  # fmt: skip

    def test_the_messages(self) -> None:
        for layout in LAYOUTS:
            self.make_filter("f", keys(10), "-n", 1000, "--layout", layout)
            said = self.bloomery("explain", "f", "stranger", status=1).out.decode()
            self.assertRegex(said, r"\Astranger: certainly absent\n")
            self.assertEqual(said.count("clear: this proves that the key was never inserted"), 1)
            self.assertRegex(said, r"\n  bit +[\d,]+ +(clear: this proves|set)")
        twice = next(key for key in keys(100) if len(set(cells_of("classic", 64, 6, *xxh3(key)))) == 5).decode()
        self.make_filter("twice", [twice.encode()], "-m", 64, "-k", 6, "-n", 5, "--layout", "classic")
        self.make_filter("odd", [b"", b"\x1b[2J"], "-n", 1000)
        self.make_filter("nameless", [b""], "-n", 10)
        self.write("empty-lines", b"\n\n")
        self.make("split_block512", [b"Madrid"], 2048, 8, "--hash", "xxh3")
        self.check_runs([
            ("explain f Madrid", rf"xxh3 +{HASH_OF_MADRID}\n", "block 1 +of 4: bits 512 to 1,023\n"),
            ("explain odd ''", r"\A\(the empty key\): maybe present\n"),
            ("explain odd '\x1b[2J'", r"\A\\x1B\[2J: maybe present\n"),
            ("explain nameless '' --keys empty-lines", r"\A\(the empty key\): present: it was inserted\n(.*\n)*.*set by \(the empty key\)\n"),
        ], status=0)  # fmt: skip
        self.assertEqual(self.bloomery("explain", "twice", twice).out.count(b"the same bit again"), 1)

    def test_the_exit_status_is_that_of_check(self) -> None:
        self.make_filter("f", keys(10), "-n", 1000)
        for names, status in (["key-1"], 0), (["stranger"], 1), (["stranger", "key-1"], 0):
            self.bloomery("explain", "f", *names, status=status)
        self.write("lines", [b"a"])
        self.bloomery("build", "-q", "--window-keys", 100, "-o", "window", stdin=b"a\n")
        self.refuse_all({
            "explain f": "KEY",
            "explain missing x": "missing: cannot open",
            "explain f x --keys missing": "missing: cannot (read|open)",
            "explain window a --keys lines": r"window: ((?!found).)*leave out --keys",
        })  # fmt: skip

    def test_keys_may_come_by_standard_input_as_fields_and_with_a_secret(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("f", keys(10), "-n", 1000)
        self.make_filter("keyed", keys(10), "-n", 1000, "--secret", "key")
        for options, stdin in (["f"], text(keys(10))), (["f", "-d", ",", "-f", 2], b"a,key-1\nb,key-2\n"), (["keyed", "--secret", "key"], text(keys(10))):
            (found,) = self.explain(*options, "key-1", "--keys", "-", stdin=stdin)
            self.assertTrue(found["put_in"] and all("key-1" in bit["owners"] for bit in found["bits"] if bit["owner_count"] < 4), options)
        self.refused("explain", "keyed", "key-1", says="--secret")


if __name__ == "__main__":
    unittest.main()
