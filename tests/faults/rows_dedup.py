"""dedup: no line is lost. The output of all runs together has every distinct line; after a kill, some may occur twice."""

import random

from folder import Broken, Call, End, Folder
from promises import Prints, Row
from rows import AT_NOW, NOW, WINDOW, nothing
from support import cut, first_occurrences, keys, text

DISTINCT = [line + b"." for line in keys(15_000, "a-line-of-the-input")]  # the beginning of one is no other one
SEEN = DISTINCT[::5]  # by an earlier run
RATE = ("-p", "1e-9")  # no line is dropped by chance


def input_lines() -> list[bytes]:
    """Every line at least once, a third of them twice, in no order."""
    lines = DISTINCT + DISTINCT[::3]
    random.Random(1).shuffle(lines)
    return lines


class Remembers(Row):
    """dedup --state FILE >> out. `existing` are the options of an earlier run, `now` those of `check`."""

    def __init__(self, name: str, lines: str, options: tuple[object, ...], existing: tuple[object, ...] | None = None,
                 now: tuple[object, ...] = ()) -> None:
        call = Call(("dedup", "-q", "--state", "s", *options, lines), output="out", appends=True)
        super().__init__(name, call, self.see if existing is not None else nothing)
        self.lines = lines
        self.now = now
        self.first = existing
        self.expected = set(DISTINCT)

    def see(self, folder: Folder) -> None:
        seen = folder.keep("seen", SEEN)
        folder.succeed("dedup", "-q", "--state", "s", *self.first, seen)
        self.expected = set(DISTINCT) - set(SEEN)

    def study(self, after: Folder) -> None:
        self.complete(after, 0)
        if len(cut(after.read("out"))) != len(self.expected):
            raise Broken("undisturbed: a line is there twice")

    def intact(self, folder: Folder, step: int) -> int:
        """What the state has forgotten goes out again; what it remembers has to be there."""
        whole = set((folder.read("out") or b"").split(b"\n")[:-1])
        if not folder.has("s"):
            if self.first is not None:
                raise Broken("the state is gone")
            return step
        found = folder.run(Call(("check", *self.now, "s", self.lines)))
        if found.status not in (0, 1):
            raise Broken(f"the state does not open: {found.err.strip()}")
        silent = set(cut(found.out)) & self.expected - whole
        if silent:
            raise Broken(f"the state has {len(silent)} lines that the output lacks, among them {min(silent).decode()}")
        return step

    def judge(self, folder: Folder, step: int, end: End, message_expected: bool = True) -> int:
        """After SIGINT and SIGTERM alone no line is there twice."""
        was_finished = not self.unfinished
        reached = super().judge(folder, step, end, message_expected)
        if end.signal in (2, 15) and was_finished and step == 0:
            again = Folder(folder.base, "again")
            again.copy_of(folder)
            again.run(self.call)
            printed = cut(again.read("out") or b"")
            if len(printed) != len(set(printed)):
                raise Broken(f"after a signal {len(printed) - len(set(printed))} lines are there twice")
        return reached

    def closed(self, folder: Folder, step: int) -> None:
        if folder.has("s") and b'"clean":false' in folder.succeed("info", "--json", "--check", "--queries", 0, "s").out:
            raise Broken("the state was not closed")

    def complete(self, folder: Folder, step: int) -> None:
        printed = cut(folder.read("out") or b"")
        lost = self.expected.difference(printed)
        if lost:
            raise Broken(f"{len(lost)} of {len(self.expected)} lines are lost, among them {min(lost).decode()}")
        strange = set(printed) - self.expected
        torn = [line for line in strange if not any(whole.startswith(line) for whole in self.expected)]
        if torn:
            raise Broken(f"the output has a line that is not in the input: {torn[0]!r}")
        self.closed(folder, step)
        missing = folder.missing("s", self.lines, *self.now)
        if missing:
            raise Broken(f"the state lacks {len(missing)} lines after exit status 0")

    def finish(self, folder: Folder, step: int) -> None:
        before = folder.read("out")
        folder.run(self.call)
        if folder.read("out") != before:
            raise Broken("a third run prints lines again")


def rows(folder: Folder) -> list[Row]:
    lines = folder.keep("lines", input_lines())
    once = text(first_occurrences(input_lines()))
    window = (*RATE, *WINDOW, "-n", 300_000)
    later = ("--now", NOW + 9)

    def prints(name: str, *options: object, more: dict[str, bytes] | None = None, **call) -> Row:
        arguments = ("dedup", "-q", *options) if call else ("dedup", "-q", *options, lines)
        return Prints(name, Call(arguments, output="out", **call), {"out": once} | (more or {}))

    def remembers(name: str, *options: object, existing: bool = False) -> Row:
        return Remembers(name, lines, () if existing else options, options if existing else None)

    return [
        prints("dedup", *RATE),
        prints("dedup, from a pipe", *RATE, piped=lines),
        prints("dedup --exact", "--exact"),
        prints("dedup --exact, from a pipe", "--exact", piped=lines),
        prints("dedup --suspects", *RATE, "--suspects", "suspects", more={"suspects": text(repetitions())}),
        remembers("dedup --state", *RATE, "-n", 30_000),
        remembers("dedup --state, existing", *RATE, "-n", 30_000, existing=True),
        remembers("dedup --state --grow", *RATE, "--grow"),
        remembers("dedup --state --grow, existing", *RATE, "--grow", existing=True),
        Remembers("dedup --state --window", lines, window, now=AT_NOW),
        Remembers("dedup --state --window, existing", lines, later, window, later),
    ]


def repetitions() -> list[bytes]:
    seen: set[bytes] = set()
    again = []
    for line in input_lines():
        if line in seen:
            again.append(line)
        seen.add(line)
    return again
