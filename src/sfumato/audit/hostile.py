"""Hostile neighbours: tables and records at the edges of what floats, files and formulas can take, and forged releases.

Every value is within the declared domain (finite numbers, any name), so nothing may be refused.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.tape import Forge
from sfumato.release import Release
from sfumato.typing import FloatArray, IntArray, Relation

CELLS = (
    *(1.7e308, -1.7e308, 1e300, 1e6, -1e6),
    *(5e-324, -5e-324, 2.2250738585072014e-308, 1e-9, 0.0, -0.0),
    *(1.0, -1.0, float(np.nextafter(1.0, 2.0)), float(np.nextafter(-1.0, -2.0)), 0.5, -0.5),
)
"""Largest and least floats, both zeros, and the box of the audits, (-1, 1): its corners, just outside, inside."""
OUTSIDERS = ("none of these", "A", "a ", "é", "1", "1e5", "true", "2020-01-01", "inf", '"', "x" * 300)
"""Names that are not among the declared classes; some look like a number, a truth value, a date or a quote."""

Private = Literal["record", "answer", "label"]
"""What neighbours differ in: records; values of records, which are answered for one by one; or labels only."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features (n, p), and a response of numbers or of names; row i is of the person ``ids[i]``."""

    x: FloatArray
    y: tuple[Any, ...]
    ids: IntArray

    def without(self, rows: IntArray) -> "Table":
        """All records but these."""
        kept = np.delete(np.arange(len(self.y)), rows)
        return Table(self.x[kept], tuple(self.y[i] for i in kept), self.ids[kept])

    def replaced(self, rows: IntArray, x: FloatArray, y: Sequence[Any]) -> "Table":
        """Other records of the same people, in their places."""
        table, responses = self.x.copy(), list(self.y)
        table[rows] = x
        for row, response in zip(rows, y, strict=True):
            responses[row] = response
        return Table(table, tuple(responses), self.ids)

    def joined(self, places: IntArray, x: FloatArray, y: Sequence[Any], person: int) -> "Table":
        """With more rows of one person, in their order, before the rows at these places (ascending)."""
        responses = list(self.y)
        for place, response in reversed([*zip(places, y, strict=True)]):
            responses.insert(place, response)
        return Table(np.insert(self.x, places, x, axis=0), tuple(responses), np.insert(self.ids, places, person))


@dataclass(frozen=True, slots=True)
class Hostile:
    """Where hostile tables come from.

    Parameters
    ----------
    n_features : int
    responses : sequence
        Numbers or names that records may have; some have another.
    relation : {"replace", "add-remove"}
    private : {"record", "answer", "label"}
        Which part of a person's records neighbours may differ in.
    sizes : sequence of int
        Numbers of people to choose from.
    rows : int
        Rows that a person has at most; neighbours differ in all rows of one.
    last : bool
        Whether the person that differs is the last one; else any.
    """

    n_features: int
    responses: Sequence[Any]
    relation: Relation
    private: Private = "record"
    sizes: Sequence[int] = (1, 2, 3, 8, 20, 40)
    rows: int = 1
    last: bool = False

    def table(self, rng: np.random.Generator) -> Table:
        """As unlike anything that was foreseen as can be."""
        people = int(rng.choice(self.sizes))
        ids = np.repeat(np.arange(people), [self._count(rng) for _ in range(people)])
        table = _table(rng, ids if self.rows == 1 else rng.permutation(ids), self.n_features, self.responses)
        rows = np.flatnonzero(table.ids == self._person(rng, table))
        return table.replaced(rows, *_rows(rng, table.x[rows], self.responses))

    def neighbour(self, rng: np.random.Generator, table: Table) -> Table:
        """The table with one hostile person in the place of another, or with one more or one less."""
        person = self._person(rng, table)
        rows = np.flatnonzero(table.ids == person)
        if self.relation == "add-remove":
            if len({*table.ids.tolist()}) > min(self.sizes) and rng.random() < 0.5:
                return table.without(rows)
            return self._with(rng, table, int(table.ids.max()) + 1, table.x[rows])
        if self.rows > 1 and self.private == "record":  # with another number of rows, at other places
            return self._with(rng, table.without(rows), person, table.x[rows])
        x, y = _rows(rng, table.x[rows], self.responses)
        return table.replaced(rows, table.x[rows] if self.private == "label" else x, y)

    def _person(self, rng: np.random.Generator, table: Table) -> int:
        return int(table.ids.max() if self.last else rng.choice(table.ids))

    def _count(self, rng: np.random.Generator) -> int:
        """Rows of a person: as many as there may be, half of the time."""
        return self.rows if rng.random() < 0.5 else int(rng.integers(1, self.rows + 1))

    def _with(self, rng: np.random.Generator, table: Table, person: int, other: FloatArray) -> Table:
        count = self._count(rng)
        places = np.sort(rng.integers(0, len(table.y) + 1, count))
        x, y = _rows(rng, np.resize(other, (count, self.n_features)), self.responses)
        return table.joined(places, x, y, person)


def _table(rng: np.random.Generator, ids: IntArray, p: int, responses: Sequence[Any]) -> Table:
    n = len(ids)
    x = rng.uniform(-0.6, 0.6, (n, p))
    y = _responses(rng, n, responses)
    match rng.integers(6):
        case 0:
            x[:] = x[0]  # duplicates
        case 1:
            x[:, rng.random(p) < 0.5] = rng.choice(CELLS)  # constant columns
        case 2:
            y = y[:1] * n  # all other slices are empty
        case 3:
            x = np.where(rng.random(x.shape) < 0.3, rng.choice(CELLS, x.shape), x)
        case 4:
            x = rng.choice([-1.0, 1.0], x.shape)  # corners
    return Table(x, y, ids)


def _responses(rng: np.random.Generator, n: int, responses: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(responses[int(i)] for i in rng.integers(len(responses), size=n))


def _rows(rng: np.random.Generator, others: FloatArray, responses: Sequence[Any]) -> tuple[FloatArray, list[Any]]:
    """A record in the place of each other one: each hostile in its own way, or all alike, which moves most."""
    alike = rng.random() < 0.6
    records = [_record(rng, other, responses) for other in others[: 1 if alike else None]]
    records = records * len(others) if alike else records
    return np.array([x for x, _ in records]), [y for _, y in records]


def _record(rng: np.random.Generator, other: FloatArray, responses: Sequence[Any]) -> tuple[FloatArray, Any]:
    p, x = len(other), other
    match rng.integers(6):
        case 0:
            x = np.full(p, rng.choice(CELLS))
        case 1:
            x = rng.choice(CELLS, p)
        case 2:
            x = rng.choice([-1.0, 1.0]) * np.eye(p)[rng.integers(p)]
        case 3:
            x = -other
        case 4:
            x = rng.choice([-1.0, 1.0], p)
    y = _responses(rng, 1, responses)[0]
    if rng.random() < 0.5:
        y = rng.choice(CELLS) if isinstance(y, float) else OUTSIDERS[int(rng.integers(len(OUTSIDERS)))]
    return np.asarray(x), y


class Changed(Forge):
    """Every number changed in the same way; of answers, codes of slices stay as they are unless `codes`."""

    def __init__(self, name: str, change: Callable[[NDArray[Any]], NDArray[Any]], codes: bool = False) -> None:
        self.name, self._change, self._codes = name, change, codes

    def release(self, honest: Release) -> FloatArray:
        return self._change(honest.value)

    def answers(self, honest: NDArray[Any]) -> NDArray[Any]:
        return self._change(honest) if self._codes or honest.dtype.kind != "i" else honest


CHANGED = (
    Changed("zeros", np.zeros_like, codes=True),  # noise that happens to cancel the sum
    Changed("times 1e6", lambda values: values * 1e6),
    Changed("sign flipped", np.negative),  # counts and second moments below zero
    Changed("huge constant", lambda values: np.full_like(values, 1e18)),
)


class Shuffled(Forge):
    """Other picks than the best, other coordinates of the sums, other people's answers."""

    name = "permuted"

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)

    def release(self, honest: Release) -> FloatArray:
        return np.asarray(self._rng.permutation(honest.value.ravel()).reshape(honest.value.shape))

    def picks(self, honest: IntArray, n_scores: int) -> IntArray:
        return np.asarray(self._rng.permutation(n_scores)[: len(honest)], dtype=np.int64)

    def answers(self, honest: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self._rng.permutation(honest))


def forges(seed: int) -> tuple[Forge, ...]:
    """Every kind of release that a fit may be told, each forged kind after an honest one."""
    return tuple(told for kind in (*CHANGED, Shuffled(seed)) for told in (Forge(), kind))
