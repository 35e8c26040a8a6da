"""Tables of command lines for the tests of the command."""

import shlex
from collections.abc import Iterable

from support import CommandTest


def refuse_all(test: CommandTest, table: dict[str, str], **options) -> None:
    """Each of these command lines is refused with a message that matches the expression beside it."""
    for line, says in table.items():
        with test.subTest(line):
            test.refused(*shlex.split(line), says=says, **options)


def check_runs(test: CommandTest, table: Iterable[tuple], status: int | None = None, **options) -> None:
    """What each of these command lines prints, on standard output and then on standard error, matches the expressions beside it."""
    for line, *shown in table:
        with test.subTest(line):
            result = test.bloomery(*shlex.split(line), status=status, **options)
            for expression in shown:
                test.assertRegex(result.out.decode() + result.err, expression)
