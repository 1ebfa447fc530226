"""The same sums about something else: one of several disjoint parts of the records (parallel composition), some of
their columns, as every statistic is after a selection of features, several columns for a response, or whole persons.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sfumato.records import Records
from sfumato.statistics.lookup import places
from sfumato.sums import BoundedSum, Restated
from sfumato.typing import FloatArray, IntArray, Relation

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = 0xBF58476D1CE4E5B9
"""Constants of SplitMix64 (Steele, Lea and Flood 2014); public, no secret is needed."""


def part_of(records: Records, parts: int) -> IntArray:
    """The part of each record, 0 to `parts` - 1: a hash of its own numbers.

    It depends on nothing but the record, neither on its place nor on other records, so neighbours agree on the part
    of every record they share. Equal records share a part; others are spread evenly.
    """
    x = np.ascontiguousarray(records.x).view(np.uint64)
    y = np.ascontiguousarray(records.y).view(np.uint64)
    odd = (np.arange(1, x.shape[1] + 2, dtype=np.uint64) * np.uint64(_GOLDEN)) | np.uint64(1)
    mixed = x @ odd[1:] + y * odd[0]
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(_MIX)
    return np.asarray((mixed >> np.uint64(33)) % np.uint64(parts), dtype=np.int64)


class _Division:
    """What the parts of records in memory are remembered under."""


@cache
def _division(parts: int) -> _Division:
    return _Division()


@dataclass(frozen=True, slots=True, eq=False)
class Part(Restated):
    """`query` over the records of part number `index` of `parts` (see `part_of`); all others add nothing.

    *Parallel composition.* Let every part be asked once, each query chosen from the answers of the parts before, each
    with the same mu. Adding or removing a record changes the sum of its own part alone, by at most ``norm``: all
    answers together are mu-GDP. Replacing one changes one part by at most ``diameter``, or takes it out of one part
    and puts another into a second: two sums, each by at most ``norm``, together ``sqrt(2) norm`` in the length that
    Gaussian releases add up in. So with ``diameter`` never below ``sqrt(2) norm``, as here, all answers together
    again cost one mu. (Of selections in parts nothing is said here; the curator has none.)
    """

    query: BoundedSum
    index: int
    parts: int

    @property
    def diameter(self) -> float:
        return max(self.query.diameter, float(np.sqrt(2.0)) * self.query.norm)

    @property
    def describe(self) -> str:
        return f"{self.query.describe}; each of {self.parts} disjoint parts of the records asked once"

    def l1_sensitivity(self, relation: Relation) -> float:
        raise NotImplementedError("the proof above is for Gaussian noise; ask all records at once for Laplace noise.")

    def peak(self, relation: Relation) -> float:
        return max(self.query.peak(relation), self.query.peak("add-remove"))

    def spread(self, relation: Relation) -> float:
        return max(self.query.spread(relation), self.query.spread("add-remove"))

    def of(self, records: Records) -> IntArray:
        mine = records.derive(_division(self.parts), lambda: part_of(records, self.parts)) == self.index
        return self.query.of(Records(records.x[mine], records.y[mine]))


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


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Cells:
    """Where each of several responses, the last columns of a table, is cut, at public or released edges.

    `sizes` of the edges are of each response, one response's after another's in `edges`. Which of the half-open bins
    between them a number lies in (as in `Bins`) is a digit of the cell, that of the first response the slowest.
    """

    edges: FloatArray
    sizes: IntArray

    @classmethod
    def cut(cls, edges: Sequence[FloatArray]) -> "Cells":
        """From the edges of each response.

        >>> Cells.cut([np.array([0.0]), np.array([1.0, 2.0])]).places[3].tolist()
        [1, 0]
        """
        return cls(np.concatenate(edges), np.array([len(of_one) for of_one in edges], dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(np.prod(self.sizes + 1))

    @property
    def places(self) -> IntArray:
        """The piece of each response in every cell: (cells, responses)."""
        return np.stack(np.unravel_index(np.arange(self.count), self.sizes + 1), axis=1)

    def of(self, records: Records) -> Records:
        """The other columns as features, the cell as the response; found once, like the maps of what it gives."""
        cell = records.derive(self, lambda: self._cell(records.x).astype(np.int32))
        return records.seen(self, lambda: records.x[:, : self._first(records.x)], cell.astype(np.int64))

    def _first(self, x: FloatArray) -> int:
        """Column of the first response."""
        return int(x.shape[1]) - len(self.sizes)

    def _cell(self, x: FloatArray) -> IntArray:
        cell = np.zeros(len(x), dtype=np.int64)
        for column, (size, end) in enumerate(zip(self.sizes, np.cumsum(self.sizes), strict=True), self._first(x)):
            cell = cell * (size + 1) + places(self.edges[end - size : end], x[:, column], "right")
        return cell


@dataclass(frozen=True, slots=True, eq=False)
class OnCells(Restated):
    """`query` asked about the first columns of the records, with the cell of the others in the place of the response.

    The cell comes from comparisons of one record with public or released edges: an exact function of the record alone.
    So a record changes the response of no other, each contributes what `query` makes of its features and its cell,
    and the bounds, which hold for every response, hold unchanged: ``norm`` where one is added or removed, ``diameter``
    where one is replaced, k times those for the k rows of a person (`PerPerson`).
    """

    query: BoundedSum
    cells: Cells

    @property
    def describe(self) -> str:
        return f"{self.query.describe}; {len(self.cells.sizes)} responses in {self.cells.count} cells"

    def of(self, records: Records) -> IntArray:
        return self.query.of(self.cells.of(records))


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

    *Disjoint parts* (`Part`). The records of a person may fall into several parts, but each
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
