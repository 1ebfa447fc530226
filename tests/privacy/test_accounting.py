"""Totals: against published numbers, against mpmath, and never below the truth."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError
from sfumato.privacy.accounting import (
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    total_epsilon,
    total_mu,
    total_rho,
    zcdp_epsilon,
)
from sfumato.privacy.events import Gaussian, Laplace, NoGuarantee, RandomisedResponse, Selection

MUS = st.floats(-6, 1).map(lambda t: 10**t)
EPSILONS = st.floats(-3, 1).map(lambda t: 10**t)
DELTAS = st.floats(-12, -1).map(lambda t: 10**t)
MORE = st.floats(1.0, 10.0)
WORKED = [Laplace(0.1), Gaussian(math.sqrt(0.02)), *[Gaussian(0.1)] * 10]


def exact_delta(mu, epsilon):
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    upper = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2)) / 2
    return upper - mpmath.exp(epsilon) * mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2)) / 2


def test_gdp_delta_has_thirteen_digits_everywhere():
    rng = np.random.default_rng(1)
    with mpmath.workdps(150):
        for _ in range(500):
            mu = 10 ** rng.uniform(-8, 1.5)
            epsilon = max(0.0, mu * (rng.uniform(-mu / 2, 21) + mu / 2))  # delta down to 1e-100
            # phi(x) turns the rounding of x into a relative error x**2 * 2**-52, 1e-13 at x = 21.
            assert abs(gdp_delta(mu, epsilon) / exact_delta(mu, epsilon) - 1) < 2e-13


@pytest.mark.parametrize(("mu", "epsilon", "delta"), [(0.0, 1.0, 0.0), (1e-300, 1.0, 0.0), (1e5, 1.0, 1.0)])
def test_gdp_delta_at_the_extremes(mu, epsilon, delta):
    assert gdp_delta(mu, epsilon) == delta


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), [(1, 1e-6, 4.2247), (1, 1e-5, 3.7306), (2, 1e-8, 2.653)])
def test_noise_of_one_gaussian_matches_the_published_multiplier(epsilon, delta, sigma):
    assert 1 / gdp_mu(epsilon, delta) == pytest.approx(sigma, rel=2e-4)  # as many digits as were printed


@given(EPSILONS, DELTAS)
@settings(max_examples=100, deadline=None)
def test_a_calibrated_gaussian_costs_its_budget_and_never_more(epsilon, delta):
    spent = gdp_epsilon(gdp_mu(epsilon, delta), delta)
    assert epsilon * (1 - 1e-9) <= spent <= epsilon


@given(EPSILONS, DELTAS)
@settings(max_examples=30, deadline=None)
def test_the_truth_is_on_the_safe_side_of_both_roundings(epsilon, delta):
    mu = gdp_mu(epsilon, delta)
    with mpmath.workdps(60):
        assert exact_delta(mu, epsilon) <= delta
        assert exact_delta(mu, gdp_epsilon(mu, delta)) <= delta
        assert exact_delta(mu * (1 + 1e-9), epsilon) > delta  # and it is no looser than it must be


@given(MUS, EPSILONS, DELTAS, MORE)
@settings(max_examples=60, deadline=None)
def test_more_noise_or_more_delta_never_costs_more(mu, epsilon, delta, more):
    assert gdp_epsilon(mu, delta) <= gdp_epsilon(mu * more, delta)
    assert gdp_epsilon(mu, min(0.9, delta * more)) <= gdp_epsilon(mu, delta)
    assert gdp_mu(epsilon, delta) <= gdp_mu(epsilon * more, delta)
    # The rounding up of the minimiser, 1e-12, is the only slack.
    assert zcdp_epsilon(mu, delta) <= zcdp_epsilon(mu * more, delta) * (1 + 1e-11)
    assert zcdp_epsilon(mu, min(0.9, delta * more)) <= zcdp_epsilon(mu, delta) * (1 + 1e-11)


@given(MUS, DELTAS)
@settings(max_examples=60, deadline=None)
def test_zcdp_never_claims_less_than_the_exact_gaussian(mu, delta):
    exact, converted = gdp_epsilon(mu, delta), zcdp_epsilon(mu * mu / 2, delta)
    assert exact <= converted <= mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) * (1 + 1e-11)


@pytest.mark.parametrize(("rho", "delta"), [(0.5, 1e-6), (1e-4, 1e-9), (10.0, 1e-5), (1e-8, 1e-3), (0.1, 0.5)])
def test_zcdp_conversion_is_the_minimum_over_orders(rho, delta):
    a = 1 + np.logspace(-6, 8, 2_000_001)
    scan = a * rho + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)
    # The scan's orders are 1.6e-5 apart (relative), so its minimum is 1e-9 too high at most.
    assert zcdp_epsilon(rho, delta) == pytest.approx(max(0.0, scan.min()), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("rho", "delta"), [(1e-310, 1e-6), (1e300, 1e-6), (0.5, 5e-324), (1e-310, 5e-324)])
def test_zcdp_conversion_at_the_extremes_is_finite_and_no_more_than_the_simple_one(rho, delta):
    simple = rho + 2 * math.sqrt(rho * -math.log(delta))  # Bun and Steinke 2016, proposition 1.3
    assert 0 <= zcdp_epsilon(rho, delta) <= simple * (1 + 1e-9) + 1e-12


def test_the_worked_number():
    assert zcdp_epsilon(total_rho(WORKED), 1e-6) == pytest.approx(1.6956, rel=1e-4)
    assert total_epsilon(WORKED, 1e-6) == pytest.approx(1.5635, rel=1e-4)


def test_gaussians_compose_to_one_gaussian_in_any_order():
    parts = [Gaussian(mu) for mu in (0.3, 0.1, 0.2)]
    assert total_mu(parts) == pytest.approx(math.sqrt(0.14), rel=1e-15)
    assert total_epsilon(parts, 1e-6) == total_epsilon(parts[::-1], 1e-6) == gdp_epsilon(total_mu(parts), 1e-6)
    assert total_mu([*parts, Laplace(0.1)]) is None


def test_nothing_costs_nothing_and_no_guarantee_costs_everything():
    assert total_epsilon([], 1e-6) == total_epsilon([], 0.0) == total_rho([]) == total_mu([]) == 0
    assert total_epsilon([Gaussian(0.0), Laplace(0.0), Selection(0.1, 0)], 1e-6) == 0
    assert total_epsilon([*WORKED, NoGuarantee("paper")], 1e-6) == math.inf
    assert total_rho([NoGuarantee("paper")]) == math.inf
    assert total_epsilon([Gaussian(1e200)], 1e-6) == math.inf


def test_without_delta_only_pure_mechanisms_have_a_total():
    pure = [Laplace(0.5), Selection(0.25, 2), RandomisedResponse(1.0, 3)]
    assert total_epsilon(pure, 0.0) == pytest.approx(2.0, rel=1e-15)
    assert total_epsilon([*pure, Gaussian(0.1)], 0.0) == math.inf


@pytest.mark.parametrize(
    "mixed",
    [
        WORKED,
        [Gaussian(0.2), Selection(0.01, 20)],
        [Gaussian(0.2), Selection(0.1, 100)],
        [Gaussian(1e-3), Laplace(1e-3)],
        [Gaussian(5.0), Laplace(1e-6)],
        [Gaussian(5.0), Selection(0.003, 1000), RandomisedResponse(0.1, 2)],
        [Laplace(1.0), Laplace(2.0)],
        [RandomisedResponse(900.0, 4), Gaussian(0.1)],
        [Gaussian(4.0), Laplace(5.0)],
    ],
)
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
def test_a_mixture_costs_more_than_its_gaussians_and_less_than_the_simple_bounds(mixed, delta):
    gaussians = [event for event in mixed if isinstance(event, Gaussian)]
    pure = sum(e.epsilon * getattr(e, "picks", 1) for e in mixed if not isinstance(e, Gaussian))
    total = total_epsilon(mixed, delta)
    assert total <= zcdp_epsilon(total_rho(mixed), delta)
    assert total_epsilon(gaussians, delta) <= total <= total_epsilon(gaussians, delta) + pure


def test_numerical_composition_agrees_with_the_exact_gaussian():
    # A vanishing Laplace release forces the numerical path; its grid may add 1e-4 relative at most.
    for mu in (0.01, 0.3, 3.0):
        exact, mixed = gdp_epsilon(mu, 1e-6), total_epsilon([Gaussian(mu), Laplace(mu * 1e-7)], 1e-6)
        assert exact <= mixed <= exact * (1 + 1e-4)


@pytest.mark.parametrize("each", [0.05, 0.3, 1 / 3])
def test_numerical_composition_of_coins_matches_the_binomial_formula(each):
    # n coins of odds e^each: delta = sum over outcomes of (P - e^total Q)+ (Kairouz, Oh and Viswanath 2015).
    coins, delta = 12, 1e-6
    keep = 1 / (1 + math.exp(-each))
    wins = np.arange(coins + 1)
    mass = np.array([math.comb(coins, int(w)) * keep**w * (1 - keep) ** (coins - w) for w in wins])
    total = total_epsilon([RandomisedResponse(each, 2)] * coins, delta)
    # The coins' losses lie on the grid, so the composition is exact up to the FFT.
    left = np.sum(mass * np.maximum(0, -np.expm1(total - each * (2 * wins - coins))))
    assert left == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, math.nan, 2.0])
def test_an_impossible_delta_is_refused(bad):
    for call in (lambda: gdp_epsilon(1.0, bad), lambda: gdp_mu(1.0, bad), lambda: total_epsilon(WORKED, bad)):
        with pytest.raises(BudgetError, match="delta"):
            call()
    with pytest.raises(BudgetError, match="delta"):
        zcdp_epsilon(1.0, bad)


def test_impossible_costs_are_refused():
    with pytest.raises(BudgetError, match="mu"):
        gdp_delta(-1.0, 1.0)
    with pytest.raises(BudgetError, match="epsilon"):
        gdp_mu(math.nan, 1e-6)
    with pytest.raises(BudgetError, match="rho"):
        zcdp_epsilon(-1.0, 1e-6)
