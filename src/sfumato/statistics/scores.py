"""Sign scores: how much each feature moves with functions of the response, every record weighing one at most.

`SignResiduals` are the same with what is left of a function once some features have explained their part;
`QuantileScores` tell how far cut points are from a quantile of the response.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray, Relation

UNITS = 2**10
"""Grid units of one: the functions of y are rounded to multiples of 1/1024."""
_FINE = 2.0**30
"""Grid units of the functions and effects that a residual is made of: sums of thousands of them are exact."""
_ROWS = 64
"""Rows that are multiplied at once: small enough for the cache, and their sums are exact in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class SignScores(BoundedSum):
    """``sum f_q(y) sign(x_j - centre_j)`` for q functions of y and p features, shape (q, p).

    A sign is -1, 0 (at the centre itself) or 1, and f is a public or released table over bins of y, cut to
    ``[-1, 1]``. A record contributes the outer product of f(y) and its signs: no entry is larger than the largest
    ``|f|``, and its length is at most ``sqrt(p)`` times the longest row of the table. Those are the bounds for
    adding or removing a record. Replacing one moves the sum by at most twice as much, attained by two records of
    the same y on opposite sides of the centre. So the score of a feature, of order n where it matters, moves by 2
    at most, whatever the scale of x.

    `scores` is the largest ``|sum|`` over the functions, feature by feature: a maximum of absolute values moves by
    no more than the entry that moves most.
    """

    centre: FloatArray
    bins: Bins
    table: FloatArray

    @property
    def _integers(self) -> FloatArray:
        return np.rint(np.clip(self.table, -1.0, 1.0) * UNITS)

    @property
    def norm(self) -> float:
        longest = max(float((self._integers**2).sum(axis=1).max()), 1.0)  # a table of zeros asks nothing
        return float(np.sqrt(len(self.centre) * longest))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.table.shape[1], len(self.centre))

    @property
    def grid(self) -> FloatArray:
        return np.array([1.0 / UNITS])

    @property
    def describe(self) -> str:
        functions, features = self.shape
        return f"sign scores of {features} features with {functions} functions of the response"

    def peak(self, relation: Relation) -> float:
        largest = max(float(np.abs(self._integers).max()), 1.0)
        return 2.0 * largest if relation == "replace" else largest

    def scores(self, total: IntArray) -> IntArray:
        return np.asarray(np.abs(total).max(axis=0))

    def of(self, records: Records) -> IntArray:
        signs = _signs(records.x, self.centre)
        return as_integers(self._integers[self.bins.index(records)].T @ signs)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Signs:
    """``sign(x_j - centre_j)`` of every feature: -1, 0 or 1, an exact function of the record; kept between passes."""

    centre: FloatArray

    def of(self, records: Records) -> NDArray[np.int8]:
        """One row for each record."""
        return records.derive(self, lambda: _signs(records.x, self.centre).astype(np.int8))


@dataclass(frozen=True, slots=True, eq=False)
class SignResiduals(BoundedSum):
    """``sum r_i sign(x_ij - centre_j)`` for the features j of `columns`, r what is left of a function of y.

    ``r = (f(y) - sum over the support of effect_a sign(x_a - centre_a)) / scale``, cut to ``[-1, 1]``: f is a released
    table over bins of y, support, effects and scale were released before. f and the effects are integers on a fine
    grid, so their sum is exact in any order, and r, rounded to 1/1024, is a function of the record alone.

    A record contributes r times p signs: no entry is larger than one and the whole no longer than ``sqrt(p)``. Those
    are the bounds for adding or removing a record. Replacing one moves an entry by at most 2 and the whole by
    ``2 sqrt(p)``, attained by two records of ``|r| = 1`` on opposite sides of the centre. None of it depends on what
    the support is or how large the effects are, so each question may be chosen by all answers before.

    `scores` is the absolute value, which moves by no more; one record can move one score up and another down, so the
    spread is twice as much.

    Parameters
    ----------
    signs : Signs
        Of all features.
    bins : Bins
        Of y.
    table : ndarray of shape (bins.count,)
        f on each bin.
    support : ndarray of int
        Features whose effects are taken off; one may stand there several times.
    effects : ndarray of shape (len(support),)
        What is taken off for a positive sign.
    scale : float
        Where the residual is cut.
    columns : ndarray of int
        Features to multiply with.
    """

    signs: Signs
    bins: Bins
    table: FloatArray
    support: IntArray
    effects: FloatArray
    scale: float
    columns: IntArray

    @property
    def norm(self) -> float:
        return UNITS * float(np.sqrt(len(self.columns)))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.columns),)

    @property
    def grid(self) -> FloatArray:
        return np.array([1.0 / UNITS])

    @property
    def describe(self) -> str:
        count = len(self.columns)
        what = "1 feature" if count == 1 else f"{count} features"
        return f"sign scores of {what} with what {len(self.support)} effects leave of a function of the response"

    def peak(self, relation: Relation) -> float:
        return 2.0 * UNITS if relation == "replace" else float(UNITS)

    def scores(self, total: IntArray) -> IntArray:
        return np.asarray(np.abs(total))

    def of(self, records: Records) -> IntArray:
        signs = self.signs.of(records)
        r = self.residuals(self.bins.index(records), signs[:, self.support])
        if 4 * len(self.columns) < signs.shape[1]:
            return as_integers(_products(r, signs[:, self.columns]))
        return as_integers(_products(r, signs)[self.columns])

    def residuals(self, bins: NDArray[np.int16], signs: NDArray[np.int8]) -> FloatArray:
        """r in grid units, from the bin of y and the signs of the support."""
        unit = max(float(np.abs(self.table).max()), float(np.abs(self.effects).max(initial=0.0)), 1e-200) / _FINE
        e = np.rint(self.table / unit)[bins]
        e -= signs @ np.rint(self.effects / unit)
        e *= UNITS * (unit / self.scale)
        return np.clip(np.rint(e, out=e), -UNITS, UNITS, out=e)


def _products(r: FloatArray, signs: NDArray[np.int8]) -> FloatArray:
    """``r^T signs`` of whole numbers r up to 1024, exact."""
    sums, small = np.zeros(signs.shape[1]), r.astype(np.float32)
    for start in range(0, len(r), _ROWS):
        rows = slice(start, start + _ROWS)
        sums += small[rows] @ signs[rows].astype(np.float32)
    return sums


def _signs(x: FloatArray, centre: FloatArray) -> FloatArray:
    """Signs of ``x - centre``: the difference of two floats is zero only if they are equal, so they are exact."""
    if not centre.any():
        return np.sign(x)
    with np.errstate(over="ignore"):
        difference: FloatArray = x - centre
    return np.sign(difference, out=difference)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileScores(BoundedSum):
    """For every edge of `bins`: ``(m - l) (records below) - l (records not below)``, the quantile being ``l / m``.

    The sum is zero at the quantile itself and grows by m with every record of rank between; the number of records
    is not needed. A record contributes ``m - l`` to the edges above it and ``-l`` to the others, so adding or removing
    one moves an edge by at most ``max(l, m - l)`` and replacing one by m, where it passes from one side to the other.
    Over E edges the lengths are at most sqrt(E) times as much, attained by records beyond all edges.

    `scores` is minus the absolute value, which moves by no more: the largest is nearest to the quantile.
    """

    bins: Bins
    level: int
    of_levels: int

    @property
    def norm(self) -> float:
        return self.peak("add-remove") * float(np.sqrt(len(self.bins.edges)))

    @property
    def diameter(self) -> float:
        return self.of_levels * float(np.sqrt(len(self.bins.edges)))

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bins.edges),)

    @property
    def describe(self) -> str:
        return f"distance of {len(self.bins.edges)} cut points from the {self.level}/{self.of_levels} quantile of y"

    def peak(self, relation: Relation) -> float:
        return float(self.of_levels if relation == "replace" else max(self.level, self.of_levels - self.level))

    def scores(self, total: IntArray) -> IntArray:
        return -np.abs(total)

    def of(self, records: Records) -> IntArray:
        below = np.cumsum(np.bincount(self.bins.index(records), minlength=self.bins.count))[:-1]
        return np.asarray(self.of_levels * below - self.level * len(records), dtype=np.int64)
