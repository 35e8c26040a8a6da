"""Kills and faults for every stateful verb: nothing acknowledged is lost, the next run succeeds and leaves no litter.

  run.py kills | injections | disks [--command FILE] [--seconds N | --rounds N] [--seed N] [--row NAME ...] [--round N]

A round prepares a folder, disturbs a run of a verb in it, checks the files, and runs the same command again. Rounds of all
rows take turns until the time is over; every row has at least one. A round that fails prints its steps and how to repeat
it, and its folder is kept. docs/reliability.md has the promises.

Exit status: 0 all promises were kept, 1 some were not, 77 a part could not be tested, which ctest shows as skipped.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT, BROKEN, SKIPPED = 0, 1, 77
SECONDS = {"kills": 25, "injections": 25, "disks": 12}
ROUNDS_LONG = 100
IN_NAMESPACE = "BLOOMERY_FAULTS_MAY_MOUNT"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=list(SECONDS))
    parser.add_argument("--command", default=os.environ.get("BLOOMERY"), help="the program; $BLOOMERY if not given")
    parser.add_argument("--seconds", type=float, help=f"time for all rows; if neither this nor --rounds is given, {SECONDS}")
    parser.add_argument("--rounds", type=int, help=f"rounds of each row; {ROUNDS_LONG} with BLOOMERY_LONG=1")
    parser.add_argument("--seed", type=int, help="repeats a run; 1 if not given, with BLOOMERY_LONG=1 the time")
    parser.add_argument("--row", action="append", help="only this row; may be repeated")
    parser.add_argument("--round", type=int, help="only this round")
    given = parser.parse_args()
    if not given.command:
        parser.error("which program? --command FILE, or BLOOMERY in the environment")
    return given


def main() -> int:
    given = arguments()
    os.environ["BLOOMERY"] = given.command = os.path.abspath(given.command)
    os.environ.setdefault("BLOOMERY_SOURCE", os.path.dirname(os.path.dirname(HERE)))
    sys.path.insert(1, os.path.join(os.path.dirname(HERE), "command"))
    import disks
    import injections
    import kills
    import rows
    import rows_dedup
    import rows_redis
    from folder import Folder
    from harness import Harness
    from support import LONG

    if given.rounds is None and given.seconds is None:
        given.rounds, given.seconds = (ROUNDS_LONG, None) if LONG else (None, SECONDS[given.kind])
    if given.kind == "disks" and IN_NAMESPACE not in os.environ:
        may_mount = disks.namespace()
        if may_mount is None:
            print("SKIP disks: no small disk can be mounted here")
            return SKIPPED
        os.environ[IN_NAMESPACE] = "1"
        os.execvp(may_mount[0], [*may_mount, sys.executable, "-B", *sys.argv])
    seed = given.seed if given.seed is not None else int(time.time()) if LONG else 1
    faults = {"kills": kills.Kills, "injections": injections.Injections, "disks": disks.Disks}[given.kind](LONG)
    reason = faults.why_not()
    if reason:
        print(f"SKIP {given.kind}: {reason}")
        return SKIPPED
    print(f"{given.kind} with --seed {seed}", flush=True)
    base = tempfile.mkdtemp(prefix="bloomery-faults-")
    try:
        keys = Folder(base, "keys")
        all_rows = [*rows.rows(rows.Keys(keys)), *rows_dedup.rows(keys), *rows_redis.rows(rows.Keys(keys))]
        if given.row:
            unknown = set(given.row) - {row.name for row in all_rows}
            if unknown:
                raise SystemExit(f"no such row: {', '.join(unknown)}; there are: {', '.join(row.name for row in all_rows)}")
            all_rows = [row for row in all_rows if row.name in given.row]
        harness = Harness(given, seed, faults, base)
        try:
            harness.run(all_rows)
        except KeyboardInterrupt:
            print("stopped")
        if harness.report() > 0:
            return BROKEN
        return SKIPPED if rows_redis.SKIPPED else KEPT
    finally:
        rows_redis.end_server()
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
