"""The loss to expect of a fit before there is data, and what a wanted loss needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.forecast.populations import Population, random_distance
from sfumato.local.randomisers import best_number_of_slices, kept_signal
from sfumato.privacy.budget import Budget
from sfumato.privacy.plan import Plan
from sfumato.privacy.unit import is_count_public
from sfumato.settings.central import one_blas_thread
from sfumato.typing import Relation


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected `subspace_distance` to the true directions.

    Attributes
    ----------
    loss : float
        Of the private fit.
    plain : float
        Of the same method without privacy on the same number of records: what privacy is measured against.
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


DRAWS = 6
"""Stand-ins that a loss is the mean of."""


def forecast(
    fit: Any,
    budget: Budget,
    n: float,
    population: Population,
    *,
    relation: Relation = "replace",
    noises: float = 1.0,
    rows: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Forecast:
    """The loss to expect of a fit on n records of a population: the fit itself, run on a stand-in for them.

    Everything random whose law is known (privacy noise, sampling error) is drawn `draws` times; finding bounds and
    ranks is part of the fit, and so is its failure. No record is simulated and the time does not depend on n.

    Parameters
    ----------
    fit
        Public facts of a fit, with ``plan()`` and ``run()``; those of an estimator are in
        ``explain(...).prospect.methods``.
    budget : Budget
    n : float
    population : Population
    relation : {"replace", "add-remove"}
    noises : float
        Variance of the noise over that of a central fit: as many as there are sites in a federation.
    rows : int, optional
        Of each person at most so many records count, and persons are protected: the noise is so many times larger, and
        the fit does not know n.
    draws, seed : int

    Examples
    --------
    >>> from sfumato import Bounds, PrivateSIR
    >>> from sfumato.forecast import IndexResponse
    >>> explanation = PrivateSIR(epsilon=1.0, bounds=Bounds(-1, 1)).explain(20_000, 10)
    >>> fit = explanation.prospect.fit("descent")
    >>> seen = forecast(fit, explanation.budget, 20_000, IndexResponse(10, signal=0.8))
    >>> bool(0.01 < seen.plain < seen.loss < 0.1)
    True
    """
    n_public = round(n) if is_count_public(relation, rows) else None
    settled = population.settle(fit, n_public, budget.mu())
    plan = calibrated(settled, budget, noises, rows)
    with one_blas_thread():  # small matrices: a second one only costs
        seeds = np.random.default_rng(seed).spawn(draws)
        both = [population.losses(settled, plan, n, relation, rng) for rng in seeds]
    loss, plain = np.mean(both, axis=0)
    return Forecast(float(loss), float(plain), population.useless)


def calibrated(fit: Any, budget: Budget, noises: float = 1.0, rows: int | None = None) -> Plan:
    """The plan of a fit with the noise that a forecast must see; what it costs is that of `noises` = 1 and no `rows`.

    >>> from sfumato import Bounds, PrivateSIR
    >>> explanation = PrivateSIR(bounds=Bounds(-1, 1)).explain(1_000, 3)
    >>> record, person = (calibrated(explanation.fit, explanation.budget, rows=rows).lines[0].rho for rows in (None, 5))
    >>> round(record / person, 9)
    25.0
    """
    times, plan = rows or 1, fit.plan()
    assert isinstance(plan, Plan)
    return plan.calibrate(budget, times).merged(noises * times**2)


MOST_RECORDS = 1e12


def records_needed(target: float, loss_of: Callable[[float], float], start: float = 10_000.0) -> float:
    """Records at which a decreasing loss meets the target, within 5 %; inf beyond 10^12.

    Losses fall as 1 / sqrt(n) where records are short, as 1 / n where privacy noise rules, and at once where a step
    begins to see something. So steps of secants on logarithms, halved where they would leave what is known.

    >>> round(records_needed(0.01, lambda n: 1.0 / n**0.5), -2)
    10000.0
    """
    _check_target(target)
    at, slope, before = math.log(start), 0.75, None
    few, enough = (
        0.0,
        math.log(MOST_RECORDS) + 0.05,
    )  # logarithms of numbers that do not and do suffice, as far as known
    while enough - few > 0.05:
        gap = math.log(max(loss_of(math.exp(at)), 1e-300) / target)
        few, enough = (at, enough) if gap > 0 else (few, at)
        if abs(gap) < 0.01:
            return math.exp(at)
        if before is not None and before[0] != at:
            slope = min(max((before[1] - gap) / (at - before[0]), 0.3), 1.5)
        before = (at, gap)
        at += gap / slope
        if not few < at < enough:
            at = (
                (few + enough) / 2.0
                if few > 0 and enough < math.log(MOST_RECORDS)
                else min(max(at, 0.02), enough - 0.04)
            )
    return math.exp(enough) if enough < math.log(MOST_RECORDS) else math.inf


def epsilon_needed(target: float, loss_of: Callable[[float], float]) -> float:
    """Epsilon from 0.01 to 100 at which a decreasing loss meets the target, within 10 %; inf if 100 will not do.

    >>> round(epsilon_needed(0.1, lambda epsilon: 0.05 + 0.1 / epsilon), 1)
    2.0
    """
    _check_target(target)
    low, high = math.log(0.01), math.log(100.0)
    if loss_of(math.exp(high)) > target:
        return math.inf
    while high - low > 0.1:
        middle = (low + high) / 2.0
        low, high = (low, middle) if loss_of(math.exp(middle)) <= target else (middle, high)
    return math.exp((low + high) / 2.0)


def _check_target(target: float) -> None:
    if not target > 0:
        raise InputError(f"target must be a positive distance, got {target!r}; 0.1 is a good direction.")


def label_loss(n: float, p: int, epsilon: float, signal: float = 0.5, k: int = 1) -> float:
    """Expected distance of `LabelPrivateSIR` before it refines, on independent features: first order.

    Randomised response leaves SIR the eigenvalue ``lambda = kept_signal * signal``; across the index each slice mean
    has variance (1 - lambda) / n, so the distance is ``sqrt(2 k (p - k) (1 - lambda) / (n lambda))``.

    >>> round(label_loss(20_000, 15, 1.0, signal=0.95), 3)
    0.097
    """
    eigenvalue = kept_signal(epsilon, best_number_of_slices(epsilon, k + 1)) * signal
    first_order = math.sqrt(2.0 * k * max(p - k, 0) * (1.0 - eigenvalue) / (n * eigenvalue))
    return min(first_order, random_distance(p, k)) if p > k else 0.0
