"""The help of the command and of each verb: what is listed, in which groups, and that each entry is one line."""

import re
import unittest

from support import CommandTest

GROUPS = {
    "Create": "plan build seal",
    "Use": "add check dedup remove",
    "Inspect": "info verify explain",
    "Combine": "union intersect overlap fold import export",
    "Share": "pull push redis",
    "Explore": "playground analyze",
    "More": "keygen noisy rebuild completion help",
}
OF_VERBS = {"noisy": "split check", "redis": "list drop clear reset expire persist rotate replace repair gc doctor"}
COLUMNS = 100


def sections(text: str) -> dict[str, list[str]]:
    """Lines below each heading "Examples:", without their indentation of two."""
    found: dict[str, list[str]] = {}
    for title, body in re.findall(r"(?m)^([A-Z][\w ]*):\n((?:  .*\n)+)", text):
        found[title] = [line[2:] for line in body.splitlines()]
    return found


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?m)^  (?:-\w, |    )(--[a-z0-9-]+)", text))


class Help(CommandTest):
    def said(self, *words: str) -> str:
        run = self.bloomery(*words)
        self.assertEqual(run.err, "")
        return run.out.decode()

    def all_verbs(self) -> list[list[str]]:
        verbs = " ".join(GROUPS.values()).split()
        return [[verb] for verb in verbs if verb not in OF_VERBS] + [[verb, sub] for verb, subs in OF_VERBS.items() for sub in subs.split()]

    def test_verbs_are_listed_in_groups(self) -> None:
        found = sections(self.said("--help"))

        for title, verbs in GROUPS.items():
            self.assertEqual(" ".join(line.split()[0] for line in found[title]), verbs)
        self.assertEqual(list(found), [*GROUPS, "General"])
        for verb, subs in OF_VERBS.items():
            listed = sections(self.said(verb, "--help"))
            self.assertEqual(" ".join(line.split()[0] for line in listed["Commands"]), subs)

    def test_without_a_verb_the_list_is_an_error(self) -> None:
        for words in [], ["redis"], ["noisy"]:
            run = self.bloomery(*words, status=2)

            self.assertEqual(run.out, b"")
            name = "".join(word + ": " for word in words)
            self.assertEqual(run.err, f"bloomery: {name}missing command\n\n" + self.said(*words, "--help"))

    def test_help_is_had_in_four_ways(self) -> None:
        for verb in ["check"], ["redis"], ["redis", "list"]:
            expected = self.said(*verb, "--help")

            for words in [*verb, "-h"], ["help", *verb], ["--help", *verb]:
                with self.subTest(words=words):
                    self.assertEqual(self.said(*words), expected)
        self.assertEqual(self.said("help"), self.said("--help"))
        self.assertEqual(self.said("-V"), self.said("--version"))

    def test_each_verb_has_a_summary_a_usage_and_up_to_three_examples_before_its_options(self) -> None:
        for verb in [[], *self.all_verbs(), ["redis"], ["noisy"]]:
            text = self.said(*verb, "--help")
            lines, found = text.splitlines(), sections(text)
            with self.subTest(verb=verb):
                self.assertEqual([line for line in lines if len(line) > COLUMNS], [])
                entries = [line for title in found.keys() - {"Example", "Examples"} for line in found[title]]
                for line in entries:  # a name, two spaces or more, and what it is
                    self.assertRegex(line, r"\A(-\w, --[\w-]+|    --[\w-]+|[A-Z]+|[a-z]+)( [A-Za-z|]+)?  +\S.*\Z")
                    self.assertNotRegex(line, r"\b(TEXT|UINT|INT|FLOAT)\b.* (in|:)\[|REQUIRED")
                if verb in self.all_verbs():
                    self.assertRegex(lines[0], r"\A[a-z].*[^.]\Z")
                    self.assertTrue(lines[2].startswith("Usage: bloomery " + " ".join(verb)))
                    self.assertIn(list(found)[0], ("Example", "Examples"))
                    examples = found.get("Example") or found["Examples"]
                    self.assertLessEqual(len(examples), 3)
                    self.assertTrue(any("bloomery " + " ".join(verb) in example for example in examples))

    def test_examples_use_options_that_exist(self) -> None:
        for verb in self.all_verbs():
            found = sections(self.said(*verb, "--help"))
            for example in found.get("Example") or found["Examples"]:
                for call in re.findall(r"bloomery ([^>|&)]+)", example):
                    called = call.split()[: 2 if call.split()[0] in OF_VERBS else 1]
                    have = self.said(*called, "--help")
                    for option in re.findall(r"(?<!\S)(--[a-z-]+|-[a-z])(?!\S)", call):
                        with self.subTest(example=example, option=option):
                            self.assertRegex(have, rf"(?m)^  (-\w, +|    )?{option}\b")

    def test_options_are_grouped(self) -> None:
        found = sections(self.said("build", "--help"))

        self.assertEqual(
            [title for title in found if title not in ("Examples", "Arguments")],
            ["Options", "Size and layout", "Input format", "Sliding window", "Filters on Redis", "General"],
        )  # fmt: skip
        self.assertTrue(any(line.startswith("-p, --rate RATE ") for line in found["Size and layout"]))
        self.assertTrue(any(line.startswith("    --window DURATION ") for line in found["Sliding window"]))
        self.assertTrue(any(line.startswith("-h, --help ") for line in found["General"]))


if __name__ == "__main__":
    unittest.main()
