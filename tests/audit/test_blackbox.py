"""The auditor itself: it proves what is there, no more, and what little is missing it notices."""

import numpy as np
import pytest
from scipy.stats import norm

from sfumato import Budget, InputError
from sfumato.audit import audit, couple, gaussian_check
from sfumato.audit.blackbox import epsilon_lower, mu_lower, privacy_lower, upper_rate
from sfumato.audit.controls import controls, half_noise
from sfumato.privacy.accounting import gdp_delta
from sfumato.privacy.noise import randomised_response, rounded_gaussian, rounded_laplace

UNIT = 2**16


def gaussian(mu):
    """Many draws at a time: the noise source is quick in bulk, and a test runs this a hundred thousand times."""
    rest = {}

    def mechanism(x, noise):
        if not len(rest.get(noise, ())):
            rest.clear()
            rest[noise] = list(rounded_gaussian(noise, round(UNIT / mu), (1000, 3)) / UNIT)
        return x + rest[noise].pop()

    return mechanism


ONE, OTHER = np.zeros(3), np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_gaussian_claim_is_proved_tight(epsilon):
    mu = Budget.approximate(epsilon, 1e-6).mu()
    result = audit(gaussian(mu), ONE, OTHER, mu, runs=20_000)
    assert result.passed and result.tightness > 0.7
    assert 0 < result.audited_epsilon(1e-6) < epsilon < result.claimed_epsilon(1e-6) + 1e-6


def test_true_claims_are_rarely_refuted():
    refuted = sum(not audit(gaussian(1.0), ONE, OTHER, 1.0, runs=1_000, seed=s).passed for s in range(20))
    assert refuted <= 1


def test_five_per_cent_of_missing_noise_are_noticed():
    caught = [gaussian_check(gaussian(1.0), ONE, OTHER, seed=s).mu_lower > 0.95 for s in range(20)]
    assert sum(caught) >= 18  # claimed 0.95, true 1.0
    fair = [gaussian_check(gaussian(1.0), ONE, OTHER, seed=s).mu_lower > 1.0 for s in range(20)]
    assert sum(fair) <= 1


def test_other_noise_is_audited_by_epsilon():
    laplace = audit(lambda x, noise: x + rounded_laplace(noise, 1000, 1), 0, 1000, (1.0, 0.0), runs=6_000)
    assert laplace.passed and laplace.tightness > 0.8
    labels = audit(
        lambda x, noise: randomised_response(noise, x, 5, 1.0), np.array([0]), np.array([3]), (1.0, 0.0), 6_000
    )
    assert labels.passed and labels.tightness > 0.7
    assert not audit(lambda x, n: x + rounded_laplace(n, 500, 1), 0, 1000, (1.0, 0.0), runs=4_000).passed


@pytest.mark.parametrize("control", controls(), ids=lambda control: control.name)
def test_every_broken_mechanism_is_caught(control):
    result = audit(control.mechanism, control.d, control.d_prime, control.claimed, runs=3_000, name=control.name)
    assert not result.passed, str(result)
    assert "IS FALSE" in str(result)


def test_noise_that_depends_on_the_data_shows_under_equal_noise():
    additive = {c.name: couple(c.mechanism, c.d, c.d_prime).additive for c in controls()}
    assert additive["noise halved"]
    assert not additive["noise shaped by the data (MVG)"] and not additive["bounds read from the data"]
    halved = half_noise()
    check = gaussian_check(halved.mechanism, halved.d, halved.d_prime, runs=600)
    assert check.mu_lower > 1.5 * halved.claimed


def test_rates_and_bounds_agree_with_their_definitions():
    assert upper_rate(5, 5, 0.99) == 1.0
    assert norm.cdf(-mu_lower(0.2, 0.3) - norm.ppf(0.2)) == pytest.approx(0.3)
    mu, epsilon = 1.3, 0.9
    delta = gdp_delta(mu, epsilon)
    threshold = epsilon / mu + mu / 2  # the most powerful test at this epsilon
    assert epsilon_lower(norm.sf(threshold), norm.cdf(threshold - mu), delta) == pytest.approx(epsilon)
    assert privacy_lower((500, 500), (1000, 1000), None, 0.99) == 0.0


def test_impossible_requests_are_refused():
    with pytest.raises(InputError, match="runs"):
        audit(gaussian(1.0), ONE, OTHER, 1.0, runs=10)
    with pytest.raises(InputError, match="confidence"):
        audit(gaussian(1.0), ONE, OTHER, 1.0, confidence=1.0)
