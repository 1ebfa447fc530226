"""The non-private estimators are the textbook ones: R's dr, the papers' definitions, scikit-learn's rules."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.linalg import sqrtm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.errors import InputError
from sfumato.methods.reference import DR, SAVE, SIR, slice_rows
from sfumato.simulate import xia
from sfumato.steps.subspace import subspace_distance

GOLDEN = Path(__file__).parents[1] / "golden"
REFERENCE = json.loads((GOLDEN / "dr_reference.json").read_text())
ALL = [SIR, SAVE, DR]


def _data(case):
    """x and y of a reference call."""
    file = case.split("_")[0].replace("ais", "athletes")
    table = np.loadtxt(GOLDEN / f"{file}.csv", delimiter=",", skiprows=1)
    if case.endswith("raw4"):  # Ht, Wt, RCC, WCC, recorded with at most two decimals
        return np.exp(table[:, [3, 1, 5, 4]]).round(2), table[:, -1]
    return table[:, :-1], table[:, -1]


@parametrize_with_checks([SIR(), SIR(n_directions="auto"), SAVE(), DR(n_slices=5)])
def test_scikit_learns_conventions_hold(estimator, check):
    check(estimator)


@pytest.mark.parametrize("case", REFERENCE)
def test_eigenvalues_and_eigenvectors_are_those_of_r(case):
    expected, (x, y) = REFERENCE[case], _data(case)
    fitted = (SIR if "_sir" in case else SAVE)(n_slices=expected["nslices"]).fit(x, y)
    k = len(fitted.eigenvalues_)
    assert k >= (1 if case == "banknote_sir" else 4)
    assert fitted.slice_sizes_.tolist() == expected["slice_sizes"]
    np.testing.assert_allclose(fitted.eigenvalues_, expected["evalues"][:k], rtol=0, atol=1e-12)
    vectors = np.array(expected["evectors_columns"])[:k]  # R keeps four
    basis = fitted.basis_[: len(vectors)]
    signs = np.sign((vectors * basis).sum(axis=1, keepdims=True))
    # 15 printed digits, magnified by at most 1 over the smallest gap between eigenvalues (4e-3).
    np.testing.assert_allclose(basis, signs * vectors, rtol=0, atol=1e-11)


def _slices_by_hand(y, n_slices):
    edges = np.quantile(y, np.linspace(0, 1, n_slices + 1)[1:-1])
    return np.searchsorted(edges, y)


def _dr_by_definition(x, y, n_slices):
    """Eigenvalues and directions of E[(2I - A(Y, Y'))^2] from pairs of slices, Li and Wang (2007)."""
    root = np.linalg.inv(np.real(sqrtm(np.cov(x.T, bias=True))))
    z, label = (x - x.mean(axis=0)) @ root, _slices_by_hand(y, n_slices)
    kernel = np.zeros_like(root)
    for h in range(n_slices):
        for g in range(n_slices):
            a, b = z[label == h], z[label == g]
            pairs = (a[:, None, :] - b[None, :, :]).reshape(-1, x.shape[1])
            missing = 2 * np.eye(x.shape[1]) - pairs.T @ pairs / len(pairs)
            kernel += len(a) * len(b) / len(y) ** 2 * missing @ missing
    values, vectors = np.linalg.eigh(kernel)
    return values[::-1], (root @ vectors[:, ::-1]).T


def test_dr_is_the_mean_square_of_what_pairs_of_slices_miss():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 4)) + 3.0
    y = x[:, 0] + (x[:, 1] - 3.0) ** 2 + rng.standard_normal(300)
    values, vectors = _dr_by_definition(x, y, 6)
    fitted = DR(n_slices=6).fit(x, y)
    np.testing.assert_allclose(fitted.eigenvalues_, values, rtol=1e-9)
    for j in range(1, 4):
        assert subspace_distance(fitted.directions_[:j], vectors[:j]) < 1e-7


def test_an_even_link_is_seen_by_save_and_dr_but_not_by_sir():
    rng = np.random.default_rng(2)
    x, b = rng.standard_normal((10_000, 6)), np.array([1.0, 1.0, 0, 0, 0, 0])
    y = (x @ b) ** 2 + 0.5 * rng.standard_normal(len(x))
    # Root-n: sines of about sqrt(p / n) = 0.02, times a modest constant; a random direction is near sqrt(2).
    assert subspace_distance(SAVE(n_directions=1).fit(x, y).directions_, b) < 0.1
    assert subspace_distance(DR(n_directions=1).fit(x, y).directions_, b) < 0.1
    assert subspace_distance(SIR(n_directions=1).fit(x, y).directions_, b) > 0.5


@pytest.mark.parametrize("method", ALL)
def test_directions_are_orthonormal_and_span_what_the_eigenvectors_span(method):
    x, y = _data("concrete")
    fitted = method().fit(x, y)
    k = len(fitted.directions_)
    np.testing.assert_allclose(fitted.directions_ @ fitted.directions_.T, np.eye(k), atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(fitted.basis_, axis=1), 1.0, rtol=1e-13)
    for j in range(1, k + 1):
        assert subspace_distance(fitted.directions_[:j], fitted.basis_[:j]) < 1e-10
    np.testing.assert_allclose(fitted.transform(x), (x - x.mean(axis=0)) @ fitted.directions_.T, atol=1e-9)


@pytest.mark.parametrize("method", ALL)
def test_the_subspace_follows_a_change_of_units(method):
    x, y = _data("ais_logs")
    scale, shift = np.array([1e-6, 1, 1e6, 3, 1, 1, 0.1, 1]), np.full(8, 100.0)
    a, b = method(n_directions=2).fit(x, y), method(n_directions=2).fit(x * scale + shift, y)
    np.testing.assert_allclose(a.eigenvalues_, b.eigenvalues_, rtol=1e-6)
    assert subspace_distance(b.directions_ * scale, a.directions_) < 1e-5


@pytest.mark.parametrize("method", ALL)
def test_means_that_dwarf_the_deviations_cost_few_digits(method):
    rng = np.random.default_rng(3)
    x = rng.integers(-50, 50, (2000, 4)).astype(float)
    y = x[:, 0] + x[:, 1] ** 2 / 50 + rng.standard_normal(2000)
    near, far = (
        method().fit(x, y),
        method().fit(x + 1e12, y),
    )  # exact in float64: only our sums can lose digits
    np.testing.assert_allclose(far.eigenvalues_, near.eigenvalues_, rtol=1e-6)
    assert subspace_distance(far.directions_[:1], near.directions_[:1]) < 1e-6


@pytest.mark.parametrize("method", ALL)
def test_constant_and_collinear_columns_neither_raise_nor_matter(method):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((5000, 3))
    y = x[:, 0] ** 2 + 2 * x[:, 0] + 0.1 * rng.standard_normal(5000)
    padded = np.column_stack([x, np.full(5000, 0.1), x[:, 0] + x[:, 1], 3 * x[:, 2]])
    plain, fitted = method(n_directions=3).fit(x, y), method(n_directions=3).fit(padded, y)
    np.testing.assert_allclose(fitted.eigenvalues_, plain.eigenvalues_, rtol=1e-9)
    assert method(n_directions=5).fit(padded, y).directions_.shape == (3, 6)  # the rank
    # Only the sum along each direction is known, so the reduced data agree even if coefficients do not.
    a, b = method(n_directions=1).fit_transform(padded, y), method(n_directions=1).fit_transform(x, y)
    assert abs(np.corrcoef(a[:, 0], b[:, 0])[0, 1]) > 1 - 1e-9


@pytest.mark.parametrize("method", ALL)
def test_a_single_response_value_gives_zero_eigenvalues(method):
    x = np.random.default_rng(5).standard_normal((100, 3))
    for y in (np.full(100, 2.5), ["a"] * 100):
        assert abs(method().fit(x, y).eigenvalues_).max() < 1e-12


def test_more_features_than_rows_are_fitted_on_their_range():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((20, 50))
    fitted = SIR(n_directions="auto", n_slices=4).fit(x, x[:, 0])
    assert fitted.directions_.shape[1] == 50
    assert np.isfinite(fitted.transform(x)).all()


@pytest.mark.parametrize("n", [7, 100, 101, 1009])
@pytest.mark.parametrize("ties", [1, 3, 40])
def test_slices_keep_ties_together_and_lose_no_row(n, ties):
    y = np.random.default_rng(n).permutation(np.arange(n) // ties)
    rows = slice_rows(y, 5)
    assert sorted(np.concatenate(rows).tolist()) == list(range(n))
    assert all(y[a].max() < y[b].min() for a, b in pairwise(rows))
    if ties == 1 and n >= 100:
        assert {len(r) for r in rows[:-1]} == {n // 5}
        assert len(rows) in (5, 6)


def test_rows_left_over_form_a_last_slice_as_in_r():
    # floor(1009 / 10) = 100 rows each, and nine more; two or fewer left over join the last slice.
    assert [len(r) for r in slice_rows(np.arange(1009.0), 10)] == [100] * 10 + [9]
    assert [len(r) for r in slice_rows(np.arange(1002.0), 10)] == [100] * 9 + [102]


@pytest.mark.parametrize(
    "y",
    [
        np.arange(60) % 4,
        np.array(list("abcd" * 15)),
        pd.Series(list("abcd" * 15), dtype="category"),
        pd.Series(["a", "b", 1, 2] * 15, dtype=object).astype(str),
        np.arange(60, dtype=object) % 4,
    ],
    ids=["codes", "words", "pandas categories", "objects as words", "numbers as objects"],
)
def test_every_value_of_a_discrete_response_is_a_slice(y):
    x = np.random.default_rng(7).standard_normal((60, 3))
    assert SIR().fit(x, y).slice_sizes_.tolist() == [15] * 4


@pytest.mark.parametrize("as_category", [lambda y: pd.Series(y, dtype="category"), lambda y: y.astype(str)])
def test_categories_are_never_cut_however_many(as_category):
    y, x = np.arange(60) % 20, np.random.default_rng(8).standard_normal((60, 3))
    assert len(SIR(n_slices=5).fit(x, as_category(y)).slice_sizes_) == 20
    assert len(SIR(n_slices=5).fit(x, y).slice_sizes_) == 5


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_come_out_as_they_were_asked_for(frame):
    x = np.random.default_rng(9).standard_normal((200, 3))
    table = frame({name: column for name, column in zip("abc", x.T, strict=True)})
    out = make_pipeline(StandardScaler(), SIR(2)).set_output(transform="pandas").fit_transform(table, x[:, 0])
    assert list(out.columns) == ["sir0", "sir1"]
    assert list(DR(1).fit(table, x[:, 0]).feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize(("model", "n", "k"), [("M1", 20_000, 1), ("M2", 20_000, 1), ("M3", 30_000, 2)])
def test_bic_finds_the_dimension_of_the_papers_models(model, n, k):
    samples = [xia(model, n, 10, random_state=seed) for seed in range(5)]
    found = [len(SIR("auto", 20).fit(s.x, s.y).directions_) for s in samples]
    assert np.median(found) == k
    assert sum(f == k for f in found) >= 4


def test_bic_is_not_fooled_by_a_weak_signal():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((500, 10))
        found.append(len(SIR("auto").fit(x, 0.3 * x[:, 0] + rng.standard_normal(500)).directions_))
    assert found == [1] * 20


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (SIR(n_slices=1), "n_slices must be an integer of at least 2, got 1"),
        (SIR(n_slices=2.5), "n_slices must be"),
        (SIR(n_directions=4), "integer from 1 to 3, got 4"),
        (SIR(n_directions="bic"), "None, 'auto' or an integer"),
        (SAVE(n_directions="auto"), "None or an integer from 1 to 3, got 'auto'"),
        (DR(n_directions=True), "n_directions must be"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(estimator, says):
    with pytest.raises(InputError, match=says):
        estimator.fit(np.random.default_rng(0).standard_normal((20, 3)), np.arange(20))


def test_a_table_without_any_variation_is_refused():
    with pytest.raises(InputError, match="no column that varies"):
        SIR().fit(np.full((20, 2), 0.1), np.arange(20))
