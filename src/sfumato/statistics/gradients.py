"""Residual products: the gradient of least squares, each record's share of it bounded."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins, Histogram
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers, shrinkage
from sfumato.typing import FloatArray, IntArray

RESIDUAL_UNITS = 2.0**13
"""Grid units of the expected residual length."""
LARGEST = 2.0**20
"""Residual coordinates are cut here (128 expected lengths), so that squared lengths are exact."""
LARGEST_COEFFICIENT = 2.0**10


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
        z = self.whitening.integers(records)
        bits = min(20, 25 - z.shape[1].bit_length())
        table = np.rint(self.table * (self.whitening.unit * 2.0**bits))
        bounded = np.clip(self.coefficients, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
        e = table.T.take(self.bins.index(records), axis=1)
        e -= np.rint(bounded * 2.0**bits).T @ z.T
        e /= self.whitening.unit * 2.0**bits * self.unit
        np.rint(e, out=e)
        return z, np.clip(e, -LARGEST, LARGEST, out=e)

    def squared_products(self, records: Records, e: FloatArray) -> FloatArray:
        """``|z|^2 |e|^2`` of each record, in grid units; each factor exact, their product rounded once."""
        return np.asarray(self.whitening.squared_norms(records) * np.einsum("ij,ij->j", e, e))


@dataclass(frozen=True, slots=True)
class ResidualHistogram(Histogram):
    """Counts of ``|z| |e| / sqrt(p + 1)`` in bins that grow by 2**(1/4): norm 1, diameter sqrt(2).

    Each record falls in one bin.
    """

    residual: Residual

    BINS = 64

    @property
    def sizes(self) -> FloatArray:
        """Upper edge of each bin: from 2**-13 to 2**3 expected residual lengths."""
        return np.asarray(self.residual.scale * 2.0 ** (np.arange(1 - self.BINS, 1) / 4.0 + 3.0))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.BINS,)

    @property
    def describe(self) -> str:
        return f"histogram of the residual sizes, {self.BINS} bins"

    def of(self, records: Records) -> IntArray:
        z, e = self.residual.integers(records)
        unit = self.residual.unit / self.residual.whitening.unit / np.sqrt(z.shape[1])
        edges = (self.sizes[:-1] / unit) ** 2
        return np.bincount(np.searchsorted(edges, self.residual.squared_products(records, e)), minlength=self.BINS)


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
        z, e = self.residual.integers(records)
        e *= shrinkage(self.residual.squared_products(records, e), self.limit)
        return as_integers((np.trunc(e, out=e) @ z).T)
