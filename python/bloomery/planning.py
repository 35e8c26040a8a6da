"""The choice of a filter: sizes and FPRs, all exact, without making a filter."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

from . import _bloomery
from .parameters import Window, are_integers, number, prefers_memory, window_arguments

#: The class for each structure.
CLASS_NAMES = {
    "plain": "Filter",
    "counting": "CountingFilter",
    "quotient": "QuotientFilter",
    "windowed": "WindowedFilter",
    "sealed": "StaticFilter",
    "growing": "ScalableFilter",
    "logged": "ScalableFilter.create",
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """A filter and its cost."""

    structure: str  #: the class, or the function that makes the filter: "Filter", "ScalableFilter.create"
    layout: str
    hash: str
    keys: int  #: the number of distinct keys that the figures assume
    bytes: int  #: the highest memory use up to that number
    disk_bytes: int  #: the size of a key log
    bits_per_key: float
    worst_bits_per_key: float  #: for example just after the filter has grown
    fpr: float  #: exact, with that number of keys
    cache_lines: int  #: maximum number per lookup
    needs_secret: bool = False  #: give the filter a secret
    alternatives: tuple[Plan, ...] = ()  #: other structures that meet the requirements, at a higher cost


def _plan_of(figures: dict[str, Any]) -> Plan:
    others = tuple(_plan_of(other) for other in figures.pop("alternatives", ()))
    return Plan(structure=CLASS_NAMES[figures.pop("structure")], alternatives=others, **figures)


def plan(
    keys: Optional[int] = None,
    fpr: float = 0.01,
    *,
    most_keys: Optional[int] = None,
    grows: bool = False,
    deletes: bool = False,
    static: bool = False,
    window: Optional[Window] = None,
    log: bool = False,
    memory: Optional[int] = None,
    untrusted: bool = False,
    prefer: str = "speed",
    kind: type = bytes,
) -> Plan:
    """The filter that meets requirements with the fewest bits per key.

    :param keys: the number of distinct keys; None: unknown
    :param most_keys: the maximum number, if `keys` is the minimum
    :param grows: more than `keys` may be inserted
    :param deletes: keys are removed
    :param static: all keys are known beforehand
    :param window: keys expire: a number of insertions, or a datetime.timedelta
    :param log: a key log of 8 bytes per key may be kept beside the file
    :param memory: the limit in bytes
    :param untrusted: parties that profit from false positives choose keys
    :param kind: ``bytes`` or ``int``

    >>> plan(1_000_000, 0.01).structure
    'Filter'
    >>> plan(1_000_000, 0.01, static=True).bits_per_key < 9.1
    True
    >>> plan(1_000_000, 0.01, deletes=True).structure
    'QuotientFilter'
    """
    return _plan_of(
        _bloomery.plan(
            keys=number("keys", keys or 0),
            most_keys=number("most_keys", most_keys or 0),
            fpr=float(fpr),
            grows=grows,
            deletes=deletes,
            is_static=static,
            log=log,
            memory_bytes=number("memory", memory or 0),
            threat=untrusted,
            prefer_memory=prefers_memory(prefer),
            integers=are_integers(kind),
            **window_arguments(window),
        )
    )
