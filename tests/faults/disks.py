"""Full disks: each round works on a small tmpfs that has little or no free space for the run.

tmpfs allocates pages at the first write, so sparse files and mapped memory reach the limit too, which an injected error
cannot show. Mounting requires a separate mount namespace, in which run.py restarts itself.
"""

import ctypes
import os
import random
import subprocess

from folder import End, Folder
from promises import Disturbance, Row

PAGE = 4096
PLENTY = "256m"
MS_REMOUNT = 32
NAMESPACES = [["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]]


def namespace() -> list[str] | None:
    """How to start a program that may mount; None if that is not permitted here."""
    for command in NAMESPACES:
        try:
            if subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/tmp"], capture_output=True).returncode == 0:
                return command
        except FileNotFoundError:
            return None
    return None


class Disks:
    def __init__(self, long: bool) -> None:
        self.grows: dict[str, int] = {}

    def why_not(self) -> str:
        return ""

    def rounds_of(self, row: Row, folder: Folder, seed: object, wanted: int) -> int:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={PLENTY}", "none", folder.path], check=True)
        row.begin(folder)
        before = pages(folder)
        folder.run(row.call)
        self.grows[row.name] = max(pages(folder) - before, max(pages_of(folder, name) for name in folder.names() or {""}))
        return wanted

    def disturb(self, row: Row, folder: Folder, number: int, chance: random.Random) -> Disturbance:
        rooms = [chance.randrange(0, 2 * self.grows[row.name] + 8) for _ in range(chance.choice([1, 1, 2]))]
        words = ", then ".join(f"a disk with room for {PAGE * room} bytes" for room in rooms)
        return Disturbance(words, [lambda room=room: with_room(row, folder, room) for room in rooms])


def with_room(row: Row, folder: Folder, room: int) -> End:
    resize(folder, str(PAGE * max(1, pages(folder) + room)))  # 0 would be no limit
    try:
        return folder.run(row.call)
    finally:
        resize(folder, PLENTY)


def resize(folder: Folder, size: str) -> None:
    """Not by mount(8), which also repeats options that a user namespace may not change."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(None, os.fsencode(folder.path), None, MS_REMOUNT, f"size={size}".encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the size of a tmpfs: {os.strerror(number)}", folder.path)


def pages(folder: Folder) -> int:
    status = os.statvfs(folder.path)
    return status.f_blocks - status.f_bfree


def pages_of(folder: Folder, name: str) -> int:
    return -(-os.stat(folder.at(name)).st_size // PAGE) if name else 0
