"""Noise, in bulk: frequencies match the stated distributions.

Draws are seeded, so each test always gives the same verdict; an exact sampler would fail one of them with
probability SURPRISE over the choice of the seed.
"""

import numpy as np
import pytest
from scipy import stats

from sfumato.privacy import noise as module
from sfumato.privacy.noise import (
    SeededNoise,
    gumbel_argtop,
    randomised_response,
    rounded_gaussian,
    rounded_laplace,
)

SURPRISE = 1e-4
LAWS = {"gaussian": (rounded_gaussian, stats.norm), "laplace": (rounded_laplace, stats.laplace)}


def chi_square(observed, probabilities):
    expected = np.asarray(probabilities) * np.sum(observed)
    assert expected.min() >= 5
    return stats.chisquare(observed, expected * (np.sum(observed) / expected.sum())).pvalue


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 2, 5])
def test_small_scales_follow_the_rounded_probabilities(law, scale):
    draw, distribution = LAWS[law]
    draws = draw(SeededNoise(scale), scale, 200_000)
    edge = int(3.2 * scale)  # beyond it, both tails are pooled
    values = np.arange(-edge, edge + 1)
    cells = np.diff(distribution.cdf((np.append(values, edge + 1) - 0.5) / scale))
    inside = np.array([np.sum(draws == value) for value in values])
    observed = np.append(inside, draws.size - inside.sum())
    assert chi_square(observed, np.append(cells, 1 - cells.sum())) > SURPRISE


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "count"), [(2**12, 200_000), (2**29, 200_000), (2**45, 3_000)])
def test_large_scales_follow_the_continuous_law(law, scale, count):
    # Rounding moves the distribution function by at most 0.5/scale * density, far below 1/sqrt(count).
    draw, distribution = LAWS[law]
    draws = draw(SeededNoise(scale % 1009), scale, count)
    assert stats.kstest(draws / scale, distribution.cdf).pvalue > SURPRISE


@pytest.mark.parametrize("law", LAWS)
def test_tails_are_as_heavy_as_stated(law):
    draw, distribution = LAWS[law]
    beyond = int(np.sum(np.abs(draw(SeededNoise(5), 1000, 1_000_000)) > 4000))
    probability = 2 * distribution.sf(4000.5 / 1000)
    assert stats.binomtest(beyond, 1_000_000, probability).pvalue > SURPRISE


def test_low_bits_are_uniform_and_signs_are_fair():
    draws = rounded_gaussian(SeededNoise(6), 2**29, 200_000)
    assert chi_square(np.bincount(draws & 63, minlength=64), np.full(64, 1 / 64)) > SURPRISE
    assert stats.binomtest(int(np.sum(draws > 0)), draws.size).pvalue > SURPRISE


def test_neighbouring_entries_are_independent():
    draws = rounded_gaussian(SeededNoise(8), 2**20, 200_001) / 2**20
    correlation = np.mean(draws[1:] * draws[:-1])
    assert abs(correlation) < stats.norm.isf(SURPRISE / 2) / np.sqrt(200_000)


def test_opendp_draws_the_same_distribution():
    measurements = pytest.importorskip("opendp.measurements")
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    count = 10_000
    theirs = np.array(measurements.make_gaussian(*space, scale=float(2**20))([0] * count)) / 2**20
    ours = rounded_gaussian(SeededNoise(9), 2**20, 20 * count) / 2**20
    # OpenDP cannot be seeded: an honest pair fails each check with probability 1e-6.
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-6
    spread = np.sqrt(2 / count + 2 / ours.size)
    assert abs(theirs.var() / ours.var() - 1) < stats.norm.isf(5e-7) * spread


def test_gumbel_picks_follow_the_exponential_mechanism_without_replacement():
    scores, scale = np.array([3, 0, 5, 2]), 2.0
    source = SeededNoise(10)
    pairs = np.array([gumbel_argtop(source, scores, scale, 2) for _ in range(10_000)])
    weight = np.exp(scores / scale) / np.exp(scores / scale).sum()
    assert chi_square(np.bincount(pairs[:, 0], minlength=4), weight) > SURPRISE
    order = [(i, j) for i in range(4) for j in range(4) if i != j]
    expected = [weight[i] * weight[j] / (1 - weight[i]) for i, j in order]
    observed = [int(np.sum((pairs[:, 0] == i) & (pairs[:, 1] == j))) for i, j in order]
    assert chi_square(observed, expected) > SURPRISE


def test_gumbel_of_all_scores_is_a_permutation():
    order = gumbel_argtop(SeededNoise(11), np.zeros(300, dtype=np.int64), 1.0, 300)
    assert sorted(order.tolist()) == list(range(300))


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.3), (4, 1.0), (7, 2.5)])
def test_randomised_response_has_the_stated_odds(k, epsilon):
    labels = np.arange(300_000) % k
    answers = randomised_response(SeededNoise(k), labels, k, epsilon)
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    shift = np.bincount((answers - labels) % k, minlength=k)
    assert chi_square(shift, [keep] + [(1 - keep) / (k - 1)] * (k - 1)) > SURPRISE


def test_uniform_integers_have_no_modulo_bias():
    # Words taken modulo 3 * 2**61 would fall below 2**61 with probability 3/8 instead of 1/3.
    draws = module._below(SeededNoise(12), 3 * 2**61, 100_000)
    low = int(np.sum(draws < 2**61))
    assert stats.binomtest(low, 100_000, 1 / 3).pvalue > SURPRISE
