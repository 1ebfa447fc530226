"""A sum over some of the columns: what every statistic becomes after a selection of features."""

from dataclasses import dataclass

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
    """`query` asked about the records with one feature in the place of the response; the bounds hold unchanged."""

    @property
    def describe(self) -> str:
        return f"{self.query.describe.replace(' of y', '')}, of a selected feature"

    def of(self, records: Records) -> IntArray:
        return self.query.of(Records(records.x, records.x[:, self.columns[0]]))
