"""Which rows of a person count."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sfumato import scan
from sfumato.errors import InputError
from sfumato.people import Tally, first_rows, key

AWKWARD = [None, "", float("nan"), True, 7, 7.0, "7", "007", "7.0", " 7 ", "x", "1e3", 2**70, "inf", -0.0, "é\udcff"]


def by_hand(ids, rows):
    seen, counts = {}, []
    for one in ids:
        seen[one] = seen.get(one, 0) + 1
        counts.append(seen[one] <= rows)
    return np.array(counts)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_first_rows_of_each_person_count(rows):
    ids = np.random.default_rng(rows).integers(0, 40, 500)
    expected = by_hand(ids.tolist(), rows)
    series = (pd.Series(ids), pl.Series(ids), pa.chunked_array([ids[:100], ids[100:]]))
    for given in (ids, ids.tolist(), ids.astype(str), ids.astype(object), *series):
        assert (first_rows(given, 500, rows) == expected).all()


def test_ids_may_come_in_any_batches():
    ids = np.random.default_rng(0).integers(0, 9, 300)
    tally, found = Tally(3), []
    for batch in np.split(ids, [1, 2, 50, 51, 200]):
        distinct, index = np.unique(batch, return_inverse=True)
        found.append(tally.first(distinct.tolist(), index))
    assert (np.concatenate(found) == by_hand(ids.tolist(), 3)).all()


@pytest.mark.parametrize("cell", AWKWARD)
def test_no_id_changes_how_another_is_read(cell):
    """Replacing a person, whatever their ids look like, leaves everybody else's counted rows as they are."""
    others = [1, "1", 2, "b", 2.0, "c", 3, 3, "1.0", "b"]
    among = others.copy()
    among[4:4] = [cell] * 3
    if key(cell) is None:
        with pytest.raises(InputError, match="groups has missing ids") as caught:
            first_rows(among, len(among), 2)
        assert repr(cell) not in str(caught.value) or cell == ""
        return
    mine = np.array([key(one) == key(cell) for one in among])
    unlike = np.array([key(one) != key(cell) for one in others])
    assert (first_rows(among, len(among), 2)[~mine] == first_rows(others, len(others), 2)[unlike]).all()


def test_long_numbers_are_told_apart():
    ids = [str(2**80), str(2**80 + 1), 2**80]
    assert first_rows(ids, 3, 1).tolist() == [True, True, False]
    assert first_rows(pl.Series([2**80, 2**80 + 1, 2**80], dtype=pl.Int128), 3, 1).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, 2], "same number of rows"),
        ([[1, 2], [3, 4], [5, 6]], "one column"),
        ([[1], [2, 3], [4]], "one column"),
        (pd.Series([1, None, 2]), "missing ids"),
        (pd.Series(["a", pd.NA, "b"], dtype=object), "missing ids"),
    ],
)
def test_ids_that_cannot_be_used_are_refused_in_one_sentence(ids, words):
    with pytest.raises(InputError, match=words):
        first_rows(ids, 3, 1)


def write(path, table):
    match path.suffix:
        case ".csv":
            pcsv.write_csv(table, path)
        case ".parquet":
            pq.write_table(table, path, row_group_size=70)
        case ".feather":
            feather.write_feather(table, path, compression="uncompressed", chunksize=70)


def rows_of(source):
    records = source.pooled()
    return np.column_stack([records.x, records.y])


@pytest.fixture
def panel():
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 60, 400)
    return pa.table({"who": ids, "a": rng.normal(size=400), "b": rng.normal(size=400), "y": rng.normal(size=400)})


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
@pytest.mark.parametrize("memory", ["1GB", 0])
def test_files_count_the_rows_that_memory_counts(panel, tmp_path, ending, memory):
    for i, part in enumerate((panel.slice(0, 150), panel.slice(150))):
        write(tmp_path / f"part{i}{ending}", part)
    source = scan(str(tmp_path / f"*{ending}"), response="y", person="who", memory=memory)
    assert source.feature_names == ("a", "b") and source.has_people
    whole = np.column_stack([panel[name].to_numpy() for name in ("a", "b", "y")])
    counts = by_hand(panel["who"].to_pylist(), 3)
    assert np.allclose(rows_of(source.first_rows(3)), whole[counts], rtol=1e-12)
    assert len(rows_of(source)) == 400
    assert np.allclose(rows_of(scan(panel, response="y", person="who").first_rows(3)), whole[counts])


def test_ids_of_a_text_file_are_read_as_they_stand(tmp_path):
    """Long numbers are not rounded, and one text id among numbers is no reason to refuse the file."""
    long = 2**60
    lines = [f"{long},0.1,1", f"{long + 1},0.2,2", f"{long},0.3,3", "ann,0.4,4"]
    (tmp_path / "t.csv").write_text("who,a,y\n" + "\n".join(lines) + "\n")
    found = rows_of(scan(tmp_path / "t.csv", response="y", person="who").first_rows(1))
    assert found[:, 1].tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_missing_id_in_a_file_is_refused_by_its_column(tmp_path, ending):
    table = pa.table({"who": pa.array(["a", None, "b"]), "a": [0.1, 0.2, 0.3], "y": [1.0, 2.0, 3.0]})
    write(tmp_path / f"t{ending}", table)
    with pytest.raises(InputError, match="person: column 'who' has missing ids"):
        scan(tmp_path / f"t{ending}", response="y", person="who").first_rows(1)


def test_incomplete_rows_are_skipped_after_rows_were_counted(tmp_path):
    from sfumato.sources.files import open_source

    table = pa.table({"who": [1, 1, 1, 2], "a": pa.array([None, 0.2, 0.3, 0.4]), "y": [1.0, 2.0, 3.0, 4.0]})
    write(tmp_path / "t.parquet", table)
    source = open_source([tmp_path / "t.parquet"], "y", drop_missing=True, person="who").first_rows(2)
    assert rows_of(source)[:, 1].tolist() == [2.0, 4.0]


def test_the_column_of_ids_is_checked_by_name(panel, tmp_path):
    write(tmp_path / "t.parquet", panel)
    for given in (panel, tmp_path / "t.parquet"):
        for options, words in (
            ({"person": "whom"}, "person: there is no column 'whom'; did you mean 'who'"),
            ({"person": "y"}, "person: 'y' is the response"),
            ({"person": "who", "features": ["who", "a"]}, "features: 'who' says whose row it is"),
        ):
            with pytest.raises(InputError, match=words):
                scan(given, response="y", **options)


def test_ids_that_round_to_the_same_float_are_two_people():
    """Sharing a key, one of them would decide which rows of the other count."""
    big = 2**53
    for one, other in (
        (big, big + 1),
        (str(big), str(big + 1)),
        (Decimal(big), Decimal(big + 1)),
        ("9" * 400, "8" * 400),
    ):
        assert key(one) != key(other)
    assert key(Decimal("7.00")) == key("7") == key(True) + 6 == key(np.float32(7)) == key(b"7")


@pytest.mark.parametrize("cell", [np.datetime64("2020-01-01"), date(2020, 1, 1), [1], {"a": 1}])
def test_ids_are_numbers_or_texts(cell):
    with pytest.raises(InputError, match="groups must be one column of numbers or texts") as caught:
        first_rows(np.array([1, cell, "b"], dtype=object), 3, 1)
    assert "2020" not in str(caught.value)
