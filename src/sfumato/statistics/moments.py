"""First and second moments of the records, released together; and squares alone: which features vary most."""

from dataclasses import dataclass

import numpy as np

from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.sums import BoundedSum, as_integers, round_within, shrink_into_ball, squared_norms, upper_pairs
from sfumato.typing import FloatArray, IntArray, Relation

UNITS = 2**15
"""Grid units of the clip radius: entries of at most 15 bits, so products of 30 and exact chunk sums."""
SQUARE_UNITS = 2.0**10
"""Grid units of the clip of `SquareSums`: squares have 20 bits, so sums of a chunk are exact."""


def joint_norm(b: float, c: float) -> float:
    """Length of ``(b x, c x x^T)`` at ``|x| = 1``: the add/remove-one sensitivity."""
    return float(np.sqrt(b**2 + c**2))


def joint_diameter(b: float, c: float) -> float:
    """Largest distance between ``(b x, c x x^T)`` and ``(b y, c y y^T)`` over the unit ball: replace-one.

    With ``s = |x|``, ``r = |y|``, cosine t and ``m = s r`` the squared distance is
    ``b^2 (s^2 + r^2 - 2 m t) + c^2 (s^4 + r^4 - 2 m^2 t^2)``. Its two terms in t are at most ``b^4 / (2 c^2)``
    (a parabola in ``m t``), and ``s, r <= 1``, so it never exceeds ``2 b^2 + 2 c^2 + b^4 / (2 c^2)``; this is
    attained at ``s = r = 1, t = -b^2 / (2 c^2)`` when ``b^2 <= 2 c^2``. When ``b^2 > 2 c^2 >= 2 c^2 m`` the
    maximum in t is at -1, giving ``(s + r)^2 (b^2 + c^2 (s - r)^2)``, which grows in s and in r because
    ``b^2 >= c^2``, so it is at most ``4 b^2``.

    >>> float(joint_diameter(0.0, 1.0) ** 2), round(joint_diameter(1.0, 0.0) ** 2, 12)
    (2.0000000000000004, 4.0)
    """
    if b**2 <= 2 * c**2:
        return float(np.sqrt(2 * b**2 + 2 * c**2 + b**4 / (2 * c**2)))
    return 2.0 * b


@dataclass(frozen=True, slots=True)
class Moments(BoundedSum):
    """Sum of x and upper triangle of the sum of ``x x^T``, records clipped radially to `radius` half widths.

    With ``u = x / radius`` in the unit ball and weights b on u, c on ``u u^T`` (off-diagonals sqrt(2) c: an
    isometry of the Frobenius norm that needs each pair only once) the norm is `joint_norm` and the diameter
    `joint_diameter`: the centre costs almost nothing beside the second moment.
    """

    source: Grid
    radius: float
    centre_weight: float = 0.3

    @property
    def norm(self) -> float:
        return joint_norm(self.centre_weight, 1.0)

    @property
    def diameter(self) -> float:
        return joint_diameter(self.centre_weight, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        p = self.source.n_features
        return (p + p * (p + 1) // 2,)

    @property
    def weights(self) -> FloatArray:
        p = self.source.n_features
        row, column = upper_pairs(p)
        pairs = np.where(row == column, 1.0, np.sqrt(2.0)) / UNITS**2
        return np.concatenate([np.full(p, self.centre_weight / UNITS), pairs])

    @property
    def grid(self) -> FloatArray:
        p = self.source.n_features
        unit = self.radius / UNITS
        return np.concatenate([np.full(p, unit), np.full(p * (p + 1) // 2, unit**2)])

    @property
    def describe(self) -> str:
        return f"sum and second moment of the records clipped to radius {self.radius:.4g}"

    def of(self, records: Records) -> IntArray:
        p, scale = self.source.n_features, UNITS / (self.radius * 2.0**self.source.bits)
        sums, squares = np.zeros(p), np.zeros((p, p))
        for _, x in self.source.blocks(records.x):
            x *= scale
            round_within(x, p, reach=scale * 2.0**self.source.bits)
            shrink_into_ball(x, squared_norms(x), float(UNITS))
            sums += np.dot(np.ones(len(x)), x)  # not @, which holds the interpreter's lock where a result is small
            squares += np.dot(x.T, x)
        return as_integers(np.concatenate([sums, squares[upper_pairs(p)]]))


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
        return SQUARE_UNITS**2 * float(np.sqrt(self.source.n_features))

    @property
    def diameter(self) -> float:
        return self.norm

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.source.n_features,)

    @property
    def grid(self) -> FloatArray:
        return np.array([(self.clip / SQUARE_UNITS) ** 2])

    @property
    def describe(self) -> str:
        return f"sums of squares of {self.source.n_features} features, each clipped to {self.clip:.4g} half widths"

    def peak(self, relation: Relation) -> float:
        return SQUARE_UNITS**2

    def spread(self, relation: Relation) -> float:
        return SQUARE_UNITS**2 * (2.0 if relation == "replace" else 1.0)

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        np.abs(x, out=x)
        x *= SQUARE_UNITS / (self.clip * 2.0**self.source.bits)
        np.minimum(np.trunc(x, out=x), SQUARE_UNITS, out=x)
        return as_integers(np.einsum("ij,ij->j", x, x))
