"""Slice sums and second moment of whitened records, released together: one round, for the one-shot method."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.statistics.moments import joint_diameter, joint_norm
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SlicedMoments(BoundedSum):
    """Sums of z by slice (H, p) and the upper triangle of the sum of ``z z^T``, with ``|z| <= cap``.

    With ``u = z / cap`` in the unit ball, weights b on the slice sums and c on ``u u^T`` (off-diagonals sqrt(2) c),
    two records of one slice are as far apart as in `joint_diameter`. Two of different slices have orthogonal slice
    sums: ``b^2 (s^2 + r^2) + c^2 |x x^T - y y^T|^2 <= 2 b^2 + 2 c^2``, never more. So the diameter is
    `joint_diameter` and the norm `joint_norm`.
    """

    whitening: Whitening
    bins: Bins
    slice_of: IntArray
    n_slices: int
    slice_weight: float = 1.0

    @property
    def norm(self) -> float:
        return joint_norm(self.slice_weight, 1.0)

    @property
    def diameter(self) -> float:
        return joint_diameter(self.slice_weight, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        p = len(self.whitening.mean)
        return (self.n_slices * p + p * (p + 1) // 2,)

    @property
    def _radius(self) -> float:
        return self.whitening.cap * self.whitening.unit

    @property
    def weights(self) -> FloatArray:
        p = len(self.whitening.mean)
        row, column = np.triu_indices(p)
        pairs = np.where(row == column, 1.0, np.sqrt(2.0)) / self._radius**2
        return np.concatenate([np.full(self.n_slices * p, self.slice_weight / self._radius), pairs])

    @property
    def grid(self) -> FloatArray:
        p = len(self.whitening.mean)
        unit = 1.0 / self.whitening.unit
        return np.concatenate([np.full(self.n_slices * p, unit), np.full(p * (p + 1) // 2, unit**2)])

    @property
    def describe(self) -> str:
        return f"sums by slice and second moment of the whitened records, {self.n_slices} slices"

    def of(self, records: Records) -> IntArray:
        z = self.whitening.integers(records)[:, :-1]
        one_hot = np.zeros((len(z), self.n_slices))
        one_hot[np.arange(len(z)), self.slice_of[self.bins.index(records)]] = 1.0
        pairs = (z.T @ z)[np.triu_indices(z.shape[1])]
        return as_integers(np.concatenate([(one_hot.T @ z).ravel(), pairs]))
