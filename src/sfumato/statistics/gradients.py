"""Residual products: the gradient of least squares, each record's share of it bounded."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.records import Records
from sfumato.statistics.histograms import Bins, LengthHistogram
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers, shrinkage
from sfumato.typing import FloatArray, IntArray

RESIDUAL_UNITS = 2.0**13
"""Grid units of the expected residual length."""
LARGEST = 2.0**20
"""Residual coordinates are cut here (128 expected lengths), so that squared lengths are exact."""
LARGEST_COEFFICIENT = 2.0**10
_MANY = 64
_BLOCK, _LEAST_ROWS = 2**19, 2**9
"""Numbers of e that are worked on together, 4 MiB, and the fewest records."""


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

    def integers(self, records: Records) -> tuple[FloatArray, FloatArray]:
        """Integers z, a row per record (n, p + 1), and e, a column per record (q, n): long rows are faster to work on.

        C is an integer multiple of 2**-bits, so ``C^T z`` is exact; f is rounded to the same grid.
        """
        z, index = self.whitening.integers(records), self.bins.index(records)
        return z, self._residuals(z, index)

    def blocks(self, records: Records) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """z, e and ``|z|^2 |e|^2`` of a few records at a time, so that e stays small where y has many classes."""
        z, squares = self.whitening.integers(records), self.whitening.squared_norms(records)
        index = self.bins.index(records)
        rows = max(_LEAST_ROWS, _BLOCK // self.table.shape[1])
        for begin in range(0, len(z), rows):
            here = slice(begin, begin + rows)
            e = self._residuals(z[here], index[here])
            yield z[here], e, squares[here] * np.einsum("ij,ij->j", e, e)

    def _residuals(self, z: FloatArray, index: NDArray[np.int16]) -> FloatArray:
        bits = min(20, 25 - z.shape[1].bit_length())
        e = np.rint(self.table * (self.whitening.unit * 2.0**bits)).T
        if not self.coefficients.any():  # the first step: e is a function of the bin alone
            of_bins = self._rounded(e, bits)
            wide = len(of_bins) > _MANY  # whole rows of the table are copied faster than single numbers are picked
            return np.ascontiguousarray(of_bins.T).take(index, axis=0).T if wide else of_bins.take(index, axis=1)
        bounded = np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
        e = e.take(index, axis=1)
        e -= np.rint(bounded * 2.0**bits).T @ z.T
        return self._rounded(e, bits)

    def _rounded(self, e: FloatArray, bits: int) -> FloatArray:
        """In grid units, cut to what is exact; in place."""
        e /= self.whitening.unit * 2.0**bits * self.unit
        np.rint(e, out=e)
        return np.clip(e, -LARGEST, LARGEST, out=e)


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
            counts += np.bincount(np.searchsorted(edges, squared), minlength=self.BINS)
        return counts


@dataclass(frozen=True, slots=True)
class ResidualProduct(BoundedSum):
    """``sum (z, 1) e^T`` with e shortened so that no record's product is longer than ``size sqrt(p + 1)``.

    The product of two vectors has Frobenius norm ``|z| |e|``. Where that exceeds the limit, e is multiplied by
    ``limit / (|z| |e|)``, taken a little too small (`shrinkage`), and truncated toward zero, which only shortens
    it. So one record weighs at most ``limit``: the norm; replacing one moves the sum by at most twice that, attained
    by e and -e: the diameter.
    """

    residual: Residual
    size: float

    @property
    def limit(self) -> float:
        """Longest product, in grid units."""
        p1 = len(self.residual.coefficients)
        return self.size * float(np.sqrt(p1)) / float(self.grid[0])

    @property
    def norm(self) -> float:
        return self.limit

    @property
    def diameter(self) -> float:
        return 2.0 * self.limit

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
        total = np.zeros(self.shape[::-1])
        for z, e, squared in self.residual.blocks(records):
            e *= shrinkage(squared, self.limit)
            total += np.trunc(e, out=e) @ z
        return as_integers(total.T)
