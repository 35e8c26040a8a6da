"""tools/check-words: sentences that it must find, with the words it names, and sentences that it must accept."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.environ["BLOOMERY_SOURCE"], "tools", "check-words")

# A sentence, and what is reported of it.
FAULTY = [
    ("Who knows the number of keys makes a filter.", "'Who'"),
    ("Hashes are not secret: who chooses keys can make them collide.", "'who'"),
    ("This is the interface for who looks at bits.", "'for who'"),
    ("Of a counting filter, counters that are not 0.", "'Of a'"),
    ("The file is complete. Of an old one nothing is left.", "'Of an'"),
    ("It is made when nobody knows how many keys come.", "'nobody'"),
    ("Somebody else may have the lock.", "'Somebody'"),
    ("Whoever loses the key loses its filters.", "'Whoever'"),
    ("In a stranger's file the last bits may be set.", "'stranger'"),
    ("The filter is made anew.", "'anew'"),
    ("A damaged log is mended.", "'mended'"),
    ("The rate of false alarms is 1%.", "'false alarms'"),
    ("It takes ten bits a key.", "'bits a key'"),
    ("It serves a million lookups a second.", "'lookups a second'"),
    ("The filter is made for so many keys.", "'for so many'"),
    ("It expires after so long.", "'after so long'"),
    ("The caller is told by an exception.", "'is told'"),
    ("The reason was said before.", "'was said'"),
    ("The rate is 1 % by default.", "'1 %'"),
    ("The rate is 1\u202f% by default.", "'1\u202f%'"),
    ("Its capacity is 1000000 keys.", "'1000000'"),
    ("Its capacity is 100 000 keys.", "'100 000'"),
    ("The layout `line_free` has any k.", "'line_free'"),
    ("Each look-up reads one line.", "'look-up'"),
    ("A growing filter has layers.", "'growing filter'"),
    ("The predicted rate is 1%.", "'predicted rate'"),
    ("A small filter errs.", "'errs'"),
    ("The filter is made for 1,000 keys.", "'made for 1,000'"),
    ("It prints the error now.", "'error now'"),
    ("The FPR exceeds the promised rate.", "'promised rate'"),
    ("A file that is no filter is refused.", "'that is no f'"),
    ("The deeds are in other files.", "'deeds'"),
    ("word " * 25 + "end", "a line of 128 columns"),
]

ACCEPTED = [
    "Who may read the key? Only its owner.",
    "A client who loses the connection reconnects.",
    "The command asks who set each bit.",
    "Of the 100 keys, three were found.",
    "The filter has so many keys that it is full.",
    "It stays open as long as so many clients use it as it has slots.",
    "The two kinds can be told apart by their first bytes.",
    "The process is told to stop.",
    "The file is read a second time, after the keys a second time.",
    "The rate is 1% by default, and the remainder is 10 % 3.",
    "It had a capacity of 1,000,000 keys in 2026.",
    "A file that is no longer there was made for another system.",
    "The option is `-n 1000000`.",
    "The checksum is 0x123456789, and the port is 26379.",
    "The recommendation amends nothing.",
    "A key takes one bit, and a line takes 512.",
]


def check(text: str, name: str) -> dict[int, list[str]]:
    """The faults that are reported, by line."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        ran = subprocess.run([sys.executable, TOOL, path], capture_output=True, text=True)
    found: dict[int, list[str]] = {}
    for line in ran.stdout.splitlines():
        number, fault = line.removeprefix(path + ":").split(": ", 1)
        found.setdefault(int(number), []).append(fault)
    assert ran.returncode == (1 if found else 0), ran.stderr
    return found


class Faults(unittest.TestCase):
    def test_each_faulty_sentence_is_found_once_and_at_its_line(self) -> None:
        found = check("\n\n".join(text for text, _ in FAULTY), "text.md")

        self.assertEqual(sorted(found), [2 * i + 1 for i in range(len(FAULTY))])
        for i, (text, expected) in enumerate(FAULTY):
            with self.subTest(text):
                [fault] = found[2 * i + 1]
                self.assertTrue(fault.startswith(expected), fault)

    def test_sentences_of_plain_english_are_accepted(self) -> None:
        self.assertEqual(check("\n\n".join(ACCEPTED), "text.md"), {})

    def test_only_text_for_people_is_read(self) -> None:
        cpp = (
            '// Made anew.\nint anew = 5 % count;  // a second file is mended\nconst char* s = "is made anew " "for nobody";\n'
            '/// Example:\n///     int anew = 1;\nauto lua = R"(return anew or nobody here)";\n'
        )
        assembly = 'f("vmovd %%xmm0, %[x]");\nf("vpsrlvq $27 %[x]");\nf("expected %%, or % and a letter");\n'
        man = ".Sh NAME\nThe filter is made\n.Fl -new\nby nobody.\n.Ql 1000000\nkeys, and 1000000 more.\n.Bd -literal\nmade anew\n.Ed\n"
        for name, text, faulty_lines in (
            ("text.md", "It takes about ten bits\na key.\n", [1]),
            ("text.md", "```console\n$ bloomery plan\nten bits a key at 1 %\n```\n", []),
            ("code.cpp", cpp, [1, 2, 3]),
            ("code.cpp", 'f("{:.1f} % of them");\nf("%.2f %% now");\nf("{:.1f}% now");\n', [1, 2]),
            ("code.cpp", assembly, []),
            ("code.py", '"""A file is\nmade anew."""\nanew = 1  # mended below\nsaid = "a false alarm"\n', [2, 3, 4]),
            ("page.1", man, [4, 6]),
        ):
            with self.subTest(text):
                self.assertEqual(sorted(check(text, name)), faulty_lines)


if __name__ == "__main__":
    unittest.main()
