"""When a command that was started handles interrupts."""

import os
import signal
import subprocess


def wait_until_it_handles_interrupts(process: subprocess.Popen) -> None:
    while process.poll() is None and not ("bloomery" in os.readlink(f"/proc/{process.pid}/exe") and handles_interrupts(process.pid)):
        pass


def handles_interrupts(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGINT - 1) & 1)
