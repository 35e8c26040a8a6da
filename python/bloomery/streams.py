"""Streams of keys: dropping repetitions."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Optional, TypeVar

from .base import BaseFilter
from .filters import ScalableFilter

Item = TypeVar("Item")


def dedup(
    items: Iterable[Item],
    *,
    key: Optional[Callable[[Item], Any]] = None,
    fpr: float = 1e-6,
    filter: Optional[BaseFilter] = None,
) -> Iterator[Item]:
    """Yield the items whose key is certainly new, in order.

    A repetition is never yielded. A new item is dropped with a probability of at most `fpr`.

    :param key: the key of an item; None: the item itself
    :param fpr: the target FPR of a new scalable filter, which holds the keys
    :param filter: another filter that holds the keys; it may be in a file, and have keys of an earlier run

    >>> list(dedup(["b", "a", "b"]))
    ['b', 'a']
    >>> list(dedup(["Bern", "BERN", "Lima"], key=str.lower))
    ['Bern', 'Lima']
    """
    add = (ScalableFilter(fpr) if filter is None else filter)._add_maybe_new
    if key is None:
        return (item for item in items if add(item))  # type: ignore[arg-type]
    return (item for item in items if add(key(item)))
