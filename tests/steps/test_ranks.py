"""Bins of the response that adapt to where it lives."""

import numpy as np
import pytest

from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.release import Release
from sfumato.statistics.histograms import Bins, octave_edges
from sfumato.steps.noisy_histograms import likeliest_stretch, likeliest_window
from sfumato.steps.picture import groups
from sfumato.steps.ranks import Ranking, Ranks, refine

N = 4000


def ranks_of(make, y, response=None, **more):
    response = response or Response()
    curator = make(np.zeros((len(y), 1)), y, Ranking(response, 1.0).lines, response=response, **more)
    return drive(Ranking(response, 1.0).run(), curator)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_probabilities_are_the_shares_of_records_and_no_bin_holds_most_of_them(silent, scale, shift):
    y = np.random.default_rng(0).normal(size=N) * scale + shift * scale
    ranks = ranks_of(silent, y)
    shares = np.bincount(np.digitize(y, ranks.bins.edges), minlength=ranks.bins.count) / N
    assert np.allclose(ranks.probabilities, shares, atol=1e-5)
    assert ranks.total == pytest.approx(N, abs=0.01)
    assert ranks.probabilities.max() < 0.2 and (np.diff(ranks.bins.edges) > 0).all()


def test_bins_adapt_to_noisy_answers_too(noisy):
    y = np.random.default_rng(1).exponential(size=20_000)
    ranks = ranks_of(noisy, y, seed=3)
    shares = np.bincount(np.digitize(y, ranks.bins.edges), minlength=ranks.bins.count) / len(y)
    assert shares.max() < 0.2
    assert ranks.probabilities.sum() == pytest.approx(1.0) and (ranks.probabilities >= 0).all()


@pytest.mark.parametrize("y", [np.zeros(50), np.full(50, 1e308), np.full(50, 5e-324), np.array([-1e308, 1e308])])
def test_responses_that_cannot_be_told_apart_leave_finite_bins(silent, noisy, y):
    for make in (silent, noisy):
        ranks = ranks_of(make, y)
        assert np.isfinite(ranks.bins.edges).all() and len(ranks.bins.edges) >= 1
        assert ranks.probabilities.sum() == pytest.approx(1.0)


def test_a_lone_record_among_noise_raises_nothing(noisy):
    for seed in range(5):
        ranks = ranks_of(noisy, np.array([0.3]), seed=seed, rho=1e-4)
        assert ranks.probabilities.sum() == pytest.approx(1.0)


def test_undeclared_classes_are_found_among_the_buckets(noisy):
    codes = np.random.default_rng(2).choice([17, 900, 4000], p=[0.5, 0.3, 0.2], size=N)
    ranks = ranks_of(noisy, codes, Response(categories=4096, hashed=True))
    assert set(np.flatnonzero(ranks.probabilities)) == {17, 900, 4000}
    assert ranks.probabilities[[17, 900, 4000]] == pytest.approx([0.5, 0.3, 0.2], abs=0.05)


def test_refining_cuts_only_what_stands_out_of_the_noise():
    counts = Release(np.array([50.0, 1000.0, 2.0, 10.0, 30.0]), np.full(5, 5.0))
    for n in (1090.0, None):
        edges = refine(np.array([0.0, 1.0, 2.0, 3.0]), counts, n, 10, np.zeros(1))
        assert (np.diff(edges) > 0).all()
        assert edges.min() == 0.0 and edges.max() == 1.0  # open ends are never cut, and (2, 3) is below four noises


def test_refining_pure_noise_gives_the_public_edges():
    assert refine(np.array([0.0, 1.0, 2.0]), Release(np.zeros(4), np.ones(4)), 1.0, 10, np.zeros(1)).tolist() == [0.0]


def test_few_records_get_few_bins_that_are_not_all_on_one_side(noisy):
    y = np.exp(np.random.default_rng(4).normal(size=300) / 3.0)
    for seed in range(5):
        curator = noisy(
            np.zeros((300, 1)), y, Ranking(Response(), 1.0).lines, seed=seed, rho=0.004
        )  # noise of 20 and more
        ranks = drive(Ranking(Response(), 1.0).run(300), curator)
        shares = np.bincount(np.digitize(y, ranks.bins.edges), minlength=ranks.bins.count) / len(y)
        assert ranks.bins.count <= 12 and shares.max() < 0.9


def test_probabilities_of_a_public_number_of_records_do_not_gain_from_noise(noisy):
    y = np.repeat([0, 1], 500)
    response = Response(categories=40)
    curator = noisy(np.zeros((1000, 1)), y, Ranking(response, 1.0).lines, response=response, rho=0.002, seed=1)
    ranks = drive(Ranking(response, 1.0).run(1000), curator)
    assert ranks.probabilities[:2].sum() > 0.75  # positive parts alone would leave them about a half


@pytest.mark.parametrize("most", [2, 5, 16])
def test_groups_cover_all_bins_in_order_with_increasing_edges(most):
    rng = np.random.default_rng(3)
    for _ in range(20):
        shares = rng.dirichlet(np.full(30, 0.3))
        group_of, edges = groups(Ranks(Bins(np.arange(29.0)), shares, 1.0), most)
        assert (np.diff(group_of) >= 0).all() and set(group_of) == set(range(len(edges) - 1))
        assert len(edges) <= most + 1 and (np.diff(edges) > 0).all()
        assert edges[0] == 0.0 and edges[-1] == pytest.approx(1.0)


def test_classes_beyond_the_likeliest_share_the_last_group():
    shares = np.array([0.1, 0.4, 0.0, 0.3, 0.2])
    group_of, edges = groups(Ranks(Bins(np.empty(0), categories=5), shares, 1.0), 3)
    assert group_of.tolist() == [2, 0, 2, 1, 2] and edges.tolist() == [0, 1, 2, 3]


def test_few_records_on_both_sides_of_zero_are_not_all_in_one_bin(noisy):
    for seed in range(100):
        y = np.random.default_rng(seed).normal(size=2000)  # beside noise of 29 to 50 in each bin
        curator = noisy(np.zeros((2000, 1)), y, Ranking(Response(), 1.0).lines, seed=seed, rho=0.002)
        ranks = drive(Ranking(Response(), 1.0).run(2000), curator)
        shares = np.bincount(np.digitize(y, ranks.bins.edges), minlength=ranks.bins.count) / len(y)
        assert shares.max() < 0.7


@pytest.mark.parametrize("n", [100.0, None])
def test_numbers_on_both_sides_of_zero_show_by_the_length_of_their_octaves(n):
    edges, values = octave_edges(), np.zeros(len(octave_edges()) + 1)
    uniform = np.clip(edges, -4.0, 4.0)
    values[1:-1] = 100.0 * np.diff(uniform) / 8.0
    seen = Release(values, np.full(len(values), 10.0))
    first, last, likely = likeliest_stretch(edges, seen, n)
    assert (first, last) == (-4.0, 4.0)
    assert likely > 2.0 * likeliest_window(seen, n)[2]


def test_a_narrow_stretch_shows_beside_huge_octaves():
    edges, values = octave_edges(), np.zeros(len(octave_edges()) + 1)
    place = int(np.searchsorted(edges, 2.0**-30))
    values[place : place + 2] = 50.0
    first, last, _ = likeliest_stretch(edges, Release(values, np.full(len(values), 1.0)), 100.0)
    assert (first, last) == (edges[place - 1], edges[place + 1])
