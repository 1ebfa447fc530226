"""Fits that break their promise in ways that a replay must notice; a replay that finds nothing there proves nothing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from sfumato.audit.hostile import Hostile, Private, Table, forges
from sfumato.audit.tape import Replayed, record
from sfumato.bounds import Bounds
from sfumato.methods.about import BOX
from sfumato.methods.label_iht import LabelPrivateIHT
from sfumato.methods.pca import PrincipalTask, PrivatePCA
from sfumato.privacy.door import Behind, Door, Watch
from sfumato.records import Records, Response
from sfumato.release import Release
from sfumato.statistics.moments import UNITS, Moments
from sfumato.sums import BoundedSum, Restated, as_integers, round_within
from sfumato.typing import IntArray, Relation


@dataclass(frozen=True, slots=True, eq=False)
class Understated(Restated):
    """The same sum, with bounds that are too small; `part` is what they are of the true ones."""

    query: BoundedSum
    part: float = 0.8

    @property
    def norm(self) -> float:
        return self.part * self.query.norm

    @property
    def diameter(self) -> float:
        return self.part * self.query.diameter

    def of(self, records: Records) -> IntArray:
        return self.query.of(records)


@dataclass(frozen=True, slots=True)
class Unclipped(Moments):
    """Moments of records as long as the box allows, with the bounds of clipped ones."""

    def of(self, records: Records) -> IntArray:
        x = self.source.integers(records.x)
        x *= UNITS / (self.radius * 2.0**self.source.bits)
        round_within(x, x.shape[1])
        return as_integers(np.concatenate([np.ones(len(x)) @ x, (x.T @ x)[np.triu_indices(x.shape[1])]]))


def _unclipped(query: BoundedSum) -> BoundedSum:
    return Unclipped(query.source, query.radius, query.centre_weight) if type(query) is Moments else query


class LeakedCount(PrivatePCA):
    """Uses the number of records where it is private."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        self._seen = len(X)
        fitted = super().fit(X, groups=groups)
        del self._seen
        return fitted

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        return replace(super()._task(n_features, n_records, response), n_records=self._seen)


class BoundsFromData(PrivatePCA):
    """Takes the range of the records for public bounds."""

    def _task(self, n_features: int, n_records: int | None, response: Response) -> PrincipalTask:
        return replace(super()._task(n_features, n_records, response), bounds=self._range)

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        lower, upper = (np.clip(end, -1e100, 1e100) for end in (X.min(axis=0), X.max(axis=0)))
        self._range = Bounds(lower, upper + 1e-6 + 1e-6 * np.abs(upper))
        fitted = super().fit(X, groups=groups)
        del self._range, self.bounds_
        return fitted


@dataclass(frozen=True, slots=True)
class _Instead:
    """A door that asks something else than it was told to."""

    door: Door
    change: Callable[[BoundedSum], BoundedSum]

    def answer(self, query: BoundedSum, name: str) -> Release:
        return self.door.answer(self.change(query), name)

    def select(self, query: BoundedSum, name: str) -> IntArray:
        return self.door.select(self.change(query), name)


def _asking(change: Callable[[BoundedSum], BoundedSum], watch: Watch) -> Watch:
    def opened(door: Door, behind: Behind) -> Door:
        return _Instead(watch(door, behind), change)

    return opened


@dataclass(frozen=True, slots=True)
class BrokenFit:
    """An estimator that breaks its promise by itself, or with the `change` made to its questions.

    Where it promises to protect persons, they have `rows` rows each at most, and it is told of them if `with_ids`.
    """

    name: str
    estimator: Any
    relation: Relation
    change: Callable[[BoundedSum], BoundedSum] = lambda query: query
    rows: int = 1
    with_ids: bool = False

    def pair(self, i: int, seed: int = 0) -> Replayed:
        """A replay on the i-th pair of hostile neighbours."""
        rng = np.random.default_rng([seed, i])
        private: Private = "record" if hasattr(self.estimator, "relation") else "label"  # devices know of no relation
        hostile = Hostile(3, (-1.0, 1.0), self.relation, private, rows=self.rows)
        table, told = hostile.table(rng), forges(i)

        def fit(table: Table) -> Any:
            return self.estimator.fit(table.x, np.array(table.y), table.ids if self.with_ids else None)

        paid = self.estimator.rows_per_person or 1
        recording = record(fit, table, told[i % len(told)], paid, partial(_asking, self.change))
        return recording.play(hostile.neighbour(rng, table))

    def caught(self, pairs: int = 40) -> bool:
        """Whether any of so many pairs shows that the promise is broken."""
        return any(not self.pair(i).passed for i in range(pairs))


def broken_fits() -> list[BrokenFit]:
    """All negative controls of the replay."""
    known: dict[str, Any] = {"n_directions": 1, "bounds": BOX, "method": "refined", "random_state": 0}
    private = known | {"relation": "add-remove"}
    device: dict[str, Any] = {"n_active": 1, "rows_per_person": 9, "random_state": 0}
    return [
        BrokenFit("a diameter stated 20 % too small", PrivatePCA(**known), "replace", Understated),
        BrokenFit("a norm stated 20 % too small", PrivatePCA(**private), "add-remove", Understated),
        BrokenFit("the number of records used where it is private", LeakedCount(**private), "add-remove"),
        BrokenFit("records that are not clipped", PrivatePCA(**known), "replace", _unclipped),
        BrokenFit("bounds read from the data", BoundsFromData(**known), "replace"),
        *(
            BrokenFit(
                f"a person's ten rows bounded as nine, {relation}",
                PrivatePCA(**known, relation=relation, rows_per_person=10),
                relation,
                partial(Understated, part=0.9),
                rows=12,
                with_ids=True,
            )
            for relation in get_args(Relation)
        ),
        BrokenFit("nine rows vouched for and ten there", PrivatePCA(**known, rows_per_person=9), "replace", rows=10),
        BrokenFit("nine answers paid for and ten given", LabelPrivateIHT(**device), "replace", rows=10),
    ]
