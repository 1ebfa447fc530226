"""The diagonal of SIR's kernel, for selecting features: how much of each one's variance lies between slices."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray, Relation

X_BITS = 14


@dataclass(frozen=True, slots=True, eq=False)
class SliceSums(BoundedSum):
    """Sums of x by slice and the size of each slice, shape (H, p + 1), x in half widths.

    A record adds its x, each coordinate at most one, and a one, to the row of its slice: length at most
    ``sqrt(p + 1)``. Two records of one slice differ by 2 in every coordinate of x and not in the last: ``2 sqrt(p)``;
    of two slices by ``sqrt(2 (p + 1))``: the diameter is the larger of the two.

    `scores` is n times the kernel's diagonal, ``sum_h s_hj^2 / n_h``. Adding x to a slice of m records with mean u
    changes it by ``x^2 - m/(m + 1) (x - u)^2``, between -3 and 1 since ``|x|, |u| <= 1``. So adding or removing a
    record moves a score by 3 at most and replacing one, which removes one and adds another, by 4; rounding the score
    to the grid adds one unit. No slice needs to be large for that: the printed 7 c^2 assumes it
    and is more than needed.
    """

    source: Grid
    bins: Bins

    @property
    def norm(self) -> float:
        return 2.0**X_BITS * float(np.sqrt(self.source.n_features + 1))

    @property
    def diameter(self) -> float:
        p = self.source.n_features
        return 2.0**X_BITS * float(np.sqrt(max(4.0 * p, 2.0 * (p + 1))))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins.count, self.source.n_features + 1)

    @property
    def grid(self) -> FloatArray:
        return np.array([2.0**-X_BITS])

    @property
    def describe(self) -> str:
        return f"sums by slice of {self.source.n_features} features, {self.bins.count} slices"

    def peak(self, relation: Relation) -> float:
        return 2.0**X_BITS * (4.0 if relation == "replace" else 3.0) + 1.0

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
