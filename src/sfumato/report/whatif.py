"""What if: the loss to expect at other budgets and sizes. Public numbers and releases only."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from sfumato.errors import BudgetError
from sfumato.forecast.loss import Forecast, forecast
from sfumato.forecast.populations import WIDEST, Population
from sfumato.methods.explanation import Explanation
from sfumato.methods.sir import PrivateSIR
from sfumato.report.document import WhatIf

BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
SIZES = (0.25, 1.0, 4.0)
LEAST, MOST = 0.05, 0.99


def what_if(estimator: Any) -> WhatIf | None:
    """The forecast for a fitted estimator; None where there is none, or where n is private.

    The signal that the forecast needs is the released eigenvalue of the first direction, so nothing is asked of the
    records: this is post-processing.
    """
    n, p = getattr(estimator, "n_records_", None), int(estimator.n_features_in_)
    if type(estimator) is not PrivateSIR or n is None or n < 10 or not 2 <= p <= WIDEST:
        return None
    plan = estimator.explain(n, p)
    if plan.prospect is None:
        return None
    try:
        return _forecast(estimator, plan)
    except BudgetError:  # a quarter of a tiny budget is none
        return None


def _forecast(estimator: Any, plan: Explanation) -> WhatIf:
    n = plan.n_samples
    k, signal = len(estimator.directions_), _signal(estimator)
    assert plan.prospect is not None
    population = plan.prospect.explaining(signal, k)
    seen = [[_loss(plan, budget, size * n, population) for budget in BUDGETS] for size in SIZES]
    name = "rho" if plan.budget.rho is not None else "epsilon"
    base = plan.budget.rho if plan.budget.rho is not None else plan.budget.epsilon
    return WhatIf(
        budget_name=name,
        budgets=tuple(float(base or 1.0) * budget for budget in BUDGETS),
        sizes=tuple(round(size * n) for size in SIZES),
        losses=tuple(tuple(one.loss for one in row) for row in seen),
        plain=tuple(row[0].plain for row in seen),
        useless=seen[0][0].useless,
        here=(SIZES.index(1.0), BUDGETS.index(1.0)),
        assumption=(
            f"Assumed: normal, independent features, and {'one direction' if k == 1 else f'{min(k, 2)} directions'} "
            f"that explain{'s' if k == 1 else ''} {signal:.0%} of the response, as released here."
        ),
    )


def _signal(estimator: Any) -> float:
    values = [float(value) for value in estimator.eigenvalues_ if math.isfinite(value)]
    return min(max(values[0] if values else 0.5, LEAST), MOST)


def _loss(plan: Explanation, factor: float, n: float, population: Population) -> Forecast:
    budget = plan.budget
    if budget.rho is not None:
        other = replace(budget, rho=budget.rho * factor)
    else:
        other = replace(budget, epsilon=(budget.epsilon or 1.0) * factor)
    return forecast(plan.fit, other, n, population, relation=plan.relation, rows=plan.rows_per_person, draws=8)
