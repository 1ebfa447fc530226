"""The exact total of Gaussian releases and selections: above what is surely spent, below what surely suffices."""

import itertools

import numpy as np
import pytest

from sfumato.privacy import selections
from sfumato.privacy.accounting import gdp_epsilon, total_epsilon, zcdp_epsilon
from sfumato.privacy.events import Gaussian, Selection
from sfumato.privacy.selections import selection_epsilon

CASES = [
    (0.2, [(0.15, 6)], 1e-4),
    (0.0, [(0.15, 6)], 1e-4),
    (0.2, [(0.01, 20)], 1e-6),
    (0.3, [(0.3, 2), (0.12, 5)], 1e-5),
    (1.0, [(0.8, 1)], 1e-6),
]


def zcdp(mu, picks, delta):
    return zcdp_epsilon(mu**2 / 2 + sum(count * epsilon**2 / 8 for epsilon, count in picks), delta)


@pytest.mark.parametrize(("mu", "picks", "delta"), CASES)
def test_the_total_is_below_zcdp_and_above_the_gaussian_part(mu, picks, delta):
    total = selection_epsilon(mu, picks, delta, zcdp(mu, picks, delta))
    assert gdp_epsilon(mu, delta) < total < 0.97 * zcdp(mu, picks, delta)


def non_adaptive(mu, picks, delta_at):
    """delta of randomised responses with losses t and t - epsilon, the same t in every selection, beside a Gaussian."""
    from scipy.special import ndtr

    (epsilon, count), worst = picks[0], 0.0
    for t in np.linspace(0.02, 0.98, 33) * epsilon:
        up = (np.exp(epsilon) - np.exp(t)) / (np.exp(epsilon) - 1)
        delta = 0.0
        for outcome in itertools.product((0, 1), repeat=count):
            loss = sum(t if high else t - epsilon for high in outcome)
            x = delta_at - loss
            tail = ndtr(-x / mu + mu / 2) - np.exp(x) * ndtr(-x / mu - mu / 2)
            delta += np.prod([up if high else 1 - up for high in outcome]) * tail
        worst = max(worst, delta)
    return worst


def test_no_non_adaptive_adversary_reaches_the_total_and_the_best_comes_close():
    mu, picks, delta = 0.3, [(0.4, 4)], 1e-4
    total = selection_epsilon(mu, picks, delta, zcdp(mu, picks, delta))
    assert non_adaptive(mu, picks, total) <= delta
    assert non_adaptive(mu, picks, 0.95 * total) > delta


def test_a_finer_grid_only_lowers_the_total_and_hardly(monkeypatch):
    mu, picks, delta = 0.2, [(0.15, 6)], 1e-4
    usual = selection_epsilon(mu, picks, delta, 2.0)
    monkeypatch.setattr(selections, "_MOST", 96)
    monkeypatch.setattr(selections, "_IN_ALL", 600)
    assert 0.999 * usual < selection_epsilon(mu, picks, delta, 2.0) < usual


@pytest.mark.parametrize("ratio", [1.033, 1.06, 1.3, 1.72])
def test_unequal_selections_cost_hardly_more_than_equal_ones_of_the_same_rho(ratio):
    """Many selections leave few grid points for each, and rounding up must not make 1.033 out of it 1.25."""
    small, mu, delta = 0.045, 0.2, 1e-4
    mixed = [(small, 9), (ratio * small, 40)]
    mean = float(np.sqrt((9 + 40 * ratio**2) / 49)) * small
    total = selection_epsilon(mu, mixed, delta, zcdp(mu, mixed, delta))
    equal = selection_epsilon(mu, [(mean, 49)], delta, zcdp(mu, mixed, delta))
    assert selection_epsilon(mu, [(small, 49)], delta, 9.0) < total < 1.005 * equal


def test_one_selection_alone_costs_at_most_its_epsilon_and_as_delta_vanishes_all_of_it():
    assert selection_epsilon(0.0, [(0.5, 1)], 1e-9, 5.0) == pytest.approx(0.5, abs=0.05)
    assert selection_epsilon(0.0, [(0.5, 1)], 1e-2, 5.0) < 0.5


def test_the_divergence_of_real_exponential_mechanisms_is_covered():
    """Three picks without replacement from scores that differ by one on neighbours: the exact privacy loss."""
    epsilon, delta = 0.6, 1e-2
    scores, moved = np.array([3.0, 2.0, 2.0, 0.0]), np.array([2.0, 3.0, 1.0, 1.0])

    def law(values):
        p = {}
        for order in itertools.permutations(range(4), 3):
            rest, chance = list(range(4)), 1.0
            for j in order:
                weight = np.exp(epsilon / 2 * values[rest])
                chance *= weight[rest.index(j)] / weight.sum()
                rest.remove(j)
            p[order] = chance
        return p

    total = selection_epsilon(0.0, [(epsilon, 3)], delta, 9.0)
    a, b = law(scores), law(moved)
    assert sum(max(a[k] - np.exp(total) * b[k], 0.0) for k in a) <= delta
    assert sum(max(b[k] - np.exp(total) * a[k], 0.0) for k in a) <= delta


def test_many_selections_fall_back_to_the_bound_that_is_given():
    assert selection_epsilon(0.1, [(0.01, 10**6)], 1e-6, 7.0) == 7.0


def test_the_accountant_uses_it():
    events = [Gaussian(0.2), Selection(0.15, 6)]
    assert total_epsilon(events, 1e-4) == selection_epsilon(0.2, [(0.15, 6)], 1e-4, zcdp(0.2, [(0.15, 6)], 1e-4))


@pytest.mark.parametrize("mu", [30.0, 40.0, 60.0])
def test_a_huge_budget_is_totalled_without_overflow(mu):
    picks, gaussian = Selection(40.0, 2), gdp_epsilon(mu, 1e-6)
    total = total_epsilon([picks, Gaussian(mu)], 1e-6)  # warnings are errors here
    assert gaussian < total <= gaussian + 80.0
