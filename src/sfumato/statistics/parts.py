"""A sum over a part of the table: over one of several disjoint parts of its records (parallel composition), or over
some of its columns, as every statistic is after a selection of features; or with several columns for a response.
"""

from collections.abc import Sequence
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
