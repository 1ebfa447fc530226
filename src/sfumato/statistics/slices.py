"""Slice sums of whitened records, released together with their second moment, or with that of every slice.

The first is one round, for one-shot methods; the second is what second-order methods (SAVE, DR, Hessians) need.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.statistics.moments import joint_diameter, joint_norm
from sfumato.statistics.whitening import Whitening
from sfumato.sums import BoundedSum, as_integers, upper_pairs
from sfumato.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SlicedMoments(BoundedSum):
    """Sums of z by slice (H, p) and the upper triangle of the sum of ``z z^T``, with ``|z| <= cap``.

    With ``u = z / cap`` in the unit ball, weights b on the slice sums and c on ``u u^T`` (off-diagonals sqrt(2) c),
    two records of one slice are as far apart as in `joint_diameter`. Two of different slices have orthogonal slice
    sums: ``b^2 (s^2 + r^2) + c^2 |x x^T - y y^T|^2 <= 2 b^2 + 2 c^2``, never more. So the diameter is
    `joint_diameter` and the norm `joint_norm`.

    With a `count_weight` a, the numbers of records by slice (H,) come last. A record adds one 1 to them, so the squared
    norm grows by ``a^2``: ``a^2 + b^2 + c^2``, attained at ``s = 1``. Two records of one slice add the same 1, which
    cancels; two of different slices differ in two places, which adds ``2 a^2`` to the bound above, attained at
    ``s = r = 1`` with x and y orthogonal. So the squared diameter is the larger of ``joint_diameter^2`` and
    ``2 (a^2 + b^2 + c^2)``. For ``b^2 <= 2 c^2`` the first is ``b^4 / (2 c^2)`` above ``2 (b^2 + c^2)``: counts of
    weight ``a = b^2 / (2 c)`` cost nothing where one record is replaced.
    """

    whitening: Whitening
    bins: Bins
    slice_of: IntArray
    n_slices: int
    slice_weight: float = 1.0
    count_weight: float = 0.0

    @property
    def norm(self) -> float:
        return float(np.hypot(joint_norm(self.slice_weight, 1.0), self.count_weight))

    @property
    def diameter(self) -> float:
        return max(joint_diameter(self.slice_weight, 1.0), float(np.sqrt(2.0)) * self.norm)

    @property
    def shape(self) -> tuple[int, ...]:
        p = len(self.whitening.mean)
        return (self.n_slices * p + p * (p + 1) // 2 + self._counts,)

    @property
    def _counts(self) -> int:
        """How many counts there are."""
        return self.n_slices if self.count_weight > 0 else 0

    @property
    def _radius(self) -> float:
        return self.whitening.cap * self.whitening.unit

    @property
    def weights(self) -> FloatArray:
        p = len(self.whitening.mean)
        row, column = upper_pairs(p)
        pairs = np.where(row == column, 1.0, np.sqrt(2.0)) / self._radius**2
        sums = np.full(self.n_slices * p, self.slice_weight / self._radius)
        return np.concatenate([sums, pairs, np.full(self._counts, self.count_weight)])

    @property
    def grid(self) -> FloatArray:
        p = len(self.whitening.mean)
        unit = 1.0 / self.whitening.unit
        pairs = np.full(p * (p + 1) // 2, unit**2)
        return np.concatenate([np.full(self.n_slices * p, unit), pairs, np.ones(self._counts)])

    @property
    def describe(self) -> str:
        counted = ", with their sizes" if self._counts else ""
        return f"sums by slice and second moment of the whitened records, {self.n_slices} slices{counted}"

    def of(self, records: Records) -> IntArray:
        z = self.whitening.integers(records)[:, :-1]
        one_hot = np.zeros((len(z), self.n_slices))
        one_hot[np.arange(len(z)), self.slice_of[self.bins.index(records)]] = 1.0
        # not @, which holds the interpreter's lock where a result is small
        pairs = np.dot(z.T, z)[upper_pairs(z.shape[1])]
        sizes = one_hot.sum(axis=0)[: self._counts]
        return as_integers(np.concatenate([np.dot(one_hot.T, z).ravel(), pairs, sizes]))


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
        row, column = upper_pairs(self.n_features)
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
        upper = upper_pairs(self.n_features)
        total = np.zeros(self.shape, dtype=np.int64)
        for h in range(self.n_slices):
            members = z[slices == h]
            total[h] = as_integers(np.concatenate([members.sum(axis=0), np.dot(members.T, members)[upper]]))
        return total
