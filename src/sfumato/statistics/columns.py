"""A sum over some of the columns: what every statistic becomes after a selection of features."""

from dataclasses import dataclass

import numpy as np

from sfumato.records import Records
from sfumato.sums import BoundedSum, Restated
from sfumato.typing import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class OnColumns(Restated):
    """`query` asked about the records with the given columns only.

    Every record still contributes what `query` makes of it, so all its bounds hold unchanged; which columns they
    are is public or was released before.
    """

    query: BoundedSum
    columns: IntArray

    @property
    def describe(self) -> str:
        return f"{self.query.describe}; {len(self.columns)} selected features"

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
