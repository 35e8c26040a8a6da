"""libbloomery_c exports exactly the names in c/bloomery_c.map, and these are the functions that bloomery.h declares.

exported_names.py LIBRARY SOURCE_DIRECTORY
"""

import re
import subprocess
import sys


def main() -> int:
    library, source = sys.argv[1:]
    with open(f"{source}/include/bloomery.h", encoding="utf-8") as file:
        declared = set(re.findall(r"^BLOOMERY_C_API [\w *]*?\b(bloomery_\w+)\(", file.read(), re.MULTILINE))
    with open(f"{source}/c/bloomery_c.map", encoding="utf-8") as file:
        listed = set(re.findall(r"^ +(bloomery_\w+);", file.read(), re.MULTILINE))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines()}
    exported = {name.replace("@@", "@").split("@")[0] for name in exported if not name.startswith("BLOOMERY_")}
    # A sanitizer adds names of its own.
    exported = {name for name in exported if not re.match(r"_*(asan|ubsan|tsan|sanitizer|lsan)", name)}
    faults = [
        f"{name}: {what}"
        for what, names in (
            ("declared in bloomery.h but not listed in bloomery_c.map", declared - listed),
            ("listed in bloomery_c.map but not declared in bloomery.h", listed - declared),
            ("exported but not listed in bloomery_c.map", exported - listed),
            ("listed in bloomery_c.map but not exported", listed - exported),
        )
        for name in sorted(names)
    ]
    print(*faults, sep="\n")
    return 1 if faults or not declared else 0


sys.exit(main())
