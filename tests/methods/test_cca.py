"""PrivateCCA: planted pairs of directions, at the budget that was asked for."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, PrivateCCA, SfumatoError, subspace_distance
from sfumato.steps.cca import canonical

BOX = {"bounds": Bounds(-20, 20), "y_bounds": Bounds(-20, 20)}


@parametrize_with_checks([PrivateCCA(bounds="search", random_state=0)])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def planted(n=50_000, p=10, correlations=(0.9, 0.6), seed=0):
    rng, r = np.random.default_rng(seed), np.asarray(correlations)
    k = len(r)
    z, w = rng.normal(size=(2, n, p))
    w[:, :k] = r * z[:, :k] + np.sqrt(1 - r**2) * w[:, :k]
    a, b = np.eye(p) + 0.5 * rng.normal(size=(2, p, p)) / np.sqrt(p)
    return z @ a.T, w @ b.T, np.linalg.inv(a)[:k], np.linalg.inv(b)[:k]


@pytest.mark.parametrize("options", [BOX, {}, {**BOX, "relation": "add-remove"}], ids=["given", "found", "add-remove"])
def test_planted_pairs_are_found_nearly_as_well_as_without_privacy(options):
    ratios = []
    for seed in range(3):
        x, y, a, b = planted(seed=seed)
        cca = PrivateCCA(2, **options).fit(x, y)
        plain = canonical(np.cov(np.hstack([x, y]).T), 10, 0.0, len(x), 2)
        private = subspace_distance(cca.directions_, a) + subspace_distance(cca.y_directions_, b)
        ratios.append(private / (subspace_distance(plain.x_weights, a) + subspace_distance(plain.y_weights, b)))
        assert cca.correlations_ == pytest.approx([0.9, 0.6], abs=0.03)
        assert cca.ledger_.total() == pytest.approx(1.0, abs=1e-6)
    assert np.mean(ratios) < 2.0


def test_the_number_of_pairs_is_found_and_directions_are_orthonormal():
    x, y, _, _ = planted()
    cca = PrivateCCA(**BOX).fit(x, y)
    assert len(cca.directions_) == 2
    for rows in (cca.directions_, cca.y_directions_):
        assert np.allclose(rows @ rows.T, np.eye(2), atol=1e-10)
    assert subspace_distance(cca.directions_, cca.x_weights_) < 1e-8


def test_without_noise_it_is_the_textbook():
    x, y, _, _ = planted(5_000, 4)
    cca = PrivateCCA(2, rho=1e10, random_state=0, **BOX).fit(x, y)
    plain = canonical(np.cov(np.hstack([x, y]).T), 4, 0.0, len(x), 2)
    assert subspace_distance(cca.x_weights_, plain.x_weights) < 0.05  # clipping alone
    assert cca.correlations_ == pytest.approx(plain.correlations, abs=0.02)


def test_tables_of_different_width_and_units_are_projected_together():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(20_000, 5)) * 1e4, rng.normal(size=(20_000, 2)) * 1e-3
    y[:, 1] += 2e-7 * x[:, 3]
    cca = PrivateCCA(1).fit(x, y)
    u, v = cca.transform(x, y)
    assert u.shape == v.shape == (20_000, 1)
    assert abs(np.corrcoef(u[:, 0], v[:, 0])[0, 1]) == pytest.approx(cca.correlations_[0], abs=0.05)
    assert np.array_equal(cca.transform(x), u)
    with pytest.raises(SfumatoError, match="fit saw 2"):
        cca.transform(x, x)


def test_the_plan_tells_everything_beforehand():
    x, y, _, _ = planted(500, 4)
    for relation in ("replace", "add-remove"):
        cca = PrivateCCA(1, bounds="search", relation=relation)
        told = [row[0] for row in cca.explain(500, 4, 4).rows()]
        assert told == [entry.purpose for entry in cca.fit(x, y).ledger_]
        assert ("number of records" in told) == (relation == "add-remove")


REFUSED = {
    "too many": ({"n_directions": 4}, lambda x: x[:, :3], "ask for at most 3"),
    "bounds": ({"bounds": 1}, lambda x: x, "bounds must be"),
    "y bounds": ({"y_bounds": 1}, lambda x: x, "y_bounds must be"),
    "rows": ({}, lambda x: x[:-1], "same number of rows"),
    "missing": ({}, lambda x: np.where(x > 1, np.nan, x), "y has missing or infinite"),
    "none": ({}, lambda x: None, "requires y"),
    "text": ({}, lambda x: np.full(x.shape, "SECRET"), "y has cells that are not numbers"),
}


@pytest.mark.parametrize(("options", "change", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_and_nothing_is_spent(options, change, words, unspent):
    x = planted(60, 4)[0]
    with pytest.raises(SfumatoError, match=words) as error:
        PrivateCCA(ledger=unspent, **options).fit(x, change(x))
    assert "SECRET" not in str(error.value)


EDGES = {
    "one record": np.ones((1, 3)),
    "equal records": np.full((50, 3), 7.0),
    "huge": np.where(np.eye(3)[np.arange(60) % 3] > 0, 1.7e308, -1.7e308),
    "denormal": np.full((20, 3), 5e-324),
    "wide": np.random.default_rng(0).normal(size=(4, 30)),
}


@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)], ids=["found", "given"])
@pytest.mark.parametrize("name", EDGES)
def test_nothing_inside_the_domain_raises_or_warns(name, bounds):
    for relation in ("replace", "add-remove"):
        for epsilon in (0.01, 1.0, 100.0):
            cca = PrivateCCA(epsilon=epsilon, relation=relation, bounds=bounds, y_bounds=bounds).fit(
                EDGES[name], EDGES[name][:, :2]
            )
            for released in (cca.directions_, cca.y_directions_, cca.correlations_, cca.mean_):
                assert np.isfinite(released).all()
            assert np.isfinite(cca.standard_errors_).all() and np.isfinite(cca.y_standard_errors_).all()
            assert cca.verdict_.level in ("noise", "weak", "reliable")
