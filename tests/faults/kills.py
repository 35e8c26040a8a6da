"""kill -9, SIGINT and SIGTERM at random moments, and a file size limit that is reached in the middle of a write.

One round in three is in the last tenth of the command's run time, when files get their final names.
"""

import random
import signal
import statistics
import time

from folder import End, Folder, send
from promises import Disturbance, Row

KINDS = [signal.SIGKILL] * 6 + [signal.SIGTERM, signal.SIGINT, None]  # None: the limit
MEASURED = 3


class Kills:
    def __init__(self, long: bool) -> None:
        self.durations: dict[str, float] = {}

    def why_not(self) -> str:
        return ""

    def rounds_of(self, row: Row, folder: Folder, seed: object, wanted: int) -> int:
        """Learns how long the command takes; returns the number of rounds to run."""
        times = []
        for _ in range(MEASURED):
            row.begin(folder)
            times.append(folder.run(row.call).seconds)
        self.durations[row.name] = statistics.median(times)
        return wanted

    def disturb(self, row: Row, folder: Folder, number: int, chance: random.Random) -> Disturbance:
        whole = self.durations[row.name]
        runs, words = [], []
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            kind = chance.choice(KINDS)
            if kind is None:
                largest = max([1000, *(len(folder.read(name) or b"") for name in folder.names())])
                limit = chance.randrange(512, 2 * largest + 20_000)
                words.append(f"no file larger than {limit} bytes")
                runs.append(lambda limit=limit: folder.run(row.call, ["prlimit", f"--fsize={limit}"]))
                continue
            share = chance.uniform(0.9, 1.02) if chance.random() < 1 / 3 else chance.random()
            words.append(f"{kind.name} after {whole * share * 1000:.2f} of {whole * 1000:.2f} ms")
            runs.append(lambda at=whole * share, kind=kind: kill_after(row, folder, at, kind))
        return Disturbance(", then ".join(words), runs)


def kill_after(row: Row, folder: Folder, seconds: float, kind: signal.Signals) -> End:
    began = time.monotonic()

    def disturb(process: int) -> None:
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))
        send(process, kind)

    return folder.run(row.call, disturb=disturb)
