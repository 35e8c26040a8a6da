"""Files without permission are named and stay unchanged. For root, the command runs as the user `nobody`."""

import os
import shutil
import subprocess
import unittest

from support import COMMAND, PAYLOAD_AT, CommandTest, keys, text


def can_change_user() -> bool:
    if os.geteuid() != 0:
        return True  # need not
    try:
        return subprocess.run(["/bin/true"], user="nobody", check=False).returncode == 0
    except (OSError, LookupError, subprocess.SubprocessError):
        return False


@unittest.skipUnless(can_change_user(), "root here can read everything and cannot become another user")
class Permission(CommandTest):
    def setUp(self) -> None:
        super().setUp()
        os.chmod(self.folder, 0o777)
        self.copy = self.path("bloomery")  # the build folder may be closed to others
        shutil.copy(COMMAND, self.copy)
        os.chmod(self.copy, 0o755)
        self.bloomery("build", "-q", "-o", "f", "-n", 100, stdin=text(keys(10)))
        self.write("lines", keys(10))

    def refuse_as_nobody(self, refusals: dict[str, str]) -> None:
        before = self.read("f")
        user = {"user": "nobody"} if os.geteuid() == 0 else {}
        self.refuse_all(refusals, stdin=b"key\n", executable=self.copy, **user)
        self.assertEqual(self.read("f")[PAYLOAD_AT:], before[PAYLOAD_AT:])

    def test_a_filter_that_may_not_be_read_is_named(self) -> None:
        os.chmod(self.path("f"), 0o000)
        self.refuse_as_nobody({f"{command} f": "f: cannot open: Permission denied" for command in ("check", "add", "info", "dedup -q --state")})

    def test_a_filter_that_may_only_be_read_is_not_written(self) -> None:
        os.chmod(self.path("f"), 0o444)
        before = self.read("f")
        self.refuse_as_nobody({"add f": "f: cannot open: Permission denied", "build -q -o f": "f: .*Permission denied"})
        self.assertEqual(self.read("f"), before)

    def test_inputs_that_may_not_be_read_are_named_before_anything_is_done(self) -> None:
        os.chmod(self.path("lines"), 0o000)
        os.chmod(self.path("f"), 0o666)
        commands = "check f", "add f", "build -q -o g", "dedup -q -n 5", "dedup -q --exact"
        self.refuse_as_nobody({f"{command} lines": "lines: cannot (read|open): Permission denied" for command in commands})
        self.assertFalse(os.path.exists(self.path("g")))

    def test_a_folder_that_may_not_be_written_is_named(self) -> None:
        os.mkdir(self.path("closed"), 0o555)
        self.refuse_as_nobody({
            "build -q -o closed/f": "closed.*Permission denied",
            "dedup -q -n 5 --state closed/f": "closed.*Permission denied",
            "dedup -q -n 5 --suspects closed/f": "closed/f: .*Permission denied",
        })  # fmt: skip


if __name__ == "__main__":
    unittest.main()
