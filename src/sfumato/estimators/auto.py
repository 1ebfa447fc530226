"""``method="auto"``: the planner's choice between the methods of `PrivateSIR`."""

from dataclasses import replace
from typing import Literal, cast

from sfumato.estimators.pipeline import Task
from sfumato.planner.recommend import recommend
from sfumato.privacy.budget import Budget
from sfumato.typing import Relation

METHODS: tuple[Literal["descent", "one-shot"], ...] = ("descent", "one-shot")


def with_best_method(task: Task, budget: Budget, relation: Relation) -> Task:
    """The task with the method of least expected loss, from public numbers: n, p, k and the budget.

    Where the number of records is private it is not asked for: "descent".
    """
    if task.n_records is None:
        return replace(task, method="descent")
    plans = tuple((method, replace(task, method=method).plan().calibrate(budget)) for method in METHODS)
    found = recommend(plans, task.n_records, task.n_features, task.n_directions or 1, relation)
    return replace(task, method=cast(Literal["descent", "one-shot"], found))
