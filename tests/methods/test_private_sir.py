"""PrivateSIR: one estimate from every kind of input, a plan that is kept, a ledger that says so."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import Bounds, Budget, Ledger, PrivateSIR, scan, subspace_distance
from sfumato.privacy.accounting import total_rho
from sfumato.records import Response
from sfumato.sources import ArraySource
from sfumato.sources.arrays import response_to_array

N, NAMES = 3000, ["a", "b", "c", "d"]
TRUTH = np.array([[1.0, 1.0, 0.0, 0.0]])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(N, 4))
    return x, (x @ TRUTH[0]) + 0.2 * rng.normal(size=N)


def fit(x, y=None, **options):
    return PrivateSIR(**{"epsilon": 5.0, "n_directions": 1, "bounds": "search", "random_state": 1, **options}).fit(x, y)


def same(a, b):
    return np.array_equal(a.directions_, b.directions_) and np.array_equal(a.eigenvalues_, b.eigenvalues_)


@pytest.mark.parametrize("method", ["auto", "descent", "one-shot"])
@pytest.mark.parametrize("bounds", [None, Bounds(-1, 1)])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_direction_is_found(data, method, bounds, relation):
    sir = fit(*data, method=method, bounds=bounds, relation=relation)
    # Two unrelated directions of four dimensions are 1.2 apart on average.
    assert subspace_distance(sir.directions_, TRUTH) < 0.5
    assert np.allclose(sir.directions_ @ sir.directions_.T, np.eye(1)) and 0 <= sir.eigenvalues_[0] <= 1


def test_every_kind_of_input_gives_the_same_bits(data, tmp_path):
    x, y = data
    table = pa.table({**dict(zip(NAMES, x.T, strict=True)), "y": y})
    for i, rows in enumerate((slice(0, 1100), slice(1100, N))):
        pq.write_table(table.slice(rows.start, rows.stop - rows.start), tmp_path / f"{i}.parquet", row_group_size=300)
    first = fit(x, y)
    inputs = [
        (x.tolist(), y.tolist()),
        (np.asfortranarray(x), y[:, None]),
        (pd.DataFrame(x, columns=NAMES), pd.Series(y)),
        (pl.DataFrame(x, schema=NAMES), pl.Series(y)),
        (table.select(NAMES), table.column("y")),
        (scan(table, response="y"), None),
        (scan(str(tmp_path / "*.parquet"), response="y"), None),
    ]
    assert all(same(first, fit(*given)) for given in inputs)


def test_neither_the_order_of_records_nor_the_size_of_chunks_changes_a_bit(data, monkeypatch):
    x, y = data
    first = fit(x, y)
    order = np.random.default_rng(2).permutation(N)
    assert same(first, fit(x[order], y[order]))
    few = fit(x[:120], y[:120])
    for rows in (1, 50, 119):
        monkeypatch.setattr("sfumato.sources.arrays.chunk_rows", lambda n_features, rows=rows: rows)
        assert len(ArraySource(x[:120], y[:120], Response()).parts()) == -(-120 // rows)
        assert same(few, fit(x[:120], y[:120]))


def test_the_seed_decides_the_noise_and_no_seed_repeats_nothing(data):
    assert same(fit(*data), fit(*data)) and not same(fit(*data), fit(*data, random_state=2))
    assert not same(fit(*data, random_state=None), fit(*data, random_state=None))


def test_the_units_of_the_response_do_not_matter(data):
    x, y = data
    sir = fit(x, y * 1e6 + 1e9, bounds=Bounds(-1, 1))
    assert subspace_distance(sir.directions_, TRUTH) < 0.5
    # Ranks are kept by any increasing map: without noise to speak of, only the edges of bins differ.
    plain, scaled = (fit(x, values, bounds=Bounds(-1, 1), rho=1e6) for values in (y, y * 1e6 + 1e9))
    assert subspace_distance(plain.directions_, scaled.directions_) < 0.05


def test_the_units_of_the_features_do_not_matter_when_the_bounds_follow(data):
    x, y = data
    plain, scaled = fit(x, y, bounds=Bounds(-1, 1)), fit(x * 1024 + 0, y, bounds=Bounds(-1024, 1024))
    # Only the noise of octaves that hold no record falls elsewhere.
    assert np.allclose(plain.directions_, scaled.directions_, atol=1e-2)
    assert np.allclose(plain.scale_ * 1024, scaled.scale_, rtol=1e-2)


TWO = np.random.default_rng(3).uniform(-1, 1, size=(N, 4))
GROUP = (TWO @ TRUTH[0] > 0).astype(int)


@pytest.mark.parametrize(
    "y",
    [
        GROUP,
        GROUP.astype(bool),
        GROUP.astype(np.float32),
        GROUP.astype(object),
        np.array(["control", "case"])[GROUP],
        np.array(["control", "case"], dtype=object)[GROUP],
        pd.Series(np.array(["control", "case"])[GROUP], dtype="category"),
        pl.Series(np.array(["control", "case"])[GROUP]).cast(pl.Categorical),
        pa.array(np.array(["control", "case"])[GROUP]).dictionary_encode(),
    ],
    ids=lambda y: f"{type(y).__module__.split('.')[0]}-{getattr(y, 'dtype', 'dictionary')}",
)
def test_responses_of_every_type_find_the_direction(y):
    assert subspace_distance(fit(TWO, y, bounds=Bounds(-1, 1)).directions_, TRUTH) < 0.5


@pytest.mark.parametrize("classes", [[0, 1], [1, 0, 5], np.array([0, 1]), (0,)])
@pytest.mark.parametrize("kind", [int, float, bool, str, object])
def test_declared_classes_of_every_type_find_the_direction(classes, kind):
    y = GROUP.astype(int).astype(kind) if kind is not bool else GROUP == 1
    assert subspace_distance(fit(TWO, y, classes=classes, bounds=Bounds(-1, 1)).directions_, TRUTH) < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bounds": Bounds(-1, 1)},
        {"method": "one-shot"},
        {"picture": 0.2},
        {"relation": "add-remove"},
        {"rho": 0.3},
        {"classes": [0, 1]},
        {"epsilon": 0.3, "delta": 1e-9},
    ],
    ids=str,
)
def test_what_was_explained_is_what_was_done(data, options):
    x, y = data
    y = GROUP if "classes" in options else y
    sir = PrivateSIR(**({"bounds": "search", "random_state": 0} | options))
    plan = sir.explain(n_samples=N, n_features=4).plan
    ledger = sir.fit(x, y).ledger_
    assert [line.purpose for line in plan.lines] == [entry.purpose for entry in ledger]
    assert [line.event for line in plan.lines] == [entry.event for entry in ledger]
    assert [line.share for line in plan.lines] == [entry.share for entry in ledger]
    for entry in ledger:
        assert entry.noise_std == pytest.approx(entry.sensitivity / entry.event.mu)
    if "rho" in options:
        assert 0.3 * (1 - 1e-6) <= total_rho(ledger.events) <= 0.3
    else:
        assert sir.epsilon * (1 - 1e-6) <= ledger.spent() <= sir.epsilon
    words = str(sir.explain(N, 4))
    assert all(line.purpose in words for line in plan.lines)


def test_an_unseeded_run_is_guaranteed_and_a_seeded_one_is_not(data):
    assert fit(*data, random_state=None).ledger_.total() == pytest.approx(5.0, abs=1e-5)
    assert "differentially private" in fit(*data, random_state=None).ledger_.guarantee
    assert fit(*data).ledger_.total() == float("inf") and "No privacy" in fit(*data).ledger_.guarantee


class Liar(ArraySource):
    """Says that it holds ten times as many records as it does."""

    def count(self):
        return 10 * super().count()


def test_the_number_of_records_is_never_used_when_it_is_private(data):
    x, (y, kind) = data[0], response_to_array(data[1], None)
    honest, lying = (
        [fit(source(x, y, kind), relation=relation) for relation in ("add-remove", "replace")]
        for source in (ArraySource, Liar)
    )
    assert same(honest[0], lying[0]) and not same(honest[1], lying[1])


def test_noise_does_not_depend_on_the_number_of_records(data):
    """First answers depend on no earlier one: their noise is the plan's, for any data."""
    x, y = data
    private = {"relation": "add-remove", "method": "descent"}
    ledgers = [fit(x[:n], y[:n], **private).ledger_ for n in (7, 50, N)]
    first = [[(e.event, e.sensitivity, e.noise_std) for e in ledger][:1] for ledger in ledgers]
    assert first[0] == first[1] == first[2]
    for n in (7, N):
        ledger = fit(x[:n], y[:n], bounds=Bounds(-1, 1), **private).ledger_
        assert [e.event for e in ledger] == [e.event for e in fit(x, y, bounds=Bounds(-1, 1), **private).ledger_]


def test_the_number_of_directions_is_found_when_it_is_not_given(data):
    x, _ = data
    y = np.sign(x[:, 0]) * 3 + np.abs(x[:, 1]) + 0.05 * np.random.default_rng(4).normal(size=N)
    sir = PrivateSIR(rho=1e4, bounds=Bounds(-1, 1), random_state=0).fit(x, y)
    assert sir.directions_.shape[0] == sir.choice_.n_directions == len(sir.eigenvalues_) >= 1
    assert not sir.choice_.given and sir.choice_.why
    assert subspace_distance(sir.directions_[:1], np.array([[1.0, 0, 0, 0]])) < 0.3
    noise = PrivateSIR(bounds=Bounds(-1, 1), random_state=0).fit(x, np.random.default_rng(5).normal(size=N))
    assert noise.directions_.shape == (1, 4)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_as_many_directions_as_were_asked_for(data, k):
    for method in ("descent", "one-shot"):
        sir = fit(*data, n_directions=k, method=method)
        assert sir.directions_.shape == sir.standard_errors_.shape == (k, 4) and sir.eigenvalues_.shape == (k,)
        assert np.allclose(np.linalg.norm(sir.directions_, axis=1), 1.0) and np.linalg.matrix_rank(sir.directions_) == k
        assert sir.transform(data[0]).shape == (N, k)


def test_a_feature_of_which_nothing_was_seen_counts_in_scores_within_the_bounds_guessed_for_it():
    # Amounts of hundreds that one record in 250 has are not seen: the fit takes them for 0 and 1, and so must scores.
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.normal(size=(8000, 3)), np.where(rng.random(8000) < 0.004, 500.0, 0.0)])
    y = x[:, 0] + 0.5 * rng.normal(size=8000)
    sir = PrivateSIR(1.0, 1e-6, 1, random_state=0).fit(x, y)
    cut = np.clip(x, sir.bounds_.lower, sir.bounds_.upper)
    assert sir.bounds_.upper[3] < 500.0 and np.allclose(sir.transform(x), (cut - sir.mean_) @ sir.directions_.T)
    assert abs(np.corrcoef(sir.transform(x)[:, 0], x[:, 0])[0, 1]) > 0.9


def test_a_rare_class_is_found_beside_skewed_features_and_has_the_larger_scores():
    # Three in a hundred, by the first two of six long-tailed features; clipped like the others they would not count.
    rng = np.random.default_rng(0)
    u = rng.normal(size=(10_000, 6))
    risk = u[:, 0] + u[:, 1] + 0.7 * rng.normal(size=len(u))
    y = (risk > np.quantile(risk, 0.97)).astype(int)
    sir = PrivateSIR(2.0, 1e-6, 1, Bounds(0, 20), "descent", classes=[0, 1], random_state=0).fit(np.exp(0.8 * u), y)
    assert (sir.loadings_[0, :2] > 0.5).all() and np.abs(sir.loadings_[0, 2:]).max() < 0.3


def test_transform_projects_centred_records(data):
    x, y = data
    sir = fit(x, y, n_directions=2)
    assert np.allclose(sir.transform(x[:5]), (x[:5] - sir.mean_) @ sir.directions_.T)
    assert np.allclose(sir.fit_transform(x, y), sir.transform(x))


@pytest.mark.parametrize("bounds", [Bounds([-6, -6, 0], [6, 6, 2e4]), "search"])
def test_values_far_beyond_the_box_of_the_fit_count_by_their_root_and_keep_their_order(bounds):
    # One amount in a hundred is two hundred times the others: no release shows it, and it would rule the scores.
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(8000, 2)), np.exp(rng.normal(size=8000))])
    x[rng.random(8000) < 0.01, 2] *= 200.0
    sir = PrivateSIR(1.0, 1e-6, 1, bounds, picture=True, random_state=0).fit(x, x[:, 0] + 0.5 * rng.normal(size=8000))
    inside = ((x >= sir.box_.lower) & (x <= sir.box_.upper)).all(axis=1)
    linear = ((x - sir.mean_) @ sir.directions_.T)[:, 0]
    scores = sir.transform(x)[:, 0]
    assert 0.9 < inside.mean() < 1.0 and np.array_equal(scores[inside], linear[inside])
    assert abs(np.corrcoef(scores, x[:, 0])[0, 1]) > abs(np.corrcoef(linear, x[:, 0])[0, 1])
    along = np.tile(sir.mean_, (50, 1))
    along[:, 2] = np.geomspace(1.0, 1e6, 50)
    moved = sir.transform(along)[:, 0] * np.sign(sir.directions_[0, 2])
    assert (np.diff(moved) > 0).all()
    assert np.ptp(moved) < 0.1 * np.ptp((along - sir.mean_) @ sir.directions_[0])
    assert np.allclose(sir._scores(x) * sir.picture_.score_scale, scores, rtol=1e-12)  # what is predicted from


def test_released_location_and_scale_are_those_of_the_features(data):
    sir = fit(data[0] * [1, 10, 1, 1] + [0, 5, 0, 0], data[1], rho=1e4)
    assert sir.mean_ == pytest.approx([0, 5, 0, 0], abs=0.5)
    assert sir.scale_ == pytest.approx(np.array([1, 10, 1, 1]) / np.sqrt(3), rel=0.5)
    assert (sir.bounds_.lower < sir.mean_).all() and (sir.mean_ < sir.bounds_.upper).all()


def test_runs_share_a_ledger_until_its_cap(data):
    x, y = data
    ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace", rehearsal=True)
    options = {"epsilon": 0.8, "ledger": ledger, "bounds": Bounds(-1, 1)}
    fit(x, y, **options)
    spent = len(ledger)
    with pytest.raises(ValueError, match="budget"):
        fit(x, y, **options)
    assert len(ledger) == spent and ledger.spent() <= 1.0


@pytest.mark.parametrize("seed", range(3))
def test_indicators_of_all_categories_are_as_good_as_of_all_but_one(seed):
    # They add up to one; clipped records do not, and the less noise there is the more would be made of that.
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(20_000, 13)) + 0.6 * rng.normal(size=(20_000, 1))
    rare, group = u[:, :6] > np.quantile(u[:, :6], 0.98, axis=0), np.digitize(u[:, 12], [-0.8, 0.6])
    x = np.column_stack([u[:, 6:12], rare, *(group == k for k in range(3))]).astype(float)
    y = (x - x.mean(axis=0)) / x.std(axis=0) @ rng.choice([-1.0, 1.0], x.shape[1]) + rng.normal(size=len(x))

    def scores(features):
        box = Bounds(features.min(axis=0), features.max(axis=0))
        sir = PrivateSIR(epsilon=100.0, delta=1e-6, n_directions=1, bounds=box, method="descent")
        return sir.fit(features, y).transform(features)[:, 0]

    assert abs(np.corrcoef(scores(x), scores(x[:, :-1]))[0, 1]) > 0.995
