"""Mechanisms: the noise that was declared, on the grid, and never a wrapped integer."""

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.bounds import Bounds
from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.mechanisms import gaussian, laplace, top
from sfumato.privacy.noise import SeededNoise
from sfumato.records import Records
from sfumato.statistics.histograms import Bins, OctaveHistograms, ResponseHistogram
from sfumato.statistics.moments import Moments

RELATIONS = ("replace", "add-remove")
COUNTS = ResponseHistogram(Bins(np.empty(0), categories=4096))
ZEROS = np.zeros(4096, dtype=np.int64)


def within(value, distribution, level=1e-6):
    """Both tails of a seeded statistic have at least this probability."""
    return distribution.cdf(value) > level and distribution.sf(value) > level


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mu", [0.01, 0.7, 30.0])
def test_gaussian_noise_has_the_declared_standard_deviation(relation, mu):
    release = gaussian(ZEROS, COUNTS, relation, Gaussian(mu), SeededNoise(5))
    sensitivity = math.sqrt(2.0) if relation == "replace" else 1.0
    assert np.allclose(release.noise_std, sensitivity / mu, rtol=1e-5)
    assert (release.noise_std >= sensitivity / mu * (1 - 1e-15)).all()  # rounded up, never down
    assert within(((release.value / release.noise_std) ** 2).sum(), stats.chi2(4096))


@pytest.mark.parametrize("relation", ["Replace", "add_remove", ""])
def test_no_noise_is_drawn_for_a_relation_that_is_none(relation):
    with pytest.raises(AssertionError):
        gaussian(ZEROS, COUNTS, relation, Gaussian(1.0), SeededNoise(5))


def test_each_coordinate_of_a_weighted_sum_has_its_own_noise():
    query = Moments(Bounds(-1, 1).grid(60), 1.0)
    zeros = np.zeros(query.shape, dtype=np.int64)
    release = gaussian(zeros, query, "replace", Gaussian(0.5), SeededNoise(6))
    assert np.allclose(release.noise_std * query.weights / query.grid, query.diameter / 0.5, rtol=1e-5)
    for block in (slice(0, 60), slice(60, None)):
        scaled = release.value[block] / release.noise_std[block]
        assert within((scaled**2).sum(), stats.chi2(len(scaled)))


@pytest.mark.parametrize("relation", RELATIONS)
def test_laplace_noise_has_the_declared_scale(relation):
    release = laplace(ZEROS, COUNTS, relation, Laplace(0.2, vector=True), SeededNoise(7))
    scale = (2.0 if relation == "replace" else 1.0) / 0.2
    assert np.allclose(release.noise_std, math.sqrt(2.0) * scale, rtol=1e-5)
    assert within(np.abs(release.value).sum() / scale, stats.gamma(4096))


@pytest.mark.parametrize("relation", RELATIONS)
def test_selection_follows_the_exponential_mechanism_of_the_spread(relation):
    query = ResponseHistogram(Bins(np.array([0.0, 1.0, 2.0])))
    scores, event, noise = np.array([3, 5, 4, 0]), Selection(1.2, 1), SeededNoise(8)
    picks = np.array([top(scores, query, relation, event, noise)[0] for _ in range(4000)])
    odds = np.exp(event.epsilon * scores / query.spread(relation))
    assert stats.chisquare(np.bincount(picks, minlength=4), 4000 * odds / odds.sum()).pvalue > 1e-4


def test_a_selection_of_everything_is_a_permutation():
    picked = top(np.arange(4), ResponseHistogram(Bins(np.zeros(3))), "replace", Selection(0.1, 4), SeededNoise(9))
    assert sorted(picked) == [0, 1, 2, 3]


def test_sums_without_an_l1_bound_refuse_laplace_noise():
    query = OctaveHistograms(2)
    with pytest.raises(NotImplementedError, match="OctaveHistograms"):
        laplace(query.of(Records(np.zeros((1, 2)), np.zeros(1))), query, "replace", Laplace(1.0), SeededNoise(0))


@pytest.mark.parametrize("mu", [1e-3, 1.0, 1e3, 1e6, 1e12])
def test_huge_counts_and_huge_budgets_never_wrap_around(mu):
    exact = np.array([2**37, 0, 17, 2**36 + 1], dtype=np.int64)
    query = ResponseHistogram(Bins(np.zeros(3)))
    release = gaussian(exact, query, "replace", Gaussian(mu), SeededNoise(10))
    assert (np.abs(release.value - exact) <= 8 * release.noise_std).all()
    assert (release.noise_std >= math.sqrt(2.0) / mu).all()


@pytest.mark.parametrize("mu", [0.1, 3.0, 1e6])
def test_second_moments_of_a_billion_records_never_wrap_around(mu):
    query = Moments(Bounds(-1, 1).grid(1), 1.0)
    exact = np.array([10**9 * 2**15, 10**9 * 2**30], dtype=np.int64)  # every record at the edge of the ball
    release = gaussian(exact, query, "replace", Gaussian(mu), SeededNoise(11))
    assert (np.abs(release.value - exact * query.grid) <= 8 * release.noise_std).all()
