"""The folder of one round: the files that a command works on, its exit, and the contents of the files afterwards.

Keys and messages are kept outside the folder, so that every file in it belongs to the command.
"""

import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from support import COMMAND, cut, text, to_text

F_SETPIPE_SZ = 1031
LARGEST_PIPE = 1 << 20  # bytes; what every user may ask for
LONGEST_RUN = 60  # seconds


class Broken(Exception):
    """A promise that was not kept."""


@dataclass(frozen=True)
class Call:
    """A command with its standard streams."""

    arguments: tuple[object, ...]
    piped: str = ""  # a file outside the folder that comes by a pipe
    output: str = ""  # the file in the folder that takes standard output
    appends: bool = False  # `>>`, not `>`
    one_thread: bool = True  # it has the option -j


@dataclass(frozen=True)
class End:
    """How a command ended."""

    status: int
    err: str
    out: bytes = b""
    seconds: float = 0.0

    @property
    def signal(self) -> int:
        return -self.status if self.status < 0 else 0

    def has_message(self) -> bool:
        return re.search(r"^bloomery: \S", self.err, re.MULTILINE) is not None


class Folder:
    """`base` holds the folder itself, and beside it keys, messages and traces."""

    def __init__(self, base: str, name: str = "work") -> None:
        self.base = base
        self.path = os.path.join(base, name)
        self.temporary = os.path.join(self.path, "tmp")  # TMPDIR: what is left in it counts, too
        self.make()

    def make(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.temporary)

    def copy_of(self, other: "Folder") -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(other.path, self.path, dirs_exist_ok=True)  # it stays if something is mounted there

    # ---- files -------------------------------------------------------------------------------------------------------

    def at(self, name: str) -> str:
        return os.path.join(self.path, name)

    def beside(self, name: str) -> str:
        return os.path.join(self.base, name)

    def names(self) -> set[str]:
        """All files, those of folders below included.

        Not empty ones in TMPDIR: where there are no nameless files, a kill may come between the making of a temporary file
        and the removal of its name.
        """
        found = {os.path.join(at, name) for at, _, names in os.walk(self.path) for name in names}
        return {os.path.relpath(path, self.path) for path in found if not (path.startswith(self.temporary) and os.path.getsize(path) == 0)}

    def has(self, name: str) -> bool:
        return os.path.exists(self.at(name))

    def read(self, name: str) -> bytes | None:
        try:
            with open(self.at(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def keep(self, name: str, lines: Iterable[bytes]) -> str:
        """A file of lines outside the folder; returns its path."""
        path = self.beside(name)
        with open(path, "wb") as file:
            file.write(text(lines))
        return path

    # ---- the command -------------------------------------------------------------------------------------------------

    def run(self, call: Call, wrap: Iterable[str] = (), disturb: Callable[[int], None] | None = None) -> End:
        """Runs the command to its end. `disturb` is called with a descriptor of the process once it has started."""
        arguments = [*wrap, COMMAND, *map(str, call.arguments)]
        output = self.at(call.output) if call.output else self.beside("out")
        mode = "ab" if call.appends else "wb"
        stdin = pipe_of(call.piped) if call.piped else subprocess.DEVNULL
        environment = dict(os.environ, TMPDIR=self.temporary)
        with open(output, mode) as out, open(self.beside("err"), "wb+") as err:
            began = time.monotonic()
            process = subprocess.Popen(arguments, cwd=self.path, env=environment, stdin=stdin, stdout=out, stderr=err)
            if call.piped:
                os.close(stdin)
            watch = os.pidfd_open(process.pid)
            try:
                if disturb:
                    disturb(watch)
                if not ended(watch, LONGEST_RUN):
                    raise Broken(f"it does not end within {LONGEST_RUN} s: {' '.join(arguments)}")
            finally:
                if not ended(watch, 0):
                    process.kill()
                os.close(watch)
                status = process.wait()
            seconds = time.monotonic() - began
            err.seek(0)
            message = to_text(err.read())
        if call.output:
            return End(status, message, seconds=seconds)
        with open(output, "rb") as file:
            return End(status, message, file.read(), seconds)

    def succeed(self, *arguments: object, status: int = 0, **options) -> End:
        """A run that nothing disturbs."""
        end = self.run(Call(arguments, **options))
        if end.status != status:
            raise Broken(f"bloomery {' '.join(map(str, arguments))}: exit status {end.status}, expected {status}: {end.err.strip()}")
        return end

    # ---- lookups, by `check` -----------------------------------------------------------------------------------------

    def missing(self, name: str, keys_file: str, *options: object) -> list[bytes]:
        """The keys that the filter certainly lacks."""
        end = self.run(Call(("check", "-v", *options, name, keys_file)))
        if end.status not in (0, 1):
            raise Broken(f"check {name}: exit status {end.status}: {end.err.strip()}")
        return cut(end.out)

    def must_have(self, name: str, keys_file: str, which: str, *options: object) -> None:
        missing = self.missing(name, keys_file, *options)
        if missing:
            raise Broken(f"{name} lacks {len(missing)} {which}, among them {missing[0].decode()}")


def ended(process: int, seconds: float) -> bool:
    """Waits until the process has ended, but not longer than this."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def pipe_of(path: str) -> int:
    """The reading end of a pipe that holds the whole file, and ends."""
    with open(path, "rb") as file:
        data = file.read()
    reading, writing = os.pipe()
    fcntl.fcntl(writing, F_SETPIPE_SZ, LARGEST_PIPE)
    os.set_blocking(writing, False)
    assert os.write(writing, data) == len(data), "more than a pipe holds"
    os.close(writing)
    return reading


def send(process: int, number: signal.Signals) -> None:
    """A signal to a process by its descriptor, unless it has ended."""
    try:
        signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        pass
