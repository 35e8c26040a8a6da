"""The real Bloom::Filter of Perl reads what bloomery writes with Storable, and the other way round."""

import os
import subprocess
import unittest
from pathlib import Path

from support import CommandTest, keys, text

PEER = Path(os.environ["BLOOMERY_SOURCE"]) / "tests/peers/storable.pl"
HERE = [*keys(300), "Zürich".encode(), "布隆过滤器".encode(), b"a key with spaces"]
OTHERS = keys(20_000, "other")


class Perl(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        if subprocess.run(["perl", "-MBloom::Filter", "-MStorable", "-e1"], stderr=subprocess.DEVNULL).returncode != 0:
            print("SKIP peer Bloom::Filter (libbloom-filter-perl) is not installed")
            self.skipTest("SKIP peer Bloom::Filter (libbloom-filter-perl) is not installed")

    def perl(self, *arguments: object, stdin: bytes = b"") -> bytes:
        command = ["perl", str(PEER), *map(str, arguments)]
        return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, cwd=self.folder).stdout

    def found_by_perl(self, name: str, lines: list[bytes]) -> bytes:
        answers = self.perl("check", name, stdin=text(lines)).split()
        return text(key for key, answer in zip(lines, answers, strict=True) if answer == b"1")

    def test_bloomery_answers_as_perl_for_salts_that_were_drawn(self) -> None:
        for capacity, rate in (400, 0.01), (1000, 0.3), (303, 1e-6):
            with self.subTest(capacity=capacity, rate=rate):
                self.perl("write", "theirs", capacity, rate, stdin=text(HERE))
                expected = self.found_by_perl("theirs", HERE + OTHERS)

                for form in "", ".store", ".freeze", ".nfreeze":
                    self.assertEqual(self.bloomery("check", f"theirs{form}", stdin=text(HERE + OTHERS)).out, expected)
                facts = self.bloomery("info", "--json", "theirs").json
                self.assertEqual((facts["capacity"], facts["target_rate"], facts["probes"]), (capacity, rate, len(facts["salts"])))

    def test_perl_answers_as_bloomery(self) -> None:
        self.make_filter("own", HERE, "--scheme", "perl", "-n", 400, "-p", "2%")
        self.bloomery("export", "-q", "own", "--to", "perl", "-o", "theirs")

        self.assertEqual(self.found_by_perl("theirs", HERE + OTHERS), self.bloomery("check", "own", stdin=text(HERE + OTHERS)).out)
        facts = self.bloomery("info", "--json", "own").json
        self.assertEqual(self.perl("show", "theirs").split(), [b"400", b"0.02", b"%d" % facts["bits"], b"%d" % facts["probes"], b"%d" % facts["inserted"]])

    def test_a_filter_goes_back_and_forth(self) -> None:
        self.perl("write", "theirs", 1000, 0.0001, stdin=text(HERE))
        self.bloomery("import", "-q", "theirs", "-o", "own")
        self.bloomery("add", "-q", "own", stdin=b"Madrid\n")
        self.bloomery("export", "-q", "own", "--to", "perl", "-o", "theirs")

        self.perl("add", "theirs", stdin=b"Barcelona\n")

        some = [b"Madrid", b"Paris", b"Barcelona", *HERE]
        expected = text(key for key in some if key != b"Paris")
        self.assertEqual(self.bloomery("check", "theirs", stdin=text(some)).out, expected)
        self.assertEqual(self.found_by_perl("theirs", some), expected)
        self.assertEqual(int(self.perl("show", "theirs").split()[-1]), len(HERE) + 2)

    def test_filters_with_other_salts_are_not_merged(self) -> None:
        for name in "one", "two":
            self.perl("write", name, 400, 0.01, stdin=text(HERE))

        self.refused("union", "-o", "both", "one", "two", says="salt 1: '0")
        self.refused("overlap", "one", "two", says="salt 1: '0")
        self.bloomery("union", "-q", "-o", "both", "one", "one.freeze")
        self.assertEqual(self.found_by_perl("one", OTHERS), self.bloomery("check", "both", stdin=text(OTHERS)).out)
        shown = self.bloomery("info", "both").out.decode()
        self.assertRegex(shown, r"\nsalts         7 drawn: 0\.\d+, 0\.\d+, \.\.\.\n")
        header = self.bloomery("info", "--header", "--json", "both").json
        self.assertEqual(header["salts"], self.bloomery("info", "--json", "one").json["salts"])

    def test_another_object_of_storable_is_refused_by_its_class(self) -> None:
        subprocess.run(["perl", "-MStorable", "-e", "store(bless({}, 'Set'), 'set'); store([1], 'list')"], check=True, cwd=self.folder)

        self.refused("info", "set", says="expected an object of Bloom::Filter, found Set")
        self.refused("check", "list", says="expected an object of Bloom::Filter, found an array")

    def test_other_fields_may_have_any_data(self) -> None:
        self.perl("write", "theirs", 400, 0.01, stdin=text(HERE))
        # A pattern, a version, and references that are weak or have operators.
        extend = """
            use Storable qw(nstore retrieve); use Scalar::Util 'weaken'; package Op { use overload '+' => sub { 1 }; }
            my $filter = retrieve('theirs'); my $other = [1, { a => 'b' }]; my $op = bless({}, 'Op');
            @$filter{'pattern', 'version', 'other', 'weak', 'op', 'list'} = (qr/^a+$/i, v1.22.333, $other, $other, $op, [undef]);
            $$filter{long} = qr/@{['x' x 300]}/; weaken($$filter{weak}); nstore($filter, 'extended');
        """
        subprocess.run(["perl", "-e", extend], check=True, cwd=self.folder)

        self.assertEqual(self.bloomery("check", "extended", stdin=text(HERE + OTHERS)).out, self.found_by_perl("theirs", HERE + OTHERS))


if __name__ == "__main__":
    unittest.main()
