"""The stateful verbs on a filter on Redis: the client is disturbed, the server is not.

One server serves all rows. A round begins with the keys that the server had when the row was prepared.
"""

import re
import unittest
from collections.abc import Callable

from folder import Broken, Call, End, Folder
from promises import Inserts, Replaces, Row, bits_of
from redis_server import RedisServer, program
from rows import SIZE, Keys, has, nothing, several
from support import cut, keys

SERVERS: list[RedisServer] = []
SKIPPED: list[str] = []  # why there are no rows
MOST_UNPRINTED = (256 << 10) + 100  # bytes of a batch and its last line: remembered by a killed dedup, and not printed
WAIT = ("--timeout", "5s")


def server() -> RedisServer:
    if not SERVERS:
        SERVERS.append(RedisServer())
    return SERVERS[0]


def end_server() -> None:
    while SERVERS:
        SERVERS.pop().end()


class Shared(Row):
    """A row whose state is on the server, too."""

    def begin(self, folder: Folder) -> None:
        super().begin(folder)
        if not hasattr(self, "on_server"):  # after prepare()
            client = server().client
            self.on_server = {key: client("DUMP", key) for key in client("KEYS", "*")}
        server().client("FLUSHALL")
        for key, value in self.on_server.items():
            server().client("RESTORE", key, 0, value)

    def learn(self, base: str) -> None:
        server().client("FLUSHALL")
        super().learn(base)

    def names(self, folder: Folder) -> set[str]:
        """The files and the server's keys. The filter's own instance, whose number is random, is called EPOCH.

        All layers of a shard count as one: a client that dies leaves the count too high, and the shard grows a little early.
        """
        found = {key.decode() for key in server().client("KEYS", "*")}
        description = server().client("GET", "{f}:m")
        epoch = re.search(rb"(?m)^instance=f~([0-9a-f]+)", description or b"")
        own = f"~{epoch[1].decode()}:" if epoch else "~none:"
        return super().names(folder) | {re.sub(r"}:\d+c?$", "}:LAYER", f"redis {name.replace(own, '~EPOCH:')}") for name in found}


class SharedInserts(Shared, Inserts):
    """Its filter is on the server. It may be absent if no run before has made it."""

    def intact(self, folder: Folder, step: int) -> int:
        if self.old:
            return super().intact(folder, step)
        return step

    def study(self, after: Folder) -> None:
        self.bits: bytes | None = None
        self.complete(after, 0)

    def complete(self, folder: Folder, step: int) -> None:
        for file, which in (self.old, "of earlier runs"), (self.new, "of this run"):
            if file:
                folder.must_have(self.filter, file, f"of the keys {which}")
        if not self.same_bits:  # it grows, and cannot be pulled
            return
        pulled = Folder(folder.base, "pulled")
        pulled.succeed("pull", "-q", "-o", "f", self.filter)
        bits = bits_of(pulled, "f")
        if self.bits is None:
            pulled.succeed("info", "--json", "--check", "f")
            self.bits = bits
        elif self.same_bits and bits != self.bits:
            raise Broken("other bits than those of an undisturbed run")

    def finish(self, folder: Folder, step: int) -> None:
        return None

    def closed(self, folder: Folder, step: int) -> None:
        return None


class SharedRemoves(SharedInserts):
    """remove: keys that were not to be removed stay; a run after a disturbed one finds some keys gone already."""

    def __init__(self, name: str, address: str, k: Keys, prepare: Callable[[Folder], None]) -> None:
        call = Call(("remove", "-q", *WAIT, address, k.few), one_thread=False)
        super().__init__(name, call, prepare, k.old, "", filter=address)
        self.removed = k.few

    def judge(self, folder: Folder, step: int, end: End, message_expected: bool = True) -> int:
        if end.status == 1:
            end = End(0, end.err, end.out)
        return super().judge(folder, step, end, message_expected)

    def run_next(self, folder: Folder, step: int) -> None:
        end = folder.run(self.call)
        if end.status not in (0, 1):
            raise Broken(f"the next run: exit status {end.status}: {end.err.strip()}")
        self.complete(folder, step)
        self.tidy(folder, self.files_after)

    def complete(self, folder: Folder, step: int) -> None:
        super().complete(folder, step)
        gone = len(folder.missing(self.filter, self.removed))
        if gone != 2000:
            raise Broken(f"{2000 - gone} of 2000 removed keys are still there")


class SharedMakesAgain(SharedInserts):
    """redis replace: the filter has all old keys or all new ones. The next run, and then gc, take away what is left."""

    def __init__(self, name: str, address: str, k: Keys, prepare: Callable[[Folder], None]) -> None:
        call = Call(("redis", "replace", "-q", *WAIT, address, k.new), one_thread=False)
        super().__init__(name, call, prepare, "", k.new, filter=address)
        self.before_it = k.old

    def intact(self, folder: Folder, step: int) -> int:
        if not folder.missing(self.filter, self.new):
            return step + 1
        missing = folder.missing(self.filter, self.before_it)
        if missing:
            raise Broken(f"neither all new keys nor all old ones: {len(missing)} of these are missing")
        return step

    def tidy_if_it_can(self, folder: Folder) -> None:
        if self.can_tidy and not self.connection_broken:
            super().tidy(folder, self.files_before | self.files_after)

    def tidy(self, folder: Folder, allowed: set[str]) -> None:
        folder.succeed("redis", "gc", "--yes", "--min-idle", 0, self.filter)
        super().tidy(folder, allowed)


class SharedReplaces(Shared, Replaces):
    """pull: the server's filter becomes a file."""


class SharedWindow(SharedReplaces):
    """pull of a sliding-window filter: the header of the file, which has the time of the pull, is not compared."""

    def state(self, folder: Folder) -> dict[str, bytes | None]:
        old = super().state(self.before)
        return {name: data if data in (old[name], None) else data[4096:] for name, data in super().state(folder).items()}


class SharedRemembers(Shared):
    """dedup --state ADDRESS >> out: no line goes out twice, and a killed run loses at most 256 KiB of lines.

    So does a run whose connection breaks: keys that are sent again are not told from those of another client.
    """

    def __init__(self, name: str, address: str, options: tuple[object, ...], existing: bool) -> None:
        arguments = ("dedup", "-q", *WAIT, "--state", address, *options, "../long-lines")
        super().__init__(name, Call(arguments, output="out", appends=True, one_thread=False), self.see)
        self.address, self.options, self.existing = address, options, existing
        self.lines = [line + b"." for line in keys(15_000, "a-line-so-long-that-a-killed-run-cannot-lose-all-of-them")]
        self.allowed = 0

    def see(self, folder: Folder) -> None:
        folder.keep("long-lines", self.lines + self.lines[::3])
        self.expected = set(self.lines)
        if self.existing:
            folder.keep("long-seen", self.lines[::5])
            folder.succeed("dedup", "-q", "--state", self.address, *self.options, "../long-seen")
            self.expected = set(self.lines) - set(self.lines[::5])

    def begin(self, folder: Folder) -> None:
        super().begin(folder)
        self.allowed = 0

    def study(self, after: Folder) -> None:
        self.complete(after, 0)

    def judge(self, folder: Folder, step: int, end: End, message_expected: bool = True) -> int:
        if end.signal == 9 or end.status == 2 or self.connection_broken:
            self.allowed += MOST_UNPRINTED
        return super().judge(folder, step, end, message_expected)

    def intact(self, folder: Folder, step: int) -> int:
        printed = (folder.read("out") or b"").split(b"\n")[:-1]
        if len(printed) != len(set(printed)):
            raise Broken(f"{len(printed) - len(set(printed))} lines went out twice")
        return step

    def complete(self, folder: Folder, step: int) -> None:
        self.intact(folder, step)
        printed = cut(folder.read("out") or b"")
        lost = self.expected.difference(printed)
        if sum(len(line) + 1 for line in lost) > self.allowed:
            raise Broken(f"{len(lost)} of {len(self.expected)} lines are lost, among them {min(lost).decode()}")
        missing = folder.missing(self.address, "../long-lines")
        if missing:
            raise Broken(f"the state lacks {len(missing)} lines after exit status 0")


def rows(k: Keys) -> list[Row]:
    try:
        program()
    except unittest.SkipTest as skipped:
        print(f"SKIP the rows on Redis: {skipped}")
        SKIPPED.append(str(skipped))
        return []
    f = server().address("f")
    build = ("build", "-q", "-o", f, "-n", 20_000, "-p", "1e-9")
    fixed = (*SIZE, "--layout", "split_block512")
    local = several(("build", "-q", "-o", "a", *fixed, k.new))
    same_kind = several(("build", "-q", "-o", f, *fixed, k.old), ("pull", "-q", "-o", "p", f), ("build", "-q", "-o", "b", *fixed, k.new))
    counting = several((*build, "--counting", k.old), ("add", "-q", f, k.few))
    window = several(("build", "-q", "-o", f, "--window", "7d", "-n", 100_000, k.new), ("build", "-q", "-o", "f", *SIZE, k.old))
    over_old = several((*build, k.new), ("build", "-q", "-o", "f", *SIZE, k.old))

    def inserts(name: str, arguments: tuple[object, ...], prepare: Callable[[Folder], None], old: str, **options) -> Row:
        return SharedInserts(name, Call((*arguments, *WAIT), one_thread=False), prepare, old, k.new, filter=f, **options)

    def pulls(name: str, prepare: Callable[[Folder], None], row: type[SharedReplaces] = SharedReplaces) -> Row:
        call = Call(("pull", "-q", *WAIT, "-o", "f", f), one_thread=False)
        return row(name, call, ["f"], prepare, has("f", k.new, k.other))

    def remembers(name: str, *options: object, existing: bool = False) -> Row:
        return SharedRemembers(name, f, (*options, "-p", "1e-9"), existing)

    return [
        inserts("build, on Redis", (*build, k.new), nothing, ""),
        inserts("build --grow, on Redis", ("build", "-q", "-o", f, "--grow", "-n", 1000, k.new), nothing, "", same_bits=False),
        inserts("add, on Redis", ("add", "-q", f, k.new), several((*build, k.old)), k.old),
        SharedRemoves("remove, on Redis", f, k, counting),
        SharedMakesAgain("redis replace, on Redis", f, k, several((*build, k.old))),
        inserts("push, on Redis", ("push", "-q", "a", f), local, ""),
        inserts("push, on Redis, into a filter", ("push", "-q", "b", f), same_kind, k.old),
        inserts("union, on Redis", ("union", "-q", "-o", f, "b", "p"), same_kind, k.old),
        pulls("pull, on Redis", several((*build, k.new))),
        pulls("pull, on Redis, over an old file", over_old),
        pulls("pull, on Redis, of a window", window, SharedWindow),
        remembers("dedup --state, on Redis", "-n", 30_000),
        remembers("dedup --state, on Redis, existing", "-n", 30_000, existing=True),
        remembers("dedup --state --grow, on Redis", "--grow", "-n", 1000),
    ]
