"""PrivateSparsePCA finds the few features that vary together among very many, within its budget."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, InputError, PrivateSparsePCA, subspace_distance

BOX = Bounds(-20, 20)


@parametrize_with_checks([PrivateSparsePCA(bounds="search", random_state=0)])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def spiked(n, p, seed, shift=0.0):
    """Noise of variance 1 and one component of variance 6.25 on six features."""
    rng = np.random.default_rng(seed)
    v = np.zeros(p)
    v[rng.choice(p, 6, replace=False)] = 1 / np.sqrt(6)
    return rng.normal(size=(n, p)) + 2.5 * rng.normal(size=(n, 1)) * v + shift, v


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_six_features_among_a_thousand_are_found(relation):
    x, v = spiked(5000, 1000, 1)
    fit = PrivateSparsePCA(1, bounds=BOX, relation=relation).fit(x)
    assert set(np.flatnonzero(v)) <= set(fit.support_) and len(fit.support_) == 8
    # Two superfluous features: sampling alone leaves sqrt(2 * 7 * 7.25 / 5000) / 6.25 = 0.023, noise as much again.
    assert subspace_distance(fit.directions_, v) < 0.15
    assert fit.eigenvalues_[0] == pytest.approx(7.25, rel=0.3)
    assert fit.explained_variance_ratio_[0] == pytest.approx(7.25 / 1006.25, rel=0.6)
    assert 1 - 1e-6 <= fit.ledger_.total() <= 1 + 1e-12


def test_it_is_near_exact_with_a_huge_budget():
    x, v = spiked(5000, 60, 2)
    fit = PrivateSparsePCA(1, 1e5, bounds=Bounds(-15, 15), max_features=6).fit(x)
    assert fit.support_.tolist() == np.flatnonzero(v).tolist()
    assert subspace_distance(fit.directions_, v) < 0.06  # sampling: 0.02


def test_two_components_on_their_own_features_come_out_largest_first():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6000, 300))
    x[:, :2] += 3 * rng.normal(size=(6000, 1))
    x[:, 2:4] += 2 * rng.normal(size=(6000, 1))
    fit = PrivateSparsePCA(2, bounds=BOX, max_features=4).fit(x)
    assert fit.support_.tolist() == [0, 1, 2, 3]
    assert np.abs(fit.directions_[0, :2]).min() > 0.5 and np.abs(fit.directions_[1, 2:4]).min() > 0.5


def test_outside_the_support_nothing_was_learnt():
    x, _ = spiked(3000, 200, 4, shift=0.3)
    fit = PrivateSparsePCA(1, bounds=BOX, max_features=6).fit(x)
    outside = np.setdiff1d(np.arange(200), fit.support_)
    assert not fit.directions_[:, outside].any() and not fit.standard_errors_[:, outside].any()
    assert not fit.mean_[outside].any()  # the middle of the bounds
    assert np.abs(fit.mean_[fit.support_] - 0.3).max() < 0.3


def test_the_plan_tells_everything_beforehand():
    estimator = PrivateSparsePCA(1, bounds=BOX)
    planned = [line.purpose for line in estimator.explain(2000, 50).plan.lines]
    assert planned == [entry.purpose for entry in estimator.fit(spiked(2000, 50, 5)[0]).ledger_]


def test_a_zcdp_budget_is_spent_to_the_last():
    fit = PrivateSparsePCA(1, bounds=BOX, rho=0.1).fit(spiked(2000, 50, 6)[0])
    assert fit.ledger_.guarantee.count("0.1")


@pytest.mark.parametrize(
    "options",
    [
        {"n_directions": "auto"},
        {"max_features": 0},
        {"max_features": 2.5},
        {"n_directions": 9},
        {"method": "lasso"},
        {"bounds": (0, 1)},
    ],
)
def test_bad_parameters_are_refused_in_a_sentence_that_names_them(options):
    with pytest.raises(InputError, match=r"n_directions|max_features|method|bounds"):
        PrivateSparsePCA(**options).fit(np.zeros((20, 12)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)])
def test_nothing_inside_the_domain_raises_or_warns(bounds):
    for x in (np.zeros((30, 12)), np.full((30, 12), 1e300), np.eye(12), np.ones((1, 12))):
        assert np.isfinite(PrivateSparsePCA(1, bounds=bounds).fit(x).directions_).all()
