"""The stateful verbs on files, one row each. dedup is in rows_dedup.py, filters on Redis are in rows_redis.py.

`old` are keys of earlier runs, `new` are keys of the disturbed run, and `other` are in no filter.
"""

import os
from collections.abc import Callable

from folder import Broken, Call, Folder
from promises import DONE, REFUSED, Inserts, Replaces, Row
from support import Counters, keys

OLD, NEW, OTHER = keys(3000, "of-an-earlier-run"), keys(12_000, "of-this-run"), keys(5000, "of-no-run")
NOW = 1_700_000_000  # seconds since 1970: the time of all windows
AT_NOW = ("--now", NOW)
WINDOW = ("--window", "7d", *AT_NOW)
SIZE = ("-n", 20_000, "-p", "0.1%")
LOGGED = ("build", "-q", "--grow", "-o", "f")
COPIES = 4


class Keys:
    """Files of keys beside all folders."""

    def __init__(self, folder: Folder) -> None:
        self.old = folder.keep("old", OLD)
        self.new = folder.keep("new", NEW)
        self.other = folder.keep("other", OTHER)
        self.repeated = folder.keep("repeated", OLD * 40)
        self.few = folder.keep("few", NEW[:2000])


def has(filter: str, keys_file: str, other: str = "", most: int = 50, options: tuple[object, ...] = ()) -> Callable[[Folder], None]:
    """The filter has all these keys, and hardly any of the others."""

    def check(folder: Folder) -> None:
        missing = folder.missing(filter, keys_file, *options)
        if missing:
            raise Broken(f"undisturbed: {filter} lacks {len(missing)} keys")
        found = len(OTHER) - len(folder.missing(filter, other, *options)) if other else 0
        if found > most:
            raise Broken(f"undisturbed: {filter} has {found} of {len(OTHER)} keys that were never inserted")
        folder.succeed("info", "--json", "--check", "--queries", 0, filter)

    return check


def all_of(*checks: Callable[[Folder], None]) -> Callable[[Folder], None]:
    def check(folder: Folder) -> None:
        for one in checks:
            one(folder)

    return check


def made(*arguments: object) -> Callable[[Folder], None]:
    """Prepares by one run of the command."""
    return several(arguments)


def several(*steps: tuple[object, ...]) -> Callable[[Folder], None]:
    def prepare(folder: Folder) -> None:
        for step in steps:
            folder.succeed(*step)

    return prepare


def nothing(_: Folder) -> None:
    return None


# ---- rows with their own checker -------------------------------------------------------------------------------------


class BuildsLog(Row):
    """build --grow: two files, whose log has a random number. Readers find all old keys or all new ones at any moment."""

    def __init__(self, name: str, k: Keys, replaces: bool) -> None:
        prepare = made("build", "-q", "--grow", "-o", "f", k.old) if replaces else nothing
        super().__init__(name, Call(("build", "-q", "--grow", "-o", "f", k.new)), prepare)
        self.k, self.replaces = k, replaces

    def study(self, after: Folder) -> None:
        rebuilt = ("-n", "15k", "-p", "1%", "--layout", "split_block512")
        self.scratch = Inserts("", self.call, nothing, self.k.new, os.devnull, same_bits=False, rebuilt=rebuilt)
        self.scratch.before = self.before
        after.keep("all", NEW)
        self.scratch.study(after)

    def intact(self, folder: Folder, step: int) -> int:
        if not folder.has("f"):
            if self.replaces:
                raise Broken("the old filter is gone")
            return step
        if not folder.missing("f", self.k.new):
            return step
        if not self.replaces or folder.missing("f", self.k.old):
            raise Broken("neither all old keys nor all new ones are found")
        return step

    def complete(self, folder: Folder, step: int) -> None:
        self.scratch.complete(folder, step)

    def finish(self, folder: Folder, step: int) -> None:
        self.scratch.finish(folder, step)


class MakesSecret(Row):
    """keygen: the file is absent, or a whole key that stays."""

    def __init__(self) -> None:
        super().__init__("keygen", Call(("keygen", "-o", "k"), one_thread=False))
        self.made: bytes | None = None

    def study(self, after: Folder) -> None:
        self.complete(after, 0)

    def status(self, step: int) -> int:
        return REFUSED if step > 0 else DONE

    def intact(self, folder: Folder, step: int) -> int:
        if not folder.has("k"):
            return step
        self.complete(folder, step)
        return step + 1 if step == 0 else step

    def complete(self, folder: Folder, step: int) -> None:
        made = folder.read("k")
        digits = (made or b"").rstrip(b"\n")
        if len(digits) != 32 or set(digits) - set(b"0123456789abcdefABCDEF"):
            raise Broken(f"not a whole key: {made!r}")
        if os.stat(folder.at("k")).st_mode & 0o077:
            raise Broken("other users may read the key")
        if step == 0:
            self.made = made
        elif made != self.made:
            raise Broken("a key that was there has been replaced")


class SplitsNoisily(Row):
    """noisy split: all copies with their keys, or none; the copies have random secrets."""

    def __init__(self, k: Keys) -> None:
        super().__init__("noisy split", Call(("noisy", "split", "-q", "--copies", COPIES, "-o", "m", k.new)))
        self.k = k

    def study(self, after: Folder) -> None:
        self.complete(after, 0)
        other = after.run(Call(("noisy", "check", "-c", "m", "-i", self.k.other)))
        if not abs(int(other.out) - len(OTHER) / 2**COPIES) < 150:  # eight standard deviations
            raise Broken(f"undisturbed: {int(other.out)} of {len(OTHER)} other keys")

    def status(self, step: int) -> int:
        return REFUSED if step > 0 else DONE

    def intact(self, folder: Folder, step: int) -> int:
        if self.files_after <= folder.names() and not folder.has("m.unfinished"):
            self.complete(folder, step)
            return step + 1 if step == 0 else step
        return step

    def complete(self, folder: Folder, step: int) -> None:
        missing = folder.run(Call(("noisy", "check", "-v", "-q", "m", "-i", self.k.new)))
        if missing.status != 1 or (self.files_after and not self.files_after <= folder.names()):
            raise Broken(f"not all copies, or not all keys in them: {missing.err.strip()}")


class BuildsOverLog(Replaces):
    """build over a filter with a log: the filter is replaced whole, and its log is removed after that."""

    def state(self, folder: Folder) -> dict[str, bytes | None]:
        return {"f": folder.read("f")}

    def tidy(self, folder: Folder, allowed: set[str]) -> None:
        """A log that could not be read is not known to belong to the old filter, and stays."""
        super().tidy(folder, allowed if self.can_tidy else allowed | {"f.log"})


def counting_truth(k: Keys, *changes: tuple[str, list[bytes]]) -> Callable[[Folder], None]:
    """The counters are those of a counting filter by the book after these changes."""

    def check(folder: Folder) -> None:
        file = folder.read("f") or b""
        book = Counters(int.from_bytes(file[128:136], "little"), file[136])
        for change, keys in changes:
            getattr(book, change)(keys)
        if file[4096:][: book.bits // 8] != book.bytes:
            raise Broken("undisturbed: other counters than by the book")

    return check


# ---- the rows --------------------------------------------------------------------------------------------------------


def rows(k: Keys) -> list[Row]:
    return [*whole_files(k), *in_place(k), SplitsNoisily(k), MakesSecret()]


def whole_files(k: Keys) -> list[Row]:
    """Verbs whose result replaces a file, or makes one."""
    over_old = made("build", "-q", "-o", "f", *SIZE, k.old)
    counted = ("build", "-q", "--counting", "-o", "f", *SIZE)
    old_a = ("build", "-q", "-o", "a", *SIZE, k.old)
    few_a = ("build", "-q", "-o", "a", *SIZE, k.few)
    new_b = ("build", "-q", "-o", "b", *SIZE, k.new)
    few_f = ("build", "-q", "-o", "f", *SIZE, k.few)
    sparse = ("build", "-q", "-n", 200_000, "--foldable", k.new, "-o")
    has_new, has_new_at_1_percent = has("f", k.new, k.other), has("f", k.new, k.other, 100)
    has_few, has_few_at_1_percent = has("f", k.few, k.other), has("f", k.few, k.other, 100)
    has_both = all_of(has("f", k.old), has_new)
    counts_few = all_of(has_few, counting_truth(k, ("add", NEW[:2000])))
    counts_both, counts_old = counting_truth(k, ("add", OLD), ("add", NEW[:2000])), counting_truth(k, ("add", OLD))

    def row(name: str, arguments: tuple[object, ...], prepare: Callable[[Folder], None], truth: Callable[[Folder], None], **call) -> Row:
        verb, *rest = arguments
        return Replaces(name, Call((verb, "-q", *rest), **call), ["f"], prepare, truth)

    def alone(name: str, arguments: tuple[object, ...], prepare: Callable[[Folder], None], truth: Callable[[Folder], None]) -> Row:
        return row(name, arguments, prepare, truth, one_thread=False)

    over_log = Call(("build", "-q", "-o", "f", *SIZE, k.new))
    return [
        row("build", ("build", "-o", "f", *SIZE, k.new), nothing, has_new),
        row("build, over an old file", ("build", "-o", "f", *SIZE, k.new), over_old, has_new),
        row("build, -n counted", ("build", "-o", "f", k.new), over_old, has_new_at_1_percent),
        row("build, from a pipe", ("build", "-o", "f"), nothing, has_new_at_1_percent, piped=k.new),
        row("build --scheme", ("build", "-o", "f", "--scheme", "guava", k.few), over_old, has_few_at_1_percent),
        row("build --counting", ("build", "--counting", "-o", "f", *SIZE, k.few), over_old, counts_few),
        row("build --window", ("build", *WINDOW, "-o", "f", "-n", 300_000, k.new), nothing, has("f", k.new, k.other, 100, AT_NOW)),
        BuildsLog("build --grow", k, replaces=False),
        BuildsLog("build --grow, over an old filter", k, replaces=True),
        BuildsOverLog("build, over a filter with a log", over_log, ["f"], made(*LOGGED, k.old), has_new),
        row("add --counting", ("add", "f", k.few), made(*counted, k.old), counts_both),
        row("remove", ("remove", "f", k.few), several((*counted, k.old), ("add", "-q", "f", k.few)), counts_old),
        alone("union", ("union", "-o", "f", "a", "b"), several(old_a, new_b), has_both),
        alone("union, over an old file", ("union", "-o", "f", "a", "b"), several(old_a, new_b, few_f), has_both),
        alone("intersect", ("intersect", "-o", "f", "a", "b"), several(few_a, new_b), has_few),
        alone("fold", ("fold", "-o", "f", "large"), made(*sparse, "large"), has_new_at_1_percent),
        alone("fold, over itself", ("fold", "-o", "f", "f", "--times", 1), made(*sparse, "f"), has_new_at_1_percent),
        row("seal", ("seal", "-o", "f", k.new), nothing, has_new),
        row("seal, over an old file", ("seal", "-o", "f", k.new), over_old, has_new),
        row("seal --memory", ("seal", "-q", "--memory", "1B", "-o", "f", k.new), over_old, has_new),
        row("seal, of a log", ("seal", "-o", "f", "logged"), made("build", "-q", "--grow", "-o", "logged", k.new), has_new),
    ]


def in_place(k: Keys) -> list[Row]:
    """Verbs that change a file where it is."""
    later = ("--now", NOW + 9)
    rebuilt = ("-n", "30k", "-p", "1%", "--layout", "split_block512")

    def adds(name: str, prepare: Callable[[Folder], None], options: tuple[object, ...] = (), **more) -> Row:
        return Inserts(name, Call(("add", "-q", *options, "f", k.new)), prepare, k.old, k.new, options=options, **more)

    def rebuilds(name: str, keys_file: str, all_keys: str) -> Row:
        call = Call(("rebuild", "-q", "-n", 40_000, "-p", "1e-4", "f"))
        return Inserts(name, call, made(*LOGGED, keys_file), all_keys, os.devnull, rebuilt=rebuilt)

    def to_log(*arguments: object) -> dict:
        """The log is compared by what it is rebuilt to: when the filter grew may differ."""
        return {"prepare": made(*LOGGED, *arguments), "same_bits": False, "rebuilt": rebuilt}

    return [
        adds("add", made("build", "-q", "-o", "f", *SIZE, k.old)),
        adds("add, classic", made("build", "-q", "-o", "f", *SIZE, "--layout", "classic", k.old)),
        adds("add, to a window", made("build", "-q", *WINDOW, "-o", "f", "-n", 300_000, k.old), later, same_bits=False),
        adds("add, to a log", **to_log("-n", 60_000, k.old)),
        adds("add, to a log that grows", **to_log(k.old)),
        adds("add, to a log full of repetitions", **to_log(k.repeated)),
        rebuilds("rebuild", k.new, k.new),
        rebuilds("rebuild, of a log full of repetitions", k.repeated, k.old),
    ]
