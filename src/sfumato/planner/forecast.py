"""Forecasts: the loss to expect of a plan, and how many records a wanted loss needs."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from sfumato.errors import InputError
from sfumato.iterate.descent import Schedule
from sfumato.iterate.oneshot import plan_one_shot
from sfumato.local.slices import best_number_of_slices, kept_signal
from sfumato.planner.crowd import Crowd
from sfumato.planner.draws import Draw, draw
from sfumato.planner.evolution import descent_loss, plain_loss
from sfumato.planner.law import Law, useless
from sfumato.planner.oneshot import one_shot_loss
from sfumato.planner.population import Population
from sfumato.privacy.plan import Plan
from sfumato.typing import Relation

Method = Literal["descent", "one-shot"]
DRAWS = 6
MOST_RECORDS = 1e12


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected `subspace_distance` to the true directions.

    Attributes
    ----------
    loss : float
        Of the private fit.
    plain : float
        Of ordinary SIR (20 slices) on the same number of records: what privacy is measured against.
    useless : float
        Of directions drawn at random: a loss near it means that nothing was found.
    """

    loss: float
    plain: float
    useless: float

    @property
    def ratio(self) -> float:
        """What privacy costs, as a factor."""
        return self.loss / self.plain


def method_of(plan: Plan) -> Method | None:
    """The method whose releases these are; None if the planner has no theory for it."""
    names = {line.name: line.purpose for line in plan.lines}
    if not {"shape", "radius", "ranks"} <= names.keys():
        return None
    if "step 1" in names:
        return "descent"
    return "one-shot" if names.get("slices") == plan_one_shot(1.0)[0].purpose else None  # SAVE and DR have slices, too


def forecast(
    plan: Plan,
    n: float,
    population: Population | Law,
    *,
    relation: Relation = "replace",
    schedule: Schedule | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Forecast:
    """The loss to expect of a calibrated plan on n records of a population.

    Every random thing whose law is known (privacy noise, sampling error) is drawn `draws` times and carried through
    the steps of the fit; no record is simulated and the time does not depend on n.

    Examples
    --------
    >>> from sfumato import Bounds, PrivateSIR
    >>> plan = PrivateSIR(epsilon=1.0, bounds=Bounds(-1, 1)).explain(20_000, 10).plan
    >>> seen = forecast(plan, 20_000, Population.typical(10, signal=0.8))
    >>> bool(0.01 < seen.plain < seen.loss < 0.1)
    True
    """
    if isinstance(population, Law):
        law, random = population, population.useless
        both = [(law.private(crowd), law.plain(crowd)) for crowd in _crowds(plan, n, law, relation, draws, seed)]
    else:
        solve, random = _solver(plan, schedule), useless(population.n_features, population.n_directions)
        both = [(solve(d), plain_loss(d)) for d in _drawn(plan, n, population, relation, draws, seed)]
    loss, plain = np.mean(both, axis=0)
    return Forecast(float(loss), float(plain), random)


def private_loss(
    plan: Plan,
    n: float,
    population: Population | Law,
    relation: Relation,
    draws: int,
    seed: int = 0,
    schedule: Schedule | None = None,
) -> float:
    """The loss of `forecast` alone, where what it is compared with is not wanted: quicker."""
    if isinstance(population, Law):
        crowds = _crowds(plan, n, population, relation, draws, seed)
        return float(np.mean([population.private(crowd) for crowd in crowds]))
    solve = _solver(plan, schedule)
    return float(np.mean([solve(d) for d in _drawn(plan, n, population, relation, draws, seed)]))


def _solver(plan: Plan, schedule: Schedule | None) -> Callable[[Draw], float]:
    method = method_of(plan)
    if method is None:
        raise InputError("plan: there is no forecast for this method; it exists for 'descent' and 'one-shot'.")
    used = Schedule() if schedule is None else schedule
    return one_shot_loss if method == "one-shot" else lambda d: descent_loss(d, used)


def _drawn(plan: Plan, n: float, population: Population, relation: Relation, draws: int, seed: int) -> Iterator[Draw]:
    with _one_thread():
        for rng in np.random.default_rng(seed).spawn(draws):
            yield draw(population, plan, relation, float(n), rng)


def _crowds(plan: Plan, n: float, law: Law, relation: Relation, draws: int, seed: int) -> Iterator[Crowd]:
    with _one_thread():
        for rng in np.random.default_rng(seed).spawn(draws):
            yield law.crowd(plan, relation, n, rng)


def _one_thread() -> AbstractContextManager[Any]:
    """Small matrices: a second thread of BLAS only costs."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks for libraries: 5 ms


def records_needed(target: float, loss_of: Callable[[float], float], start: float = 10_000.0) -> float:
    """Records at which a decreasing loss meets the target, within 2 %; inf beyond 10^12.

    Losses fall as 1 / sqrt(n) where records are short and as 1 / n where privacy noise rules, so steps of secants on
    logarithms (between those slopes) arrive quickly.

    >>> round(records_needed(0.01, lambda n: 1.0 / n**0.5), -2)
    10000.0
    """
    if not target > 0:
        raise InputError(f"target must be a positive distance, got {target!r}; 0.1 is a good direction.")
    n, slope, before = start, 0.75, None
    for _ in range(12):
        gap = math.log(max(loss_of(n), 1e-300) / target)
        if abs(gap) < 0.01:
            break
        if before is not None and before[0] != math.log(n):
            seen = (before[1] - gap) / (math.log(n) - before[0])
            slope = min(max(seen, 0.3), 1.5)
        before = (math.log(n), gap)
        n = math.exp(min(max(math.log(n) + gap / slope, math.log(2.0)), math.log(2 * MOST_RECORDS)))
        if n > MOST_RECORDS:
            return math.inf
    return n


def epsilon_needed(target: float, loss_of: Callable[[float], float]) -> float:
    """Epsilon from 0.01 to 100 at which a decreasing loss meets the target, within 10 %; inf if 100 will not do.

    >>> round(epsilon_needed(0.1, lambda epsilon: 0.05 + 0.1 / epsilon), 1)
    2.0
    """
    if not target > 0:
        raise InputError(f"target must be a positive distance, got {target!r}; 0.1 is a good direction.")
    low, high = math.log(0.01), math.log(100.0)
    if loss_of(math.exp(high)) > target:
        return math.inf
    while high - low > 0.1:
        middle = (low + high) / 2.0
        low, high = (low, middle) if loss_of(math.exp(middle)) <= target else (middle, high)
    return math.exp((low + high) / 2.0)


def label_forecast(n: float, p: int, epsilon: float, signal: float = 0.5, k: int = 1) -> float:
    """Expected distance of `LabelPrivateSIR` before it refines, on independent features: first order.

    Randomised response leaves SIR the eigenvalue ``lambda = kept_signal * signal``; across the index each slice mean
    has variance (1 - lambda) / n, so the distance is ``sqrt(2 k (p - k) (1 - lambda) / (n lambda))``.

    >>> round(label_forecast(20_000, 15, 1.0, signal=0.95), 3)
    0.097
    """
    eigenvalue = kept_signal(epsilon, best_number_of_slices(epsilon, k + 1)) * signal
    first_order = math.sqrt(2.0 * k * max(p - k, 0) * (1.0 - eigenvalue) / (n * eigenvalue))
    return min(first_order, useless(p, k)) if p > k else 0.0
