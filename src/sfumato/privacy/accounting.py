"""What a list of events costs in total: pure functions, rounded so that the true cost is never above."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erfcx, ndtr

from sfumato.errors import BudgetError
from sfumato.privacy.events import Event, Gaussian, Laplace, NoGuarantee, RandomisedResponse, Selection, rho
from sfumato.privacy.selections import selection_epsilon

_ROUNDING = 1e-12  # ten times the relative error of gdp_delta where delta >= 1e-100, mu <= 30 (tested)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # error below 1e-17 on intervals of length 1/2
_SMALL_MU = 0.5
_PLD_SMALLEST_DELTA = 1e-10  # below it the rounding of dp_accounting's FFT, 1e-16 a bucket, could matter
_PLD_LARGEST_EPSILON = 100.0  # above it a tighter total helps nobody, and exp(epsilon) would overflow there
_PLD_BUCKETS, _PLD_MOST_BUCKETS = 5_000, 100_000  # per total epsilon, and in all: memory stays bounded


def gdp_delta(mu: float, epsilon: float) -> float:
    """The smallest delta at which a mu-GDP mechanism is (epsilon, delta)-DP (Balle and Wang 2018, theorem 8).

    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), two terms that agree to many digits
    when mu is small. With x, y = epsilon/mu -+ mu/2 and Mills' ratio R = (1 - Phi)/phi, we have
    e^epsilon phi(y) = phi(x), so

        delta = phi(x) (R(x) - R(y)) = phi(x) * integral from x to y of (1 - s R(s)) ds,

    and nothing cancels.

    >>> f"{gdp_delta(1 / 4.2247, 1.0):.2e}"
    '1.00e-06'
    """
    _check(mu=mu, epsilon=epsilon)
    if mu == 0:
        return 0.0
    x, y = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if x > 38.5:  # delta < phi(x) is below the smallest float
        return 0.0
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if x < 0 and mu >= _SMALL_MU:
        return float(ndtr(-x) - density * _mills(y))
    if mu >= _SMALL_MU:
        return float(density * (_mills(x) - _mills(y)))
    s = epsilon / mu + mu / 2 * _NODES
    return float(density * mu / 2 * (_WEIGHTS @ (1 - s * _mills(s))))


@lru_cache(maxsize=1024)
def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.

    >>> round(gdp_epsilon(1 / 4.2247, 1e-6), 4)
    1.0
    """
    if mu * mu == math.inf:
        return math.inf
    _check(mu=mu, delta=delta)

    def enough(epsilon: float) -> bool:
        return gdp_delta(mu, epsilon) * (1 + _ROUNDING) <= delta

    if enough(0.0):
        return 0.0
    if delta == 0:
        return math.inf
    high = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # zCDP's simple bound
    while not enough(high):
        high *= 2
    return _boundary(enough, holds=high, fails=0.0)


@lru_cache(maxsize=1024)
def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest mu at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded down.

    >>> [round(1 / gdp_mu(epsilon, delta), 3) for epsilon, delta in ((1, 1e-6), (1, 1e-5), (2, 1e-8))]
    [4.225, 3.73..., 2.653]
    """
    _check(epsilon=epsilon, delta=delta)

    def within(mu: float) -> bool:
        # Twice the allowance of gdp_epsilon, so that the way back does not end above epsilon.
        return gdp_delta(mu, epsilon) * (1 + 2 * _ROUNDING) <= delta

    if delta == 0:
        return 0.0
    high = 1.0
    while within(high):
        high *= 2
    return _boundary(within, holds=0.0, fails=high)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """An epsilon at which a rho-zCDP mechanism is (epsilon, delta)-DP, rounded up.

    The best of Canonne, Kamath and Steinke (2020, proposition 12): for every order a > 1,
    epsilon = a rho + log(1 - 1/a) + (log(1/delta) - log(a)) / (a - 1).

    >>> round(zcdp_epsilon(0.065, 1e-6), 4)
    1.6956
    """
    if rho == math.inf:
        return math.inf
    _check(rho=rho, delta=delta)
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf

    def epsilon(
        t: Any,
    ) -> Any:  # every t = log(a - 1) gives a valid epsilon: a poor minimum is loose, not wrong
        a, log_a = 1 + np.exp(t), np.logaddexp(0.0, t)
        return a * rho + t - log_a - (math.log(delta) + log_a) / np.exp(t)

    # the best order of the simple conversion, sqrt(log(1 / delta) / rho), by differences that cannot overflow
    centre = 0.5 * (math.log(max(-math.log(delta), 1e-300)) - math.log(rho))
    grid = centre + np.linspace(-12.0, 12.0, 241)
    best = grid[np.argmin(epsilon(grid))]
    found = minimize_scalar(epsilon, bounds=(best - 0.1, best + 0.1), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun) * (1 + _ROUNDING))


def total_rho(events: Sequence[Event]) -> float:
    """The zCDP cost of all events together: the sum.

    >>> total_rho([Gaussian(mu=1.0), Selection(epsilon=1.0, picks=4)])
    1.0
    """
    return math.fsum(rho(event) for event in events)


def total_mu(events: Sequence[Event]) -> float | None:
    """The mu of all events together, the root of the sum of squares; None unless every event is Gaussian.

    Valid for adaptive composition too, as each mu is fixed beforehand (Dong, Roth and Su 2022).

    >>> total_mu([Gaussian(mu=3.0), Gaussian(mu=4.0)])
    5.0
    """
    if all(isinstance(event, Gaussian) for event in events):
        return _gaussian_mu(events)
    return None


def total_epsilon(events: Sequence[Event], delta: float) -> float:
    """An epsilon at which all events together are (epsilon, delta)-DP, rounded up.

    Gaussian events alone: exact. Otherwise the least of three valid bounds: the zCDP sum converted; the
    Gaussian part exact and the rest added; and a numerical composition, of selections with Gaussian events by
    `selection_epsilon`, of anything else by dp_accounting's privacy loss distributions.

    >>> round(total_epsilon([Gaussian(mu=0.1), Gaussian(mu=0.2)], 1e-6), 4)
    0.9405
    """
    _check(delta=delta)
    if any(isinstance(event, NoGuarantee) for event in events):
        return math.inf
    mu, pure = _gaussian_mu(events), _pure(events)
    if not pure:
        return gdp_epsilon(mu, delta)
    added = gdp_epsilon(mu, delta) + math.fsum(epsilon * count for (_, epsilon), count in pure.items())
    if delta == 0:
        return added
    bound = min(added, zcdp_epsilon(total_rho(events), delta))
    picks = [(event.epsilon, event.picks) for event in events if isinstance(event, Selection)]
    if picks and delta >= _PLD_SMALLEST_DELTA and all(isinstance(event, Gaussian | Selection) for event in events):
        return selection_epsilon(mu, picks, delta, bound)
    if delta < _PLD_SMALLEST_DELTA or not 0 < bound <= _PLD_LARGEST_EPSILON:
        return bound
    return min(bound, _composed(mu, pure, _interval(mu, pure, bound), delta))


def _composed(mu: float, pure: Counter[tuple[bool, float]], interval: float, delta: float) -> float:
    """Numerical composition, pessimistic at every rounding (Doroshenko et al. 2022)."""
    from dp_accounting.pld import common  # a second to import: only who mixes mechanisms pays it
    from dp_accounting.pld import privacy_loss_distribution as pld

    # The default, ADD_OR_REMOVE_ONE, is the plain pair N(0, 1/mu**2), N(1, 1/mu**2): mu already belongs to
    # the declared relation. dp_accounting's REPLACE_ONE would count it twice.
    parts = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)] if mu > 0 else []
    for (is_laplace, epsilon), count in pure.items():
        if is_laplace:
            part = pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=interval)
        else:  # binary randomised response dominates all epsilon-DP mechanisms (Kairouz, Oh, Viswanath 2015)
            part = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0), interval)
        parts.append(part.self_compose(count) if count > 1 else part)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return float(whole.get_epsilon_for_delta(delta))


def _interval(mu: float, pure: Counter[tuple[bool, float]], bound: float) -> float:
    """The grid of privacy losses: fine beside total and picks, bounded in number, aligned with the picks."""
    least = (mu * (mu / 2 + 10) + max(epsilon for _, epsilon in pure)) / _PLD_MOST_BUCKETS
    atoms = Counter({epsilon: count for (is_laplace, epsilon), count in pure.items() if not is_laplace})
    atom = max(atoms, key=atoms.__getitem__, default=math.inf)  # the commonest
    interval = max(least, min(atom, bound / _PLD_BUCKETS))
    if not interval <= atom < math.inf:
        return interval
    n = math.ceil(atom / interval)  # an atom between two grid points is rounded up, once for each pick
    aligned = atom / n
    while Fraction(aligned) * n < Fraction(atom):  # by the last bit: the n-th point must not fall short of the atom
        aligned = math.nextafter(aligned, math.inf)
    return aligned


def _pure(events: Sequence[Event]) -> Counter[tuple[bool, float]]:
    """How often each (is Laplace, epsilon) occurs among the events of pure differential privacy."""
    counts: Counter[tuple[bool, float]] = Counter()
    for event in events:
        match event:
            case Laplace(epsilon, vector):
                counts[not vector, epsilon] += 1
            case RandomisedResponse(epsilon):
                counts[False, epsilon] += 1
            case Selection(epsilon, picks):
                counts[False, epsilon] += picks
    return Counter({key: count for key, count in counts.items() if key[1] > 0 and count > 0})


def _gaussian_mu(events: Sequence[Event]) -> float:
    return math.sqrt(math.fsum(event.mu * event.mu for event in events if isinstance(event, Gaussian)))


def _mills(s: Any) -> Any:
    return math.sqrt(math.pi / 2) * erfcx(s / math.sqrt(2))


def _boundary(test: Callable[[float], bool], holds: float, fails: float) -> float:
    """The last float on the way from `holds` to `fails` at which the test holds (bisection)."""
    while (middle := (holds + fails) / 2) not in (holds, fails):
        if test(middle):
            holds = middle
        else:
            fails = middle
    return holds


def _check(**given: float) -> None:
    for name, value in given.items():
        if name == "delta" and not 0 <= value < 1:
            raise BudgetError(f"delta must be from 0 to below 1, got delta={value!r}; choose for instance 1e-6.")
        if not 0 <= value < math.inf:
            raise BudgetError(f"{name} must be a finite number, zero or more, got {name}={value!r}; recompute it.")
