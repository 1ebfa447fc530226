"""A sum over some of the columns: what every statistic becomes after a selection of features."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray, Relation


@dataclass(frozen=True, slots=True, eq=False)
class OnColumns(BoundedSum):
    """`query` asked about the records with the given columns only.

    Every record still contributes what `query` makes of it, so all its bounds hold unchanged; which columns they
    are is public or was released before.
    """

    query: BoundedSum
    columns: IntArray

    @property
    def norm(self) -> float:
        return self.query.norm

    @property
    def diameter(self) -> float:
        return self.query.diameter

    @property
    def shape(self) -> tuple[int, ...]:
        return self.query.shape

    @property
    def weights(self) -> FloatArray:
        return self.query.weights

    @property
    def grid(self) -> FloatArray:
        return self.query.grid

    @property
    def describe(self) -> str:
        return f"{self.query.describe}; {len(self.columns)} selected features"

    def l1_sensitivity(self, relation: Relation) -> float:
        return self.query.l1_sensitivity(relation)

    def peak(self, relation: Relation) -> float:
        return self.query.peak(relation)

    def scores(self, total: IntArray) -> IntArray:
        return self.query.scores(total)

    def of(self, records: Records) -> IntArray:
        return self.query.of(Records(records.x[:, self.columns], records.y))


@dataclass(frozen=True, slots=True, eq=False)
class OfColumn(OnColumns):
    """`query` asked about the records with one feature in the place of the response, or its distance from `centre`.

    Both are functions of the record alone, so the bounds hold unchanged.
    """

    centre: float | None = None

    @property
    def describe(self) -> str:
        return f"{self.query.describe.replace(' of y', '')}, of a selected feature"

    def of(self, records: Records) -> IntArray:
        values = records.x[:, self.columns[0]]
        if self.centre is not None:
            with np.errstate(over="ignore"):
                values = np.abs(values - self.centre)
        return self.query.of(Records(records.x, values))
