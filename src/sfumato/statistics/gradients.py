"""Residual products: the gradient of least squares, each record's share of it bounded."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.blocks import cross_product, product
from sfumato.records import Records
from sfumato.statistics.histograms import Bins, LengthHistogram
from sfumato.statistics.lookup import places
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers, column_squares, shrinkage
from sfumato.typing import FloatArray, IntArray

RESIDUAL_UNITS = 2.0**13
"""Grid units of the expected residual length."""
LARGEST = 2.0**20
"""Residual coordinates are cut here (128 expected lengths), so that squared lengths are exact."""
LARGEST_COEFFICIENT = 2.0**10
FUNCTION_UNITS, LARGEST_FUNCTION = 2.0**10, 2.0**2
"""Grid units of a function of y that is one, and its largest value: 2**20 records of the longest e add up exactly."""
_MANY = 64
_FEW = 2**13
"""Records that are cut sooner than it is found out whether they need be."""
_BLOCK, _LEAST_ROWS = 2**20, 2**9
"""Numbers of z and e that are worked on together, 8 MiB, and the fewest records."""


@dataclass(frozen=True, slots=True)
class Residual:
    """``e = f(y) - C^T (z, 1)``, with f a released table over bins of y and C a released matrix, as integers.

    Parameters
    ----------
    whitening : Whitening
        Gives z.
    bins : Bins
        Bins of y.
    table : ndarray of shape (bins.count, q)
        f on each bin.
    coefficients : ndarray of shape (p + 1, q)
        C, intercept last.
    scale : float
        Expected residual length; sets the resolution only.
    """

    whitening: Whitening
    bins: Bins
    table: FloatArray
    coefficients: FloatArray
    scale: float

    @property
    def unit(self) -> float:
        """What one grid unit of e is worth."""
        return self.scale / RESIDUAL_UNITS

    def blocks(self, records: Records) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """z (p + 1, rows), e (q, rows) and ``|z|^2 |e|^2`` of a few records at a time, each of them a column.

        C is an integer multiple of 2**-bits, so ``C^T z`` is exact; f is rounded to the same grid.
        """
        index, (p1, q) = self.bins.index(records), self.coefficients.shape
        bits = min(20, 25 - p1.bit_length())
        f = np.rint(self.table * (self.whitening.unit * 2.0**bits)).T
        c = np.rint(np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT) * 2.0**bits).T
        unit = self.whitening.unit * 2.0**bits * self.unit
        reach = self._reach(f, c) / unit if len(index) > _FEW else np.inf
        of_bins = None if self.coefficients.any() else _Taken(_rounded(f, unit, reach))
        for here, z, squares in self.whitening.blocks(records, max(_LEAST_ROWS, _BLOCK // (p1 + 2 * q))):
            if of_bins is not None:  # the first step: e is a function of the bin alone
                e, lengths = of_bins.at(index[here])
            else:
                e = f.take(index[here], axis=1)
                e -= product(c, z)
                _rounded(e, unit, reach)
                lengths = column_squares(e)
            lengths *= squares
            yield z, e, lengths

    def _reach(self, f: FloatArray, c: FloatArray) -> float:
        """What no coordinate of ``f - c z`` exceeds, z with its constant."""
        longest = self.whitening.unit * float(np.hypot(self.whitening.cap, 1.0))
        return float(np.abs(f).max(initial=0.0) + longest * np.sqrt((c**2).sum(axis=1).max(initial=0.0)))


def _rounded(e: FloatArray, unit: float, reach: float) -> FloatArray:
    """In grid units, in place, cut to what is exact; nothing is to cut where they surely are at most half of it."""
    e /= unit
    np.rint(e, out=e)
    return e if reach <= LARGEST / 2.0 else np.clip(e, -LARGEST, LARGEST, out=e)


class _Taken:
    """Columns of a table (q, bins) and their squared lengths, at the bins of some records."""

    def __init__(self, table: FloatArray) -> None:
        self._columns, self._squares = table, column_squares(table)
        # whole rows of a long table are copied faster than single numbers are picked
        self._rows = np.ascontiguousarray(table.T) if len(table) > _MANY else None

    def at(self, index: NDArray[np.int16]) -> tuple[FloatArray, FloatArray]:
        """A column for each of them (q, n), and its squared length."""
        taken = self._columns.take(index, axis=1) if self._rows is None else self._rows.take(index, axis=0).T
        return taken, self._squares.take(index)


@dataclass(frozen=True, slots=True)
class ResidualHistogram(LengthHistogram):
    """Counts of ``|z| |e| / sqrt(p + 1)`` in bins that grow by 2**(1/4): norm 1, diameter sqrt(2).

    Each record falls in one bin.
    """

    residual: Residual

    @property
    def sizes(self) -> FloatArray:
        """Upper edge of each bin: from 2**-13 to 2**3 expected residual lengths."""
        return np.asarray(self.residual.scale * 2.0 ** (np.arange(1 - self.BINS, 1) / 4.0 + 3.0))

    @property
    def describe(self) -> str:
        return f"histogram of the residual sizes, {self.BINS} bins"

    def of(self, records: Records) -> IntArray:
        unit = self.residual.unit / self.residual.whitening.unit / np.sqrt(len(self.residual.coefficients))
        edges = (self.sizes[:-1] / unit) ** 2
        counts = np.zeros(self.BINS, dtype=np.int64)
        for _, _, squared in self.residual.blocks(records):
            counts += np.bincount(places(edges, squared), minlength=self.BINS)
        return counts


class ShortenedProduct(BoundedSum):
    """``sum v e^T`` with e shortened so that no record's product is longer than ``size`` times the root of the rows.

    The product of two vectors has Frobenius norm ``|v| |e|``. Where that exceeds the norm, e is multiplied by
    ``norm / (|v| |e|)``, taken a little too small (`shrinkage`), and truncated toward zero, which only shortens
    it. So one record weighs at most ``norm``; replacing one moves the sum by at most twice that, attained
    by e and -e: the diameter.
    """

    __slots__ = ()
    residual: Residual
    size: float

    @property
    def norm(self) -> float:
        return self.size * float(np.sqrt(self.shape[0])) / float(self.grid[0])


@dataclass(frozen=True, slots=True)
class ResidualProduct(ShortenedProduct):
    """``sum (z, 1) e^T``, each product no longer than ``size sqrt(p + 1)``: norm and diameter of a `ShortenedProduct`.

    A record's z is whitened and its e the residual's: functions of the record and of earlier releases alone.
    """

    residual: Residual
    size: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.residual.coefficients.shape

    @property
    def grid(self) -> FloatArray:
        return np.array([self.residual.unit / self.residual.whitening.unit])

    @property
    def describe(self) -> str:
        rows, columns = self.shape
        return f"residual products, {rows} x {columns}, each record at most {self.size:.4g} sqrt({rows})"

    def of(self, records: Records) -> IntArray:
        total, limit = np.zeros(self.shape[::-1]), self.norm
        for z, e, squared in self.residual.blocks(records):
            e *= shrinkage(squared, limit)
            total += cross_product(np.trunc(e, out=e), z)
        return as_integers(total.T)


@dataclass(frozen=True, slots=True)
class ResponseProduct(ShortenedProduct):
    """``sum g(y) e^T`` for m functions g, each product no longer than ``size sqrt(m)``: norm and diameter of a
    `ShortenedProduct`, attained by e and -e on one bin.

    Parameters
    ----------
    residual : Residual
        Gives e and the bins of y.
    functions : ndarray of shape (bins.count, m)
        g on each bin; values beyond `LARGEST_FUNCTION` are cut.
    size : float
        Longest product, beside the root of m.
    """

    residual: Residual
    functions: FloatArray
    size: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.functions.shape[1], self.residual.coefficients.shape[1]

    @property
    def grid(self) -> FloatArray:
        return np.array([self.residual.unit / FUNCTION_UNITS])

    @property
    def describe(self) -> str:
        rows, columns = self.shape
        return f"residuals by functions of the response, {rows} x {columns}, each at most {self.size:.4g} sqrt({rows})"

    def of(self, records: Records) -> IntArray:
        g = np.rint(np.clip(self.functions, -LARGEST_FUNCTION, LARGEST_FUNCTION) * FUNCTION_UNITS)
        squares, index, end = column_squares(g.T), self.residual.bins.index(records), 0
        by_bin, limit = np.zeros((self.shape[1], len(g))), self.norm
        for _, e, _ in self.residual.blocks(records):
            here = index[end : (end := end + e.shape[1])]
            e *= shrinkage(squares.take(here) * column_squares(e), limit)
            for total, column in zip(by_bin, np.trunc(e, out=e), strict=True):
                total += np.bincount(here, column, len(g))  # g is the same on a bin: exact sums of e will do
        return as_integers((by_bin @ g).T)
