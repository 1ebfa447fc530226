"""The privacy budget: what the user is willing to spend on a whole run, and what is left of it after some runs.

Within a run every cost is fixed in the plan, so any accountant may total it. A *later* run is chosen by someone who
has seen the results of the earlier ones: its cost is itself an outcome. Totals of such adaptively chosen costs are
proved for Gaussian differential privacy (a filter on the sum of mu^2: Smith and Thakurta 2022; Koskela, Tobaben and
Honkela 2023) and for zCDP (on the sum of rho: Feldman and Zrnic 2021; Whitehouse et al. 2023), not for numerical
composition. So several runs are totalled by the first if all their releases are Gaussian, else by the second.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from sfumato.errors import BudgetError
from sfumato.privacy.accounting import gdp_epsilon, gdp_mu, total_epsilon, total_mu, total_rho, zcdp_epsilon
from sfumato.privacy.events import Event, Gaussian, Laplace, NoGuarantee
from sfumato.typing import is_whole

# A plan is scaled until it costs exactly the budget; the sum of its squared shares then rounds to 1 + 2e-16
# as easily as to 1. Without a tolerance it is refused (a known complaint elsewhere: "insufficient budget
# 1.0000000000000002 > 1.0"). 1e-12 relative is above such rounding and below anything an attacker could use.
_TOLERANCE = 1e-12
_LEAST_DELTA = 1e-300  # of floats below it few digits are left, and no epsilon is found
_NOTHING = 1e-7  # of a budget's rho: plans are scaled 1e-9 below their budget, and such crumbs are no offer


@dataclass(frozen=True, slots=True)
class Budget:
    """Either (epsilon, delta)-differential privacy or rho-zCDP, for everything a run releases.

    Parameters
    ----------
    epsilon, delta : float or None
        The approximate guarantee: epsilon > 0 and 0 < delta < 1, both or neither.
    rho : float or None
        The zero-concentrated guarantee, instead of the other two.

    Examples
    --------
    >>> Budget.approximate(1, 1e-6).describe()
    '(epsilon = 1, delta = 1e-06)'
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise BudgetError(
                f"one of epsilon and rho must be given, got epsilon={self.epsilon!r} and rho={self.rho!r}; "
                "choose for instance epsilon=1 with delta=1e-6."
            )
        if self.rho is None:
            object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon, "1"))
            object.__setattr__(self, "delta", _positive("delta", self.delta, "1e-6", below=1.0))
            if self.delta is not None and self.delta < _LEAST_DELTA:
                raise BudgetError(f"delta must not be below {_LEAST_DELTA:g}, got delta={self.delta!r}; choose 1e-6.")
            return
        if self.delta is not None:
            raise BudgetError(f"delta does not belong to rho, got delta={self.delta!r}; leave it out.")
        object.__setattr__(self, "rho", _positive("rho", self.rho, "0.5"))

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> "Budget":
        """(epsilon, delta)-differential privacy.

        >>> Budget.approximate(epsilon=0.5, delta=1e-5)
        Budget(epsilon=0.5, delta=1e-05, rho=None)
        """
        return cls(epsilon=epsilon, delta=delta)

    @classmethod
    def zcdp(cls, rho: float) -> "Budget":
        """rho-zero-concentrated differential privacy (Bun and Steinke 2016).

        >>> Budget.zcdp(0.5).describe()
        'rho = 0.5 zCDP'
        """
        return cls(rho=rho)

    def mu(self) -> float:
        """The largest mu of Gaussian releases, taken together, that the budget allows.

        >>> Budget.zcdp(0.5).mu(), round(1 / Budget.approximate(1, 1e-6).mu(), 4)
        (1.0, 4.2247)
        """
        return gdp_mu(*self._pair) if self.rho is None else math.sqrt(2 * self.rho)

    @property
    def _pair(self) -> tuple[float, float]:
        """Epsilon and delta, of a budget without rho."""
        assert self.epsilon is not None and self.delta is not None
        return self.epsilon, self.delta

    def per_row(self, rows: int) -> "Budget":
        """The budget of a Gaussian plan for one row, if `rows` rows of a person together must not cost more than this.

        A sum that one row moves by at most s is moved by ``rows s`` at most when all of them change, so what is mu-GDP
        for a row is (rows mu)-GDP for the person (Dong, Roth and Su 2022, theorem 2.14): divide mu, delta stays.
        Dividing epsilon instead is not the same: at the same delta it leaves the person with more than this budget.
        A plan that also selects is no Gaussian one; fit with ``rows_per_person``, which holds for every plan.

        >>> row = Budget.approximate(1.0, 1e-6).per_row(5)
        >>> round(row.epsilon, 4), row.delta, round(5 * row.mu() / Budget.approximate(1.0, 1e-6).mu(), 6)
        (0.1785, 1e-06, 1.0)
        >>> round(Budget.zcdp(0.5).per_row(5).rho, 12)
        0.02
        """
        return self._divided("rows", rows, 1.0)

    def per_answer(self, answers: int) -> "Budget":
        """The budget of one Gaussian answer, if `answers`, each with noise of its own, must not cost more together.

        Their squared mus add up (Dong, Roth and Su 2022, corollary 3.3): divide mu by the root. That is less than
        `per_row` takes, because each answer has noise of its own, of which the others know nothing.

        >>> Budget.zcdp(0.5).per_answer(5)
        Budget(epsilon=None, delta=None, rho=0.1)
        """
        return self._divided("answers", answers, 0.5)

    def _divided(self, name: str, count: int, power: float) -> "Budget":
        """The budget with ``mu / count**power``, delta as it is."""
        if not is_whole(count, 1):
            raise BudgetError(f"{name} must be a whole number from 1 on, got {count!r}; give the most of any person.")
        if count == 1:
            return self
        if self.rho is not None:
            return Budget.zcdp(self.rho / int(count) ** (2.0 * power))
        _, delta = self._pair
        epsilon = gdp_epsilon(self.mu() / int(count) ** power, delta)
        if epsilon == 0.0:
            raise BudgetError(f"the budget {self.describe()} is too small for {count} {name}; raise it.")
        return Budget.approximate(epsilon, delta)

    def allows(self, events: Sequence[Event]) -> bool:
        """Whether the events together stay within the budget, up to 1e-12 relative for the rounding of sums.

        >>> from sfumato.privacy.events import Gaussian
        >>> Budget.zcdp(0.5).allows([Gaussian(0.6), Gaussian(0.8)]), Budget.zcdp(0.5).allows([Gaussian(1.1)])
        (True, False)
        """
        return self.used(events) <= 1 + _TOLERANCE

    def used(self, events: Sequence[Event]) -> float:
        """The part of the budget that the events together use up.

        >>> from sfumato.privacy.events import Gaussian
        >>> Budget.zcdp(0.5).used([Gaussian(0.6)])
        0.36
        """
        if self.rho is not None:
            return total_rho(events) / self.rho
        epsilon, delta = self._pair
        return total_epsilon(events, delta) / epsilon

    def describe(self, digits: int = 10) -> str:
        """The budget in words, for reports and messages.

        >>> Budget.approximate(2, 1e-8).describe()
        '(epsilon = 2, delta = 1e-08)'
        """
        if self.rho is not None:
            return f"rho = {self.rho:.{digits}g} zCDP"
        return f"(epsilon = {self.epsilon:.{digits}g}, delta = {self.delta:.{digits}g})"


def _positive(name: str, value: object, example: str, below: float = math.inf) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < below:
        return float(value)
    kind = "a positive number" if below == math.inf else f"a positive number below {below:g}"
    raise BudgetError(f"{name} must be {kind}, got {name}={value!r}; choose for instance {name}={example}.")


def adaptive_epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon of events whose costs were chosen adaptively, rounded up.

    >>> from sfumato.privacy.events import Gaussian, Selection
    >>> round(adaptive_epsilon([Gaussian(0.1), Gaussian(0.2)], 1e-6), 4)
    0.9405
    >>> round(adaptive_epsilon([Selection(0.2, 5)], 1e-6), 4)
    1.0141
    """
    if total_mu(events) is not None:
        return total_epsilon(events, delta)
    return zcdp_epsilon(total_rho(events), delta)


def fold_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """At most one Gaussian and one other event, which cost what all these do: for
    `adaptive_epsilon`, `admits` and `remaining_budget`.

    Those ask for the sum of mu^2, the sum of rho, and whether all releases were Gaussian, and for nothing else. Roots
    are rounded up. Not for the numerical composition of a single plan, which asks for every event.

    >>> from sfumato.privacy.events import Gaussian, Selection
    >>> fold_events([Gaussian(3.0), Gaussian(4.0)])
    (Gaussian(mu=5.0...),)
    >>> some = [Gaussian(0.1), Selection(0.2, 5), Selection(0.1, 2)]
    >>> round(adaptive_epsilon(some, 1e-6), 9) == round(adaptive_epsilon(fold_events(some), 1e-6), 9)
    True
    """
    gaussian = [event for event in events if isinstance(event, Gaussian)]
    others = [event for event in events if not isinstance(event, Gaussian)]
    mu, pure = math.sqrt(2.0 * total_rho(gaussian)), math.sqrt(2.0 * total_rho(others))
    if not max(mu, pure) < math.inf:
        return (NoGuarantee("the releases together cost more than any number says."),)
    parts: list[Event] = [Gaussian(math.nextafter(mu, math.inf))] if gaussian else []
    return (*parts, unknown_event(pure * pure / 2.0)) if others else tuple(parts)


def unknown_event(rho: float) -> Event:
    """An event of this zCDP cost, not taken for Gaussian, so that `adaptive_epsilon` adds up rho and nothing finer."""
    return Laplace(math.nextafter(math.sqrt(2.0 * rho), math.inf), vector=True)


def admits(budget: Budget, spent: Sequence[Event], more: Sequence[Event]) -> bool:
    """Whether a run of cost `more` may follow what is `spent`."""
    together = (*spent, *more)
    if not spent or budget.epsilon is None or budget.delta is None:
        return budget.allows(together)
    return adaptive_epsilon(together, budget.delta) <= budget.epsilon * (1.0 + _TOLERANCE)


def remaining_budget(budget: Budget, spent: Sequence[Event]) -> Budget | None:
    """The largest budget one more run of Gaussian releases can have, at the same delta; None if nothing is left.

    >>> from sfumato.privacy.events import Gaussian
    >>> remaining_budget(Budget.zcdp(0.5), [Gaussian(0.6)])
    Budget(epsilon=None, delta=None, rho=0.32)
    >>> remaining_budget(Budget.zcdp(0.5), [Gaussian(1.0)]) is None
    True
    """
    if not spent:
        return budget
    if budget.rho is not None:
        rest = budget.rho - total_rho(spent)
        return Budget.zcdp(rest) if rest > _NOTHING * budget.rho else None
    assert budget.delta is not None
    square = _allowed_square(budget, spent) - 2.0 * total_rho(spent)
    if not square > _NOTHING * budget.mu() ** 2:
        return None
    rest = gdp_epsilon(math.sqrt(square) * (1.0 - 1e-9), budget.delta)
    return Budget.approximate(rest, budget.delta) if rest > 0 else None


def describe_remaining(left: Budget | None) -> str:
    """What is left, as the end of a sentence.

    >>> describe_remaining(Budget.approximate(0.25, 1e-6))
    '(epsilon = 0.25, delta = 1e-06) is left'
    """
    return "nothing is left" if left is None else f"{left.describe(4)} is left"


def _allowed_square(budget: Budget, spent: Sequence[Event]) -> float:
    """The sum of mu^2 (twice that of rho) which the budget allows, by the accountant that `spent` calls for."""
    if total_mu(spent) is not None:
        return budget.mu() ** 2
    assert budget.epsilon is not None and budget.delta is not None
    low, high = 0.0, budget.mu() ** 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if zcdp_epsilon(middle / 2.0, budget.delta) <= budget.epsilon else (low, middle)
    return low
