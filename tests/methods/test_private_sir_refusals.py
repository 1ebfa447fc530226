"""Bad input: one clear sentence, no value of a record in it, and nothing spent."""

import logging

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from sfumato import Bounds, Budget, BudgetError, Ledger, PrivateSIR, SfumatoError, scan

MARK, WORD = 987654321.125, "SECRET-MARK"
TRACES = ("987654321", "9.8765", WORD, "SECRET")
X, Y = np.full((30, 3), MARK), np.full(30, MARK)


@pytest.fixture
def ledger():
    return Ledger(Budget.approximate(10.0, 1e-6), "replace", rehearsal=True)


def refused(ledger, x, y=None, **options):
    """The message of the refusal; checks that it is one sentence, carries no record, and that nothing was spent."""
    options = {"random_state": 0, "ledger": ledger, **options}
    with pytest.raises(SfumatoError) as error:
        PrivateSIR(**options).fit(x, y)
    message = str(error.value)
    assert len(ledger) == 0
    assert "\n" not in message and message.endswith(".") and len(message) < 250
    seen, cause = [], error.value
    while cause is not None:  # the chain of causes is printed with a traceback
        seen.append(str(cause))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    assert not any(trace in text for trace in TRACES for text in seen)
    return message


def changed(value, where=(3, 1)):
    x = X.copy()
    x[where] = value
    return x


FEATURES = {
    "nan": (changed(np.nan), "missing or infinite"),
    "inf": (changed(np.inf), "missing or infinite"),
    "minus inf": (changed(-np.inf), "missing or infinite"),
    "1-d": (X[:, 0], "2-d"),
    "0-d": (np.float64(MARK), "2-d"),
    "3-d": (X.reshape(30, 3, 1), "2-d"),
    "no rows": (X[:0], "0 sample"),
    "no columns": (X[:, :0], "0 feature"),
    "an empty list": ([], "2-d"),
    "ragged": ([[MARK, MARK], [MARK]], "equal length"),
    "complex": (X * (1 + 1j), "real"),
    "text": (np.full((30, 3), WORD), "not numbers"),
    "bytes": (np.full((30, 3), WORD.encode()), "not numbers"),
    "objects": (np.full((30, 3), WORD, dtype=object), "not numbers"),
    "numbers as text": (np.full((30, 3), str(MARK)), "not numbers"),
    "none": (np.array([[MARK, None]] * 30, dtype=object), "missing or infinite"),
    "dates": (np.full((30, 3), "2020", dtype="M8[Y]"), "not numbers"),
    "sparse": (sparse.csr_matrix(X), "sparse"),
    "a dictionary": ({"a": [MARK]}, "2-d"),
    "nothing": (None, "2-d"),
    "a path": (WORD.lower(), "2-d"),
    "pandas text": (pd.DataFrame({"a": [WORD] * 30}), "'a' is not numeric"),
    "pandas category": (pd.DataFrame({"a": pd.Categorical([WORD] * 30)}), "'a' is not numeric"),
    "pandas nan": (pd.DataFrame(changed(np.nan), columns=list("abc")), "in column 'b'"),
    "pandas NA": (pd.DataFrame({"a": pd.Series([987654321, None] * 15, dtype="Int64")}), "missing"),
    "pandas twins": (pd.DataFrame(X, columns=list("aab")), "same name"),
    "pandas mixed names": (pd.DataFrame(X, columns=["a", "b", 3]), "column names"),
    "pandas dates": (pd.DataFrame({"a": [pd.Timestamp("2020-01-02")] * 30}), "'a' is not numeric but a date"),
    "pandas objects": (pd.DataFrame({"a": pd.Series([MARK] * 30, dtype=object)}), "cast it, as by astype(float)"),
    "polars text": (pl.DataFrame({"a": [WORD] * 30}), "'a' is not numeric"),
    "polars null": (pl.DataFrame({"a": [MARK, None] * 15}), "missing"),
    "polars lazy": (pl.DataFrame({"a": [MARK] * 30}).lazy(), "lazy"),
    "arrow text": (pa.table({"a": [WORD] * 30}), "'a' is not numeric"),
    "arrow null": (pa.table({"a": [MARK, None] * 15}), "missing"),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_outside_the_domain_are_refused(ledger, name, caplog, recwarn):
    x, words = FEATURES[name]
    with caplog.at_level(logging.DEBUG):
        assert words in refused(ledger, x, Y)
    assert not any(trace in caplog.text for trace in TRACES)
    assert not any(trace in str(warning.message) for trace in TRACES for warning in recwarn)


RESPONSES = {
    "none": (None, "requires y"),
    "nan": (np.where(np.arange(30) == 3, np.nan, MARK), "y has missing"),
    "inf": (np.where(np.arange(30) == 3, np.inf, MARK), "y has missing"),
    "shorter": (Y[:-1], "same number of rows"),
    "longer": (np.append(Y, MARK), "same number of rows"),
    "empty": ([], "same number of rows"),
    "two columns": (X[:, :2], "one column"),
    "3-d": (Y.reshape(30, 1, 1), "one column"),
    "a number": (MARK, "one column"),
    "ragged": ([[MARK], [MARK, MARK]] * 15, "one column"),
    "complex": (Y * 1j, "real"),
    "missing text": (np.array([WORD, None] * 15, dtype=object), "y has missing"),
    "pandas NA": (pd.Series([WORD, None] * 15, dtype="string"), "y has missing"),
    "polars null": (pl.Series([WORD, None] * 15), "y has missing"),
    "arrow null": (pa.array([WORD, None] * 15), "y has missing"),
    "too large": ([10**400] * 30, "too large"),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_outside_the_domain_are_refused(ledger, name):
    y, words = RESPONSES[name]
    assert words in refused(ledger, X, y)


PARAMETERS = [
    ({"method": "magic"}, "method"),
    ({"method": None}, "method"),
    ({"relation": "swap"}, "relation"),
    ({"relation": None}, "relation"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": float("inf")}, "epsilon"),
    ({"epsilon": 1e-7}, "too small"),
    ({"delta": 0.0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"delta": None}, "delta"),
    ({"rho": 0}, "rho"),
    ({"rho": "much"}, "rho"),
    ({"rho": 1e-14}, "too small"),
    ({"n_directions": 0}, "n_directions"),
    ({"n_directions": 4}, "n_directions"),
    ({"n_directions": -1}, "n_directions"),
    ({"n_directions": 1.0}, "n_directions"),
    ({"n_directions": True}, "n_directions"),
    ({"n_directions": "many"}, "n_directions"),
    ({"n_directions": None}, "n_directions"),
    ({"bounds": (-1, 1)}, "bounds"),
    ({"bounds": Bounds([-1, -1], [1, 1])}, "bounds"),
    ({"bounds": Bounds(-1, [1, 1, 1, 1])}, "bounds"),
    ({"picture": 0.9}, "picture"),
    ({"picture": "yes"}, "picture"),
    ({"classes": "yes"}, "classes"),
    ({"classes": 3}, "classes"),
    ({"classes": []}, "classes"),
    ({"random_state": "seed"}, "random_state"),
    ({"random_state": -1}, "random_state"),
    ({"random_state": True}, "random_state"),
    ({"random_state": 1.5}, "random_state"),
    ({"relation": "add-remove"}, "ledger"),
    ({"random_state": None}, "random_state"),
]


@pytest.mark.parametrize(("options", "name"), PARAMETERS, ids=str)
def test_parameters_that_make_no_sense_are_refused_by_name(ledger, options, name):
    assert name in refused(ledger, X, Y, **options)


def test_a_ledger_of_another_kind_is_refused():
    with pytest.raises(SfumatoError, match="ledger must be"):
        PrivateSIR(ledger={"epsilon": 1}).fit(X, Y)


class Untouchable:
    """Records that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError("the records were touched")


def test_a_run_beyond_the_cap_is_refused_before_a_record_is_touched():
    ledger = Ledger(Budget.approximate(1.0, 1e-6), "replace", rehearsal=True)
    sir = PrivateSIR(1.0, 1e-6, bounds="search", ledger=ledger, random_state=0)
    sir.fit(X, Y)
    spent = ledger.entries
    with pytest.raises(BudgetError, match="budget") as error:
        sir.fit(Untouchable(), Untouchable())
    assert ledger.entries == spent and "\n" not in str(error.value)


def test_parameters_are_checked_before_a_record_is_touched(ledger):
    for options in ({"epsilon": -1}, {"relation": "swap"}, {"random_state": "seed"}):
        refused(ledger, Untouchable(), Untouchable(), **options)


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "columns",
    [
        {"a": np.where(np.arange(9) == 4, np.nan, MARK), "y": np.full(9, MARK)},
        {"a": np.full(9, MARK), "y": np.where(np.arange(9) == 4, np.inf, MARK)},
        {"a": pa.array([None, *[MARK] * 8]), "y": np.full(9, MARK)},
        {"a": np.full(9, MARK), "y": pa.array([None, *[WORD] * 8])},
    ],
)
def test_missing_values_inside_a_file_are_refused(ledger, tmp_path, columns):
    assert "missing or infinite" in refused(ledger, scan(parquet(tmp_path / "t.parquet", **columns), response="y"))


def test_an_empty_file_and_a_second_response_are_refused(ledger, tmp_path):
    empty = parquet(tmp_path / "empty.parquet", a=np.empty(0), y=np.empty(0))
    assert "0 sample" in refused(ledger, scan(empty, response="y"))
    full = parquet(tmp_path / "full.parquet", a=X[:, 0], y=Y)
    assert "left out" in refused(ledger, scan(full, response="y"), Y)


def test_transform_refuses_other_tables_in_words():
    plain, named = (
        PrivateSIR(bounds="search", random_state=0).fit(x, Y) for x in (X, pd.DataFrame(X, columns=list("abc")))
    )
    wrong = [(plain, x) for x in (X[:, :2], X[0], changed(np.nan), X * 1j)]
    for sir, x in [*wrong, (named, pd.DataFrame(X, columns=list("abd")))]:
        with pytest.raises(ValueError) as error:  # noqa: PT011
            sir.transform(x)
        assert not any(trace in str(error.value) for trace in TRACES)
