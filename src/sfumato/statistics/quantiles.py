"""How far each of many cut points is from a quantile of the response: what a private quantile is selected by."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.statistics.histograms import Bins
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


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
