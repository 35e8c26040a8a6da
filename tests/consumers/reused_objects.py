"""Compiler launcher that takes an object from another build: reused_objects.py BUILD COMPILER ARGUMENTS...

If BUILD has compiled the same source with the same options, and its object is newer than the source, that object is
copied. Levels of optimization, debugging and warnings may differ. Otherwise the compiler runs.
"""

import json
import os
import re
import shlex
import shutil
import sys

IRRELEVANT = re.compile(r"-O.|-g\d?|-W.*|-M[DTFP]*|.*\.o(\.d)?|-o|-c|-pedantic|-f(no-)?omit-frame-pointer|-fdiagnostics.*|-D\w+_EXPORTS")


def relevant(arguments: list[str]) -> list[str]:
    """What decides about the object: the order of options does not."""
    return sorted(argument for argument in arguments if not IRRELEVANT.fullmatch(argument))


def object_of(build: str, command: list[str]) -> str | None:
    """The object in `build` of the same source with the same options."""
    if "-c" not in command:
        return None
    source = command[command.index("-c") + 1]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        for entry in json.load(file):
            if entry["file"] != source:
                continue
            other = shlex.split(entry["command"])
            other = other[next(i for i, word in enumerate(other) if os.path.basename(word) == os.path.basename(command[0])) :]
            found = os.path.join(entry["directory"], other[other.index("-o") + 1])
            if relevant(other[1:]) != relevant(command[1:]) or not os.path.exists(found):
                return None
            return found if os.path.getmtime(found) >= os.path.getmtime(source) else None
    return None


def main() -> None:
    build, *command = sys.argv[1:]
    found = object_of(build, command)
    if found is None:
        os.execvp(command[0], command)
    shutil.copyfile(found, command[command.index("-o") + 1])
    if "-MF" in command:  # the build system reads which headers the object depends on
        with open(command[command.index("-MF") + 1], "w", encoding="utf-8") as file:
            file.write(f"{command[command.index('-o') + 1]}: {command[command.index('-c') + 1]}\n")


if __name__ == "__main__":
    main()
