"""The studies of the FSIR paper: what stands for many sites has their law, and the printed tables are whole."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from sfumato import Bounds, Budget, PrivateSIR
from sfumato.federated import simulate
from sfumato.federated.task import FEW_ROUNDS, SparseSites
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Response
from sfumato.research import run
from sfumato.research.he_tables import (
    Site,
    _on_filtered,
    angles,
    delta_of,
    filtered,
    high_dimension,
    low_dimension,
    printed,
    threshold_of,
)
from sfumato.research.many_sites import MergedSites, WideSites, far_signs
from sfumato.simulate import he
from sfumato.sources import ArraySource
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import SignScores


def test_merged_sites_have_the_sums_and_the_noise_of_sites_that_add_up():
    sample, budget = he("V", n=1_200, random_state=0), Budget.approximate(1.0, 1e-5)
    parts = [(sample.x[i::4], sample.y[i::4]) for i in range(4)]
    fitted = simulate(PrivateSIR(1.0, 1e-5, 2, Bounds(-6, 6), "one-shot"), parts)
    merged = MergedSites(ArraySource(sample.x, sample.y, Response()), 4, budget)
    plan = Plan((Line("ranks", "ranks", 1.0, ""),))
    query = ResponseHistogram(Bins(np.array([0.0])))
    release = merged.open(plan).answer(query, "ranks")
    assert release.noise_std[0] == pytest.approx(
        2.0 * np.sqrt(2.0) / plan.calibrate(budget).lines[0].event.mu, rel=1e-6
    )
    assert release.value.sum() == pytest.approx(1_200, abs=6 * np.sqrt(2) * release.noise_std[0])
    assert len(fitted.ledgers_) == 4


def test_features_drawn_as_signs_keep_their_signs_and_are_standard_normal():
    far = far_signs(20_000, 16, seed=3)
    sites = WideSites(np.zeros((20_000, 2)), np.zeros(20_000), Response(), far, 2, Budget.approximate(1.0, 1e-3), 3)
    x = sites.columns(np.array([2, 17]))
    np.testing.assert_array_equal(x[:, 0] > 0, np.unpackbits(far, axis=1)[:, 0] == 1)
    np.testing.assert_allclose(x.mean(axis=0), 0.0, atol=5 / np.sqrt(20_000))
    np.testing.assert_allclose(x.var(axis=0), 1.0, atol=5 * np.sqrt(2 / 20_000))


def test_the_votes_of_wide_sites_are_those_of_tables_drawn_in_full():
    """Without much noise every site must name what its own full table scores highest."""
    rng, n, budget = np.random.default_rng(0), 2_000, Budget.zcdp(1e6)
    y = rng.standard_normal(n)
    near = np.column_stack([y + rng.standard_normal(n), rng.standard_normal(n)])
    sites = WideSites(near, y, Response(), far_signs(n, 22, 5), 2, budget, 5)
    task = SparseSites(24, n, Response(), 1, Bounds(-6, 6), 3, 2, FEW_ROUNDS)
    query = SignScores(np.zeros(24), Bins(np.array([0.0])), np.array([[-1.0], [1.0]]))
    ballots = sites.open(task.plan()).ballots(OnColumns(query, np.arange(24)), "picks 1")
    whole = sites.columns(np.arange(24))
    for half, ballot in zip((slice(0, n // 2), slice(n // 2, n)), ballots, strict=True):
        scores = np.abs(np.sign(whole[half]).T @ np.where(y[half] >= 0, 1.0, -1.0))
        np.testing.assert_array_equal(np.sort(scores[ballot]), np.sort(scores)[-3:])


@pytest.mark.parametrize(("table", "cells"), [(1, 80), (2, 80), (3, 60), (4, 60)])
def test_every_printed_cell_is_a_row(table, cells):
    study = run.find(f"fsir-table-{table}")
    assert len(printed(table)) == cells
    assert sum("," not in row.label for row in study.rows) == cells
    assert all(set(row.printed) == {"IID", "MVG"} for row in study.rows)


def test_a_replication_measures_every_column():
    low = low_dimension("III", 500, 2, 1.0, 0)
    high = high_dimension("I", 500, 2, 1.0, 0)
    for values in (low, high):
        assert set(values) == {"sfumato", "IID as printed", "MVG as printed", "SIR, no privacy"}
        assert all(0.0 <= value <= 2.0 for value in values.values())


def test_delta_is_that_of_the_papers_captions():
    assert delta_of(500, 6) == pytest.approx(10 / 84**1.1)


def test_the_smallest_slice_of_model_one_is_that_of_six_slices_as_its_printed_columns_show():
    """Printed for n = 1000, K = 1, epsilon = 1 in the IID column: 0.760; with n_0 = n / 2 it would be 0.22."""
    found = [low_dimension("I", 1000, 1, 1.0, seed)["IID as printed"] for seed in range(12)]
    assert printed(2)["I", 1000, 10, 1]["IID"] == 0.760
    assert 0.5 < np.mean(found) < 0.95


def test_the_filter_may_keep_nothing_and_no_feature_is_put_in_its_place():
    x = np.random.default_rng(0).normal(size=(2000, 300))
    slice_of = np.arange(2000) % 4
    kept = filtered(x, slice_of, 10, 4, 300)
    assert len(kept) == 0
    truth = np.eye(300)[:2]
    found = _on_filtered(x[:, kept], slice_of, kept, 10, Site(4, 1.0, 0.01, 0.87, 50), truth, 0)
    assert found == {"IID as printed": 2.0, "MVG as printed": 2.0}  # as far as two wrong directions
    one = _on_filtered(x[:, :1], slice_of, np.array([0]), 10, Site(4, 1.0, 0.01, 0.87, 50), truth, 0)
    assert all(value == pytest.approx(np.sqrt(2.0)) for value in one.values())  # one right, one missing


@pytest.mark.parametrize("p", [500, 2000])
@pytest.mark.parametrize("sites", [50, 100])
def test_with_many_sites_the_filter_keeps_no_feature_that_y_has_nothing_to_do_with(p, sites):
    """The mean of a slice of m of n records has variance m / n^2; m of one slice in eight is rarely above 1.5 n / 8."""
    n, slices = 1000, 8
    named = 2 * norm.sf(threshold_of(p, n, slices) * n / np.sqrt(1.5 * n / slices))
    assert p * binom.sf(sites // 2, sites * slices, named) < 1e-10
    assert sites * slices * binom.sf(1.5 * n / slices, n, 1 / slices) < 1e-3  # a few such slices matter to nobody


def test_the_printed_methods_are_measured_with_many_sites_too():
    found = high_dimension("I", 500, 50, 1.0, 0)
    assert found["MVG as printed"] < 0.1  # printed: 0.025


def test_printed_iid_distances_do_not_double_when_epsilon_is_halved():
    """Proposition 2's noise is proportional to 1 / epsilon; where it is small distances follow it."""
    for n in (500, 1000, 2500, 5000):
        ratios = [
            values["IID"] / printed(2)[key]["IID"]
            for key, values in printed(1).items()
            if key[1] == n and key[3] >= 10 and values["IID"] < 0.7
        ]
        assert len(ratios) >= 4 and 1.35 < np.median(ratios) < 1.42


def test_the_figures_show_angles_that_shrink_with_records():
    few, many = (angles("V", n, 1, 1.0, 6, 0) for n in (200, 20_000))
    assert set(few) == {"sfumato", "IID as printed", "MVG as printed", "SIR, no privacy"}
    assert 0 <= many["SIR, no privacy"] < few["SIR, no privacy"] <= 90 and many["sfumato"] < few["sfumato"]
