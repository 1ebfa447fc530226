"""Rows of a table a few at a time, side by side: what is made of them stays in the processor's cache, in long loops."""

from collections.abc import Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.typing import FloatArray

Array = TypeVar("Array", bound=NDArray[Any])

NUMBERS, LEAST_ROWS = 2**19, 2**9
"""Numbers of a block, 4 MiB, and the fewest of its rows: a product with a matrix takes as long for less.

Smaller blocks fit a nearer cache, but threads that make shorter calls of numpy spend their time waiting for each other.
"""
_SMALL = 10**6
"""Multiplications of a product up to which OpenBLAS takes matrices as they lie; before larger ones it copies them."""
_UNLOCKED = 501
"""Numbers of a result from which on ``numpy.matmul`` lets go of the interpreter's lock; ``numpy.dot`` always does."""
_WIDTH = 2**13
"""Numbers that a loop of numpy should be long: more than half of its buffer, or it copies what is broadcast there."""


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Which rows of a table are worked on together.

    >>> list(blocks(200_000, 1))
    [slice(0, 200000, None)]
    >>> list(blocks(60_000, 20))
    [slice(0, 30266, None), slice(30266, 60000, None)]
    """
    return pieces(rows, max(LEAST_ROWS, NUMBERS // columns), _beside(columns))


def pieces(rows: int, least: int, multiple: int = 1) -> Iterator[slice]:
    """Rows in about equal pieces of at least so many, a multiple of some number but for the last.

    >>> list(pieces(1_100, 512)), list(pieces(524, 512)), list(pieces(0, 512))
    ([slice(0, 550, None), slice(550, 1100, None)], [slice(0, 524, None)], [])
    """
    size = -(-rows // max(rows // least, 1))
    size = max(-(-size // multiple) * multiple, 1)
    return (slice(begin, min(begin + size, rows)) for begin in range(0, rows, size))


def side_by_side(table: FloatArray) -> list[FloatArray]:
    """The rows of a contiguous table, as many of them in one as make a long row; and those left over in another.

    >>> [part.shape for part in side_by_side(np.zeros((2005, 10)))]
    [(2, 8190), (1, 3670)]
    """
    rows, columns = table.shape
    whole = rows - rows % _beside(columns)
    parts = table[:whole].reshape(-1, columns * _beside(columns)), table[whole:].reshape(1, -1)
    return [part for part in parts if part.size]


def along(vector: Array, part: FloatArray) -> Array:
    """A number for each column of a table, as often as a row of `side_by_side` has rows of the table.

    >>> along(np.array([1.0, 2.0]), np.zeros((3, 4)))
    array([1., 2., 1., 2.])
    """
    return cast(Array, vector[None].repeat(part.shape[1] // len(vector), axis=0).reshape(-1))


def clip_along(part: FloatArray, lowest: FloatArray, highest: FloatArray) -> None:
    """Move numbers to the nearest bound of their column, in place; numpy takes a third of the time for equal bounds."""
    if (lowest == lowest[0]).all() and (highest == highest[0]).all():
        np.clip(part, lowest[0], highest[0], out=part)
    else:
        np.maximum(part, along(lowest, part), out=part)
        np.minimum(part, along(highest, part), out=part)


def product(matrix: FloatArray, columns: FloatArray) -> FloatArray:
    """``matrix @ columns``, a few columns at a time.

    >>> product(np.ones((1, 2)), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    array([[5., 7., 9.]])
    """
    found = np.empty((len(matrix), columns.shape[1]))
    at_once = _at_once(matrix.size, columns.shape[1])
    for begin in range(0, columns.shape[1], at_once):
        np.matmul(matrix, columns[:, begin : begin + at_once], out=found[:, begin : begin + at_once])
    return found


def cross_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left @ right.T``, a few columns of both at a time; exact where all sums of theirs are.

    All of them in one call, and so many that its result has `_UNLOCKED` numbers: of fewer numpy would not let other
    threads go on meanwhile, however much there is to add.

    >>> cross_product(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 0.0, 1.0]]))
    array([[4.]])
    """
    columns, size = left.shape[1], len(left) * len(right)
    times = min(max(-(-columns // _at_once(size, columns)), -(-_UNLOCKED // size)), columns)
    each = columns // max(times, 1)
    whole = times * each
    parts = np.matmul(
        left[:, :whole].reshape(len(left), times, each).transpose(1, 0, 2),
        right[:, :whole].reshape(len(right), times, each).transpose(1, 2, 0),
    )
    found: FloatArray = parts.sum(axis=0)
    found += left[:, whole:] @ right[:, whole:].T
    return found


def _at_once(size: int, columns: int) -> int:
    """Columns that a product with a matrix of so many numbers takes at a time, all where these would be very few."""
    most = _SMALL // max(size, 1)
    return max(columns if most < 2 * LEAST_ROWS else -(-columns // max(-(-columns // most), 1)), 1)


def _beside(columns: int) -> int:
    return max(_WIDTH // columns, 1)
