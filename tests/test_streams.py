"""The same table through every door that hands over Arrow batches: the same directions, to the last bit."""

import gc
import gzip
import inspect
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from sfumato import Bounds, InputError, PrivateSIR, scan
from sfumato.model import load_model, save_model
from sfumato.sources.streams import snapshot

SECRET = "4242.4242"
N = 3000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(N, 3)), 6)
    y = np.round(x @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=N), 6)
    return pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y, "ward": rng.choice(["north", "west"], N)})


@pytest.fixture(scope="module")
def expected(table):
    return fit(table)


def fit(source, response="y", **options):
    sir = PrivateSIR(bounds=Bounds(-4, 4), random_state=1)
    return sir.fit(scan(source, response=response, features=["a", "b", "c"], **options)).directions_


def duckdb_relation(table, folder):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install duckdb.")
    pq.write_table(table, folder / "duck.parquet")
    return duckdb.connect().sql(f"select y, c, a, b from '{folder / 'duck.parquet'}'")


def adbc_reader(table, folder):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="pip install adbc-driver-sqlite.")
    with dbapi.connect(str(folder / "t.sqlite")) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("visits", table, mode="create")
        connection.commit()
        cursor.execute("select a, b, c, y from visits")
        yield cursor.fetch_record_batch


def zstd_csv(table, folder):
    plain = folder / "t.csv"
    pcsv.write_csv(table, plain)
    with pa.output_stream(str(folder / "t.csv.zst"), compression="zstd") as stream:
        stream.write(plain.read_bytes())
    return folder / "t.csv.zst"


def gzip_csv(table, folder):
    pcsv.write_csv(table, folder / "t.csv")
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    return folder / "t.csv.gz"


def plain_csv(table, folder):
    pcsv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet", row_group_size=700)
    return folder / "t.parquet"


DOORS = {
    "reader": lambda table, folder: table.to_reader(100),
    "function": lambda table, folder: table.to_reader,
    "pandas": lambda table, folder: table.to_pandas(),
    "polars": lambda table, folder: pl.from_arrow(table),
    "lazy polars": lambda table, folder: pl.from_arrow(table).lazy(),
    "duckdb": duckdb_relation,
    "adbc": adbc_reader,
    "csv": plain_csv,
    "parquet": parquet,
    "gzip": gzip_csv,
    "zstd": zstd_csv,
}


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("memory", ["1GB", 0])
def test_the_same_table_gives_the_same_bits(door, memory, table, expected, tmp_path):
    opened = DOORS[door](table, tmp_path)
    for source in opened if inspect.isgenerator(opened) else [opened]:
        assert np.array_equal(fit(source, memory=memory), expected)


def test_a_text_response_has_the_same_codes(table):
    assert np.array_equal(fit(table.to_reader(), "ward"), fit(table, "ward"))


def test_a_stream_is_read_once_and_every_pass_sees_the_same_rows(table):
    opened = []

    def growing():
        opened.append(1)
        return pa.concat_tables([table] * len(opened)).to_reader()

    source = scan(growing, response="y", features=["a", "b", "c"])
    assert source.count() == N == source.count() and opened == [1]


def test_what_does_not_fit_in_memory_is_in_a_file_that_has_no_name(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = snapshot(table.to_reader(100), memory=1000)
    assert found.count() == N and list(tmp_path.iterdir()) == []
    if Path("/proc/self/fd").exists():
        assert opened(tmp_path)
        del found
        gc.collect()
        assert not opened(tmp_path)


def opened(folder):
    """The open files of a folder, those without a name included."""
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return [target for target in map(os.readlink, links) if target.startswith(str(folder))]


def test_a_stream_that_breaks_leaves_no_file(table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken():
        yield from table.to_batches(100)
        raise OSError(SECRET)

    with pytest.raises(InputError, match="cannot be read as an Arrow stream") as caught:
        snapshot(pa.RecordBatchReader.from_batches(table.schema, broken()), memory=1000)
    assert SECRET not in str(caught.value) and os.listdir(tmp_path) == []


def test_cells_of_mixed_kind_are_not_quoted():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([1, SECRET + "x"], dtype=object), "y": [1.0, 2.0]})
    with pytest.raises(InputError) as caught:
        scan(frame, response="y")
    assert SECRET not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(("given", "words"), [(lambda: 7, "must give an Arrow stream"), (object(), "give a path")])
def test_what_is_no_table_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        scan(given, response="y")


WARDS = {"ward": ["north", "west"]}


def fit_wards(source, **options):
    sir = PrivateSIR(bounds={"a": (-4, 4), "b": (-4, 4)}, random_state=1)
    return sir.fit(scan(source, response="y", features=["a", "ward", "b"], **options))


@pytest.mark.parametrize(
    "form", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow, lambda t: pl.from_arrow(t).lazy()]
)
def test_declared_categories_of_any_table_are_features_of_0_and_1(table, form):
    west = table.set_column(4, "ward=west", pa.array([ward == "west" for ward in table["ward"].to_pylist()]))
    sir = PrivateSIR(bounds={"a": (-4, 4), "b": (-4, 4)}, random_state=1)
    by_hand = sir.fit(scan(west, response="y", features=["a", "ward=west", "b"]))
    fitted = fit_wards(form(table), categorical=WARDS)
    assert list(fitted.feature_names_in_) == ["a", "ward=west", "b"]
    np.testing.assert_array_equal(fitted.directions_, by_hand.directions_)
    assert "order of magnitude of each feature" not in {entry.purpose for entry in fitted.ledger_.entries}  # 0 and 1


def test_transform_takes_the_columns_that_were_declared_before_and_after_a_model_is_saved(table, tmp_path):
    fitted = fit_wards(table, categorical=WARDS)
    encoded = np.column_stack([table["a"], [ward == "west" for ward in table["ward"].to_pylist()], table["b"]])
    expected = (encoded - fitted.mean_) @ fitted.directions_.T
    loaded = load_model(save_model(fitted, tmp_path / "model.json"))
    for sir in (fitted, loaded):
        for frame in (table.to_pandas(), pl.from_arrow(table).drop("y"), table):
            np.testing.assert_allclose(sir.transform(frame), expected, rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="missing"):
        fitted.transform(table.to_pandas().assign(ward=None))


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"ward": "north"}, "give a list of categories"),
        ({"wrad": ["north", "west"]}, "did you mean 'ward'"),
        ({"ward": ["north", "north"]}, "two or more different categories"),
        (None, "--categorical 'ward=a|b|c', or categorical={'ward': [...]}"),
    ],
)
def test_categories_that_cannot_be_are_refused_in_one_sentence(table, declared, sentence):
    with pytest.raises(InputError) as refused:
        fit_wards(table.to_pandas(), categorical=declared)
    assert sentence in str(refused.value)
