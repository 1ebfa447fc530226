"""Files of every format give the same records, and no complaint quotes a cell."""

import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from sfumato import Bounds, PrivateSIR, scan
from sfumato.errors import InputError
from sfumato.records import HASH_BUCKETS, Response
from sfumato.sources.columns import Columns
from sfumato.sources.files import open_source
from sfumato.sources.names import find

SECRET = "4242.4242"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 3))
    y = x @ [1.0, 0.5, 0.0] + 0.3 * rng.normal(size=3000)
    ward = rng.choice(["north", "south", "west"], size=3000)
    return pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "ward": ward, "grade": np.digitize(y, [-1, 1]), "y": y})


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    pcsv.write_csv(table, path / "t.csv")
    pcsv.write_csv(table, path / "t.tsv", pcsv.WriteOptions(delimiter="\t"))
    (path / "t.csv.gz").write_bytes(gzip.compress((path / "t.csv").read_bytes()))
    (path / "semicolon.txt").write_bytes((path / "t.csv").read_bytes().replace(b",", b";"))
    pq.write_table(table, path / "t.parquet", row_group_size=700)
    feather.write_feather(table, path / "t.feather", chunksize=900)
    with pa.ipc.new_file(path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    frame = table.to_pandas()
    frame.to_excel(path / "t.xlsx", index=False)
    pyreadstat.write_dta(frame, path / "t.dta")
    pyreadstat.write_sav(frame, path / "t.sav")
    pyreadstat.write_xport(frame, path / "t.xpt", file_format_version=8)
    for i in range(3):
        pq.write_table(table.slice(1000 * i, 1000), path / f"part-{i}.parquet")
    return path


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def pooled(source):
    records = source.pooled()
    return records.x, records.y


def refusal(*args, **kwargs) -> str:
    with pytest.raises(InputError) as caught:
        open_source(*args, **kwargs).check()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None and (caught.value.__context__ is None or caught.value.__suppress_context__)
    return str(caught.value)


FOREIGN = ["t.dta", "t.sav"]
FORMATS = ["t.csv", "t.tsv", "t.csv.gz", "semicolon.txt", "t.parquet", "t.feather", "t.arrow", "part-*.parquet"]


@pytest.mark.parametrize("name", [*FORMATS, *FOREIGN])
@pytest.mark.parametrize("memory", [2**28, 2**16, 0])
def test_every_format_gives_the_same_records_on_every_pass_held_or_streamed(name, memory, table, folder):
    source = open_source(find(str(folder / name)), "y", ["a", "b", "c"], memory=memory)
    for _ in range(3):
        x, y = pooled(source)
        np.testing.assert_array_equal(x, np.column_stack([table[c] for c in "abc"]))
        np.testing.assert_array_equal(y, table["y"])
    assert source.count() == 3000 and source.feature_names == ("a", "b", "c")


@pytest.mark.parametrize("name", ["t.xlsx", "t.xpt"])
def test_formats_that_round_numbers_give_nearly_the_same_records(name, table, folder):
    """Excel writes sixteen digits, SAS has another float."""
    source = scan(folder / name, response="y", features=["a", "b", "c"])
    for _ in range(2):
        x, y = pooled(source)
        np.testing.assert_allclose(x, np.column_stack([table[c] for c in "abc"]), rtol=1e-14)
        np.testing.assert_allclose(y, table["y"], rtol=1e-14)
    assert scan(folder / name, response="ward", features=["a"]).response == Response(HASH_BUCKETS, hashed=True)


def test_csv_feather_and_parquet_give_the_same_directions_with_the_same_seed(folder):
    fits = [
        PrivateSIR(bounds=Bounds(-3, 3), random_state=1).fit(
            scan(folder / name, response="y", features=["a", "b", "c"])
        )
        for name in ("t.csv", "t.feather", "t.arrow", "t.parquet")
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.directions_, fits[0].directions_)


def test_a_comma_before_fractions_is_declared_and_never_guessed(tmp_path):
    path = write(tmp_path / "t.csv", "a;b;y\n1,5;2;0,25\n-3;4e0;1e-1\n")
    for _ in range(2):
        x, y = pooled(scan(path, response="y", decimal=",", memory=0))
        assert x.tolist() == [[1.5, 2.0], [-3.0, 4.0]] and y.tolist() == [0.25, 0.1]
    for given, words in ((".", "not numeric"), (";", "decimal must be")):
        with pytest.raises(InputError, match=words):
            scan(path, response="y", features=["a", "b"], decimal=given)


def test_categories_are_encoded_against_the_first_and_others_count_as_it(table, folder):
    columns = {"ward": ["north", "west"]}
    for name in ("t.csv", "t.parquet"):
        source = open_source([folder / name], "y", ["ward", "a"], categorical=columns)
        x, _ = pooled(source)
        assert source.feature_names == ("ward=west", "a")
        np.testing.assert_array_equal(x[:, 0], np.asarray(table["ward"]) == "west")


def test_categories_and_classes_of_numbers_are_compared_as_numbers(table, folder):
    for name in ("t.csv", "t.parquet"):
        source = open_source([folder / name], "grade", ["a"], classes=["0", "2"])
        _, y = pooled(source)
        np.testing.assert_array_equal(y, np.asarray([0, 2, 1])[np.asarray(table["grade"])])
        encoded, _ = pooled(open_source([folder / name], "y", ["grade"], categorical={"grade": ["0", "1.0", "2"]}))
        np.testing.assert_array_equal(encoded.argmax(axis=1) + encoded.any(axis=1), table["grade"])


def test_a_text_response_has_the_same_codes_in_every_format(folder):
    codes = [pooled(scan(folder / name, response="ward", features=["a"]))[1] for name in FORMATS[:1] + FORMATS[4:7]]
    for other in codes[1:]:
        np.testing.assert_array_equal(other, codes[0])


def test_truth_decimal_and_dictionary_columns_are_read(tmp_path):
    table = pa.table(
        {
            "truth": [True, False, True],
            "money": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("0.10")]),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "y": pa.array([1, 2, 3], pa.int8()),
        }
    )
    feather.write_feather(table, tmp_path / "t.feather")
    source = open_source([tmp_path / "t.feather"], "y", categorical={"kind": ["u", "v"]})
    x, y = pooled(source)
    np.testing.assert_array_equal(x, [[1, 1.5, 0], [0, 2.25, 1], [1, 0.1, 0]])
    np.testing.assert_array_equal(y, [1, 2, 3])
    for names in (["False", "True"], ["0", "1"]):
        _, classes = pooled(open_source([tmp_path / "t.feather"], "truth", ["y"], classes=names))
        np.testing.assert_array_equal(classes, [1, 0, 1])
    with pytest.raises(InputError, match="column 'truth' holds true and false"):
        open_source([tmp_path / "t.feather"], "truth", ["y"], classes=["no", "yes"])


def test_missing_values_are_refused_by_the_name_of_their_column(tmp_path):
    assert "column 'b'" in refusal([write(tmp_path / "x.csv", "a,b,y\n1,,1\n2,3,4\n")], "y")
    assert "column 'y'" in refusal([write(tmp_path / "y.csv", "a,b,y\n1,2,NA\n2,3,4\n")], "y")
    assert "column 'a'" in refusal([write(tmp_path / "inf.csv", "a,b,y\ninf,2,1\n2,3,4\n")], "y")
    text = write(tmp_path / "text.csv", "a,k,y\n1,u,p\n2,,q\n")
    assert "'k=v'" in refusal([text], "y", categorical={"k": ["u", "v"]})


def test_dropping_leaves_complete_rows_but_counts_all(tmp_path):
    path = write(tmp_path / "x.csv", "a,k,y\n1,u,1\n,u,2\n3,,3\n4,v,\n5,v,nan\n6,v,6\n")
    source = open_source([path], "y", categorical={"k": ["u", "v"]}, drop_missing=True)
    x, y = pooled(source)
    np.testing.assert_array_equal(x, [[1, 0], [6, 1]])
    np.testing.assert_array_equal(y, [1, 6])
    assert source.count() == 6  # how many rows are complete is private


def test_a_table_without_any_complete_row_is_fitted_like_an_empty_one(tmp_path):
    """How many rows are complete is private, so even none must not raise."""
    source = open_source([write(tmp_path / "x.csv", "a,b,y\n1,,1\n,2,2\n")], "y", drop_missing=True)
    sir = PrivateSIR(relation="add-remove", bounds=Bounds(-1, 1), picture=True).fit(source)
    assert sir.directions_.shape[1] == 2


def test_a_quoted_na_is_a_category_and_an_unquoted_one_is_missing(tmp_path):
    path = write(tmp_path / "x.csv", 'a,k,y\n1,"NA",1\n2,DE,2\n')
    x, _ = pooled(open_source([path], "y", categorical={"k": ["DE", "NA"]}))
    np.testing.assert_array_equal(x[:, 1], [1, 0])
    assert "missing" in refusal(
        [write(tmp_path / "z.csv", "a,k,y\n1,NA,1\n2,DE,2\n")], "y", categorical={"k": ["DE", "F"]}
    )


def test_numbers_may_become_fractions_after_the_first_block(tmp_path):
    body = "1,2\n" * 400_000 + "1.5,2.5\n"
    x, y = pooled(open_source([write(tmp_path / "x.csv", "a,y\n" + body)], "y"))
    assert x[-1] == 1.5 and y[-1] == 2.5


def test_a_cell_unlike_its_column_is_not_quoted(tmp_path):
    path = write(tmp_path / "x.csv", "a,b,y\n" + "1,2,3\n" * 400_000 + f"1,{SECRET}x,3\n")
    assert "column 'b'" in refusal([path], "y")
    assert "column 'b'" in refusal([path], "y", ["b"])


def test_a_ragged_row_is_not_quoted(tmp_path):
    assert "more or fewer cells" in refusal([write(tmp_path / "x.csv", f"a,y\n1,2\n1,{SECRET},3\n")], "y")


@pytest.mark.parametrize("body", ["a\n1\n\n3\n", "a\n1\n3\n\n", "\na\n1\n3\n"])
def test_an_empty_line_in_a_file_of_one_column_may_be_a_missing_cell_and_is_refused(body, tmp_path):
    """A record that vanished would change a number of records that counts as public."""
    with pytest.raises(InputError, match=r"missing|not a readable"):
        scan(write(tmp_path / "x.csv", body)).check()
    with pytest.raises(InputError, match=r"empty lines|not a readable"):
        open_source([tmp_path / "x.csv"], None, drop_missing=True).check()


def test_an_empty_line_between_records_of_several_cells_is_none(tmp_path):
    x, _ = pooled(open_source([write(tmp_path / "x.csv", "a,y\n1,2\n\n3,4\n\n")], "y"))
    assert x.ravel().tolist() == [1.0, 3.0]


def test_a_file_without_column_names_is_refused_without_quoting_its_first_record(tmp_path):
    assert "name the columns" in refusal([write(tmp_path / "x.csv", f"{SECRET},2,x\n3,4,y\n")], "y")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.csv", b"a,a,y\n1,2,3\n", "more than one column 'a'"),
        ("x.csv", b"", "is empty; it needs a line of column names"),
        ("x.csv", b"a,y\n\xff\xfe,1\n", "not numeric"),
        ("x.parquet", b"nonsense", "not a readable Parquet"),
        ("x.feather", b"nonsense", "not a readable Arrow"),
        ("x.xlsx", b"PK", "not readable as an Excel sheet"),
        ("x.sav", b"nonsense", "not readable as a file of Stata, SPSS or SAS"),
        ("x.docx", b"PK", "tells no format"),
        ("x.csv", b"a,d,y\n1,2020-01-01,3\n", "column 'd' is not numeric"),
        ("x.csv", b"y\n1\n", "no feature column"),
    ],
)
def test_unusable_files_say_what_is_wrong(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert words in refusal([tmp_path / name], "y")


def test_files_must_agree(folder, tmp_path):
    assert "different formats" in refusal([folder / "t.csv", folder / "t.parquet"], "y")
    first, second = write(tmp_path / "1.csv", "a,y\n1,2\n"), write(tmp_path / "2.csv", "b,y\n1,2\n")
    assert "no column 'a'" in refusal([first, second], "y")
    third = write(tmp_path / "3.csv", "a,y\n1,u\n")
    assert "numeric in some files only" in refusal([first, third], "y")
    assert "directory" in refusal([tmp_path], "y")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"response": "Y"}, "did you mean 'y'?"),
        ({"features": ["a", "bb"]}, "did you mean 'b'?"),
        ({"features": ["a", "a"]}, "named twice"),
        ({"features": ["a", "y"]}, "'y' is the response"),
        ({"features": []}, "no feature column"),
        ({"features": ["a", "ward"]}, "ward=a|b|c"),
        ({"features": ["ward"], "categorical": {"ward": ["north"]}}, "two or more"),
        ({"features": ["ward"], "categorical": {"ward": ["north", "north"]}}, "two or more"),
        ({"features": ["a"], "categorical": {"ward": ["north", "west"]}}, "categorical: there is no column 'ward'"),
        ({"features": ["a"], "classes": []}, "at least one category"),
    ],
)
def test_mistaken_columns_say_what_was_meant(arguments, words, folder):
    assert words in refusal([folder / "t.csv"], **({"response": "y"} | arguments))


def test_names_that_a_column_of_numbers_cannot_hold_are_refused_where_the_file_has_types(folder):
    """A CSV file has none: what its cells look like must not decide."""
    mistakes = [
        {"response": "y", "features": ["grade"], "categorical": {"grade": ["low", "high"]}},
        {"response": "grade", "features": ["a"], "classes": ["low"]},
    ]
    for mistake in mistakes:
        assert "holds numbers" in refusal([folder / "t.parquet"], **mistake)
        open_source([folder / "t.csv"], **mistake).check()


def test_a_mistyped_file_gets_a_suggestion(folder):
    with pytest.raises(InputError, match=r"did you mean '.*t\.csv'"):
        find(str(folder / "t.cvs"))


def test_a_file_whose_name_looks_like_a_pattern_is_found(tmp_path):
    path = write(tmp_path / "a[1].csv", "a,y\n1,2\n")
    assert find(str(path)) == [path]


def test_columns_are_values():
    assert Columns(("a",)) == Columns(("a",), {})
