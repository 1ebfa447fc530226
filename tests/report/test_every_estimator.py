"""Every estimator has a report: its own words, its released values, and nothing else."""

import math
import pickle
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import clone

import sfumato as sf
from sfumato.report.build import build_document
from sfumato.report.html import render
from sfumato.research import DPSIR

N, P = 3001, 6
BOX = sf.Bounds(-5, 5)
CASES = {
    "sir": (sf.PrivateSIR(bounds=BOX, picture=True), "y", "sliced inverse regression", "explains"),
    "sir, found bounds": (sf.PrivateSIR(n_directions=2), "y", "sliced inverse regression", "found privately"),
    "sir, rho": (sf.PrivateSIR(rho=0.2, bounds=BOX, method="one-shot"), "y", "sliced inverse regression", "one shot"),
    "sir, add-remove": (sf.PrivateSIR(relation="add-remove"), "y", "sliced inverse regression", "add or remove"),
    "paper": (DPSIR(bounds=BOX), "y", "sliced inverse regression", "Xia, Zhang and Cai"),
    "sparse": (sf.PrivateSparseSIR(bounds=BOX), "y", "sparse sliced inverse regression", "sign screening"),
    "save": (sf.PrivateSAVE(bounds=BOX), "y", "sliced average variance", "eigenvalue"),
    "pca": (sf.PrivatePCA(2, bounds=BOX), None, "principal components", "of the variance"),
    "cca": (sf.PrivateCCA(n_directions=1), "second", "canonical correlations", "correlation"),
    "lda": (sf.PrivateLDA(bounds=BOX, classes=["low", "high"]), "class", "linear discriminants", "between classes"),
    "label": (sf.LabelPrivateSIR(n_directions=1), "y", "randomised labels", "each person"),
    "local": (sf.LocalSIR(bounds=BOX), "y", "randomised records", "each person"),
    "iht": (sf.LabelPrivateIHT(response_range=(-9, 9), n_active=2), "y", "randomised labels", "coefficients of 2 of 6"),
}


@pytest.fixture(scope="module")
def records() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, P))
    y = 2 * x[:, 0] - x[:, 1] + 0.3 * rng.normal(size=N)
    second = rng.normal(size=(N, 2)) + x[:, :1]
    return {"x": x, "y": y, "second": second, "class": np.where(y > 0, "high", "low")}


@pytest.fixture(scope="module")
def fitted(records, seed_noise):
    found = {}

    def fit(name: str):
        if name not in found:
            seed_noise(f"report of {name}")
            estimator, response = CASES[name][:2]
            answer = None if response is None else records[response]
            found[name] = clone(estimator).fit(records["x"], answer)
        return found[name]

    return fit


@pytest.fixture(scope="module")
def document(fitted):
    """What the report of a fit says; as the same releases always make the same page, it is worked out once."""
    return cache(lambda name: build_document(fitted(name)))


def rows_in(value: object, seen: set[int]) -> set[int]:
    """Lengths of every array, list and tuple inside a value."""
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None))):
        return set()
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return {*value.shape}
    lengths = {len(value)} if isinstance(value, (list, tuple, dict)) else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    slots = [getattr(value, name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name)]
    for each in (*inner, *slots, *getattr(value, "__dict__", {}).values()):
        lengths |= rows_in(each, seen)
    return lengths


class Words(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", CASES)
def test_the_report_is_in_the_words_of_its_method(name, fitted, tmp_path):
    page = fitted(name).report(tmp_path / "report.html").read_text(encoding="utf-8")
    text = Words(page).text
    for words in CASES[name][2:]:
        assert words in text
    assert fitted(name).ledger_.guarantee in text


@pytest.mark.parametrize("name", CASES)
def test_the_page_is_made_of_released_values_only(name, fitted):
    """What is left of the records after a fit has no row per record, and the page is a function of it alone."""
    estimator = fitted(name)
    page = render(build_document(estimator))  # first: what is worked out from the releases is kept when asked for
    assert N not in rows_in(vars(estimator), set()) - {0}
    released = {key: value for key, value in vars(estimator).items() if key.endswith("_") and not key.startswith("_")}
    copy = clone(estimator)
    vars(copy).update(pickle.loads(pickle.dumps(released)))
    assert render(build_document(copy)) == page


@pytest.mark.parametrize("name", CASES)
def test_no_cell_of_the_table_is_on_the_page(name, document, records):
    page = render(document(name))
    cells = {repr(float(v))[:12] for key in ("x", "y", "second") for v in records[key].ravel()}
    for length in {len(cell) for cell in cells}:
        assert not cells & {page[i : i + length] for i in range(len(page))}


def test_a_sparse_fit_lists_what_it_kept(fitted, document):
    sparse, shown = fitted("sparse"), document("sparse")
    assert [row.feature for row in shown.loadings] == [f"x{j}" for j in sparse.support_]
    assert f"on {len(sparse.support_)} of {P} features" in shown.subtitle


def test_unknown_standard_errors_are_said_and_their_bars_are_not_pale(document):
    for name in ("paper", "cca", "local"):
        page = render(document(name))
        assert "does not tell the standard errors" in page and "fill-opacity" not in page and "±" not in page
    assert "Whiskers are one standard error" in render(document("pca"))


def test_both_tables_of_a_canonical_pair_are_shown_each_of_length_one(document):
    values = np.array([row.values for row in document("cca").loadings])
    assert len(values) == P + 2
    np.testing.assert_allclose([np.linalg.norm(values[:P]), np.linalg.norm(values[P:])], 1.0, rtol=1e-12)


def test_a_shared_ledger_does_not_tell_of_other_runs(records, tmp_path):
    ledger = sf.FileLedger(tmp_path / "study.jsonl", sf.Budget.approximate(5, 1e-6), purpose="secret purpose")
    sf.PrivateSIR(bounds=BOX, picture=True, ledger=ledger).fit(records["x"], records["y"])
    second = sf.PrivatePCA(1, epsilon=0.5, bounds=BOX, ledger=sf.FileLedger(tmp_path / "study.jsonl"))
    shown = build_document(second.fit(records["x"]))
    assert len(shown.ledger) == len(second.explain(N, P).plan.lines)
    assert "epsilon = 0.5" in shown.guarantee and "study.jsonl" not in render(shown)
    assert sum(row.share for row in shown.ledger) == pytest.approx(1.0)


@pytest.mark.judged
def test_what_if_falls_with_budget_and_records_and_meets_the_forecast(fitted):
    seen = build_document(fitted("sir")).what_if
    assert seen is not None and seen.sizes[seen.here[0]] == N and seen.budgets[seen.here[1]] == 1.0
    losses = np.array(seen.losses)
    assert (np.diff(losses, axis=0) < 0).all() and (np.diff(losses, axis=1) < 1e-3).all()
    assert losses.max() <= 1.2 * seen.useless
    signal = min(fitted("sir").eigenvalues_[0], 0.99)
    expected = fitted("sir").explain(N, P).forecast(signal, len(fitted("sir").directions_)).loss
    assert losses[seen.here] == pytest.approx(expected, rel=0.5)  # two draws against three


def test_what_if_is_told_where_there_is_a_forecast_and_the_size_is_public(fitted, document):
    told = {name for name in CASES if document(name).what_if is not None}
    assert {"sir", "sir, found bounds", "sir, rho", "save", "dr", "pca", "lda", "cca"} & set(CASES) <= told
    for name in CASES:
        plan = getattr(fitted(name), "explain", None)
        if plan is None or getattr(fitted(name), "n_records_", None) is None:
            assert name not in told
    assert document("sir, rho").what_if.budget_name == "rho"


def test_a_tiny_budget_has_a_report_all_the_same(records):
    tiny = sf.PrivateSIR(epsilon=1e-3, bounds=BOX).fit(records["x"], records["y"])
    shown = build_document(tiny)
    assert render(shown).startswith("<!DOCTYPE html>")
    assert shown.what_if is None  # a quarter of it would buy nothing
    assert all(math.isfinite(value) for row in shown.loadings for value in row.values)
