"""PrivateSAVE and PrivateDR see the symmetric link that SIR cannot."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import (
    DR,
    SAVE,
    Bounds,
    PrivateDR,
    PrivateSAVE,
    PrivateSIR,
    SfumatoError,
    subspace_distance,
)
from sfumato.forecast import forecast

BOX = Bounds(-6, 6)
BOTH = pytest.mark.parametrize("kind", [PrivateSAVE, PrivateDR])


@parametrize_with_checks([PrivateSAVE(bounds="search", random_state=0), PrivateDR(bounds="search", random_state=0)])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def symmetric(n=20_000, p=10, seed=0):
    rng = np.random.default_rng(seed)
    x, b = rng.normal(size=(n, p)), rng.normal(size=p)
    b /= np.linalg.norm(b)
    return x, (x @ b) ** 2 + 0.5 * rng.normal(size=n), b


@BOTH
@pytest.mark.parametrize("options", [{"bounds": BOX}, {}, {"bounds": BOX, "relation": "add-remove"}, {"rho": 0.05}])
def test_a_symmetric_link_is_found_with_one_direction_at_epsilon_one(kind, options):
    x, y, b = symmetric()
    fit = kind(**options).fit(x, y)
    assert len(fit.directions_) == 1  # chosen, not told
    assert subspace_distance(fit.directions_, b) < 0.15  # 1.41 is orthogonal
    if "rho" in options:
        assert fit.ledger_.rho == pytest.approx(0.05, rel=1e-6)
    else:
        assert fit.ledger_.total() == pytest.approx(1.0, abs=1e-6)


def test_sir_cannot_see_it():
    x, y, b = symmetric()
    assert subspace_distance(PrivateSIR(n_directions=1, bounds=BOX).fit(x, y).directions_, b) > 0.5


@pytest.mark.parametrize(("kind", "plain"), [(PrivateSAVE, SAVE), (PrivateDR, DR)])
def test_without_noise_it_is_the_textbook(kind, plain):
    x, y, _ = symmetric(20_000, 4)
    private = kind(rho=1e10, n_directions=1, bounds=BOX, random_state=0).fit(x, y)
    assert subspace_distance(private.directions_, plain(n_directions=1, n_slices=5).fit(x, y).directions_) < 0.03


def test_dr_finds_a_straight_and_a_symmetric_direction_together():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40_000, 6))
    y = x[:, 0] + x[:, 1] ** 2 + 0.3 * rng.normal(size=40_000)
    dr = PrivateDR(n_directions=2, bounds=BOX).fit(x, y)
    assert subspace_distance(dr.directions_, np.eye(6)[:2]) < 0.25
    assert np.allclose(dr.directions_ @ dr.directions_.T, np.eye(2), atol=1e-10)


@BOTH
def test_features_in_other_units_give_the_same_directions(kind):
    x, y, b = symmetric()
    unit = 10.0 ** np.linspace(-3, 3, 10)
    fit = kind(n_directions=1).fit(x * unit + 5 * unit, y)
    assert subspace_distance(fit.directions_ * unit, b) < 0.15


@BOTH
def test_classes_are_slices(kind):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 5))
    y = np.where(np.abs(x[:, 2]) > 0.7, "outer", "inner")
    for classes in (["inner", "outer"], None):
        fit = kind(n_directions=1, bounds=BOX, classes=classes).fit(x, y)
        assert abs(fit.directions_[0, 2]) > 0.97


REFUSED = {
    "slices": ({"n_slices": 1}, "n_slices must be"),
    "directions": ({"n_directions": 11}, "ask for at most 10"),
    "bounds": ({"bounds": 3}, "bounds must be"),
    "delta": ({"delta": 0}, "delta must be"),
}


@BOTH
@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_parameters_are_refused_and_nothing_is_spent(kind, options, words, unspent):
    x, y, _ = symmetric(50)
    with pytest.raises(SfumatoError, match=words):
        kind(**{"ledger": unspent, **options}).fit(x, y)
    with pytest.raises(SfumatoError, match="missing"):
        kind(ledger=unspent).fit(x, np.where(np.arange(50) == 3, np.nan, y))


def test_the_plan_tells_everything_beforehand():
    x, y, _ = symmetric(200)
    save = PrivateSAVE(relation="add-remove")
    assert [row[0] for row in save.explain(200, 10).rows()] == [entry.purpose for entry in save.fit(x, y).ledger_]


@pytest.mark.judged
@BOTH
@pytest.mark.filterwarnings("ignore:random_state")
def test_the_forecast_is_the_measured_mean(kind):
    n, p, signal, losses = 20_000, 10, 0.5, []
    fit = kind(1.0, 1e-6, 1, Bounds(-8, 8))
    for seed in range(10):
        rng = np.random.default_rng([14, seed])
        x = rng.standard_normal((n, p))
        y = np.sqrt(signal / 2) * x[:, 0] ** 2 + np.sqrt(1 - signal) * rng.standard_normal(n)
        losses.append(subspace_distance(fit.set_params(random_state=seed).fit(x, y).directions_, np.eye(1, p)))
    explanation = fit.explain(n, p)
    expected = forecast(explanation.fit, explanation.budget, n, explanation.prospect.explaining(signal), draws=10)
    assert 0.75 < expected.loss / np.mean(losses) < 1.33 and expected.plain < expected.loss


EDGES = {
    "one record": (np.ones((1, 3)), np.ones(1)),
    "one feature": (np.arange(5.0)[:, None], np.arange(5.0)),
    "equal records": (np.full((50, 3), 7.0), np.full(50, 2.0)),
    "huge": (np.where(np.eye(3)[np.arange(60) % 3] > 0, 1.7e308, -1.7e308), np.full(60, -1.7e308)),
    "wide": (np.random.default_rng(0).normal(size=(4, 30)), np.arange(4.0)),
    "one class": (np.random.default_rng(0).normal(size=(20, 3)), np.full(20, "only")),
}


@BOTH
@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)], ids=["found", "given"])
@pytest.mark.parametrize("name", EDGES)
def test_nothing_inside_the_domain_raises_or_warns(kind, name, bounds):
    for relation in ("replace", "add-remove"):
        for epsilon in (0.01, 1.0, 100.0):
            fit = kind(epsilon, bounds=bounds, relation=relation).fit(*EDGES[name])
            for released in (fit.directions_, fit.eigenvalues_, fit.mean_, fit.standard_errors_):
                assert np.isfinite(released).all()
            assert fit.verdict_.level in ("noise", "weak", "reliable")
