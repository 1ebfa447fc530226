"""Sign scores: how much each feature moves with functions of the response, every record weighing one at most."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum, as_integers
from sfumato.typing import FloatArray, IntArray, Relation

UNITS = 2**10
"""Grid units of one: the functions of y are rounded to multiples of 1/1024."""


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
    def diameter(self) -> float:
        return 2.0 * self.norm

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


def _signs(x: FloatArray, centre: FloatArray) -> FloatArray:
    """Signs of ``x - centre``: the difference of two floats is zero only if they are equal, so they are exact."""
    if not centre.any():
        return np.sign(x)
    with np.errstate(over="ignore"):
        difference: FloatArray = x - centre
    return np.sign(difference, out=difference)
