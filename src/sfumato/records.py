"""Records: what one chunk of a table looks like inside the curator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np

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


@dataclass(frozen=True, slots=True)
class Records:
    """Finite features `x` (n, p), float64, and responses `y` (n,): float64 numbers or int64 category codes."""

    x: FloatArray
    y: FloatArray | IntArray
    _derived: WeakKeyDictionary[object, object] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def derive(self, key: object, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept for as long as these records and `key` are; small integers, not float64.

        Several queries look at the same map of the records (their whitened coordinates, the bin of y). A source in
        memory hands out the same `Records` on every pass, so the map is computed once, at a quarter of the memory
        of x; a source that reads files makes new ones and keeps nothing. `key` is compared by identity.
        """
        if key not in self._derived:
            self._derived[key] = compute()
        return cast(T, self._derived[key])

    def __len__(self) -> int:
        return len(self.x)

    def is_finite(self) -> bool:
        """Whether every number is finite; a domain check, made before anything is spent."""
        return is_finite(self.x) and is_finite(self.y)


def is_finite(values: FloatArray | IntArray) -> bool:
    """Whether every number is finite.

    The sum is taken first: it is finite only if no term is nan or inf (an overflowing sum of finite terms falls
    through to the full check), and it needs no temporary of the table's size.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())
