"""What all filters have in common: keys, batches, files, bytes and what a filter reports about itself."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, SupportsIndex, Type, TypeVar, Union

from . import _bloomery
from .errors import IncompatibleError
from .parameters import invalid, path_of, secret_of

Key = Union[str, bytes, bytearray, memoryview, SupportsIndex]
Self = TypeVar("Self", bound="BaseFilter")


def incompatible(message: str) -> IncompatibleError:
    error = IncompatibleError(message)
    error.code = "incompatible"
    return error


class BaseFilter(_bloomery.Handle):
    """A filter of any kind, in memory, in a file or on a server.

    A lookup of an inserted key is always True. A lookup of another key is True with the false-positive rate (FPR).

    **Keys.** A filter of bytes takes str (as UTF-8), bytes, bytearray, memoryview, and int as its decimal text: 7 and "7"
    are the same key, as for the command and the SQLite extension. A filter of integers (``keys=int``) takes int from
    -2**63 to 2**64 - 1; a negative number n is the key 2**64 + n.

    **Hash.** The default hash is xxh3 for bytes and a mix of the bits for integers (``info()["hash"]``), with seed 0. It
    is the same in every process, on every machine and in every version.

    **Batches.** `update`, `add_many` and `contains_many` take any iterable of keys, arrays of integers or of fixed-width
    bytes (NumPy), and Arrow arrays (``__arrow_c_array__``, ``__arrow_c_stream__``). They release the GIL.

    **Threads.** Any number of threads may use a filter. Calls that change it run one at a time.
    """

    __slots__ = ("__weakref__",)

    # ---- keys --------------------------------------------------------------------------------------------------------

    def update(self, keys: Iterable[Key]) -> int:
        """Insert many keys. Return how many were certainly new.

        >>> cities = Filter(1000, 0.01)
        >>> cities.update(["Madrid", "Berlin", "Madrid"])
        2
        """
        return self._update(keys)

    def add_many(self, keys: Iterable[Key]) -> Any:
        """Insert many keys. Return for each key whether it was certainly new.

        The answers are a NumPy array if the keys are an array, otherwise a list.

        >>> Filter(1000, 0.01).add_many(["Madrid", "Berlin", "Madrid"])
        [True, True, False]
        """
        return self._add_many(keys)

    def contains_many(self, keys: Iterable[Key]) -> Any:
        """Look up many keys. False: the key was certainly never inserted.

        The answers are a NumPy array if the keys are an array, otherwise a list.

        >>> cities = Filter(1000, 0.01)
        >>> cities.add("Madrid")
        True
        >>> cities.contains_many(["Madrid", "Lima"])
        [True, False]
        """
        return self._contains_many(keys)

    def __len__(self) -> int:
        """The number of inserted keys that were certainly new; for counting filters, of present copies.

        An estimate if the count is unknown, as after a writer of the file was killed.

        >>> cities = Filter(1000, 0.01)
        >>> cities.update(["Madrid", "Berlin", "Madrid"]) == len(cities)
        True
        """
        count = self._count()
        return round(self.approx_items) if count is None else count

    def __bool__(self) -> bool:
        """True, also for a filter without keys: ``if filter:`` asks whether there is a filter."""
        return True

    # ---- files and bytes ---------------------------------------------------------------------------------------------

    @classmethod
    def open(cls: Type[Self], name: Union[str, os.PathLike[str]], mode: str = "r", *, secret: Optional[bytes] = None) -> Self:
        """Open a file in place: its pages are mapped, and read when they are first used. See `bloomery.open`."""
        if mode not in ("r", "r+"):
            raise invalid(f"mode: expected 'r' or 'r+', found {mode!r}")
        return cls._filled(lambda made: made._open(path_of(name), mode == "r+", secret_of(secret)))

    @classmethod
    def load(cls: Type[Self], path: Union[str, os.PathLike[str]], *, secret: Optional[bytes] = None) -> Self:
        """Read a file into memory. Later changes of the file and of the filter are independent.

        >>> Filter(1000, 0.01).save("cities.bloom")
        >>> cities = Filter.load("cities.bloom")
        >>> cities.add("Madrid"), "Madrid" in Filter.load("cities.bloom")
        (True, False)
        """
        return cls._filled(lambda made: made._load(path_of(path), secret_of(secret)))

    @classmethod
    def from_bytes(cls: Type[Self], data: Union[bytes, bytearray, memoryview], *, secret: Optional[bytes] = None) -> Self:
        """Make a filter in memory from the bytes of a file. The bytes may be hostile: they are checked."""
        return cls._filled(lambda made: made._from_bytes(data, secret_of(secret)))

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes.

        >>> cities = Filter(1000, 0.01)
        >>> Filter.from_bytes(cities.to_bytes()) == cities
        True
        """
        return self._to_bytes()

    def save(self, path: Union[str, os.PathLike[str]], *, replace: bool = True) -> None:
        """Write the filter as a file, whole or not at all."""
        self._save(path_of(path), replace)

    def close(self) -> None:
        """Write all changes of a file to the disk and end the use of the filter."""
        self._close(True)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, type: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        """Close the filter. After an exception, the file of a counting filter stays as it was before."""
        self._close(type is None)

    def __reduce__(self) -> Any:
        """Pickle the bytes of the filter. The copy is in memory, also if this filter is in a file, as for `copy`."""
        if self.info(read_bits=False)["is_keyed"]:
            raise incompatible("a filter with a secret is not pickled: pickle its to_bytes(), and give from_bytes() the secret")
        return _restored, (type(self), self.to_bytes(), getattr(self, "__dict__", {}))

    # ---- the whole filter --------------------------------------------------------------------------------------------

    def copy(self: Self) -> Self:
        """A copy in memory. The copy of a file that grows is of fixed size: a Filter."""
        made: Self = _in_memory(type(self), self._copy_to, getattr(self, "__dict__", {}))
        return made

    def __copy__(self: Self) -> Self:
        return self.copy()

    def __deepcopy__(self: Self, memo: Any) -> Self:
        return self.copy()

    def clear(self) -> None:
        """Remove all keys."""
        self._clear()

    def __eq__(self, other: object) -> bool:
        """Whether both filters have the same bits and parameters, and so give the same answers."""
        if not isinstance(other, BaseFilter):
            return NotImplemented
        return self._equals(other)

    __hash__ = None  # type: ignore[assignment]

    # ---- what a filter reports about itself --------------------------------------------------------------------------

    def info(self, *, read_bits: bool = True) -> dict[str, Any]:
        """Everything that the filter reports about itself. Without `read_bits`, only what needs no pass over its bits."""
        return self._facts(read_bits)

    @property
    def capacity(self) -> Optional[int]:
        """The number of keys up to which the FPR is at most `fpr`. None: the filter grows."""
        capacity: Optional[int] = self._facts(False)["capacity"]
        return capacity

    @property
    def fpr(self) -> float:
        """The target FPR."""
        rate: float = self._facts(False)["target_fpr"]
        return rate

    @property
    def size_in_bits(self) -> int:
        """Bits of the filter, of all its layers and shards."""
        bits: int = self._facts(False)["bits"]
        return bits

    @property
    def approx_items(self) -> float:
        """The number of distinct keys, estimated from the bits.

        >>> numbers = Filter(1000, 0.01)
        >>> numbers.update(range(500)) <= 500 and 480 < numbers.approx_items < 520
        True
        """
        items: float = self._facts(True)["approx_items"]
        return items

    def __repr__(self) -> str:
        if self.closed:
            return f"<bloomery.{type(self).__name__}: closed>"
        now = self._facts(False)
        keys = "" if now["insert_count"] is None else f" {now['insert_count']:,} keys,"
        return f"<bloomery.{type(self).__name__}:{keys} FPR {now['target_fpr']:.3g}, {now['layout'] or now['scheme']}, {now['bytes']:,} bytes>"

    # ---- for the classes of this package -----------------------------------------------------------------------------

    @classmethod
    def _filled(cls: Type[Self], fill: Callable[[Self], None]) -> Self:
        """A new object whose filter `fill` makes. An object of BaseFilter gets the class of its filter."""
        made = cls.__new__(cls)
        fill(made)
        kind = CLASSES[made._class()]
        if issubclass(cls, kind):
            return made
        if cls is not BaseFilter:
            raise incompatible(f"the filter is of another kind: expected {cls.__name__}, found {kind.__name__}; use bloomery.open()")
        made.__class__ = kind  # type: ignore[assignment]
        return made


def _in_memory(wanted: Any, fill: Callable[[Any], None], attributes: dict[str, Any]) -> Any:
    """A filter that `fill` makes, of the wanted class if that is its class or derives from it."""
    made: Any = BaseFilter._filled(fill)
    if issubclass(wanted, type(made)) and wanted is not type(made):
        made = wanted.__new__(wanted)
        fill(made)
    if attributes and hasattr(made, "__dict__"):
        made.__dict__.update(attributes)
    return made


def _restored(wanted: Any, data: bytes, attributes: dict[str, Any]) -> Any:
    def fill(made: BaseFilter) -> None:
        made._from_bytes(data, None)

    return _in_memory(wanted, fill, attributes)


#: The classes by the names that `_class` returns; filters.py fills it.
CLASSES: dict[str, Type[BaseFilter]] = {}
