"""``method="auto"``: which of the methods of `PrivateSIR` is expected to lose least."""

from dataclasses import replace
from typing import Literal, cast

from sfumato.estimators.pipeline import Task
from sfumato.privacy.budget import Budget
from sfumato.typing import Relation


def with_best_method(task: Task, budget: Budget, relation: Relation, noises: float = 1.0) -> Task:
    """The task with the method of least expected loss, from public numbers: n, p, k, the budget and the schedule.

    In a federation the noise of the sum has `noises` times the variance of a central fit's. Where the number of
    records is private it is None, and `recommend` says what is best over all of them.
    """
    found = task.prospect().best(budget, task.n_records, relation, noises)
    return replace(task, method=cast(Literal["descent", "one-shot"], found))
