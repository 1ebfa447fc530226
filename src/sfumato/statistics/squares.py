"""Sums of squares, feature by feature: which features vary most."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray, Relation

UNITS = 2.0**10
"""Grid units of the clip: squares have 20 bits, so sums of a chunk are exact."""


@dataclass(frozen=True, slots=True, eq=False)
class SquareSums(BoundedSum):
    """``sum min(x_j, clip)^2`` of each feature j, x in half widths from the middle of the bounds, shape (p,).

    A square of a record is between 0 and ``clip^2``. So adding, removing or *replacing* a record moves each sum by
    ``clip^2`` at most, and all p sums together by ``sqrt(p) clip^2``, attained by a corner of the box against its
    middle.

    *Spread.* Adding a record moves every sum up, or leaves it, and removing one moves none up: any two changes are at
    most ``clip^2`` apart, attained by a record that is far out in one feature and in the middle of another. Replacing
    such a record by its mirror image moves one sum up and another down: ``2 clip^2``.
    """

    source: Grid
    clip: float

    @property
    def norm(self) -> float:
        return UNITS**2 * float(np.sqrt(self.source.n_features))

    @property
    def diameter(self) -> float:
        return self.norm

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.source.n_features,)

    @property
    def grid(self) -> FloatArray:
        return np.array([(self.clip / UNITS) ** 2])

    @property
    def describe(self) -> str:
        return f"sums of squares of {self.source.n_features} features, each clipped to {self.clip:.4g} half widths"

    def peak(self, relation: Relation) -> float:
        return UNITS**2

    def spread(self, relation: Relation) -> float:
        return UNITS**2 * (2.0 if relation == "replace" else 1.0)

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        np.abs(x, out=x)
        x *= UNITS / (self.clip * 2.0**self.source.bits)
        np.minimum(np.trunc(x, out=x), UNITS, out=x)
        return as_integers(np.einsum("ij,ij->j", x, x))
