"""Parameters of filters: arguments of Python, checked and converted for the library."""

from __future__ import annotations

import datetime
import operator
import os
from typing import Any, Optional, Union

from . import _bloomery
from .errors import InvalidArgumentError

Window = Union[int, datetime.timedelta]


def invalid(message: str) -> InvalidArgumentError:
    error = InvalidArgumentError(message)
    error.code = "invalid_argument"
    return error


def number(name: str, value: Any) -> int:
    """A number from 0 to 2**64 - 1."""
    result = operator.index(value)
    if not 0 <= result < 2**64:
        raise invalid(f"{name}: expected a number from 0 to 2**64 - 1, found {result}")
    return result


def path_of(name: Union[str, bytes, "os.PathLike[Any]"]) -> bytes:
    """The bytes of a path or an address, as the system has them."""
    path = os.fsencode(name)
    if b"\0" in path:
        raise ValueError("embedded null byte")
    return path


def secret_of(secret: Any) -> Optional[bytes]:
    """A secret as bytes. No error shows it."""
    if secret is None:
        return None
    if not isinstance(secret, (bytes, bytearray, memoryview)):
        raise TypeError(f"secret: expected bytes, found {type(secret).__name__}")
    return bytes(secret)


def are_integers(keys: Any) -> bool:
    """True for keys=int; False for keys=bytes and keys=str, which are the same kind."""
    if keys is int:
        return True
    if keys in (bytes, str):
        return False
    raise invalid(f"keys: expected int, bytes or str, found {keys!r}")


def prefers_memory(prefer: str) -> bool:
    if prefer not in ("speed", "memory"):
        raise invalid(f"prefer: expected 'speed' or 'memory', found {prefer!r}")
    return prefer == "memory"


def milliseconds(time: Union[float, datetime.timedelta]) -> int:
    seconds = time.total_seconds() if isinstance(time, datetime.timedelta) else float(time)
    if not 0.001 <= seconds < 2**53:
        raise invalid(f"time: expected at least a millisecond, found {seconds} seconds")
    return round(1000 * seconds)


def window_arguments(window: Optional[Window]) -> dict[str, int]:
    """A window of keys or of time."""
    if window is None:
        return {"window_keys": 0, "window_ms": 0}
    if isinstance(window, datetime.timedelta):
        return {"window_keys": 0, "window_ms": milliseconds(window)}
    count = number("window", window)
    if count == 0:
        raise invalid("window: expected a number of keys above 0 or a datetime.timedelta, found 0")
    return {"window_keys": count, "window_ms": 0}


def params(
    capacity: int = 0,
    fpr: float = 0.0,
    *,
    keys: type = bytes,
    layout: Optional[str] = None,
    scheme: Optional[str] = None,
    hash: Optional[str] = None,
    seed: int = 0,
    secret: Optional[bytes] = None,
    window: Optional[Window] = None,
) -> _bloomery.Params:
    return _bloomery.params(
        capacity=number("capacity", capacity),
        fpr=float(fpr),
        layout=layout or "",
        scheme=scheme or "",
        hash=hash or "",
        integers=are_integers(keys),
        seed=number("seed", seed),
        secret=secret_of(secret),
        **window_arguments(window),
    )
