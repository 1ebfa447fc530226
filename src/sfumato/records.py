"""Records: what one chunk of a table looks like inside the curator."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sfumato.typing import FloatArray, IntArray

T = TypeVar("T")
HASH_BUCKETS = 4096
"""Buckets for undeclared category names; ten classes share a bucket in 1 % of all tables (10 * 9 / 2 / 4096)."""


@dataclass(frozen=True, slots=True)
class Response:
    """What is publicly known about y: a number (`categories` is None) or one of `categories` codes.

    `hashed` says that the codes are hash buckets of undeclared names, so that which buckets are in use is
    private and must be bought from the budget.
    """

    categories: int | None = None
    hashed: bool = False


class Memory:
    """How many bytes may be kept between passes; what is kept for a key is given back when the key is gone.

    >>> class Map:
    ...     pass
    >>> memory, first, second = Memory(limit=100), Map(), Map()
    >>> memory.claim(first, 80), memory.claim(second, 80)
    (True, False)
    >>> del first
    >>> memory.claim(second, 80)
    True
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._used: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._lent: WeakKeyDictionary[Loan, int] = WeakKeyDictionary()
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """How many bytes are kept."""
        return sum(self._used.values()) + sum(self._lent.values())

    def claim(self, key: object, size: int) -> bool:
        """Whether `size` more bytes may be kept for as long as `key` is there. What was lent gives way."""
        with self._lock:
            if sum(self._used.values()) + size > self.limit:
                return False
            for loan in list(self._lent):  # those first that a pass has done with, or decodes next
                if self.taken + size <= self.limit:
                    break
                loan.x = None
                del self._lent[loan]
            self._used[key] = self._used.get(key, 0) + size
            return True

    def lend(self, x: FloatArray, leave: float) -> "Loan":
        """Room for a chunk of the features, until something else claims it; so many bytes are not lent at all."""
        with self._lock:
            loan, lent = Loan(), sum(self._lent.values())
            if lent + x.nbytes <= self.limit - leave and self.taken + x.nbytes <= self.limit:
                loan.x = x
                self._lent[loan] = x.nbytes
            return loan


class Loan:
    """Features that are kept for the time being; None where there was no room, or no longer is."""

    __slots__ = ("__weakref__", "x")

    def __init__(self) -> None:
        self.x: FloatArray | None = None


UNLIMITED = Memory(float("inf"))


class Kept:
    """The maps of one chunk that are kept from one pass to the next, each for as long as its key is there."""

    __slots__ = ("_maps", "_memory", "_views")

    def __init__(self, memory: Memory = UNLIMITED) -> None:
        self._memory = memory
        self._maps: WeakKeyDictionary[object, object] = WeakKeyDictionary()
        self._views: WeakKeyDictionary[object, Kept] = WeakKeyDictionary()

    def get(self, key: object, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept if there is room. `key` is compared by identity."""
        found = self._maps.get(key)
        if found is None:
            found = compute()
            if self._memory is UNLIMITED or self._memory.claim(key, size_of(found)):
                self._maps[key] = found
        return cast(T, found)

    def seen(self, key: object) -> "Kept":
        """What is kept of the same records seen in another way: apart, since a map of the one is none of the other."""
        return self._views.setdefault(key, Kept(self._memory))

    def __len__(self) -> int:
        return len(self._maps)


class Records:
    """Finite features `x` (n, p), float64, and responses `y` (n,): float64 numbers or int64 category codes.

    Parameters
    ----------
    x : ndarray, or a function that gives it
        A function is called when x is first touched: many a question is about y alone, or about a map of x that was
        kept, and then a file's x need not be decoded.
    y : ndarray
    kept : Kept, optional
        Maps of the same records from earlier passes.
    """

    __slots__ = ("_kept", "_load", "_x", "y")

    def __init__(
        self, x: FloatArray | Callable[[], FloatArray], y: FloatArray | IntArray, kept: Kept | None = None
    ) -> None:
        self._load: Callable[[], FloatArray] | None = x if callable(x) else None
        self._x: FloatArray | None = None if callable(x) else x
        self.y = y
        self._kept = Kept() if kept is None else kept

    @property
    def x(self) -> FloatArray:
        """The features."""
        if self._x is None:
            assert self._load is not None
            self._x = self._load()
        return self._x

    def derive(self, key: object, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept for as long as these records and `key` are; small integers, not float64.

        Several queries look at the same map of the records (their whitened coordinates, the bin of y). It is computed
        once, at a quarter of the memory of x, as far as a source has room to keep it. `key` is compared by identity.
        """
        return self._kept.get(key, compute)

    def seen(self, key: object, x: Callable[[], FloatArray], y: FloatArray | IntArray) -> "Records":
        """The same records with other features and responses, which `key` alone decides; maps of them are kept, too."""
        return Records(x, y, self._kept.seen(key))

    def __len__(self) -> int:
        return len(self.y)

    def __reduce__(self) -> tuple[type["Records"], tuple[FloatArray, FloatArray | IntArray]]:
        """A copy in another process has the records, not the maps: their keys are compared by identity."""
        return Records, (self.x, self.y)

    def is_finite(self) -> bool:
        """Whether every number is finite; a domain check, made before anything is spent."""
        return is_finite(self.x) and is_finite(self.y)


def size_of(value: object) -> int:
    """Bytes of an array, or of a tuple of arrays."""
    arrays: tuple[NDArray[Any], ...] = value if isinstance(value, tuple) else (value,)
    return sum(int(array.nbytes) for array in arrays)


def is_finite(values: FloatArray | IntArray) -> bool:
    """Whether every number is finite.

    The sum is taken first: it is finite only if no term is nan or inf (an overflowing sum of finite terms falls
    through to the full check), and it needs no temporary of the table's size.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())
