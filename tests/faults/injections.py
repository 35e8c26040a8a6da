"""Faults of system calls, injected by strace: an error, or a kill, at call number N of a kind.

An undisturbed run lists the calls. Calls of the dynamic loader and writes of messages are left out. All runs have one
thread (-j 1), so that call number N is the same in each of them. (strace's --seccomp-bpf would be faster, but then strace
injects no signals.)
"""

import os
import random
import re
import shutil
import subprocess
from dataclasses import dataclass

from folder import Call, Folder
from promises import Disturbance, Row

FULL = ["ENOSPC", "EDQUOT", "EIO"]
ERRORS = {
    "write": [*FULL, "EINTR"],
    "pwrite64": [*FULL, "EINTR"],
    "fsync": ["EIO", "ENOSPC", "EINTR"],
    "fdatasync": ["EIO", "ENOSPC", "EINTR"],
    "ftruncate": ["EIO", "ENOSPC", "EINTR"],
    "fallocate": [*FULL, "EINTR", "EOPNOTSUPP"],
    "rename": FULL,
    "renameat": FULL,
    "renameat2": FULL,
    "linkat": FULL,
    "openat": ["EIO", "ENOSPC", "EMFILE", "EOPNOTSUPP"],
    "mmap": ["ENOMEM"],
    "msync": ["EIO"],
    "flock": ["EINTR", "ENOLCK"],
    "unlink": ["EIO"],
    "unlinkat": ["EIO"],
    "close": [],  # strace does not close a file whose close it lets fail; Linux does, and gives up its lock
    "read": ["EIO", "EINTR"],
    "pread64": ["EIO", "EINTR"],
    "sendto": ["ECONNRESET", "EINTR"],
    "recvfrom": ["ECONNRESET", "EINTR"],
    "connect": ["ECONNREFUSED"],
}
IN_THE_WAY = {"unlink", "unlinkat", "fsync", "openat", "read", "pread64"}  # of a failed run that tidies up
KILL = "SIGKILL"
ONCE = {"EINTR", "EOPNOTSUPP"}  # forever, a command could never end, or has nothing to try
MOST_OF_A_KIND = 40  # of one system call, spread over the run


@dataclass(frozen=True)
class Fault:
    call: str
    number: int
    error: str  # or KILL
    lasting: bool  # all later calls of this kind fail, too
    text: str  # the call as strace shows it
    unnamed_refused: int = 0  # this openat fails, as where there are no nameless files

    def __str__(self) -> str:
        later = " and all later ones" if self.lasting else ""
        also = f", openat number {self.unnamed_refused} refuses a nameless file" if self.unnamed_refused else ""
        return f"{self.error} at {self.call} number {self.number}{later}{also}: {self.text}"

    def options(self) -> list[str]:
        what = "signal=KILL" if self.error == KILL else f"error={self.error}"
        options = ["-e", f"inject={self.call}:{what}:when={self.number}{'+' if self.lasting else ''}"]
        calls = {self.call}
        if self.unnamed_refused:
            options += ["-e", f"inject=openat:error=EOPNOTSUPP:when={self.unnamed_refused}"]
            calls.add("openat")
        return ["-e", f"trace={','.join(sorted(calls))}", *options]


class Injections:
    def __init__(self, long: bool) -> None:
        self.long = long
        self.faults: dict[str, list[Fault]] = {}

    def why_not(self) -> str:
        """Why system calls cannot be made to fail here; empty if they can."""
        if shutil.which("strace") is None:
            return "no strace: install it"
        inject = ["-e", "trace=close", "-e", "inject=close:error=EIO:when=1000"]
        probe = subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, *inject, "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            return f"strace cannot trace processes here: {probe.stderr.strip()}"
        return ""

    def rounds_of(self, row: Row, folder: Folder, seed: object, wanted: int) -> int:
        """Plans the faults of a row; returns their number, or `wanted` if that is larger."""
        row.begin(folder)
        calls = calls_of(folder, row.call)
        chance = random.Random(f"{seed}/{row.name}")
        self.faults[row.name] = planned(calls, chance)
        return max(wanted, len(self.faults[row.name])) if self.long else wanted

    def disturb(self, row: Row, folder: Folder, number: int, chance: random.Random) -> Disturbance:
        faults = self.faults[row.name]
        fault = faults[number % len(faults)]
        wrap = ["strace", "-f", "-qq", "-o", folder.beside("trace"), *fault.options()]
        # strace counts per thread: a message may be the first write of its thread.
        spares_messages = fault.call != "write" or not (fault.lasting or fault.number == 1)
        can_tidy = fault.error == KILL or not (fault.call in IN_THE_WAY or fault.lasting and fault.call.startswith("rename"))
        breaks = fault.error in ("ECONNRESET", "ECONNREFUSED")
        return Disturbance(str(fault), [lambda: folder.run(single(row.call), wrap)], spares_messages, breaks, can_tidy)


def single(call: Call) -> Call:
    """The call with one thread."""
    if not call.one_thread:
        return call
    return Call((*call.arguments, "-j", 1), call.piped, call.output, call.appends, call.one_thread)


def calls_of(folder: Folder, call: Call) -> dict[str, list[tuple[int, str]]]:
    """Number and text of the calls that an undisturbed run makes after it was loaded."""
    trace = folder.beside("trace")
    traced = ",".join(f"?{name}" for name in [*ERRORS, "munmap"])
    end = folder.run(single(call), ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-o", trace, "-e", f"trace={traced}"])
    with open(trace, errors="replace") as file:
        lines = file.read().splitlines()
    counts: dict[str, int] = {}
    found: dict[str, list[tuple[int, str]]] = {}
    loaded, cache = False, ""
    for line in lines:
        match = re.match(r"\d+ +(\w+)\((.*)", line)
        if not match:
            continue
        name, rest = match.groups()
        counts[name] = counts.get(name, 0) + 1
        if name == "mmap" and "/ld.so.cache" in rest:
            cache = rest.rsplit("= ", 1)[-1]
        if name == "munmap" and cache and rest.startswith(cache):  # the last thing that the loader does
            loaded, found = True, {}
        is_message = name == "write" and rest.startswith("2<")
        if name in ERRORS and not is_message:
            found.setdefault(name, []).append((counts[name], rest[:160]))
    if not loaded or end.status != 0:
        raise RuntimeError(f"not a run to learn from: exit status {end.status}, {len(lines)} calls: {end.err}")
    return found


def planned(calls: dict[str, list[tuple[int, str]]], chance: random.Random) -> list[Fault]:
    """Every call twice, with an error and with a kill, in an order that begins with something of every kind."""
    nameless = [number for number, text in calls.get("openat", []) if "O_TMPFILE" in text]
    groups: list[list[Fault]] = []
    for name, made in calls.items():
        sample = sorted(chance.sample(made, min(len(made), MOST_OF_A_KIND)))
        kills, errors = [], []
        for number, text in sample:
            refused = chance.choice(nameless) if nameless and name != "openat" and chance.random() < 0.3 else 0
            kills.append(Fault(name, number, KILL, False, text, refused))
            if not ERRORS[name]:
                continue
            error = chance.choice(ERRORS[name])
            errors.append(Fault(name, number, error, error not in ONCE and chance.random() < 0.5, text))
        for group in kills, errors:
            chance.shuffle(group)
            groups.append(group)
    chance.shuffle(groups)
    longest = max(len(group) for group in groups)
    return [group[i] for i in range(longest) for group in groups if i < len(group)]
