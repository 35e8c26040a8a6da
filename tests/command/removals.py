"""Tests of the kinds of filters from which keys can be removed."""

from support import keys, text


class Removals:
    """For a class that derives from CommandTest, too."""

    option: str  #: of build: "--counting"

    def test_integers_and_keyed_filters_take_part(self) -> None:
        self.bloomery("keygen", "-o", "key")
        self.make_filter("numbers", [b"%d" % i for i in range(100)], self.option, "--u64")
        self.make_filter("keyed", keys(100), self.option, "--secret", "key")

        self.bloomery("remove", "-q", "numbers", stdin=b"007\n8\n")
        self.bloomery("remove", "-q", "keyed", "--secret", "key", stdin=text(keys(50)))

        self.assertEqual(self.info("numbers")["inserted"], 98)
        self.assertEqual(self.info("keyed")["inserted"], 50)
        self.refused("remove", "keyed", stdin=b"x\n", says="--secret")

    def test_a_filter_from_a_pipe_has_the_size_of_that_from_a_file(self) -> None:
        lines = keys(500) * 2
        self.bloomery("build", "-q", self.option, "-o", "file", self.write("lines", lines))
        self.make_filter("pipe", lines, self.option)

        self.assertEqual(self.info("pipe")["capacity"], 1000)
        self.assertEqual(self.info("file")["bits"], self.info("pipe")["bits"])
