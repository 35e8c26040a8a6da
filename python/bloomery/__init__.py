"""Bloom filters: have I seen this key?

>>> import bloomery
>>> cities = bloomery.Filter(1000, 0.01)
>>> cities.update(["Madrid", "Berlin"])
2
>>> "Madrid" in cities, "Lima" in cities
(True, False)

A filter has the same bytes as that of the command bloomery with the same parameters and keys, so each opens the files of the
other.
"""

from ._bloomery import version as __version__
from .base import BaseFilter, Key
from .errors import (
    AlreadyExistsError,
    DamagedError,
    Error,
    FullError,
    IncompatibleError,
    InputOutputError,
    InvalidArgumentError,
    LockedError,
    NotAFilterError,
    NotFoundError,
    NotPermittedError,
    TooLargeError,
    UnavailableError,
    WrongVersionError,
)
from .filters import CountingFilter, Filter, QuotientFilter, RedisFilter, ScalableFilter, StaticFilter, WindowedFilter, from_bytes, load, open
from .planning import Plan, plan
from .streams import dedup

__all__ = [
    "AlreadyExistsError",
    "BaseFilter",
    "CountingFilter",
    "DamagedError",
    "Error",
    "Filter",
    "FullError",
    "IncompatibleError",
    "InputOutputError",
    "InvalidArgumentError",
    "Key",
    "LockedError",
    "NotAFilterError",
    "NotFoundError",
    "NotPermittedError",
    "Plan",
    "QuotientFilter",
    "RedisFilter",
    "ScalableFilter",
    "StaticFilter",
    "TooLargeError",
    "UnavailableError",
    "WindowedFilter",
    "WrongVersionError",
    "__version__",
    "dedup",
    "from_bytes",
    "load",
    "open",
    "plan",
]
