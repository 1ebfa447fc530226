"""Tables of every kind become the same arrays."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import InputError
from sfumato.records import HASH_BUCKETS
from sfumato.sources import bucket
from sfumato.sources.arrays import features_to_array, response_to_array

SECRET = "SECRET-MARK"
COLUMNS = {"a": [1.5, 2.5, -3.0], "b": [1, 2, 3], "c": [True, False, True]}
EXPECTED = [[1.5, 1.0, 1.0], [2.5, 2.0, 0.0], [-3.0, 3.0, 1.0]]
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict]


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_becomes_the_same_array(frame):
    x, names = features_to_array(frame(COLUMNS))
    assert x.tolist() == EXPECTED and x.dtype == np.float64 and x.flags.c_contiguous
    assert names == ("a", "b", "c")


def test_plain_arrays_pass_unchanged():
    x = np.ones((2, 2))
    assert features_to_array(x) == (x, None)


def test_numbered_columns_have_no_names_and_mixed_names_are_refused():
    x, names = features_to_array(pd.DataFrame(np.arange(6.0).reshape(2, 3)))
    assert names is None and x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    with pytest.raises(InputError, match="column names"):
        features_to_array(pd.DataFrame([[1.0, 2.0]], columns=["a", 1]))


def test_columns_of_one_name_and_lazy_tables_are_refused():
    with pytest.raises(InputError, match="same name"):
        features_to_array(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    with pytest.raises(InputError, match="lazy"):
        features_to_array(pl.DataFrame(COLUMNS).lazy())


@pytest.mark.parametrize("frame", FRAMES)
def test_text_columns_are_refused_by_name_only(frame):
    with pytest.raises(InputError, match="column 'b' is not numeric") as error:
        features_to_array(frame({"a": [1.0], "b": [SECRET]}))
    assert SECRET not in str(error.value)


def test_decimals_are_numbers():
    x, _ = features_to_array(pa.table({"a": [Decimal("1.50"), Decimal("2.25")]}))
    assert x.tolist() == [[1.5], [2.25]]


TEXT = ["no", "yes", "no"]


@pytest.mark.parametrize(
    "y",
    [
        TEXT,
        np.array(TEXT),
        np.array(TEXT, dtype=object),
        pd.Series(TEXT),
        pd.Series(TEXT, dtype="category"),
        pd.Series(TEXT, dtype="string"),
        pd.Categorical(TEXT),
        pl.Series(TEXT),
        pl.Series(TEXT, dtype=pl.Categorical),
        pa.array(TEXT),
        pa.array(TEXT).dictionary_encode(),
        pa.chunked_array([TEXT]),
        pd.DataFrame({"y": TEXT}),
    ],
)
def test_text_of_every_kind_is_the_same_classes(y):
    codes, response = response_to_array(y, None)
    assert codes.tolist() == [bucket("no"), bucket("yes"), bucket("no")]
    assert response.hashed and response.categories == HASH_BUCKETS
    codes, response = response_to_array(y, ["yes"])
    assert codes.tolist() == [1, 0, 1] and response.categories == 2 and not response.hashed


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, 1],
        [0.0, 1.0, 1.0],
        [False, True, True],
        np.array([0, 1, 1], dtype=object),
        np.array([[0], [1], [1]]),
        pd.Series([0, 1, 1], dtype="Int64"),
        pd.Series([False, True, True], dtype="boolean"),
        pl.Series([0, 1, 1]),
        pa.array([0, 1, 1]),
    ],
)
def test_numbers_of_every_kind_are_numbers_unless_classes_are_declared(y):
    numbers, response = response_to_array(y, None)
    assert numbers.tolist() == [0.0, 1.0, 1.0] and numbers.dtype == np.float64 and response.categories is None
    codes, response = response_to_array(y, [1, 0])
    assert codes.tolist() == [1, 0, 0] and response.categories == 3


@pytest.mark.parametrize(
    "y",
    [
        [1.0, np.nan],
        [1.0, np.inf],
        np.array([SECRET, None], dtype=object),
        np.array([987654321.125, np.nan], dtype=object),
        pd.Series([SECRET, None], dtype="string"),
        pd.Series([987654321, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([SECRET, None], dtype="category"),
        pl.Series([SECRET, None]),
        pl.Series([987654321, None]),
        pl.Series([1.0, float("nan")]),
        pa.array([SECRET, None]),
        pa.chunked_array([[1, None]]),
    ],
)
@pytest.mark.parametrize("classes", [None, [1, 0]])
def test_missing_responses_are_refused_and_never_a_class(y, classes):
    with pytest.raises(InputError, match="y has missing or infinite values") as error:
        response_to_array(y, classes)
    assert SECRET not in str(error.value) and "987" not in str(error.value)


@pytest.mark.parametrize(
    "y",
    [
        np.zeros((2, 2)),
        3.0,
        [[1, 2], [3]],
        np.zeros((2, 1, 1)),
        np.array([1j]),
        [10**400, 1],
        pd.DataFrame({"a": [1], "b": [2]}),
    ],
)
def test_what_is_not_one_column_of_values_is_refused(y):
    with pytest.raises(InputError, match=r"^y "):
        response_to_array(y, None)


def test_integers_that_numpy_does_not_know_are_refused_with_the_remedy():
    wide = pl.Series("a", [0, 2**70], dtype=pl.Int128)
    for read in (lambda: features_to_array(pl.DataFrame({"a": wide})), lambda: response_to_array(wide, None)):
        with pytest.raises(InputError, match="128 bits; cast it"):
            read()
