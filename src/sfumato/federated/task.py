"""What a federation agrees on before a record is read: the public facts of the fit, from the sites' own facts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import InputError
from sfumato.estimators.parameters import budget_of
from sfumato.estimators.pipeline import Task
from sfumato.iterate.descent import Schedule
from sfumato.privacy.budget import Budget
from sfumato.records import Response
from sfumato.typing import Relation

FEW_ROUNDS = Schedule(shares=(2.0, 2.0, 3.0), steps=(1.3, 1.2, 1.0), weights=(1.0, 1.0, 0.7, 0.5))
"""Noise is sqrt(K) times that of a central run, so three steps and four functions of the response rather than four and
twelve: each step keeps enough of the budget to see something, and fewer rounds are sent."""
PLENTY = 15_000.0


@dataclass(frozen=True, slots=True)
class Facts:
    """What a site says about itself; all of it public. `n_records` is None under add/remove-one.

    `rehearsal` says that its noise is seeded, so that nothing it releases is private.
    """

    n_features: int
    n_records: int | None
    response: Response
    feature_names: tuple[str, ...] | None = None
    rehearsal: bool = False


def schedule_of(sites: int, n_records: int | None, budget: Budget) -> Schedule:
    """The descent's schedule, from public numbers alone.

    ``n mu / sqrt(K)`` is how many times the noise of a sum of signs over all records fits into n: where that is large
    the noise hardly shows, and the wide basis of a central fit, which sees rare groups of the response, is affordable.

    >>> schedule_of(10, 10_000, Budget.approximate(1.0, 1e-5)) is FEW_ROUNDS
    True
    """
    plenty = n_records is not None and n_records * budget.mu() / math.sqrt(sites) > PLENTY
    return Schedule() if plenty else FEW_ROUNDS


def federated_task(estimator: Any, facts: Mapping[str, Facts], relation: Relation) -> Task:
    """The task of a federated fit, every fact of the sites compared."""
    if not facts:
        raise InputError("sites: none is there; give at least one.")
    first, *others = facts.items()
    for name, other in others:
        _same(first[0], name, "number of features", first[1].n_features, other.n_features)
        _same(first[0], name, "kind of response", first[1].response, other.response)
        _same(first[0], name, "names of the features", first[1].feature_names, other.feature_names)
    sizes = [fact.n_records for fact in facts.values()]
    n_records = None if relation == "add-remove" else _total(sizes)
    task: Task = estimator._task(first[1].n_features, n_records, first[1].response)
    budget = budget_of(estimator.epsilon, estimator.delta, estimator.rho)
    return replace(task, schedule=schedule_of(len(facts), n_records, budget))


def _same(first: str, other: str, what: str, a: object, b: object) -> None:
    if a != b:
        raise InputError(f"sites: {first!r} and {other!r} differ in the {what}; make their tables agree.")


def _total(sizes: Sequence[int | None]) -> int:
    if any(size is None for size in sizes):
        raise InputError("sites: the number of records must be public under relation='replace'.")
    return sum(size for size in sizes if size is not None)
