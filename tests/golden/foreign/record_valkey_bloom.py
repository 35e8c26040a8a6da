#!/usr/bin/env python3
"""Records filters of valkey-bloom and their answers, with the module in a server:

    tests/golden/foreign/record_valkey_bloom.py libvalkey_bloom.so

NAME.filter has the 303 keys of record.sh, and NAME.positives lists the keys other-0 .. other-19999 that the server
reports as present. Recorded with valkey-bloom at commit e627e87, crate bloomfilter 3.0.1, in Redis 7.0.15.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "command"))
os.environ.setdefault("BLOOMERY", "")
os.environ.setdefault("BLOOMERY_SOURCE", str(HERE.parents[2]))

from record_redisbloom import KEYS, OTHERS  # noqa: E402
from redis_server import RedisServer  # noqa: E402


def main() -> None:
    server = RedisServer("--loadmodule", sys.argv[1])
    client = server.client
    try:
        client("BF.RESERVE", "valkey_bloom", "0.01", 400)
        client("BF.RESERVE", "valkey_bloom_sparse", "0.001", 10_000, "NONSCALING")  # DUMP compresses its bits
        client("CONFIG", "SET", "bf.bloom-use-random-seed", "no")
        client("BF.RESERVE", "valkey_bloom_fixed", "0.01", 400)
        client("CONFIG", "SET", "bf.bloom-use-random-seed", "yes")
        for name in "valkey_bloom", "valkey_bloom_fixed", "valkey_bloom_sparse", "valkey_bloom_layers":
            client("BF.MADD", name, *KEYS)  # the last filter is made by this, for 100 keys, and grows
            (HERE / f"{name}.filter").write_bytes(client("DUMP", name))
            answers = client("BF.MEXISTS", name, *OTHERS)
            positives = "".join(f"{key}\n" for key, answer in zip(OTHERS, answers, strict=True) if answer)
            (HERE / f"{name}.positives").write_text(positives)
            print(name, client("BF.INFO", name))
    finally:
        server.end()


if __name__ == "__main__":
    main()
