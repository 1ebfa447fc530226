"""BoundedSum: the only kind of question that is ever put to records."""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import assert_never

import numpy as np

from sfumato.records import Records
from sfumato.typing import FloatArray, IntArray, Relation


class BoundedSum(ABC):
    """A sum over records in which no single record can weigh more than a stated bound.

    Every record contributes a vector of integers (a point on a public grid) that is an exact function of that
    record and of earlier releases alone. Integers add exactly in any order, so chunks, threads and sites give
    the same sum bit for bit, and the bounds below hold to the last bit rather than up to rounding.

    Lengths are measured as ``|v|_w = sqrt(sum_j (w_j v_j)^2)`` with the public `weights` w: coordinate j is
    released with noise of standard deviation proportional to ``1 / w_j``, so ``sensitivity / mu`` in this norm
    is exactly what a mu-GDP Gaussian release needs.

    A subclass states and proves two bounds in its docstring:

    ``norm``
        the largest ``|v(record)|_w``: how far *adding or removing* one record can move the sum;
    ``diameter``
        the largest ``|v(a) - v(b)|_w``: how far *replacing* one record can move it.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def norm(self) -> float:
        """Bound on one record's weighted length (add or remove one record)."""

    @property
    def diameter(self) -> float:
        """Bound on the weighted distance between two records' contributions (replace one record).

        By the triangle inequality never more than twice the norm; a sum that says less proves it.
        """
        return 2.0 * self.norm

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""

    @property
    def weights(self) -> FloatArray:
        """Public weights w, broadcastable to `shape`."""
        return np.ones(1)

    @property
    def grid(self) -> FloatArray:
        """What one grid unit is worth, broadcastable to `shape`."""
        return np.ones(1)

    @property
    def describe(self) -> str:
        """One line for the ledger; public values only."""
        return type(self).__name__

    @abstractmethod
    def of(self, records: Records) -> IntArray:
        """Sum of the contributions of a chunk of records, exact."""

    def sensitivity(self, relation: Relation) -> float:
        """How far the sum can move (weighted L2) between neighbouring data sets."""
        match relation:  # a relation that is none of these must not pass for the one with less noise
            case "replace":
                return self.diameter
            case "add-remove":
                return self.norm
        assert_never(relation)

    def l1_sensitivity(self, relation: Relation) -> float:
        """How far the sum can move in L1, for Laplace noise; stated by the sums that allow it."""
        raise NotImplementedError(f"{type(self).__name__} is released with Gaussian noise only.")

    def scores(self, total: IntArray) -> IntArray:
        """What a selection compares: the coordinates themselves, or a function of the sum that moves by no more."""
        return total.ravel()

    def peak(self, relation: Relation) -> float:
        """How far any one score can move, for selection; never more than the whole sum."""
        return self.sensitivity(relation) / float(self.weights.min())

    def spread(self, relation: Relation) -> float:
        """How far the changes of any two scores can lie apart: what a selection owes.

        What moves all scores alike changes no selection, so only differences between changes count. They are at most
        ``2 peak``, one score up and another down; a sum of which one record can move all scores one way only says less,
        and proves it.
        """
        return 2.0 * self.peak(relation)


class Restated(BoundedSum):
    """Another sum, `query`, asked about something else: a subclass says of what, and why its bounds still hold."""

    __slots__ = ()
    query: BoundedSum

    @property
    def norm(self) -> float:
        return self.query.norm

    @property
    def diameter(self) -> float:
        return self.query.diameter

    @property
    def shape(self) -> tuple[int, ...]:
        return self.query.shape

    @property
    def weights(self) -> FloatArray:
        return self.query.weights

    @property
    def grid(self) -> FloatArray:
        return self.query.grid

    def l1_sensitivity(self, relation: Relation) -> float:
        return self.query.l1_sensitivity(relation)

    def peak(self, relation: Relation) -> float:
        return self.query.peak(relation)

    def spread(self, relation: Relation) -> float:
        return self.query.spread(relation)

    def scores(self, total: IntArray) -> IntArray:
        return self.query.scores(total)


def as_integers(exact: FloatArray) -> IntArray:
    """Integer-valued float64 sums as int64.

    BLAS and numpy add integers exactly in float64 while every partial sum stays below 2**53; the statistics
    keep to that by bounding their entries and the rows of a chunk.
    """
    return exact.astype(np.int64)


def shrinkage(squared_norms: FloatArray, radius: float) -> FloatArray:
    """Factor by which each vector must be multiplied to be no longer than `radius`; 1 for the shorter ones.

    It is taken 2**-40 too small, far more than the few roundings (2**-52 each) of the square root, the quotient and
    the product. Every vector takes the same operations, so the time does not tell how many were shortened.
    """
    shorter, length = radius * (1.0 - 2.0**-40), np.sqrt(squared_norms)
    np.maximum(length, shorter, out=length)  # a quotient of equals is 1
    return np.divide(shorter, length, out=length)


def shrink_into_ball(vectors: FloatArray, squared_norms: FloatArray, radius: float) -> FloatArray:
    """Integer rows scaled radially and truncated, in place, so that none is longer than `radius`.

    Rows inside the ball (by more than 2**-40 of it) stay as they are, to the bit; truncation toward zero only
    shortens the others, so the bound holds for the integers themselves.
    """
    vectors *= shrinkage(squared_norms, radius)[:, None]
    return np.trunc(vectors, out=vectors)


def round_within(values: FloatArray, columns: int, reach: float = np.inf) -> FloatArray:
    """Round to integers in place, cut so that a row's squared length stays exact (below 2**53).

    Where they surely are at most `reach` in absolute value there may be nothing to cut.
    """
    largest = 2.0 ** ((52 - columns.bit_length()) // 2)
    np.rint(values, out=values)
    return values if reach <= largest / 2.0 else np.clip(values, -largest, largest, out=values)


def squared_norms(vectors: FloatArray) -> FloatArray:
    """Row-wise squared lengths; exact for integer rows while they stay below 2**53."""
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors))


def column_squares(vectors: FloatArray) -> FloatArray:
    """The same of columns."""
    return np.asarray(np.einsum("ij,ij->j", vectors, vectors))


SMALL = 128
"""Rows of a matrix whose pairs are remembered."""


def upper_pairs(size: int, off: int = 0) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries of a square matrix on and above its diagonal, row by row; or `off` above it.

    As `numpy.triu_indices`, which takes longer than many a sum over them.

    >>> upper_pairs(2)
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return _remembered_pairs(size, off) if size <= SMALL else np.triu_indices(size, off)


@lru_cache(maxsize=64)
def _remembered_pairs(size: int, off: int) -> tuple[IntArray, IntArray]:
    row, column = np.triu_indices(size, off)
    row.flags.writeable = column.flags.writeable = False
    return row, column
