"""Products of features with a bounded vector that is linear in x and depends on the slice: a truncated gradient."""

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum, as_integers, round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray, IntArray, Relation

X_BITS, E_UNITS = 14, 2.0**13
_ROW = 2.0**X_BITS * E_UNITS
"""Grid units of the longest row of one record's product."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductRows(BoundedSum):
    """``sum x e^T`` with ``e = f(y) + C^T x`` shortened to `radius`; x in half widths, shape (p, k).

    A coordinate of x is at most one half width and e at most `radius`, so a row of a record's product is at most
    `radius` long and the whole at most ``sqrt(p) radius``: what adding or removing a record can do. Replacing one
    moves a row, and the whole, by at most twice that, attained at opposite corners of the box.

    `scores` are the lengths of the rows of ``offset - sum``, in whole grid units rounded down, for selecting the
    largest rows after a step of a descent: a length moves by no more than the row itself, and so do its whole units,
    because the bound is a whole number. Squares of sums pass 2**53, where floats would round: they are Python integers.

    Parameters
    ----------
    source : Grid
        Of all p features.
    bins : Bins
        Slices of y.
    table : ndarray of shape (bins.count, k)
        f on each slice.
    support : ndarray of int
        Features on which C is not zero.
    coefficients : ndarray of shape (len(support), k)
        C on these.
    radius : float
        Longest e.
    offset : ndarray of shape (p, k), optional
        In the units of the sum, that is divided by the step; zero by default.
    rows : ndarray of int, optional
        Features to multiply with; all by default.
    """

    source: Grid
    bins: Bins
    table: FloatArray
    support: IntArray
    coefficients: FloatArray
    radius: float
    offset: FloatArray | None = None
    rows: IntArray | None = None

    def on(self, rows: IntArray) -> "ProductRows":
        """The same vectors e, multiplied with some of the features only."""
        return replace(self, rows=rows, offset=None)

    @property
    def norm(self) -> float:
        return _ROW * float(np.sqrt(self.shape[0]))

    @property
    def diameter(self) -> float:
        return 2.0 * self.norm

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.source.n_features if self.rows is None else len(self.rows), self.table.shape[1])

    @property
    def grid(self) -> FloatArray:
        return np.array([2.0**-X_BITS * self.radius / E_UNITS])

    @property
    def describe(self) -> str:
        rows, columns = self.shape
        return f"products of {rows} features with {columns} bounded functions, each at most {self.radius:.4g}"

    def peak(self, relation: Relation) -> float:
        return 2.0 * _ROW if relation == "replace" else _ROW

    def scores(self, total: IntArray) -> IntArray:
        start = np.zeros(self.shape) if self.offset is None else np.rint(self.offset / self.grid)
        rows = zip(start.tolist(), total.tolist(), strict=True)
        return np.array([_length([int(a) - b for a, b in zip(*row, strict=True)]) for row in rows], dtype=np.int64)

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        e = self._vectors(x, records)
        x = x if self.rows is None else x[:, self.rows]
        x *= 2.0 ** (X_BITS - self.source.bits)
        return as_integers(np.trunc(x, out=x).T @ e)

    def _vectors(self, x: FloatArray, records: Records) -> FloatArray:
        """e as integer rows: C and f are integers on a grid fine enough that ``C^T x`` is exact."""
        bits = 29 - len(self.support).bit_length()
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (self.coefficients, self.table))
        unit = max(largest, 1e-200) / 2.0**bits
        e = np.rint(self.table / unit * 2.0**self.source.bits).take(self.bins.index(records), axis=0)
        e += x[:, self.support] @ np.rint(self.coefficients / unit)
        e *= unit / 2.0**self.source.bits * (E_UNITS / self.radius)
        round_within(e, e.shape[1])
        return shrink_into_ball(e, squared_norms(e), E_UNITS)


def _length(row: list[int]) -> int:
    """Whole units of the length of an integer vector, exact whatever its size."""
    return math.isqrt(sum(value * value for value in row))
