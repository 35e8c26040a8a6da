"""--secret and keygen: filters that can be read only with their key; errors for missing, wrong and malformed keys."""

import os
import re
import stat
import unittest

from support import LAYOUTS, CommandTest, first_occurrences, keys, text

COUNT = 2000


class Secrets(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        self.keys = keys(COUNT)
        self.write("lines", self.keys)
        for name in "key", "other":
            self.bloomery("keygen", "-o", name)

    def build(self, name: str = "f", *options: object) -> None:
        self.bloomery("build", "-q", "-o", name, "--secret", "key", *options, "lines")

    # ---- keygen

    def test_keygen_makes_a_new_key_for_its_owner_alone_and_shows_its_check_value(self) -> None:
        made = self.bloomery("keygen", "-o", "new", umask=0)

        check = re.search(r"check value ([0-9A-F]{16})\b", made.err)[1]
        self.assertRegex(self.read("new"), rb"\A[0-9A-F]{32}\n\Z")
        self.assertEqual(stat.S_IMODE(os.stat(self.path("new")).st_mode), 0o600)
        self.assertEqual(made.out, b"")
        self.assertRegex(made.err, r"\Abloomery: new: new secret key, .*without it, filters made with it cannot be used\n\Z")
        self.assertEqual(len({self.read(name) for name in ("key", "other", "new")}), 3)
        self.assertNotIn(self.read("new").decode().strip().lower(), made.err.lower())
        self.bloomery("build", "-q", "-o", "f", "--secret", "new", "lines")
        self.assertEqual(self.info("f")["key_check"], check)

    def test_a_key_is_never_replaced(self) -> None:
        before = self.read("key")
        os.symlink("nowhere", self.path("link"))

        self.refuse_all({
            "keygen -o key": "exists.*never replaced",
            "keygen -o link": "exists",
            "keygen -o none/key": "no such file",
            "build --secret key -o key lines": "would replace the secret key",
            "dedup --secret key --suspects ./key lines": "would replace the secret key",
        })  # fmt: skip

        self.assertEqual(self.read("key"), before)
        self.assertFalse(os.path.exists(self.path("nowhere")))

    # ---- filters

    def test_a_keyed_filter_is_built_asked_and_added_to_with_its_key(self) -> None:
        numbers, more = [b"%d" % (i * i) for i in range(COUNT)], [b"%d" % (i * i + 1) for i in range(1, 101)]
        self.write("numbers", numbers)
        for layout in LAYOUTS:
            for kind in [], ["--u64"]:
                self.bloomery("build", "-q", "-o", "f", *kind, "--layout", layout, "--secret", "key", "numbers")
                self.bloomery("add", "-q", "--secret", "key", "f", stdin=text(more), status=None)

                self.assertEqual(self.info("f")["hash"], "siphash")
                self.assert_has_all("f", numbers + more, "--secret", "key")
                others = [b"%d" % (i * i + 2) for i in range(2, 20_000)]
                self.assert_chance(self.count("f", others, "--secret", "key"), len(others), self.info("f")["rate_now"])

    def test_the_way_to_the_filter_does_not_matter(self) -> None:
        self.build("a")
        self.bloomery("build", "-q", "-o", "b", "--secret", "key", "--hash", "siphash", stdin=text(self.keys))
        self.bloomery("build", "-q", "-o", "c", "-n", COUNT, "--secret", "/dev/stdin", "lines", stdin=self.read("key"))
        self.bloomery("build", "-q", "-o", "d", "--secret", "other", "lines")

        a, b, c, d = map(self.bits_of, "abcd")
        self.assertEqual((b, c), (a, a))
        self.assertNotEqual(d, a)

    def test_the_file_has_nothing_of_the_key(self) -> None:
        self.build()

        file, digits = self.read("f"), self.read("key").strip()
        for part in (digits, digits.lower(), bytes.fromhex(digits.decode())):
            for half in part[: len(part) // 2], part[len(part) // 2 :]:
                self.assertNotIn(half, file)

    def test_dedup_takes_a_key(self) -> None:
        lines = self.keys + self.keys[::3]
        for options in [], ["--exact"], ["--max-loss", "1e-6"]:
            out = self.bloomery("dedup", "-q", *options, "-n", COUNT, "--secret", "key", stdin=text(lines)).lines

            self.assertLessEqual(len(first_occurrences(lines)) - len(out), 5, options)

    def test_dedup_makes_its_state_with_the_key_and_goes_on_with_it_alone(self) -> None:
        dedup = ["dedup", "-q", "--state", "state", "-n", COUNT]
        self.bloomery(*dedup, "--secret", "key", "lines")
        before = self.bits_of("state")

        again = self.bloomery(*dedup, "--secret", "key", "lines")

        self.assertEqual(again.out, b"")
        self.assertEqual(self.info("state")["hash"], "siphash")
        self.refused(*dedup, "lines", says="keyed with a secret.*--secret KEYFILE")
        self.refused(*dedup, "--secret", "other", "lines", says="another secret")
        self.assertEqual(self.bits_of("state"), before)

    # ---- refusals

    def test_without_its_key_nothing_asks_or_adds(self) -> None:
        self.build()
        before = self.read("f")
        check = self.info("f")["key_check"]

        for command in "check", "add":
            self.refused(command, "f", "lines", says=f"f: the filter is keyed with a secret: .*{check}; .*--secret KEYFILE")
            wrong = self.refused(command, "--secret", "other", "f", "lines", says=f"another secret: .*{check}, found [0-9A-F]{{16}};")
            self.assertNotIn(self.read("other").decode().strip(), wrong.err)
        self.assertEqual(self.read("f"), before)

    def test_a_key_for_a_filter_without_one_is_refused(self) -> None:
        self.bloomery("build", "-q", "-o", "plain", "lines")

        for command in ["check", "plain", "lines"], ["add", "plain", "lines"], ["info", "plain"]:
            self.refused(command[0], "--secret", "key", *command[1:], says="plain: the filter is not keyed")

    def test_what_is_no_key_file_is_refused_before_anything_is_read(self) -> None:
        self.build()
        key = self.read("key").strip()
        self.write("short", key[:-1] + b"\n")
        self.write("long", key + b"0\n")
        self.write("text", b"correct horse battery staple 123\n")
        self.write("empty", b"")
        cases = {"missing": "missing: cannot open", "short": "31 digits", "long": "33 digits", "text": "another character at position 2",
                 "empty": "0 digits", "f": "not a key file", ".": "cannot read"}  # fmt: skip
        for name, says in cases.items():
            for command in "build -o new lines", "check f lines", "add f lines", "dedup lines", "info f":
                self.assertNotIn(key[:8].decode(), self.refused(*command.split(), "--secret", name, says=says).err)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_a_key_goes_with_no_other_hash_scheme_or_seed(self) -> None:
        for command in "build -o new", "dedup":
            self.refuse_all({f"{command} --secret key {options} lines": f"--secret: .*{options}; leave out"
                             for options in ("--hash xxh3", "--hash mix", "--seed 1")})  # fmt: skip
            self.refused(*command.split(), "--hash", "siphash", "lines", says="needs a secret key.*--secret KEYFILE")
        self.refused("build", "-o", "new", "--secret", "key", "--scheme", "guava", "lines", says="--scheme guava; leave out")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_a_key_that_others_can_read_is_warned_of_once(self) -> None:
        self.build()
        os.chmod(self.path("key"), 0o644)

        for command in (["build", "-o", "f"], ["check", "f"], ["add", "f"], ["dedup", "--max-loss", "1e-4"]):
            said = self.bloomery(*command, "-q", "--secret", "key", "lines").err
            self.assertEqual(said, "bloomery: key: warning: other users can read this key; run chmod 600 on it\n", command)
        os.chmod(self.path("key"), 0o400)
        self.assertEqual(self.bloomery("check", "-q", "--secret", "key", "f", "lines").err, "")

    # ---- info

    def test_info_needs_no_key_but_to_measure(self) -> None:
        self.build()
        self.bloomery("build", "-q", "-o", "plain", "lines")

        facts, with_key, plain = self.info("f"), self.bloomery("info", "--json", "--secret", "key", "f").json, self.info("plain")
        said = self.bloomery("info", "f").out.decode()

        self.assertIsNone(facts["measured_rate"])
        self.assert_chance(with_key["measured_rate"]["hits"], with_key["measured_rate"]["queries"], facts["rate_now"])
        self.assertEqual(with_key | {"measured_rate": None}, facts)
        self.assertRegex(facts["key_check"], r"\A[0-9A-F]{16}\Z")
        self.assertIsNone(plain["key_check"])
        self.assertAlmostEqual(facts["estimated_keys"], COUNT, delta=100)
        self.assertRegex(said, rf"(?m)^secret        check value {facts['key_check']}$")
        self.assertNotIn("secret", self.bloomery("info", "plain").out.decode())
        self.refused("info", "--secret", "other", "f", says="another secret")
        self.assertEqual(self.bloomery("info", "--check", "--json", "f").json["problems"], [])


if __name__ == "__main__":
    unittest.main()
