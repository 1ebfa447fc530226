"""What is left of a budget after some runs, and whether one more fits.

Within a run every cost is fixed in the plan, so any accountant may total it. A *later* run is chosen by someone who
has seen the results of the earlier ones: its cost is itself an outcome. Totals of such adaptively chosen costs are
proved for Gaussian differential privacy (a filter on the sum of mu^2: Smith and Thakurta 2022; Koskela, Tobaben and
Honkela 2023) and for zCDP (on the sum of rho: Feldman and Zrnic 2021; Whitehouse et al. 2023), not for numerical
composition. So several runs are totalled by the first if all their releases are Gaussian, else by the second.
"""

import math
from collections.abc import Sequence

from sfumato.privacy.accounting import gdp_epsilon, total_epsilon, total_mu, total_rho, zcdp_epsilon
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Event, Gaussian, Laplace, NoGuarantee

_TOLERANCE = 1.0 + 1e-12  # as in Budget.allows: rounding of sums, nothing an attacker could use
_NOTHING = 1e-7  # of a budget's rho: plans are scaled 1e-9 below their budget, and such crumbs are no offer


def epsilon(events: Sequence[Event], delta: float) -> float:
    """Epsilon of events whose costs were chosen adaptively, rounded up.

    >>> from sfumato.privacy.events import Gaussian, Selection
    >>> round(epsilon([Gaussian(0.1), Gaussian(0.2)], 1e-6), 4), round(epsilon([Selection(0.2, 5)], 1e-6), 4)
    (0.9405, 1.0141)
    """
    if total_mu(events) is not None:
        return total_epsilon(events, delta)
    return zcdp_epsilon(total_rho(events), delta)


def folded(events: Sequence[Event]) -> tuple[Event, ...]:
    """At most one Gaussian and one other event, which cost what all these do: for `epsilon`, `allows` and `left`.

    Those ask for the sum of mu^2, the sum of rho, and whether all releases were Gaussian, and for nothing else. Roots
    are rounded up. Not for the numerical composition of a single plan, which asks for every event.

    >>> from sfumato.privacy.events import Gaussian, Selection
    >>> folded([Gaussian(3.0), Gaussian(4.0)])
    (Gaussian(mu=5.0...),)
    >>> some = [Gaussian(0.1), Selection(0.2, 5), Selection(0.1, 2)]
    >>> round(epsilon(some, 1e-6), 9) == round(epsilon(folded(some), 1e-6), 9)
    True
    """
    gaussian = [event for event in events if isinstance(event, Gaussian)]
    others = [event for event in events if not isinstance(event, Gaussian)]
    mu, pure = math.sqrt(2.0 * total_rho(gaussian)), math.sqrt(2.0 * total_rho(others))
    if not max(mu, pure) < math.inf:
        return (NoGuarantee("the releases together cost more than any number says."),)
    parts: list[Event] = [Gaussian(math.nextafter(mu, math.inf))] if gaussian else []
    return (*parts, of_unknown_kind(pure * pure / 2.0)) if others else tuple(parts)


def of_unknown_kind(rho: float) -> Event:
    """An event of this zCDP cost that is not taken for Gaussian, so that `epsilon` adds up rho and nothing finer."""
    return Laplace(math.nextafter(math.sqrt(2.0 * rho), math.inf), vector=True)


def allows(budget: Budget, spent: Sequence[Event], more: Sequence[Event]) -> bool:
    """Whether a run of cost `more` may follow what is `spent`."""
    together = (*spent, *more)
    if not spent or budget.epsilon is None or budget.delta is None:
        return budget.allows(together)
    return epsilon(together, budget.delta) <= budget.epsilon * _TOLERANCE


def left(budget: Budget, spent: Sequence[Event]) -> Budget | None:
    """The largest budget one more run of Gaussian releases can have, at the same delta; None if nothing is left.

    >>> from sfumato.privacy.events import Gaussian
    >>> left(Budget.zcdp(0.5), [Gaussian(0.6)])
    Budget(epsilon=None, delta=None, rho=0.32)
    >>> left(Budget.zcdp(0.5), [Gaussian(1.0)]) is None
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


def words(left: Budget | None) -> str:
    """What is left, as the end of a sentence.

    >>> words(Budget.approximate(0.25, 1e-6))
    '(epsilon = 0.25, delta = 1e-06) is left'
    """
    if left is None:
        return "nothing is left"
    if left.rho is not None:
        return f"rho = {left.rho:.4g} zCDP is left"
    return f"(epsilon = {left.epsilon:.4g}, delta = {left.delta:.4g}) is left"


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
