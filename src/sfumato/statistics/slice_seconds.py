"""Slice sums and slice second moments of whitened records: what second-order methods (SAVE, DR) need."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.statistics.moments import joint_diameter, joint_norm
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SliceSecondMoments(BoundedSum):
    """For each slice the sum of z and the upper triangle of the sum of ``z z^T``, with ``|z| <= cap``: (H, p + pairs).

    With ``u = z / cap`` in the unit ball, weights b on the sums and c = 1 on ``u u^T`` (off-diagonals sqrt(2), an
    isometry of the Frobenius norm) a record is ``(b u, u u^T)`` in the row of its slice and zero elsewhere, so its
    length is at most `joint_norm`. Two records of one slice are at most `joint_diameter` apart. Two of different
    slices have nothing in common, ``b^2 (s^2 + r^2) + c^2 (s^4 + r^4) <= 2 b^2 + 2 c^2``, which is less than
    ``joint_diameter^2 = 2 b^2 + 2 c^2 + b^4 / (2 c^2)`` if ``b^2 <= 2 c^2``, and than ``4 b^2`` otherwise. So the
    diameter is `joint_diameter`, however many slices there are.
    """

    whitening: Whitening
    bins: Bins
    slice_of: IntArray
    n_slices: int
    slice_weight: float = 0.5

    @property
    def norm(self) -> float:
        return joint_norm(self.slice_weight, 1.0)

    @property
    def diameter(self) -> float:
        return joint_diameter(self.slice_weight, 1.0)

    @property
    def n_features(self) -> int:
        """Columns of z."""
        return len(self.whitening.mean)

    @property
    def shape(self) -> tuple[int, ...]:
        p = self.n_features
        return (self.n_slices, p + p * (p + 1) // 2)

    @property
    def weights(self) -> FloatArray:
        radius = self.whitening.cap * self.whitening.unit
        row, column = np.triu_indices(self.n_features)
        pairs = np.where(row == column, 1.0, np.sqrt(2.0)) / radius**2
        return np.concatenate([np.full(self.n_features, self.slice_weight / radius), pairs])

    @property
    def grid(self) -> FloatArray:
        p, unit = self.n_features, 1.0 / self.whitening.unit
        return np.concatenate([np.full(p, unit), np.full(p * (p + 1) // 2, unit**2)])

    @property
    def describe(self) -> str:
        return f"sums and second moments by slice of the whitened records, {self.n_slices} slices"

    def of(self, records: Records) -> IntArray:
        z = self.whitening.integers(records)[:, :-1]
        slices = self.slice_of[self.bins.index(records)]
        upper = np.triu_indices(self.n_features)
        total = np.zeros(self.shape, dtype=np.int64)
        for h in range(self.n_slices):
            members = z[slices == h]
            total[h] = as_integers(np.concatenate([members.sum(axis=0), (members.T @ members)[upper]]))
        return total
