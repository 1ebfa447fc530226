"""The bounded sums that only the papers' algorithms ask for, with proofs."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.statistics.parts import Part
from sfumato.sums import BoundedSum, as_integers, round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray, IntArray, Relation

X_BITS, E_UNITS = 14, 2.0**13
_ROW = 2.0**X_BITS * E_UNITS
"""Grid units of the longest row of one record's product."""
UNITS = 2.0**13
"""Grid units of the longest projection of one record."""


class SumsBySlice(BoundedSum):
    """Sums by slice of m vectors, each no longer than one, and the slice sizes; scored by ``sum_h |s_h|^2 / n_h``.

    A record adds its m vectors and a one to the row of its slice: length at most ``sqrt(m + 1)``. Two records of one
    slice differ by at most 2 in each vector and not in the last entry: ``2 sqrt(m)``; of two slices by
    ``sqrt(2 (m + 1))``: the diameter is the larger of the two.

    Adding z to a slice of n_h records with mean u changes a score by ``|z|^2 - n_h/(n_h + 1) |z - u|^2``, between -3
    and 1 since ``|z|, |u| <= 1``. So adding or removing a record moves a score by 3 at most and replacing one, which
    removes one and adds another, by 4; rounding the score to the grid adds one unit. No slice needs to be large for
    that: the printed 7 c^2 assumes it and is more than needed.

    *Spread.* As one record moves every score by between -3 and 1 where it comes (-1 and 3 where it goes), any two
    changes are at most 4 apart, and rounding, half a unit in each of four scores, adds two units; replacing one: 8.
    """

    __slots__ = ()
    units: ClassVar[float]
    """Of the grid, in a vector of length one."""

    @property
    @abstractmethod
    def vectors(self) -> int:
        """How many there are."""

    @property
    def norm(self) -> float:
        return self.units * float(np.sqrt(self.vectors + 1))

    @property
    def diameter(self) -> float:
        return self.units * float(np.sqrt(max(4.0 * self.vectors, 2.0 * (self.vectors + 1))))

    @property
    def grid(self) -> FloatArray:
        return np.array([1.0 / self.units])

    def peak(self, relation: Relation) -> float:
        return self.units * (4.0 if relation == "replace" else 3.0) + 1.0

    def spread(self, relation: Relation) -> float:
        return self.units * (8.0 if relation == "replace" else 4.0) + 2.0


@dataclass(frozen=True, slots=True, eq=False)
class SliceSums(SumsBySlice):
    """Sums of x by slice and the size of each slice, shape (H, p + 1), x in half widths.

    Bounds, peak and spread are those of `SumsBySlice` for p vectors, the coordinates of x, each at most one. `scores`
    is n times the kernel's diagonal, ``sum_h s_hj^2 / n_h``.
    """

    units: ClassVar[float] = 2.0**X_BITS

    source: Grid
    bins: Bins

    @property
    def vectors(self) -> int:
        return self.source.n_features

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins.count, self.source.n_features + 1)

    @property
    def describe(self) -> str:
        return f"sums by slice of {self.source.n_features} features, {self.bins.count} slices"

    def scores(self, total: IntArray) -> IntArray:
        sums, sizes = total[:, :-1] * 2.0**-X_BITS, np.maximum(total[:, -1:] * 2.0**-X_BITS, 1.0)
        return as_integers(np.rint((sums**2 / sizes).sum(axis=0) * 2.0**X_BITS))

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        x *= 2.0 ** (X_BITS - self.source.bits)
        np.trunc(x, out=x)
        one_hot = np.zeros((len(x), self.bins.count))
        one_hot[np.arange(len(x)), self.bins.index(records)] = 1.0
        sizes = one_hot.sum(axis=0) * 2.0**X_BITS
        return as_integers(np.column_stack([one_hot.T @ x, sizes]))


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
        squares = (sum((int(a) - b) ** 2 for a, b in zip(*row, strict=True)) for row in rows)
        return np.array([math.isqrt(square) for square in squares], dtype=np.int64)

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


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSums(SumsBySlice):
    """Sums by slice of ``B_c^T x`` for r candidates, each shortened to `radius`, and the slice sizes: (H, r k + 1).

    Bounds, peak and spread are those of `SumsBySlice` for r vectors, in units of the radius. `scores` is ``n tr(B^T M
    B)`` for each candidate, in squared radii. (The paper's bound for its C.6 lacks a factor sqrt(s), and it prefers
    the smallest trace.)
    """

    units: ClassVar[float] = UNITS

    source: Grid
    bins: Bins
    candidates: tuple[FloatArray, ...]
    radius: float

    @property
    def vectors(self) -> int:
        return len(self.candidates)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins.count, sum(candidate.shape[1] for candidate in self.candidates) + 1)

    @property
    def describe(self) -> str:
        return f"sums by slice of the projections of {len(self.candidates)} candidates"

    def scores(self, total: IntArray) -> IntArray:
        sizes = np.maximum(total[:, -1] / UNITS, 1.0)
        each = ((total[:, :-1] / UNITS) ** 2 / sizes[:, None]).sum(axis=0)
        starts = np.cumsum([0, *(candidate.shape[1] for candidate in self.candidates[:-1])])
        return as_integers(np.rint(np.add.reduceat(each, starts) * UNITS))

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        one_hot = np.zeros((len(x), self.bins.count))
        one_hot[np.arange(len(x)), self.bins.index(records)] = 1.0
        projected = (index_units(x, self.source, candidate, self.radius) for candidate in self.candidates)
        parts = [one_hot.T @ shrink_into_ball(z, squared_norms(z), UNITS) for z in projected]
        return as_integers(np.column_stack([*parts, one_hot.sum(axis=0) * UNITS]))


@dataclass(frozen=True, slots=True, eq=False)
class IndexProducts(BoundedSum):
    """``sum v v^T`` with ``v = B^T x``, each of its k entries cut to `radius`: the upper triangle, k (k + 1) / 2.

    In units of the radius entries of v are at most one. With off-diagonals weighted by sqrt(2) the length of a record's
    contribution is the Frobenius norm of ``v v^T``, ``|v|^2 <= k``, attained where all entries are cut. Two records are
    ``sqrt(|v|^4 + |w|^4 - 2 (v^T w)^2)`` apart, at most ``sqrt(2) k``, attained for even k; for k = 1 at most one, as
    v^2 lies between 0 and 1.
    """

    source: Grid
    directions: FloatArray
    radius: float

    @property
    def norm(self) -> float:
        return float(UNITS**2 * self.directions.shape[1])

    @property
    def diameter(self) -> float:
        k = self.directions.shape[1]
        return UNITS**2 * (1.0 if k == 1 else float(np.sqrt(2.0)) * k)

    @property
    def shape(self) -> tuple[int, ...]:
        k = self.directions.shape[1]
        return (k * (k + 1) // 2,)

    @property
    def weights(self) -> FloatArray:
        row, column = np.triu_indices(self.directions.shape[1])
        return np.where(row == column, 1.0, np.sqrt(2.0))

    @property
    def grid(self) -> FloatArray:
        return np.array([(self.radius / UNITS) ** 2])

    @property
    def describe(self) -> str:
        return f"second moment of {self.directions.shape[1]} indices, each cut to {self.radius:.4g}"

    def of(self, records: Records) -> IntArray:
        v = index_units(self.source.integers(records.x), self.source, self.directions, self.radius)
        np.clip(v, -UNITS, UNITS, out=v)
        return as_integers((v.T @ v)[np.triu_indices(v.shape[1])])


def index_units(x: FloatArray, source: Grid, directions: FloatArray, radius: float) -> FloatArray:
    """``B^T x`` of integer records, rounded to `UNITS` of the radius; B is taken with so few bits that it is exact."""
    unit = max(float(np.abs(directions).max()), 1e-200) / 2.0 ** (30 - len(directions).bit_length())
    z: FloatArray = x @ np.rint(directions / unit)
    z *= unit / 2.0**source.bits * (UNITS / radius)
    return round_within(z, z.shape[1])


def example_queries() -> dict[str, BoundedSum]:
    """One query of every kind that only these estimators put to records."""
    grid, bins = Bounds(-1.0, 1.0).grid(3), Bins(np.array([-1.0, 0.0, 1.0]))
    table = np.array([[1.0, 0.5], [-1.0, 0.5], [1.0, -0.5], [-1.0, -0.5]])
    mixing = np.array([[1.0, 0.3], [0.3, 1.0], [0.0, 0.1]])
    products = ProductRows(grid, bins, table, np.array([0]), np.zeros((1, 2)), 0.5)
    return {
        "sums by slice": SliceSums(grid, bins),
        "product rows": products,
        "product rows of a part": Part(products, 0, 2),
        "products of indices": IndexProducts(grid, mixing, 0.5),
        "projections of candidates": CandidateSums(grid, bins, (np.eye(3)[:, :1], mixing), 1.0),
    }
