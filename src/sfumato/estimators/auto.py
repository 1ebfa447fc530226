"""``method="auto"``: the planner's choice between the methods of `PrivateSIR`."""

from dataclasses import replace
from typing import Literal, cast

from sfumato.estimators.pipeline import Task
from sfumato.planner.recommend import recommend
from sfumato.privacy.budget import Budget
from sfumato.typing import Relation

METHODS: tuple[Literal["descent", "one-shot"], ...] = ("descent", "one-shot")


def with_best_method(task: Task, budget: Budget, relation: Relation, noises: float = 1.0) -> Task:
    """The task with the method of least expected loss, from public numbers: n, p, k, the budget and the schedule.

    In a federation the noise of the sum has `noises` times the variance of a central fit's. Where the number of
    records is private it is None, and `recommend` says what is best over all of them.
    """
    plans = tuple((method, replace(task, method=method).plan().calibrate(budget).merged(noises)) for method in METHODS)
    found = recommend(plans, task.n_records, task.n_features, task.n_directions or 1, relation, task.schedule)
    return replace(task, method=cast(Literal["descent", "one-shot"], found))
