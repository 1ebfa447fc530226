"""Plan: the releases a run will make and what each may spend, fixed before a record is read."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, Protocol, Self, assert_never

from scipy.optimize import brentq

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event, Gaussian, Laplace, Selection
from sfumato.sums import BoundedSum

_ROUNDING = 1.0 - 1e-9
"""Squares of the parts are added in floating point: aim this far below the total, so the sum is never above."""
_LEAST_RHO = 2.0**-27
"""A plan whose largest part is below this (noise of 8,000 times the sensitivity) would leave the range of the exact
sampler in the middle of the run; it is refused before anything is spent."""


@dataclass(frozen=True, slots=True)
class Line:
    """One planned release.

    Parameters
    ----------
    name : str
        How the run refers to it.
    purpose : str
        What it is for, in the ledger's words.
    share : float
        Its part of the budget; zCDP costs are divided in proportion to the shares.
    sensitivity : str
        Formula, replace-one / add-or-remove-one, for `explain`.
    mechanism : {"gaussian", "laplace", "selection"}
    picks : int
        How many items a selection picks.
    parts : int
        Disjoint parts of the records that are asked one after another for the price of one Gaussian release
        (parallel composition: `sfumato.statistics.parts.Part`).
    rho : float
        zCDP cost, set by `Plan.calibrate`.
    asks : type of BoundedSum, optional
        The kind of question it pays for. A site of a federation answers no other under this name.
    """

    name: str
    purpose: str
    share: float
    sensitivity: str
    mechanism: Literal["gaussian", "laplace", "selection"] = "gaussian"
    picks: int = 1
    rho: float = 0.0
    parts: int = 1
    asks: type[BoundedSum] | None = None

    @property
    def event(self) -> Event:
        """What the release costs: the event of this mechanism whose zCDP cost is `rho`."""
        match self.mechanism:
            case "gaussian":
                return Gaussian((2.0 * self.rho) ** 0.5)
            case "laplace":
                return Laplace((2.0 * self.rho) ** 0.5, vector=True)
            case "selection":
                return Selection((8.0 * self.rho / self.picks) ** 0.5, self.picks)
        assert_never(self.mechanism)


@dataclass(frozen=True, slots=True)
class OneLine:
    """A step that asks once, by the line that its class names, at a share of the budget."""

    line: ClassVar[Line]

    share: float

    @property
    def lines(self) -> tuple[Line, ...]:
        """Everything in one release."""
        return (replace(self.line, share=self.share),)


class Step(Protocol):
    """Anything that pays for its questions by lines of the plan; its `run` asks them."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """What it will ask, or may."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All releases of a run, in order.

    >>> plan = Plan((Line("a", "half", 0.5, "1"), Line("b", "half", 0.5, "1")))
    >>> calibrated = plan.calibrate(Budget.approximate(1.0, 1e-6))
    >>> [round(1 / line.event.mu, 3) for line in calibrated.lines]   # noise multipliers, sqrt(2) * 4.2247
    [5.975, 5.975]
    """

    lines: tuple[Line, ...]

    @classmethod
    def of(cls, *steps: Step) -> Self:
        """The plan of a fit that takes these steps."""
        return cls(tuple(line for step in steps for line in step.lines))

    def calibrate(self, budget: Budget, rows: int = 1) -> Self:
        """The same plan, scaled so that the whole costs exactly the budget.

        `rows` of a person make the noise so many times larger (`sfumato.privacy.unit`): a budget that is too small
        for it is refused here.

        A plan of Gaussian releases alone is solved in closed form: its lines are mu_i-GDP with constants mu_i,
        so they compose adaptively to mu-GDP, mu^2 the sum of the mu_i^2, even though queries and clip radii
        depend on earlier releases (Dong, Roth and Su 2022, Corollary 2). A mixture is scaled until the accountant's
        total meets the budget, which takes some evaluations of it and is remembered.
        """
        shares = [line.share for line in self.lines]
        if not shares or not all(share > 0 for share in shares) or not sum(shares) < math.inf:
            raise InputError("plan: it needs at least one line, and every line a share that is positive and finite.")
        calibrated = self.scaled(_largest_rho(self, budget))
        if max(line.rho for line in calibrated.lines) < _LEAST_RHO * rows**2:
            fewer = "raise it." if rows == 1 else f"raise it, or let fewer than {rows} rows of a person count."
            raise BudgetError(f"the budget {budget.describe()} is too small for any release to be of use; {fewer}")
        return calibrated

    def line(self, name: str) -> Line:
        """The line called `name`."""
        return next(line for line in self.lines if line.name == name)

    def merged(self, sites: float) -> Self:
        """The plan whose noise is that of a sum over `sites` doors, each of which adds all of its own.

        Variances add, and a Gaussian release has noise of variance one over its rho: for forecasts and studies, never
        for a ledger, since each site spends what the plan itself says.

        >>> one = Plan((Line("a", "all", 1.0, "1"),)).calibrate(Budget.zcdp(0.5))
        >>> round(one.lines[0].event.mu / one.merged(4).lines[0].event.mu, 12)
        2.0
        """
        return replace(self, lines=tuple(replace(line, rho=line.rho / sites) for line in self.lines))

    @property
    def events(self) -> tuple[Event, ...]:
        """The cost of the whole plan."""
        return tuple(line.event for line in self.lines)

    def scaled(self, rho: float) -> Self:
        """The same plan at the zCDP cost `rho`."""
        whole = sum(line.share for line in self.lines)
        return replace(self, lines=tuple(replace(line, rho=rho * line.share / whole) for line in self.lines))


_LARGEST_LOG_RHO = 600.0
"""Beyond any use, and below what overflows when it is squared: a budget of 1e300 is given no more than this."""


@lru_cache(maxsize=64)
def _largest_rho(plan: Plan, budget: Budget) -> float:
    """The zCDP cost to divide among the lines so that the whole costs the budget."""
    if all(line.mechanism == "gaussian" for line in plan.lines):
        return min(budget.mu(), math.exp(_LARGEST_LOG_RHO / 2.0)) ** 2 / 2.0 * _ROUNDING

    def excess(log_rho: float) -> float:
        return math.log(max(budget.used(plan.scaled(math.exp(log_rho)).events), 1e-300))

    high = min(2.0 * math.log(budget.mu()), _LARGEST_LOG_RHO)
    while excess(high) <= 0.0:
        if high >= _LARGEST_LOG_RHO:
            return math.exp(high)
        high += 1.0
    low = high - 1.0
    while excess(low) > 0.0:
        low -= 1.0
    found, step = float(brentq(excess, low, high, xtol=1e-9)), 1e-9
    while not budget.allows(plan.scaled(math.exp(found)).events):  # numerical totals rise by small jumps
        found, step = found - step, 2.0 * step
    return math.exp(found)
