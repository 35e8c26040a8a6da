#!/usr/bin/env python3
"""Records filters of RedisBloom and their answers, with the module in a Redis server:

    tests/golden/foreign/record_redisbloom.py redisbloom.so

build_redisbloom.sh builds the module. NAME.filter has the 303 keys of record.sh, and NAME.positives lists the keys
other-0 .. other-19999 that the server reports as present. Recorded with RedisBloom b28c294 in Redis 7.0.15.
"""

import os
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "command"))
os.environ.setdefault("BLOOMERY", "")
os.environ.setdefault("BLOOMERY_SOURCE", str(HERE.parents[2]))

from redis_server import RedisServer  # noqa: E402

KEYS = [f"key-{i}" for i in range(300)] + ["Zürich", "布隆过滤器", "a key with spaces, which is longer than two blocks of sixteen bytes"]
OTHERS = [f"other-{i}" for i in range(20_000)]


def chunks(client, key: str) -> bytes:
    """The chunks of BF.SCANDUMP, one after another."""
    parts, iterator = [], 0
    while True:
        iterator, data = client("BF.SCANDUMP", key, iterator)
        if iterator == 0:
            return b"".join(parts)
        parts.append(data)


def main() -> None:
    server = RedisServer("--loadmodule", sys.argv[1])
    client = server.client
    try:
        client("BF.RESERVE", "redisbloom", "0.01", 400)
        client("BF.RESERVE", "redisbloom_fixed", "0.01", 400, "NONSCALING")
        client("BF.RESERVE", "redisbloom_sparse", "0.001", 10_000)  # DUMP compresses its bits
        # Early versions made powers of two: 4096 bits for 303 keys and more. BF.RESERVE no longer does.
        bits_per_key = 11.0277  # for half of 1%
        header = struct.pack("<QIII", 0, 1, 4, 2) + struct.pack("<QQQddIQB", 512, 4096, 0, 0.005, bits_per_key, 8, int(4096 / bits_per_key), 12)
        client("BF.LOADCHUNK", "redisbloom_power", 1, header)
        for name in "redisbloom", "redisbloom_fixed", "redisbloom_sparse", "redisbloom_power", "redisbloom_layers":
            client("BF.MADD", name, *KEYS)  # the last filter is made by this, for 100 keys, and grows
            (HERE / f"{name}.filter").write_bytes(client("DUMP", name))
            answers = client("BF.MEXISTS", name, *OTHERS)
            positives = "".join(f"{key}\n" for key, answer in zip(OTHERS, answers, strict=True) if answer)
            (HERE / f"{name}.positives").write_text(positives)
            if name in ("redisbloom", "redisbloom_layers"):
                (HERE / f"{name}_chunks.filter").write_bytes(chunks(client, name))
                (HERE / f"{name}_chunks.positives").write_text(positives)
            print(name, *[line.decode() for line in client("BF.DEBUG", name)], sep="\n  ")
    finally:
        server.end()


if __name__ == "__main__":
    main()
