"""Errors of bloomery. All derive from Error, and from the built-in exception that Python programs expect.

>>> import bloomery
>>> try:
...     bloomery.open("missing.bloom")
... except FileNotFoundError as error:
...     print(type(error).__name__, error.code)
NotFoundError not_found
"""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """An error of the library. Its text says what failed, where, and what to do."""

    code: str = ""  #: the class of the error: "not_found", "damaged", ...
    what: str = ""  #: what failed
    where: str = ""  #: the file, address or parameter
    expected: str = ""  #: the expected value, where a value was read and compared
    found: str = ""  #: the value found instead
    hint: str = ""  #: what to do
    keys_done: Optional[int] = None  #: an insertion or removal of many keys failed: keys processed before
    undecided: Optional[int] = None  #: the keys after them that may or may not be processed


class InvalidArgumentError(Error, ValueError):
    """A number outside its range, an unknown name, or a filter that is closed."""


class TooLargeError(Error, MemoryError):
    """A size beyond 64 bits, this machine's memory or a layout's limit."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such file, or no such filter on the server."""


class NotPermittedError(Error, PermissionError):
    """The system denies reading or writing, or the filter was opened for reading."""


class NotAFilterError(Error, ValueError):
    """The bytes are not a filter of bloomery."""


class WrongVersionError(Error, ValueError):
    """A filter of a format that this library does not know."""


class DamagedError(Error, ValueError):
    """A filter whose bytes contradict each other."""


class IncompatibleError(Error, ValueError):
    """Filters whose parameters differ, or an operation that this kind of filter does not support."""


class AlreadyExistsError(Error, FileExistsError):
    """A file that should be created exists."""


class LockedError(Error, BlockingIOError):
    """Another process is writing the filter."""


class InputOutputError(Error, OSError):
    """Reading or writing failed: full disk, broken device."""


class UnavailableError(Error, ConnectionError):
    """A server could not be reached in time. The operation may or may not have been executed."""


class FullError(Error, OverflowError):
    """A quotient filter has no room for a key. The keys before it are in."""


CLASSES = {
    "invalid_argument": InvalidArgumentError,
    "too_large": TooLargeError,
    "not_found": NotFoundError,
    "not_permitted": NotPermittedError,
    "not_a_filter": NotAFilterError,
    "wrong_version": WrongVersionError,
    "damaged": DamagedError,
    "incompatible": IncompatibleError,
    "already_exists": AlreadyExistsError,
    "locked": LockedError,
    "io": InputOutputError,
    "unavailable": UnavailableError,
    "full": FullError,
}
