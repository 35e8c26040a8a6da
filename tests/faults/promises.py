"""The promises of each verb, as code: a row prepares files, has a command, and checks the files of a disturbed run.

  Row          the steps of a round, and the checks for all verbs
  Replaces     verbs whose files are the complete old or the complete new ones: build, union, fold, remove, ...
  Inserts      verbs that change a file in place, which always has the keys of earlier runs: add, rebuild
  Prints       verbs whose results are lines, which the next run prints completely: dedup

The reference never comes from the tested run: it is a set of keys, or a filter that undisturbed commands built from them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from folder import Broken, Call, End, Folder

DONE, REFUSED, PROMISE_NOT_KEPT = 0, 2, 3


@dataclass
class Disturbance:
    """What happens in a round: in words, and as runs, one after the other."""

    words: str
    runs: list[Callable[[], End]]
    messages: bool = True  # standard error can be written
    breaks_connection: bool = False
    can_tidy: bool = True  # files can be removed and renamed


class Row:
    """One stateful verb. Step i is the state after i whole runs of the command."""

    def __init__(self, name: str, call: Call, prepare: Callable[[Folder], None] = lambda folder: None) -> None:
        self.name = name
        self.call = call
        self.prepare = prepare
        self.before: Folder  # the files before the first run
        self.files_before: set[str] = set()
        self.files_after: set[str] = set()

    def learn(self, base: str) -> None:
        """Prepares the files, and runs the command once undisturbed to see what it does."""
        self.before = Folder(base, "before")
        self.prepare(self.before)
        self.files_before = self.names(self.before)
        self.reference = Folder(base, "reference")
        self.begin(self.reference)
        end = self.reference.run(self.call)
        if end.status != DONE:
            raise Broken(f"undisturbed: exit status {end.status}: {end.err.strip()}")
        self.files_after = self.names(self.reference)
        self.study(self.reference)

    # What rows define.

    def study(self, after: Folder) -> None:
        """Checks the undisturbed run against the truth, and keeps what later runs are compared with."""
        raise NotImplementedError

    def status(self, step: int) -> int:
        """With which exit status the run after this step ends if nothing disturbs it."""
        return DONE

    def intact(self, folder: Folder, step: int) -> int:
        """Nothing acknowledged is lost. Returns the step that was reached: this one or the next."""
        raise NotImplementedError

    def closed(self, folder: Folder, step: int) -> None:
        """What SIGINT and SIGTERM leave, beyond what a kill may leave."""

    def complete(self, folder: Folder, step: int) -> None:
        """The run that began at this step has done all its work."""
        raise NotImplementedError

    def finish(self, folder: Folder, step: int) -> None:
        """Checks that change the files, after everything else."""

    # The course of a round.

    def begin(self, folder: Folder) -> None:
        folder.copy_of(self.before)
        self.connection_broken, self.can_tidy = False, True
        self.unfinished = False  # whether a run has ended early since the last whole one

    def judge(self, folder: Folder, step: int, end: End, message_expected: bool = True) -> int:
        """Judges what a disturbed run has left; returns the step that was reached.

        A run that fails or is stopped leaves no litter. What an earlier one has left may stay until a run succeeds.
        """
        if end.status in (self.status(step), PROMISE_NOT_KEPT):
            self.complete(folder, step)
            self.tidy_if_it_can(folder)
            self.unfinished = False
            return step + 1
        was_finished, self.unfinished = not self.unfinished, True
        if end.signal == 9:
            return self.intact(folder, step)
        if end.signal in (2, 15):
            if was_finished:
                self.tidy_if_it_can(folder)
                self.closed(folder, step)
            return self.intact(folder, step)
        if end.status != REFUSED:
            raise Broken(f"exit status {end.status}: {end.err.strip()[-500:]}")
        if message_expected and not end.has_message():
            raise Broken(f"it failed without a message: '{end.err.strip()}'")
        if was_finished:
            self.tidy_if_it_can(folder)
        return self.intact(folder, step)

    def run_next(self, folder: Folder, step: int) -> None:
        """The same command again: it succeeds, its files are complete, and there are no other files."""
        end = folder.run(self.call)
        if end.status != self.status(step):
            raise Broken(f"the next run: exit status {end.status}, expected {self.status(step)}: {end.err.strip()[-500:]}")
        try:
            self.complete(folder, step)
            self.tidy(folder, self.files_after)
            absent = self.files_after - self.names(folder)
            if absent:
                raise Broken(f"no {', '.join(sorted(absent))}")
            self.finish(folder, step)
        except Broken as broken:
            raise Broken(f"after the next run: {broken}") from None

    def names(self, folder: Folder) -> set[str]:
        """Everything that the command may have made."""
        return folder.names()

    def tidy_if_it_can(self, folder: Folder) -> None:
        if self.can_tidy:
            self.tidy(folder, self.files_before | self.files_after)

    def tidy(self, folder: Folder, allowed: set[str]) -> None:
        litter = self.names(folder) - allowed
        if litter:
            raise Broken(f"litter: {', '.join(sorted(litter))}")


class Replaces(Row):
    """Its files are replaced whole, and the same run always makes the same bytes.

    `truth` is given the folder after the first run, and checks the new files against sets of keys.
    """

    def __init__(self, name: str, call: Call, files: list[str], prepare: Callable[[Folder], None], truth: Callable[[Folder], None]) -> None:
        super().__init__(name, call, prepare)
        self.files = files
        self.truth = truth
        self.states: list[dict[str, bytes | None]] = []
        self.statuses: list[int] = []

    def state(self, folder: Folder) -> dict[str, bytes | None]:
        return {name: folder.read(name) for name in self.files}

    def study(self, after: Folder) -> None:
        self.states = [self.state(self.before), self.state(after)]
        self.statuses = [DONE]
        self.truth(after)
        if self.state(after) != self.states[1]:
            raise Broken("looking at the files changed them")

    def know(self, step: int) -> None:
        while len(self.states) <= step + 1:
            self.statuses.append(self.reference.run(self.call).status)
            self.states.append(self.state(self.reference))

    def status(self, step: int) -> int:
        if step > 0:
            self.know(step)
        return self.statuses[step]

    def intact(self, folder: Folder, step: int) -> int:
        self.know(step)
        state = self.state(folder)
        if state == self.states[step]:
            return step
        if state == self.states[step + 1]:
            return step + 1
        sizes = ", ".join(f"{name}: {'absent' if data is None else f'{len(data)} bytes'}" for name, data in state.items())
        raise Broken(f"neither the old files nor the new ones: {sizes}")

    def complete(self, folder: Folder, step: int) -> None:
        self.know(step)
        if self.state(folder) != self.states[step + 1]:
            raise Broken("other files than those of an undisturbed run")


class Inserts(Row):
    """Its filter always has the keys of earlier runs, and after a whole run those of this one too.

    old, new      files of keys outside the folder
    same_bits     compare the filter's bits with those that the undisturbed run made
    options       of `check`
    rebuilt       of a filter with a log: the arguments of a rebuild and of a build from all keys that give the same bits
    """

    def __init__(self, name: str, call: Call, prepare: Callable[[Folder], None], old: str, new: str, filter: str = "f",
                 same_bits: bool = True, rebuilt: tuple[str, ...] = (), options: tuple[object, ...] = ()) -> None:
        super().__init__(name, call, prepare)
        self.filter = filter
        self.options = options
        self.old, self.new = old, new
        self.same_bits = same_bits
        self.rebuilt = rebuilt

    def study(self, after: Folder) -> None:
        self.bits = bits_of(after, self.filter)
        self.bits_of_all: bytes | None = None
        if self.rebuilt:
            scratch = Folder(self.before.base, "scratch")
            all_keys = scratch.beside("all")
            with open(all_keys, "wb") as out:
                for part in self.old, self.new:
                    with open(part, "rb") as file:
                        out.write(file.read())
            scratch.succeed("build", "-q", "-o", "all", *self.rebuilt, all_keys)
            self.bits_of_all = bits_of(scratch, "all")
        self.complete(after, 0)
        self.finish(after, 0)

    def intact(self, folder: Folder, step: int) -> int:
        folder.must_have(self.filter, self.old, "of the keys of earlier runs", *self.options)
        return step

    def closed(self, folder: Folder, step: int) -> None:
        if b'"clean":false' in folder.succeed("info", "--json", "--check", "--queries", 0, self.filter).out.replace(b" ", b""):
            raise Broken(f"{self.filter} was not closed")

    def complete(self, folder: Folder, step: int) -> None:
        folder.must_have(self.filter, self.old, "of the keys of earlier runs", *self.options)
        folder.must_have(self.filter, self.new, "of the keys of this run", *self.options)
        self.closed(folder, step)
        if self.same_bits and bits_of(folder, self.filter) != self.bits:
            raise Broken("other bits than those of an undisturbed run")

    def finish(self, folder: Folder, step: int) -> None:
        if self.bits_of_all is None:
            return
        folder.succeed("rebuild", "-q", self.filter, *self.rebuilt)
        if bits_of(folder, self.filter) != self.bits_of_all:
            raise Broken("the log gives other bits than all keys do")


class Prints(Row):
    """A command with results on standard output and in files that each run rewrites; the next run prints all of them."""

    def __init__(self, name: str, call: Call, expected: dict[str, bytes], prepare: Callable[[Folder], None] = lambda folder: None) -> None:
        super().__init__(name, call, prepare)
        self.expected = expected

    def study(self, after: Folder) -> None:
        self.complete(after, 0)

    def intact(self, folder: Folder, step: int) -> int:
        for name, data in self.expected.items():
            if not data.startswith(folder.read(name) or b""):
                raise Broken(f"{name} is not the beginning of the right result")
        return step

    def complete(self, folder: Folder, step: int) -> None:
        for name, data in self.expected.items():
            found = folder.read(name)
            if found != data:
                raise Broken(f"{name}: {len(found or b'')} bytes, expected {len(data)}")


def bits_of(folder: Folder, name: str) -> bytes:
    """The filter's own bytes, without header and checksums."""
    file = folder.read(name)
    if file is None:
        raise Broken(f"no {name}")
    return file[4096:][: -(-int.from_bytes(file[128:136], "little") // 8)]
