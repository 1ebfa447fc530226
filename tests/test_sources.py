"""Sources: files and tables, read in chunks; what is wrong with them is said without a value of theirs."""

import hashlib
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

from sfumato import InputError, scan
from sfumato.records import HASH_BUCKETS, Response
from sfumato.sources import ArraySource, bucket, chunk_rows, declared_response, encode_response
from sfumato.statistics.histograms import Bins

SECRET = "SECRET-MARK"
N = 40


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {
        "age": rng.normal(size=N),
        "weight": rng.integers(0, 9, N),
        "smokes": rng.random(N) < 0.5,
        "y": rng.normal(size=N),
    }


@pytest.fixture
def write(tmp_path):
    def make(columns, name="table.parquet", **options):
        pq.write_table(pa.table(columns), tmp_path / name, **options)
        return tmp_path / name

    return make


def everything(source):
    records = source.pooled()
    return records.x, records.y


def test_a_file_is_read_as_its_table(write, columns):
    source = scan(write(columns, row_group_size=7), response="y")
    x, y = everything(source)
    assert source.feature_names == ("age", "weight", "smokes") and source.n_features == 3 and source.count() == N
    assert np.array_equal(x, np.column_stack([columns[name] for name in source.feature_names]))
    assert np.array_equal(y, columns["y"])
    assert np.array_equal(everything(source)[0], x)  # can be read again
    source.check()


def test_a_table_in_memory_is_read_as_its_file(write, columns):
    file, memory = scan(write(columns), response="y"), scan(pa.table(columns), response="y")
    for a, b in zip(everything(file), everything(memory), strict=True):
        assert np.array_equal(a, b)
    assert file.feature_names == memory.feature_names and file.response == memory.response


def test_a_table_may_have_no_response_or_a_second_set_of_columns(write, columns):
    for source in (write(columns), pa.table(columns)):
        alone, pair = scan(source), scan(source, second=["y", "age"])
        assert alone.n_features == 4 and not alone.has_response and not everything(alone)[1].any()
        assert pair.feature_names == ("weight", "smokes", "y", "age") and pair.n_second == 2
        assert np.array_equal(everything(pair)[0][:, 3], columns["age"])


def test_features_are_taken_in_the_order_they_are_named(write, columns):
    source = scan(write(columns), response="y", features=["weight", "age"])
    assert np.array_equal(everything(source)[0], np.column_stack([columns["weight"], columns["age"]]))


def test_files_may_differ_in_the_order_of_their_columns(write, columns):
    first = write(columns, "1.parquet")
    second = write(dict(reversed(columns.items())), "2.parquet")
    x, y = everything(scan([first, second], response="y"))
    assert np.array_equal(x[:N], x[N:]) and np.array_equal(y[:N], y[N:])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"age": [SECRET] * N}, "not numeric"),
        ({"y": [SECRET] * N}, "numeric in some files"),
        ({"age": None}, "no column 'age'"),
        ({"y": None}, "no column 'y'"),
    ],
)
def test_a_file_unlike_the_first_is_refused_before_it_is_read(write, columns, change, sentence):
    other = {name: value for name, value in {**columns, **change}.items() if value is not None}
    with pytest.raises(InputError, match=sentence) as error:
        scan([write(columns, "1.parquet"), write(other, "2.parquet")], response="y")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"response": "Y"}, "no column 'Y'"),
        ({"response": "weigth"}, "did you mean 'weight'"),
        ({"response": 3}, "no column 3"),
        ({"response": "y", "features": ["agee"]}, "did you mean 'age'"),
        ({"response": "y", "features": []}, "at least one"),
        ({"response": "y", "features": "age"}, r"write \['age'\]"),
        ({"response": "y", "features": ["age", "y"]}, "is the response"),
        ({"response": "y", "classes": "yes"}, "classes must be a list"),
        ({"response": "y", "classes": []}, "classes must be a list"),
        ({"response": "y", "classes": 2}, "classes must be a list"),
        ({"second": ["agee"]}, "did you mean 'age'"),
        ({"second": "age"}, r"write \['age'\]"),
        ({"response": "y", "second": ["y"]}, "second: 'y' is the response"),
        ({"features": ["age", "y"], "second": ["age"]}, "'age' is among the features of the first set too"),
    ],
)
def test_wrong_names_are_refused_with_a_remedy(write, columns, options, sentence):
    for source in (write(columns), pa.table(columns)):
        with pytest.raises(InputError, match=sentence):
            scan(source, **options)


def test_files_that_are_not_there_or_not_parquet_are_refused(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_text(SECRET)
    for source in (broken, tmp_path, tmp_path / "none.parquet", str(tmp_path / "*.nothing"), [], [tmp_path / "no"], 7):
        with pytest.raises(InputError, match=r"^(path|data): ") as error:
            scan(source, response="y")
        assert SECRET not in str(error.value)


def test_a_record_batch_is_a_table_and_a_dataset_is_not(columns):
    batch = scan(pa.table(columns).to_batches()[0], response="y")
    for a, b in zip(everything(batch), everything(scan(pa.table(columns), response="y")), strict=True):
        assert np.array_equal(a, b)
    with pytest.raises(InputError, match=r"^data: give"):
        scan(dataset(pa.table(columns)), response="y")


def test_two_columns_of_one_name_are_refused():
    table = pa.table([[1.0], [2.0], [3.0]], names=["a", "a", "y"])
    with pytest.raises(InputError, match="several columns are called 'a'"):
        scan(table, response="y")


@pytest.mark.parametrize(
    "bad",
    [
        {"age": np.where(np.arange(N) == 5, np.nan, 987654321.125)},
        {"age": np.where(np.arange(N) == 5, np.inf, 987654321.125)},
        {"age": pa.array([None, *[1.0] * (N - 1)])},
        {"weight": pa.array([None, *[1] * (N - 1)])},
        {"y": np.where(np.arange(N) == 5, np.nan, 1.0)},
        {"y": pa.array([None, *[SECRET] * (N - 1)])},
    ],
)
@pytest.mark.parametrize("where", ["file", "memory"])
def test_missing_values_are_refused_without_quoting_their_neighbours(write, columns, bad, where):
    table = {**columns, **bad}
    with pytest.raises(InputError, match="missing or infinite") as error:
        scan(write(table) if where == "file" else pa.table(table), response="y").check()
    assert "987" not in str(error.value) and SECRET not in str(error.value)


def test_a_missing_number_is_no_class_of_its_own(write, columns):
    numbers = np.where(np.arange(N) == 5, np.nan, 1.0)
    with pytest.raises(InputError, match="missing or infinite"):
        scan(write({**columns, "y": numbers}), response="y", classes=[0, 1]).check()


@pytest.mark.parametrize("n_features", [1, 10, 100, 1000, 10_000])
def test_chunks_are_never_so_long_that_sums_lose_a_bit(n_features):
    assert 1 <= chunk_rows(n_features) <= 2**15


def test_arrays_are_cut_in_chunks_that_cover_them():
    n = 2 * chunk_rows(1) + 3
    source = ArraySource(np.arange(n, dtype=float)[:, None], np.arange(n, dtype=float), Response())
    assert len(source.parts()) == 3 and source.count() == n
    assert np.array_equal(everything(source)[1], np.arange(n))


def test_text_falls_into_public_buckets_the_same_everywhere():
    assert bucket("Ja") == int(hashlib.sha256(b"Ja").hexdigest()[:16], 16) % HASH_BUCKETS
    codes = encode_response(np.array(["b", "a", "b"]), Response(HASH_BUCKETS, hashed=True), None)
    assert codes.tolist() == [bucket("b"), bucket("a"), bucket("b")]


@pytest.mark.parametrize(
    "raw",
    [np.array([0, 1, 7]), np.array([0.0, 1.0, 7.5]), np.array(["0", "1", "7"]), np.array([0, 1, 7], dtype=np.uint8)],
)
def test_declared_classes_are_recognised_in_every_type_and_others_share_the_last_code(raw):
    response = declared_response(raw.dtype.kind in "biuf", [0, 1])
    assert encode_response(raw, response, [0, 1]).tolist() == [0, 1, 2]


def test_truth_values_match_declared_numbers_and_words():
    raw = np.array([True, False])
    for classes in ([False, True], [0, 1], np.array([0.0, 1.0])):
        assert encode_response(raw, declared_response(True, classes), classes).tolist() == [1, 0]


def test_records_and_sources_are_sent_without_what_was_made_of_them(write, columns):
    """Maps are kept under keys that are compared by identity, which no other process has."""
    source = scan(write({**columns, "who": np.arange(N) // 2}, row_group_size=7), response="y", person="who")
    x, y = everything(source.first_rows(1))
    records, bins = next(iter(source.read(source.parts()[0]))), Bins(np.array([0.0]))
    bins.index(records)
    copied = pickle.loads(pickle.dumps(source.first_rows(1)))
    assert np.array_equal(everything(copied)[0], x) and np.array_equal(everything(copied)[1], y)
    assert copied.parts() == source.parts() and len(records._kept) == 1
    again = pickle.loads(pickle.dumps(records))
    assert np.array_equal(again.x, records.x) and len(again._kept) == 0
    with pytest.raises(InputError, match="write it to a file"):
        pickle.dumps(scan(pa.table(columns).to_reader(), response="y"))
