"""The schedule of rounds, which takes all rows in turn, and their statistics."""

import argparse
import os
import random
import shutil
import tempfile
import time

from folder import Broken, End, Folder
from promises import Row

MOST_SHOWN = 3  # failures of a row that are shown in full, and whose folders are kept


class Tally:
    """The rounds of one row."""

    def __init__(self) -> None:
        self.rounds = self.disturbed = self.broken = 0


class Harness:
    """`faults` is one of Kills, Injections and Disks; each row has a folder below `base`."""

    def __init__(self, given: argparse.Namespace, seed: int, faults, base: str) -> None:
        self.given, self.seed, self.faults, self.base = given, seed, faults, base
        self.tallies: dict[str, Tally] = {}
        self.folders: dict[str, Folder] = {}
        self.wanted: dict[str, int] = {}

    def learn(self, row: Row, rounds: int) -> bool:
        """Runs the verb undisturbed; false if even that is wrong."""
        base = os.path.join(self.base, row.name.replace(" ", "_").replace(",", ""))
        os.makedirs(base)
        self.tallies[row.name] = Tally()
        self.folders[row.name] = folder = Folder(base)
        try:
            row.learn(base)
            self.wanted[row.name] = self.faults.rounds_of(row, folder, self.seed, rounds)
            return True
        except Broken as broken:
            self.tallies[row.name].broken += 1
            print(f"BROKEN {row.name}: {broken}", flush=True)
            return False

    def play(self, row: Row, number: int) -> None:
        folder, tally = self.folders[row.name], self.tallies[row.name]
        chance = random.Random(f"{self.seed}/{row.name}/{number}")
        row.begin(folder)
        disturbance = self.faults.disturb(row, folder, number, chance)
        row.connection_broken, row.can_tidy = disturbance.breaks_connection, disturbance.can_tidy
        tally.rounds += 1
        step = 0
        ends: list[End] = []
        try:
            for run in disturbance.runs:
                end = run()
                ends.append(end)
                step = row.judge(folder, step, end, disturbance.messages)
            row.run_next(folder, step)
        except Broken as broken:
            tally.broken += 1
            self.show(row, number, disturbance.words, ends, str(broken))
        tally.disturbed += any(end.status != 0 for end in ends)

    def show(self, row: Row, number: int, words: str, ends: list[End], broken: str) -> None:
        if self.tallies[row.name].broken > MOST_SHOWN:
            print(f"BROKEN {row.name}, round {number}: {words}: {broken}", flush=True)
            return
        kept = tempfile.mkdtemp(prefix="bloomery-broken-")
        shutil.copytree(self.folders[row.name].path, kept, dirs_exist_ok=True)
        print(f"BROKEN {row.name}: {broken}\n  done: {words}")
        for end in ends:
            print(f"  exit status {end.status}: {end.err.strip()[-300:]}")
        print(f"  folder: {kept}")
        again = f"--seed {self.seed} --row '{row.name}' --round {number} --command {self.given.command}"
        print(f"  repeat: run.py {self.given.kind} {again}", flush=True)

    def run(self, rows: list[Row]) -> None:
        rounds = self.given.rounds or 1_000_000
        end = time.monotonic() + (self.given.seconds or 10**9)
        rows = [row for row in rows if self.learn(row, rounds)]
        if self.given.round is not None:
            for row in rows:
                self.play(row, self.given.round)
            return
        for number in range(max(self.wanted.values(), default=0)):
            for row in rows:
                if number < self.wanted[row.name] and (number == 0 or time.monotonic() < end):
                    self.play(row, number)
            if time.monotonic() >= end:
                break

    def report(self) -> int:
        """Prints the figures; returns how many rounds were broken."""
        width = max(len(name) for name in self.tallies)
        print(f"\n{'row':{width}}  rounds  disturbed  broken")
        for name, tally in self.tallies.items():
            print(f"{name:{width}}  {tally.rounds:6}  {tally.disturbed:9}  {tally.broken:6}")
        total = [sum(getattr(tally, field) for tally in self.tallies.values()) for field in ("rounds", "disturbed", "broken")]
        print(f"{'all':{width}}  {total[0]:6}  {total[1]:9}  {total[2]:6}")
        return total[2]
