"""The English of a file, for tools that check or draw sentences: paragraphs as lists of (line number, text).

A paragraph is what belongs together: of Markdown and mdoc a paragraph, an item, a heading or a table cell; of a program a
comment or a string of several words. Code in fences and indented code are no prose.
"""

import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator

Line = tuple[int, str]
Paragraph = list[Line]

# mdoc macros that end a paragraph, and those whose arguments are no prose.
MDOC_BREAKS = {"Pp", "Sh", "Ss", "It", "Bl", "El", "Bd", "Ed", "D1", "Dl", "Nd", "Dd", "Dt", "Os"}
MDOC_NO_PROSE = {"Pp", "It", "Dd", "Dt", "Os", "Bl", "El", "Bd", "Ed", "D1", "Dl"}

# Comments and strings of C++, TypeScript and their like; a raw string is a program in another language.
C_TOKEN = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|<!--(?P<markup>.*?)-->'
    r'|R"(?P<tag>\w*)\(.*?\)(?P=tag)"|"(?P<double>(?:\\.|[^"\\\n])*)"'
    r"|(?<!\w)'(?P<single>(?:\\.|[^'\\\n])*)'|`(?P<template>(?:\\.|[^`\\])*)`",
    re.DOTALL,
)


def markdown(text: str) -> Iterator[Paragraph]:
    paragraph: Paragraph = []
    fenced = False
    for number, line in enumerate(text.splitlines() + [""], 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        no_prose = fence or fenced or not line.strip() or (line.startswith("    ") and not paragraph)
        alone = line.startswith(("#", "|"))
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if no_prose or alone or item:
            if paragraph:
                yield paragraph
            paragraph = []
        if no_prose:
            continue
        if line.startswith("|"):
            yield from ([(number, cell.strip())] for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")) if cell.strip("-: "))
        elif line.startswith("#"):
            yield [(number, line.lstrip("# "))]
        else:
            paragraph.append((number, (line[item.end() :] if item else line).strip()))


def plain_mdoc(words: list[str]) -> str:
    """What a line of mdoc macros prints, roughly; literal text in backticks."""
    result = ""
    before, macro = " ", ""
    for i, word in enumerate(words):
        if re.fullmatch(r"[A-Z][a-z0-9]", word):
            before = "" if word == "Ns" else before
            macro = word if word != "Ns" else macro
        elif re.fullmatch(r"[.,;:)]", word):
            result += word
        elif macro == "Xr" and re.fullmatch(r"\d", word):
            result += f"({word})"
        else:
            text = word.strip('"')
            text = f"-{text}" if macro == "Fl" else f"`{text}`" if macro in ("Ql", "Li") else f'"{text}' if words[i - 1] == "Dq" else text
            result += before + text + ('"' if macro == "Dq" and (i + 1 == len(words) or re.fullmatch(r"[.,;:)]", words[i + 1])) else "")
            before = " "
    return result.strip()


def mdoc(text: str) -> Iterator[Paragraph]:
    paragraph: Paragraph = []
    literal = False
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = re.findall(r'"[^"]*"|\S+', line[1:]) if line.startswith(".") else []
        name = words[0] if words else ""
        if name in MDOC_BREAKS and paragraph:
            yield paragraph
            paragraph = []
        section = line[4:] if name == "Sh" else section
        literal = (literal or (name == "Bd" and "-literal" in words)) and name != "Ed"
        if literal or name in MDOC_NO_PROSE or name.startswith("\\") or section in ("SYNOPSIS", "SEE ALSO"):
            continue
        paragraph.append((number, plain_mdoc(words) if words else line))
        if name in ("Sh", "Ss", "Nd") or re.search(r"[.!?]\)?$", paragraph[-1][1]):  # in mdoc a sentence ends with its line
            yield paragraph
            paragraph = []
    if paragraph:
        yield paragraph


def texts(text: str) -> Iterator[Paragraph]:
    """The values of a JSON file that has one on each line."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r'\s*"[^"]+": ("(?:[^"\\]|\\.)*"),?$', line):
            yield [(number, json.loads(match[1]))]


class Collector:
    """Joins comments on consecutive lines, and adjacent strings, to paragraphs."""

    def __init__(self) -> None:
        self.done: list[Paragraph] = []
        self.open: Paragraph = []
        self.kind = ""

    def add(self, kind: str, number: int, text: str, joined: bool) -> None:
        if not joined or kind != self.kind:
            self.end()
        self.kind = kind
        self.open.append((number, text))

    def comment(self, number: int, text: str, joined: bool) -> None:
        text = text.lstrip("/!<*#")
        if not text.strip(" -*=#") or re.match(r" {4}", text):  # a blank line, or code of an example
            self.end()
        else:
            item = re.match(r"\s*([-*]|\d+\.|@\w+) ", text)
            self.add("comment", number, text.strip(), joined and not item and bool(self.open))

    def string(self, number: int, text: str, joined: bool) -> None:
        if joined or len(text.split()) > 1:
            self.add("string", number, text, joined)

    def end(self) -> None:
        if self.open:
            self.done.append(self.open)
        self.open = []


def c_like(text: str) -> Iterator[Paragraph]:
    found = Collector()
    line, counted, after = 1, 0, 0
    for match in C_TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        between = text[after : match.start()]
        joined = not between.strip() and between.count("\n") <= 1
        after = match.end()
        for kind in ("block", "markup"):
            if match[kind] is not None:
                found.end()
                for i, said in enumerate(match[kind].split("\n")):
                    found.comment(line + i, said.strip().lstrip("*"), i > 0)
        if match["line"] is not None and (match.start() == 0 or text[match.start() - 1] in " \t\n/"):
            found.comment(line, match["line"], joined)
        for kind in ("double", "single", "template"):
            if match[kind] is not None:
                found.string(line, match[kind], joined)
    found.end()
    yield from found.done


def hash_comments(text: str) -> Iterator[Paragraph]:
    found = Collector()
    last = -1
    for number, line in enumerate(text.splitlines(), 1):
        if (match := re.search(r"(?:^|\s)#(?!!)(?:\s(.*))?$", line)) and match[1] is not None:
            found.comment(number, " " + match[1], number == last + 1 and not line[: match.start()].strip())
            last = number
    found.end()
    yield from found.done


def python(text: str) -> Iterator[Paragraph]:
    found = Collector()
    last, last_kind = -1, -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            found.comment(number, token.string, last_kind == token.type and number == last + 1 and not token.line[: token.start[1]].strip())
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            said = re.sub(r"^\w*('''|\"\"\"|'|\")(.*)\1$", r"\2", token.string, flags=re.DOTALL)
            if "\n" in said:
                found.end()
                for i, piece in enumerate(said.split("\n")):
                    found.comment(number + i, piece.strip(), i > 0)
                found.end()
            else:
                found.string(number, said, last_kind == token.type)
        elif token.type in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            continue
        last, last_kind = number, token.type
    found.end()
    yield from found.done


def reader(path: str, text: str) -> Callable[[str], Iterator[Paragraph]] | None:
    """How to read a file's prose; None for a file without."""
    ending = path.rpartition(".")[2]
    if ending == "md":
        return markdown
    if re.fullmatch(r"[1-9]", ending):
        return mdoc
    if path.endswith("/en.json"):
        return texts
    if ending in {"cpp", "hpp", "ts", "mjs", "js", "svelte", "css"}:
        return c_like
    if ending == "py" or text.startswith(("#!/usr/bin/env python3", "#!/usr/bin/python3")):
        return python
    if ending in {"cmake", "sh", "supp"} or path.endswith(("Makefile", "CMakeLists.txt")) or text.startswith("#!"):
        return hash_comments
    return None
