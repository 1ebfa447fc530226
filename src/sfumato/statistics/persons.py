"""A sum in which a person, not a record, is what neighbouring data sets differ in."""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.records import Records
from sfumato.sums import BoundedSum, Restated
from sfumato.typing import IntArray, Relation


@dataclass(frozen=True, slots=True, eq=False)
class PerPerson(Restated):
    """`query` over records of which at most `rows` belong to any one person.

    *One step at a time.* Let D and D' be two such data sets that differ in one person, who has a records in D and b in
    D', both at most k = `rows`; nobody else's records differ. Then D becomes D' in at most k steps, each of them a data
    set again:

    * *a person is added or removed* (b = 0 or a = 0): k records are added, or removed, one by one;
    * *a person is replaced*: the records are paired up as far as they go, and the first of each pair replaced by the
      second; the ``|a - b|`` that are left over are added or removed. Together ``max(a, b) <= k`` steps.

    A step of adding or removing moves the sum by at most ``norm``, one of replacing by at most ``diameter``. By the
    triangle inequality the sum moves by at most ``k norm`` when a person is added or removed and by at most
    ``k max(diameter, norm)`` when one is replaced; attained by k equal records. Nothing was used of the length but the
    triangle inequality, so the same holds in L1, for Laplace noise.

    *Selections.* The bound of a score, `peak`, is proved for every pair of data sets that differ in one record, however
    the score is made from the sum (a length, a maximum, a quotient), so it holds for every step on the way: after k of
    them a score has moved by at most k times as much. No score has to be refused. So with `spread`: the difference of
    two scores moves by at most that much at every step, so by k times as much after k of them.

    *Disjoint parts* (`sfumato.statistics.parts.Part`). The records of a person may fall into several parts, but each
    falls into one that its own numbers decide. Let S_j be what the noise of part j is made for: ``k norm_j`` where a
    person is added or removed, ``k max(diameter_j, sqrt(2) norm_j)`` where one is replaced. In units of ``S_j / k`` a
    step moves part j alone by at most 1 (a record is added or removed, or replaced within the part), or two parts by at
    most 1 / sqrt(2) each (the new record is in another part): a vector over the parts that is at most 1 long. At most k
    of them add up to a vector of length k. So the sums of all parts together move by at most 1 in units of S_j, and
    cost one mu. The steps of each part are fixed by the pair of data sets, so queries may depend on earlier answers.
    """

    query: BoundedSum
    rows: int

    @property
    def norm(self) -> float:
        return self.rows * self.query.norm

    @property
    def diameter(self) -> float:
        return self.rows * max(self.query.diameter, self.query.norm)

    @property
    def describe(self) -> str:
        return f"{self.query.describe}; {'one row' if self.rows == 1 else f'up to {self.rows} rows'} of a person"

    def l1_sensitivity(self, relation: Relation) -> float:
        return self.rows * self._step(relation, self.query.l1_sensitivity)

    def peak(self, relation: Relation) -> float:
        return self.rows * self._step(relation, self.query.peak)

    def spread(self, relation: Relation) -> float:
        return self.rows * self._step(relation, self.query.spread)

    def of(self, records: Records) -> IntArray:
        return self.query.of(records)

    @staticmethod
    def _step(relation: Relation, bound: Callable[[Relation], float]) -> float:
        """The most that one step moves: where a person is replaced, records are replaced, or added or removed."""
        return bound("add-remove") if relation == "add-remove" else max(bound("replace"), bound("add-remove"))
