"""Normal scores: tame, rising with the feature, private, and at home in a pipeline."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, Budget, InputError, Ledger, PrivateNormalScores, PrivateSIR
from sfumato.audit.tape import replay

N = 20_000
SHAPES = {
    "normal": lambda rng: rng.normal(size=N),
    "normal, far from zero": lambda rng: 1e9 + 1e6 * rng.normal(size=N),
    "log-normal": lambda rng: np.exp(2.0 * rng.normal(size=N)),
    "negative": lambda rng: -np.exp(rng.normal(size=N)) * 1e-6,
    "heavy tails": lambda rng: rng.standard_t(1.5, size=N),
    "uniform": lambda rng: rng.uniform(-3.0, 3.0, N),
}


@parametrize_with_checks([PrivateNormalScores(bounds="search", random_state=0)])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_are_about_normal_whatever_the_feature_is(shape):
    """Octaves are coarse, and both sides of a middle are taken for alike: within a fifth of the normal distribution."""
    x = SHAPES[shape](np.random.default_rng(3))[:, None]
    scores = PrivateNormalScores(epsilon=1.0).fit(x).transform(x)[:, 0]
    assert kstest(scores, "norm").statistic < 0.2
    assert np.abs(scores).max() <= 3.3


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_scores_rise_with_the_feature_whatever_the_noise(epsilon):
    rng = np.random.default_rng(0)
    x = np.column_stack([make(rng) for make in SHAPES.values()])
    fitted = PrivateNormalScores(epsilon=epsilon, bounds="search").fit(x)
    for j in range(x.shape[1]):
        probe = np.tile(x[:1], (500, 1))
        probe[:, j] = np.sort([*rng.choice(x[:, j], 496), -1.7e308, 5e-324, 1e200, 1.7e308])
        rising = fitted.transform(probe)[:, j]
        assert np.isfinite(rising).all() and (np.diff(rising) >= -1e-12).all()


def test_a_feature_that_is_mostly_zero_keeps_its_zeros_apart():
    rng = np.random.default_rng(1)
    paid = np.where(rng.random(N) < 0.2, np.exp(3.0 * rng.normal(size=N)), 0.0)
    scores = PrivateNormalScores(epsilon=1.0).fit(paid[:, None]).transform(paid[:, None])[:, 0]
    assert len(np.unique(scores[paid == 0.0])) == 1
    assert scores[paid == 0.0].max() < scores[paid > 0.0].min()


def test_true_and_false_cost_nothing_and_a_constant_does_no_harm():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=N), "sick": rng.random(N) < 0.3, "same": 7.0})
    fitted = PrivateNormalScores().fit(frame)
    assert fitted.distributions_ is not None and 1 not in fitted.distributions_.columns
    scores = fitted.transform(frame)
    assert len(np.unique(scores[:, 1])) == 2 and np.isfinite(scores).all()
    assert list(fitted.get_feature_names_out()) == ["a", "sick", "same"]


@pytest.mark.parametrize("bounds", [None, [range(2), range(2)]])
def test_where_everything_is_known_nothing_is_spent_on_scores(bounds):
    ledger, truth = Ledger(Budget.approximate(1.0, 1e-6), "replace"), np.random.default_rng(0).random((500, 2)) < 0.4
    with pytest.raises(InputError, match="fit on the features themselves"):
        PrivateNormalScores(bounds=bounds, ledger=ledger).fit(truth)
    assert ledger.total() == 0.0 and not ledger.entries


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_record_changes_nothing_but_through_the_releases(relation):
    x = np.random.default_rng(4).normal(size=(300, 3)) * [1.0, 1e6, 1e-3] + [0.0, 1e9, 0.0]
    other = np.vstack([x[:-1], [[1.7e308, -5e-324, 0.0]]]) if relation == "replace" else x[:-1]
    scores = PrivateNormalScores(bounds="search", relation=relation, random_state=0)
    found = replay(lambda table: clone(scores).fit(table), x, other)
    assert found.passed and found.questions == 4


def test_one_account_pays_for_the_scores_and_for_the_fit_on_them():
    rng = np.random.default_rng(5)
    x = np.exp(2.0 * rng.normal(size=(N, 4)))
    y = np.log(x[:, 0] * x[:, 1]) + rng.normal(size=N)
    ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace")
    first = PrivateNormalScores(epsilon=0.25, delta=2.5e-7, ledger=ledger)
    then = PrivateSIR(epsilon=0.75, delta=7.5e-7, n_directions=1, bounds=Bounds(-3.3, 3.3), ledger=ledger)
    both = make_pipeline(first, then).fit(x, y)
    assert ledger.total() <= 1.0 + 1e-9
    truth = np.log(x[:, 0] * x[:, 1])
    assert np.corrcoef(both.transform(x)[:, 0], truth)[0, 1] > 0.95
    plain = PrivateSIR(epsilon=1.0, n_directions=1).fit(x, y)
    assert np.corrcoef(plain.transform(x)[:, 0], truth)[0, 1] < 0.8  # tails that are cut off


def test_the_plan_is_told_before_and_a_hopeless_search_is_refused():
    assert "spread of each feature" in str(PrivateNormalScores().explain(n_samples=N, n_features=4))
    with pytest.raises(InputError, match="too few"):
        PrivateNormalScores(epsilon=0.01).fit(np.random.default_rng(0).normal(size=(200, 20)))
