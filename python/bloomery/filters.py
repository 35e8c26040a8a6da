"""The classes of filters, and the functions that open a filter of any class."""

from __future__ import annotations

import datetime
import os
import time
from typing import Any, Iterable, Optional, TypeVar, Union

from . import _bloomery
from .base import CLASSES, BaseFilter, Key, incompatible
from .parameters import Window, invalid, milliseconds, number, params, path_of, prefers_memory

Merged = TypeVar("Merged", bound="_Mergeable")


class _Mergeable(BaseFilter):
    """Filters with equal parameters can be united."""

    __slots__ = ()

    def __ior__(self: Merged, other: BaseFilter) -> Merged:
        if not isinstance(other, BaseFilter):
            return NotImplemented
        self._merge(other)
        return self

    def __or__(self: Merged, other: BaseFilter) -> Merged:
        if not isinstance(other, BaseFilter):
            return NotImplemented
        result = self.copy()
        result._merge(other)
        return result


class Filter(_Mergeable):
    """A filter of fixed size: the usual Bloom filter, in 11.5 to 12.5 bits per key at 1%.

    :param capacity: the number of distinct keys up to which the FPR is at most `fpr`
    :param fpr: the target FPR, a probability
    :param keys: ``bytes`` (also takes str and int), or ``int`` for 64-bit integers
    :param layout: split_block, split_block512, blocked, blocked_page or classic; None: chosen for `prefer`
    :param scheme: bits as in another system: guava, guava32, spark, spark2, dcso, bits_and_blooms, pharo, python, perl,
        redisbloom, datasketches, bloom_filters, bloomfilter_js, leveldb, rocksdb, rocksdb_4 or valkey_bloom
    :param hash: xxh3_64, xxh3, mix, murmur3, siphash or xxh64; None: the default of the layout
    :param secret: 16 bytes for siphash, if untrusted parties choose keys. A file does not contain the secret
    :param prefer: "speed" or "memory"

    >>> cities = Filter(1000, 0.01)
    >>> cities.add("Madrid")
    True
    >>> "Madrid" in cities, "Lima" in cities
    (True, False)
    >>> more = Filter(1000, 0.01)
    >>> more.update(["Madrid", "Bern"])
    2
    >>> len(cities | more), "Bern" in cities & more
    (2, False)
    """

    __slots__ = ()

    def __init__(
        self,
        capacity: int,
        fpr: float = 0.01,
        *,
        keys: type = bytes,
        layout: Optional[str] = None,
        scheme: Optional[str] = None,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
        prefer: str = "speed",
    ) -> None:
        made = params(capacity, fpr, keys=keys, layout=layout, scheme=scheme, hash=hash, seed=seed, secret=secret)
        self._make(_want_class("Filter", made), prefers_memory(prefer))

    @classmethod
    def create(
        cls,
        path: Union[str, os.PathLike[str]],
        capacity: int,
        fpr: float = 0.01,
        *,
        replace: bool = False,
        prefer: str = "speed",
        **others: Any,
    ) -> Filter:
        """Create a file and map it for writing. The other parameters are those of the class.

        >>> with Filter.create("towns.bloom", 1000, 0.01, replace=True) as towns:
        ...     towns.add("Soria")
        True
        >>> import bloomery
        >>> "Soria" in bloomery.open("towns.bloom")
        True
        """
        made = cls.__new__(cls)
        made._create(path_of(path), _want_class("Filter", params(capacity, fpr, **others)), prefers_memory(prefer), replace)
        return made

    def __iand__(self, other: BaseFilter) -> Filter:
        if not isinstance(other, BaseFilter):
            return NotImplemented
        self._intersect(other)
        return self

    def __and__(self, other: BaseFilter) -> Filter:
        if not isinstance(other, BaseFilter):
            return NotImplemented
        result = self.copy()
        result._intersect(other)
        return result


class _Removable(_Mergeable):
    """A filter whose keys can be removed."""

    __slots__ = ()

    def remove(self, key: Key) -> bool:
        """Remove one copy of a key. False: the key was certainly absent, and nothing changed."""
        return self._remove(key)

    def remove_many(self, keys: Iterable[Key]) -> Any:
        """Remove one copy of each key. Return for each whether it was removed, as `add_many`."""
        return self._remove_many(keys)


class QuotientFilter(_Removable):
    """A filter whose keys can be removed, for up to `capacity` keys.

    It takes 10.5 bits per key at 1%. When it is full, it raises FullError. Each copy of a key counts, up to 15
    copies; with more than two copies of many keys, it is full earlier.
    Remove only keys that were inserted: the removal of other keys may cause false negatives.

    A file that is open for writing is read into memory, and `close` replaces it. Without `close`, it stays as it was.

    With `grow`, it starts small and doubles when it is full, until it has room for `capacity` keys. Its FPR is at most
    `fpr` at any size.

    >>> here = QuotientFilter(1000, 0.01)
    >>> here.add("Madrid"), here.remove("Madrid"), "Madrid" in here
    (True, True, False)
    >>> QuotientFilter(100_000_000, 0.01, grow=True).size_in_bits < 1_000_000
    True
    """

    __slots__ = ()

    def __init__(
        self,
        capacity: int,
        fpr: float = 0.01,
        *,
        grow: bool = False,
        keys: type = bytes,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
    ) -> None:
        layout = "quotient_growing" if grow else "quotient"
        self._make(params(capacity, fpr, keys=keys, layout=layout, hash=hash, seed=seed, secret=secret), False)


class CountingFilter(_Removable):
    """A filter whose keys can be removed, with a 4-bit counter in place of each bit. It never refuses a key.

    Remove only keys that were inserted: the removal of other keys may cause false negatives.

    A file that is open for writing is read into memory, and `close` replaces it. Without `close`, it stays as it was.

    >>> here = CountingFilter(1000, 0.01)
    >>> here.add("Madrid"), here.remove("Madrid"), "Madrid" in here
    (True, True, False)
    """

    __slots__ = ()

    def __init__(
        self,
        capacity: int,
        fpr: float = 0.01,
        *,
        keys: type = bytes,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
    ) -> None:
        self._make(params(capacity, fpr, keys=keys, layout="counting", hash=hash, seed=seed, secret=secret), False)


class WindowedFilter(_Mergeable):
    """A filter whose keys expire: after a number of insertions, or after a time.

    :param window: a number of insertions, or a datetime.timedelta
    :param capacity: for a window of time: the number of distinct keys within a window

    A key stays for at least one window and for at most 8/7 of it.

    >>> recent = WindowedFilter(700, 0.01)
    >>> recent.add("first")
    True
    >>> recent.update(range(10_000)) > 9_900
    True
    >>> "first" in recent
    False
    """

    __slots__ = ()

    def __init__(
        self,
        window: Window,
        fpr: float = 0.01,
        *,
        capacity: int = 0,
        keys: type = bytes,
        layout: str = "sliding",
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
    ) -> None:
        if isinstance(window, datetime.timedelta) and not capacity:
            raise invalid("capacity: a window of time needs the number of keys within a window")
        made = params(capacity, fpr, keys=keys, layout=layout, hash=hash, seed=seed, secret=secret, window=window)
        self._make(_want_class("WindowedFilter", made), False)

    def tick(self, now: Union[float, datetime.datetime, None] = None) -> None:
        """Set the time, in seconds since 1970; None: the present time. Without calls, the system's clock is used.

        >>> from datetime import timedelta
        >>> minute = WindowedFilter(timedelta(minutes=1), 0.01, capacity=1000)
        >>> minute.tick(1_000_000)
        >>> minute.add("Madrid")
        True
        >>> minute.tick(1_000_050)
        >>> "Madrid" in minute
        True
        >>> minute.tick(1_000_100)
        >>> "Madrid" in minute
        False
        """
        if now is None:
            now = time.time()
        elif isinstance(now, datetime.datetime):
            now = now.timestamp()
        self._tick(number("now", int(1000 * now)))


class ScalableFilter(BaseFilter):
    """A filter for an unknown number of keys, which keeps its target FPR.

    In memory it adds layers. `create` makes a file with a log of its keys, from which it is rebuilt in a larger size. A
    file that `save` wrote is opened for reading.

    >>> seen = ScalableFilter(0.001)
    >>> seen.update(range(200_000)) > 199_000
    True
    >>> seen.info()["expected_fpr"] <= 0.001
    True
    """

    __slots__ = ()

    def __init__(
        self,
        fpr: float = 0.01,
        *,
        first_capacity: int = 0,
        keys: type = bytes,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
    ) -> None:
        self._make_scalable(params(first_capacity, fpr, keys=keys, hash=hash, seed=seed, secret=secret))

    @classmethod
    def create(cls, path: Union[str, os.PathLike[str]], fpr: float = 0.01, *, first_capacity: int = 0, replace: bool = False, **others: Any) -> ScalableFilter:
        """Create a file and its key log, PATH.log, and open them for writing.

        >>> with ScalableFilter.create("grows.bloom", 0.01, replace=True) as grows:
        ...     grows.update(range(5_000)) > 4_900
        True
        >>> import bloomery
        >>> 4_999 in bloomery.open("grows.bloom")
        True
        """
        made = cls.__new__(cls)
        made._create_rebuilding(path_of(path), params(first_capacity, fpr, **others), replace)
        return made


class StaticFilter(BaseFilter):
    """A filter built once from all its keys: 9.0 bits per key at 0.39%, 11.3 at 0.098%.

    :param keys: all keys; they may be repeated. The build takes 16 bytes per key in addition to the filter
    :param bits: bits of a fingerprint, 1 to 32; the FPR is 2^-bits, and a key takes 1.13 times as many bits. 8, 16 and 32
        have the fastest lookups
    :param ribbon: build a ribbon filter: a key takes 1.01 times as many bits, but lookups are slower
    :param kind: ``bytes`` or ``int``, as the parameter `keys` of other filters
    :param threads: for the build; 0: one per processor

    The bytes depend on the set of keys only, not on their order.

    >>> cities = StaticFilter(["Madrid", "Berlin", "Madrid"])
    >>> len(cities), "Berlin" in cities, "Lima" in cities
    (2, True, False)
    """

    __slots__ = ()

    def __init__(
        self,
        keys: Iterable[Key],
        *,
        bits: int = 8,
        ribbon: bool = False,
        kind: type = bytes,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
        threads: int = 0,
    ) -> None:
        if bits not in range(1, 33):
            raise invalid(f"bits: expected 1 to 32, found {bits!r}")
        self._build_static(params(keys=kind, hash=hash, seed=seed, secret=secret), keys, bits, ribbon, threads)


class RedisFilter(_Mergeable):
    """A filter on Redis or Valkey that many machines share.

    Opens the filter of this address, or creates it if there is none. `bloomery.open(address, "r+")` only opens it.

    :param address: redis://host:port/name, redis+cluster://..., unix:///path?name=...
    :param grows: True: without a limit; a number: up to this number of keys
    :param expires: seconds or a datetime.timedelta after which the server removes the filter
    :param window: a datetime.timedelta after which keys expire
    """

    __slots__ = ()

    def __init__(
        self,
        address: str,
        capacity: int,
        fpr: float = 0.01,
        *,
        grows: Union[bool, int] = False,
        expires: Union[float, datetime.timedelta, None] = None,
        window: Optional[datetime.timedelta] = None,
        keys: type = bytes,
        layout: Optional[str] = None,
        hash: Optional[str] = None,
        seed: int = 0,
        secret: Optional[bytes] = None,
    ) -> None:
        _want_servers()
        made = params(capacity, fpr, keys=keys, layout=layout, hash=hash, seed=seed, secret=secret, window=window)
        growth = "none" if grows is False else "unlimited" if grows is True else "to_maximum"
        maximum = number("grows", grows) if growth == "to_maximum" else 0
        self._create_on_server(path_of(address), made, growth, maximum, 0 if expires is None else milliseconds(expires))

    @staticmethod
    def drop(address: str) -> bool:
        """Remove a filter from its server. False: there was none."""
        _want_servers()
        return _bloomery.drop_on_server(path_of(address))

    def copy(self) -> BaseFilter:  # type: ignore[override]
        """A copy in memory, with the bits that are on the server now."""
        return BaseFilter._filled(self._copy_to)

    def remove(self, key: Key) -> bool:
        """Remove one copy of a key from a counting filter (``layout="counting"``)."""
        return self._remove(key)

    def remove_many(self, keys: Iterable[Key]) -> Any:
        """Remove one copy of each key from a counting filter."""
        return self._remove_many(keys)


def _want_class(name: str, made: _bloomery.Params) -> _bloomery.Params:
    if made.class_name != name:
        raise invalid(f"layout: {made.layout} is a layout of {made.class_name}, not of {name}")
    return made


def _want_servers() -> None:
    if not _bloomery.has_servers:
        raise incompatible("this package was built without servers: build it with hiredis and OpenSSL")


CLASSES.update({kind.__name__: kind for kind in (Filter, QuotientFilter, CountingFilter, WindowedFilter, ScalableFilter, StaticFilter, RedisFilter)})


def open(name: Union[str, os.PathLike[str]], mode: str = "r", *, secret: Optional[bytes] = None) -> BaseFilter:
    """Open the filter in a file or at the address of a server.

    The pages of a file are mapped: they are read when they are first used, and processes share them. The result has the
    class of the filter: Filter, QuotientFilter, CountingFilter, WindowedFilter, ScalableFilter, StaticFilter or
    RedisFilter.

    :param mode: "r" for reading; "r+" for reading and writing, which locks a file against other writers
    :param secret: the 16 bytes with which the filter was made

    >>> import bloomery
    >>> Filter(1000, 0.01).save("users.bloom")
    >>> with bloomery.open("users.bloom", "r+") as users:
    ...     users.add("alice")
    True
    >>> "alice" in bloomery.open("users.bloom")
    True
    """
    return BaseFilter.open(name, mode, secret=secret)


def load(path: Union[str, os.PathLike[str]], *, secret: Optional[bytes] = None) -> BaseFilter:
    """Read the filter in a file into memory."""
    return BaseFilter.load(path, secret=secret)


def from_bytes(data: Union[bytes, bytearray, memoryview], *, secret: Optional[bytes] = None) -> BaseFilter:
    """Make a filter in memory from the bytes of a file, which may be hostile."""
    return BaseFilter.from_bytes(data, secret=secret)
