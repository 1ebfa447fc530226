"""Validation scores: how much of each candidate's projection lies between slices."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum, as_integers, round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray, IntArray, Relation

UNITS = 2.0**13


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSums(BoundedSum):
    """Sums by slice of ``B_c^T x`` for r candidates, each shortened to `radius`, and the slice sizes: (H, r k + 1).

    In units of the radius a record adds r vectors of length at most one and a one to the row of its slice: length at
    most ``sqrt(r + 1)``. Two records of one slice differ by at most 2 in each vector, ``2 sqrt(r)``; of two slices by
    ``sqrt(2 (r + 1))``; the diameter is the larger.

    `scores` is ``n tr(B^T M B)`` for each candidate, in squared radii: ``sum_h |s_h|^2 / n_h``. Adding z to a slice of
    m with mean u changes it by ``|z|^2 - m/(m + 1) |z - u|^2``, between -3 and 1, so adding or removing a record moves
    it by 3, replacing one by 4, and rounding by one unit more. (The paper's bound for its C.6 lacks a factor
    sqrt(s), and it prefers the smallest trace.)
    """

    source: Grid
    bins: Bins
    candidates: tuple[FloatArray, ...]
    radius: float

    @property
    def norm(self) -> float:
        return UNITS * float(np.sqrt(len(self.candidates) + 1))

    @property
    def diameter(self) -> float:
        r = len(self.candidates)
        return UNITS * float(np.sqrt(max(4.0 * r, 2.0 * (r + 1))))

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins.count, sum(candidate.shape[1] for candidate in self.candidates) + 1)

    @property
    def grid(self) -> FloatArray:
        return np.array([1.0 / UNITS])

    @property
    def describe(self) -> str:
        return f"sums by slice of the projections of {len(self.candidates)} candidates"

    def peak(self, relation: Relation) -> float:
        return UNITS * (4.0 if relation == "replace" else 3.0) + 1.0

    def scores(self, total: IntArray) -> IntArray:
        sizes = np.maximum(total[:, -1] / UNITS, 1.0)
        each = ((total[:, :-1] / UNITS) ** 2 / sizes[:, None]).sum(axis=0)
        starts = np.cumsum([0, *(candidate.shape[1] for candidate in self.candidates[:-1])])
        return as_integers(np.rint(np.add.reduceat(each, starts) * UNITS))

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        one_hot = np.zeros((len(x), self.bins.count))
        one_hot[np.arange(len(x)), self.bins.index(records)] = 1.0
        parts = [one_hot.T @ self._projected(x, candidate) for candidate in self.candidates]
        return as_integers(np.column_stack([*parts, one_hot.sum(axis=0) * UNITS]))

    def _projected(self, x: FloatArray, candidate: FloatArray) -> FloatArray:
        """Integer projections; the candidate is rounded to integers of so few bits that the product is exact."""
        unit = max(float(np.abs(candidate).max()), 1e-200) / 2.0 ** (30 - len(candidate).bit_length())
        z: FloatArray = x @ np.rint(candidate / unit)
        z *= unit / 2.0**self.source.bits * (UNITS / self.radius)
        round_within(z, z.shape[1])
        return shrink_into_ball(z, squared_norms(z), UNITS)
