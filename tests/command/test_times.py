"""--time-field: a window by time goes by the times in the records, beside a dict of keys and beside one run for each hour."""

import json
import random
import re
import struct
import time
import unittest
from datetime import datetime, timezone

from support import PAYLOAD_AT, CommandTest, text

START = 1_767_600_000  # 2026-01-05 08:00:00 UTC
HOUR = 3600


class twin:
    """A window of seven slices, as docs/design.md has it, of exact keys and milliseconds."""

    def __init__(self, window: int) -> None:
        self.window, self.slice = window, -(-window // 7)
        self.now, self.late = 0, 0
        self.last: dict[bytes, int] = {}

    def is_new(self, key: bytes, time: int) -> bool:
        self.late += self.now - time > self.window
        self.now = max(self.now, time)
        epoch = self.now // self.slice
        seen = key in self.last and self.last[key] >= epoch - 7
        self.last[key] = epoch
        return not seen


def utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


class Times(CommandTest):
    def log(self, count: int, hours: int, disorder: int, seed: int = 1, keys: int = 400) -> list[tuple[int, bytes]]:
        """Times in milliseconds and keys, roughly in order."""
        chance = random.Random(seed)
        times = sorted(START * 1000 + chance.randrange(hours * HOUR * 1000) for _ in range(count))
        return [(max(time - chance.choice([0, 0, 0, disorder]), 1), b"key-%d" % chance.randrange(keys)) for time in times]

    def test_a_log_of_a_week_agrees_with_a_dict(self) -> None:
        for disorder in 0, 100_000, 20 * HOUR * 1000:
            log = self.log(10_000, 168, disorder, keys=1000)
            lines = [b"%d.%03d\t%s" % (time // 1000, time % 1000, key) for time, key in log]
            self.write("log", lines)
            for window, milliseconds in ("14h", 14 * HOUR * 1000), ("24h", 24 * HOUR * 1000), ("5min", 300_000):
                truth = twin(milliseconds)
                expected = [line for line, (time, key) in zip(lines, log) if truth.is_new(key, time)]
                for threads, state in (1, ()), (4, ()), (2, ("--state", f"{window}-{disorder}.bloom")):
                    with self.subTest(window=window, disorder=disorder, threads=threads, state=state):
                        run = self.bloomery("dedup", "-q", "-j", threads, *state, "--window", window, "-n", 20_000, "-p", "1e-9",
                                            "-f", 2, "--time-field", 1, "log")
                        self.assertEqual(run.lines, expected)
                        if truth.late:
                            self.assertIn(f"{truth.late:,} record", run.err)
                            self.assertIn("older than the window", run.err)
                        else:
                            self.assertNotIn("older", run.err)

    def test_one_run_prints_what_168_runs_of_an_hour_print(self) -> None:
        log = self.log(8000, 168, 0)
        lines = [b"%s %s" % (utc(time / 1000).strftime("%Y-%m-%dT%H:%M:%SZ").encode(), key) for time, key in log]
        options = "dedup", "-q", "--window", "14h", "-n", 50_000, "-p", "1e-9", "-d", " ", "-f", 2
        hourly = []
        for hour in range(168):
            now = START + hour * HOUR
            part = [line for line, (time, _) in zip(lines, log) if now * 1000 <= time < (now + HOUR) * 1000]
            hourly += self.bloomery(*options, "--state", "hourly", "--now", now, stdin=text(part)).lines
        self.assertLess(len(hourly), len(lines) * 0.9)
        self.assertEqual(self.bloomery(*options, "--time-field", 1, stdin=text(lines)).lines, hourly)
        self.assertEqual(self.bloomery(*options, "--time-field", 1, "--state", "once", stdin=text(lines)).lines, hourly)
        now = START + 168 * HOUR - 1
        self.write("keys", sorted({key for _, key in log}))
        self.assertEqual(self.bloomery("check", "--now", now, "once", "keys").lines, self.bloomery("check", "--now", now, "hourly", "keys").lines)

    def test_build_and_add_put_keys_where_their_times_are(self) -> None:
        log = self.log(5000, 100, 0)
        lines = [b"%s,%d" % (key, time) for time, key in log]
        options = "-d", ",", "-f", 1, "--time-field", 2
        self.bloomery("build", "-q", "-o", "f", "--window", "21h", "-n", 50_000, "-p", "1e-9", *options, stdin=text(lines[:2000]))
        self.bloomery("add", "-q", "f", *options, stdin=text(lines[2000:]))
        truth = twin(21 * HOUR * 1000)
        for time, key in log:
            truth.is_new(key, time)
        asked = sorted({key for _, key in log})
        for hours in 0, 3, 12, 20, 24:
            now = truth.now + hours * HOUR * 1000
            held = [key for key in asked if truth.last[key] >= now // truth.slice - 7]
            found = self.bloomery("check", "--now", f"{now / 1000:.3f}", "f", stdin=text(asked), status=None).lines
            self.assertEqual(found, held, hours)

    def test_the_usual_times_are_recognised_and_each_format_reads_its_own(self) -> None:
        moment = utc(START + 1)
        same = ["2026-01-05T08:00:01Z", "2026-01-05 08:00:01", "2026-01-05T09:30:01+01:30", "2026-01-05t07:00:01.000-0100", "2026/01/05 08:00:01",
                "05/Jan/2026:08:00:01 +0000", "[05/Jan/2026:10:00:01 +0200]", "[05/Jan/2026:08:00:01", str(START + 1), f"{START + 1}.0",
                str((START + 1) * 1000), str((START + 1) * 10**6), str((START + 1) * 10**9)]
        formats = [("iso8601", same[0]), ("rfc3339", same[2]), ("clf", same[5]), ("epoch", str(START + 1)), ("epoch-ms", str((START + 1) * 1000)),
                   ("%d.%m.%Y %H:%M:%S", moment.strftime("%d.%m.%Y %H:%M:%S")), ("%b %d %Y %I:%M:%S %p %z", "Jan 05 2026 09:00:01 AM +0100"),
                   ("%Y%m%d-%H%M%S.%f!", "20260105-080001.000250!"), ("%%%Y-%m-%d %T", "%2026-01-05 08:00:01")]
        # A slice is a second: the moment is right if the newest generation begins with it.
        build = "build", "--json", "-o", "f", "--window", "7s", "-n", 100, "-p", "1e-9", "--time-field", 1, "-f", 2
        for name, time in [("", time) for time in same] + formats:
            with self.subTest(format=name, time=time):
                built = self.bloomery(*build, *(["--time-format", name] if name else []), stdin=f"{time}\tx\n".encode()).json
                self.assertEqual(built["window"]["epoch"], START + 1)

    def test_a_record_without_a_readable_time_is_named(self) -> None:
        dedup = "dedup", "-q", "--window", "24h", "-n", 1000, "-f", 2, "--time-field", 1
        for bad in ("", "soon", "2026-02-30", "2026-13-01", "2026-01-05T24:00:00Z", "2026-01-05T08:00:00Q", "1969-12-31", "-5", "12345678901234567890",
                    "99999999999999999999", "05/Foo/2026:08:00:01 +0000", "10000-01-01", "2026-01-05T08:00:01.Z", "1" * 200):
            run = self.bloomery(*dedup, stdin=b"2026-01-05\tx\n" * 40_000 + bad.encode() + b"\ty\n", status=2)
            self.assertRegex(run.err, "standard input, line 40,001: the time of this record cannot be read.*" + re.escape(f"'{bad[:60]}"))
        for form, moment, says in ("epoch", b"2026-01-05", "expected seconds since 1970"), ("%H:%M", b"12:30", "cannot be read"):
            self.assertIn(says, self.bloomery(*dedup, "--time-format", form, stdin=moment + b"\tx\n", status=2).err)

    def test_a_record_from_the_future_is_refused_and_leaves_the_state_as_it_was(self) -> None:
        hour = [utc(time.time() - HOUR).isoformat(), utc(time.time() + 23 * HOUR).isoformat()]
        forms = {
            ("-f", 2, "--time-field", 1): "{}\t{}",
            ("--csv", "-f", 2, "--time-field", 1): "{},{}",
            ("--jsonl", ".k", "--time-field", ".t"): '{{"t":"{}","k":"{}"}}',
        }
        for bad in "9999-12-31T23:59:59Z", "32503680000", utc(time.time() + 25 * HOUR).isoformat():
            for options, form in forms.items():
                good = [form.format(moment, f"key-{i}").encode() for i, moment in enumerate(hour)]
                window = "--window", "24h", "-n", 1000, "-p", "1e-9"
                self.remove("state")
                self.bloomery("dedup", "-q", "--state", "state", *window, *options, stdin=text(good))
                before = self.read("state")
                for command in (["dedup", "-q", *window], ["dedup", "-q", "--state", "state"], ["add", "-q", "state"], ["build", "-o", "new", *window]):
                    with self.subTest(command=command, bad=bad, options=options):
                        run = self.bloomery(*command, *options, stdin=text([*good, form.format(bad, "x").encode()]), status=2)
                        self.assertIn("standard input, line 3: the time of this record is in the future", run.err)
                        self.assertIn(bad, run.err)
                        shown = re.search(r"clock of this machine, which shows ([-0-9]+ [:0-9]+) UTC", run.err)
                        self.assertLess(abs(datetime.fromisoformat(shown[1] + "+00:00").timestamp() - time.time()), 60)
                self.assertEqual(self.payload("state", 4096)[:8], before[PAYLOAD_AT : PAYLOAD_AT + 8])  # the newest generation
        run = self.bloomery("dedup", "-q", "--window", "24h", "-n", 9, "-f", 2, "--time-field", 1, stdin=b"32503680000\tx\n", status=2)
        self.assertIn("'32503680000', which is 3000-01-01 00:00:00 UTC", run.err)

    def test_a_window_that_is_ahead_of_the_clock_is_warned_of_on_each_use(self) -> None:
        slice = -(-24 * HOUR * 1000 // 7)
        for ahead in 23 * HOUR, 26 * HOUR + slice // 1000, 5000 * 24 * HOUR:
            moment = time.time() + ahead
            self.remove("state")
            self.bloomery("dedup", "-q", "--state", "state", "--window", "24h", "-n", 100, "--now", f"{moment:.0f}", stdin=b"a\n")
            epoch = struct.unpack("<Q", self.payload("state", 8))[0]
            expires = utc((epoch + 1) * slice // 1000)
            for command in "dedup -q --state state", "add -q state", "check -q state", "info --json state":
                with self.subTest(command=command, ahead=ahead):
                    run = self.bloomery(*command.split(), stdin=b"a\n")
                    if ahead > 24 * HOUR:
                        self.assertRegex(run.err, rf"state: warning: .*no key expires before {expires:%Y-%m-%d %H:%M:%S}.* UTC; correct the clock, or .*build the filter again")
                        self.assertEqual(run.err.count("warning"), 1)
                    else:
                        self.assertEqual(run.err, "")
                    if not command.startswith("info"):
                        self.assertEqual(self.bloomery(*command.split(), "--now", f"{moment:.0f}", stdin=b"a\n").err, "")

    def test_a_conversion_that_reads_no_time_is_refused_at_the_option(self) -> None:
        window = "dedup", "--window", "24h", "-n", 10, "-f", 2, "--time-field", 1, "--time-format"
        for conversion in ("%s", "%-s", "%_s", "%Es", "%0s", "%Q", "%N", "%3", "%-f", "%L", "%i", "%P", "%Ed", "%O", "%-%", "%", "%-", "%E%"):
            for pattern in f"%Y {conversion}", f"{conversion} %Y", f"%%{conversion}":
                if conversion in ("%", "%-", "%O") and not pattern.endswith(conversion):
                    continue  # the next character belongs to it
                with self.subTest(pattern=pattern):
                    run = self.refused(*window, pattern, stdin=b"", says=rf"--time-format: .*expected %%, or % and a letter of a A b .* z Z f, found '{re.escape(conversion)}'")
                    self.assertEqual("use epoch" in run.err, conversion.endswith("s"))
        for pattern in "%d.%m.%Y", "%-d.%m.%Y", "%e.%_m.%Y", "%Od.%m.%Y", "%d.%m.%EY", "%d.%%%m.%Y", "%d.%n%m.%Y":
            self.assertEqual(self.bloomery(*window, pattern, stdin=f"05.{'%' if '%%' in pattern else ''}01.2026\tx\n".encode()).lines[0][-1:], b"x", pattern)

    def test_times_come_from_csv_json_and_ranges_of_fields(self) -> None:
        log = self.log(3000, 100, 0)
        truth = twin(7 * HOUR * 1000)
        chosen = [truth.is_new(key, time // 1000 * 1000) for time, key in log]
        forms = {
            ("-d", " ", "-f", "1", "--time-field", "4-5"): lambda t, k: f"{k} - - [{t:%d/%b/%Y:%H:%M:%S} +0000] \"GET /\" 200",
            ("--csv", "-f", "2", "--time-field", "1"): lambda t, k: f'"{t:%Y-%m-%d %H:%M:%S}","{k}"',
            ("--jsonl", ".k", "--time-field", ".t[0]"): lambda t, k: json.dumps({"t": [t.isoformat()], "k": k}),
        }
        for options, form in forms.items():
            lines = [form(utc(time // 1000), key.decode()).encode() for time, key in log]
            run = self.bloomery("dedup", "-q", "--window", "7h", "-n", 50_000, "-p", "1e-9", *options, stdin=text(lines))
            self.assertEqual(run.lines, [line for line, new in zip(lines, chosen) if new], options)
        header = self.bloomery("dedup", "-q", "--window", "7h", "-n", 50, "--csv", "--time-field", "when", stdin=b"when,k\n2026-01-05,a\n")
        self.assertEqual(header.lines, [b"when,k", b"2026-01-05,a"])

    def test_options_that_do_not_fit_together_are_refused(self) -> None:
        self.bloomery("build", "-q", "-o", "plain", "-n", 10, stdin=b"")
        self.bloomery("build", "-q", "-o", "keys", "--window-keys", 10, stdin=b"")
        window = "dedup --window 24h -n 10 "
        self.refuse_all({
            "dedup -n 10 --time-field 1": "add --window 24h",
            "dedup --window-keys 10 --time-field 1": "add --window 24h",
            window + "--time-format clf": "add --time-field",
            window + "--time-field 1 --now 5": "cannot be combined with --now",
            window + "--time-field .a": "add --jsonl",
            window + "--jsonl .a --time-field 1": "use a path",
            window + "--csv --time-field 1-2": "one number or name",
            window + "--time-field 1,2": "one time",
            window + "--time-field when": "only CSV has column names",
            window + "--time-field 1 --time-format %s": "use epoch",
            window + "--time-field 1 --time-format noon": "invalid time format",
            "dedup --state plain --time-field 1": "no window of time|has no window",
            "build -o new -n 10 --time-field 1": "add --window 24h",
            "build -o redis://nowhere/x --window 24h -n 10 --time-field 1": "clock of the server",
            "add plain --time-field 1": "no window of time",
            "add keys --time-field 1": "no window of time",
        })  # fmt: skip


if __name__ == "__main__":
    unittest.main()
