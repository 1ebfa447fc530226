"""PrivatePCA: the leading subspace, at the budget that was asked for, whatever the records look like."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, PrivatePCA, SfumatoError, principal_angles, scan, subspace_distance

BOX = Bounds(-50, 50)


@parametrize_with_checks(
    [PrivatePCA(bounds="search", method=method, random_state=0) for method in ("auto", "one-shot")]
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def sample(n=20_000, p=8, seed=0, centre=0.0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(p, p)))[0]
    spectrum = np.concatenate([[5.0, 4.0, 3.0], np.full(p - 3, 0.5)])
    return (rng.normal(size=(n, p)) * np.sqrt(spectrum)) @ basis.T + centre, basis[:, :3].T


def angle(directions, true):
    return float(np.degrees(principal_angles(directions, true).max()))


@pytest.mark.parametrize("bounds", [BOX, None], ids=["given", "found"])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_leading_three_of_fifty_thousand_records_are_within_a_degree(bounds, relation):
    x, true = sample(50_000, 20)
    pca = PrivatePCA(3, bounds=bounds, relation=relation).fit(x)
    assert angle(pca.directions_, true) < 1.0  # 0.6 without privacy
    assert np.allclose(pca.directions_ @ pca.directions_.T, np.eye(3), atol=1e-12)
    assert pca.ledger_.total() == pytest.approx(1.0, abs=1e-6)
    assert pca.eigenvalues_ == pytest.approx([5, 4, 3], rel=0.4)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(12 / 20.5, rel=0.1)


def test_without_noise_it_is_the_textbook():
    x, _ = sample(5_000)
    pca = PrivatePCA(3, rho=1e10, bounds=Bounds(-20, 20), random_state=0).fit(x)
    plain = np.linalg.eigh(np.cov(x.T))[1][:, ::-1][:, :3].T
    assert subspace_distance(pca.directions_, plain) < 0.03  # clipping alone


def test_a_centre_far_from_that_of_the_box_does_no_harm():
    x, true = sample(centre=np.linspace(-20, 20, 8))
    pca = PrivatePCA(3, bounds=BOX).fit(x)
    assert angle(pca.directions_, true) < 4
    assert np.abs(pca.mean_ - np.linspace(-20, 20, 8)).max() < 1.0


def test_where_the_rough_covariance_shows_nothing_it_misleads_nobody():
    losses = {"refined": [], "one-shot": []}
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=(1_000, 30)) * np.sqrt([31.0] + [1.0] * 29)
        for method, found in losses.items():
            pca = PrivatePCA(1, bounds=BOX, method=method, random_state=seed).fit(x)
            found.append(subspace_distance(pca.directions_, np.eye(1, 30)))
    assert np.mean(losses["refined"]) < 1.3 * np.mean(losses["one-shot"])  # coordinates chosen by noise: 2.0


def test_components_are_in_the_units_of_x_even_if_bounds_are_not_alike():
    x, true = sample()
    wide = np.array([10, 20, 40, 80, 10, 20, 40, 80.0])
    assert angle(PrivatePCA(3, bounds=Bounds(-wide, wide)).fit(x).directions_, true) < 3


@pytest.mark.judged
def test_privacy_errors_tell_the_spread_that_noise_causes():
    x, _ = sample(20_000, 6)
    fits = [PrivatePCA(1, bounds=Bounds(-20, 20), random_state=seed).fit(x) for seed in range(30)]
    directions = np.array([fit.directions_[0] * np.sign(fit.directions_[0] @ fits[0].directions_[0]) for fit in fits])
    told = np.mean([fit.privacy_errors_ for fit in fits])
    assert 0.4 < directions.std(axis=0).mean() / told < 2.5


def test_the_plan_tells_everything_beforehand():
    x, _ = sample(500)
    pca = PrivatePCA(2, relation="add-remove")
    told = [row[0] for row in pca.explain(500, 8).rows()]
    assert told == [entry.purpose for entry in pca.fit(x).ledger_] and len(told) == 7
    assert "one record" not in str(pca.explain(500, 8)) and "(epsilon = 1, delta = 1e-06)" in str(pca.explain(500, 8))


def test_a_scanned_table_needs_no_response_to_be_used(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    x, true = sample()
    pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(8)} | {"y": x[:, 0]}), tmp_path / "t.parquet")
    pca = PrivatePCA(3, bounds=BOX).fit(scan(tmp_path / "t.parquet", response="y"))
    assert angle(pca.directions_, true) < 3 and list(pca.feature_names_in_) == [f"x{j}" for j in range(8)]


REFUSED = {
    "too many": ({"n_directions": 9}, "ask for at most 8"),
    "auto": ({"n_directions": "auto"}, "say how many"),
    "method": ({"method": "exact"}, "method must be one of"),
    "bounds": ({"bounds": (-1, 1)}, "bounds: there are 2 entries for 8 features; give one"),
    "bounds of other length": ({"bounds": Bounds([0, 0], [1, 1])}, "one value per feature"),
    "relation": ({"relation": "swap"}, "relation must be"),
    "budget": ({"epsilon": -1}, "epsilon must be"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED)
def test_bad_parameters_are_refused_in_a_sentence_and_nothing_is_spent(options, words, unspent):
    with pytest.raises(SfumatoError, match=words):
        PrivatePCA(**{"ledger": unspent, **options}).fit(sample(50)[0])


EDGES = {
    "one record": np.ones((1, 3)),
    "one feature": np.arange(5.0)[:, None],
    "equal records": np.full((50, 3), 7.0),
    "zeros": np.zeros((50, 4)),
    "huge": np.where(np.eye(3)[np.arange(60) % 3] > 0, 1.7e308, -1.7e308),
    "denormal": np.full((20, 3), 5e-324),
    "wide": np.random.default_rng(0).normal(size=(4, 30)),
    "one outlier": np.vstack([np.random.default_rng(0).normal(size=(99, 3)), np.full((1, 3), 1e300)]),
}


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)], ids=["found", "given"])
@pytest.mark.parametrize("name", EDGES)
def test_nothing_inside_the_domain_raises_or_warns(name, bounds, relation):
    for epsilon in (0.01, 1.0, 100.0):
        for method in ("refined", "one-shot"):
            pca = PrivatePCA(1, epsilon, bounds=bounds, relation=relation, method=method).fit(EDGES[name])
            for released in (pca.directions_, pca.eigenvalues_, pca.mean_, pca.standard_errors_):
                assert np.isfinite(released).all()
            assert pca.verdict_.level in ("noise", "weak", "reliable")
            assert np.linalg.norm(pca.directions_[0]) == pytest.approx(1.0)
