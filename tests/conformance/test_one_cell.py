"""One cell never changes how another record is read: every reader, every role, every awkward value.

A reader makes a table of columns of cells and opens it as `fit` does, up to the first charge. Then one cell is
replaced: either the table is refused, without a word of what the cell was, or all other records are the same to the
bit, and so is what counts as public. A table that cannot be made (a text in a column of floats) needs no reader.
"""

import contextlib
import csv
import datetime
import importlib
import inspect
import io
import pkgutil
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

import sfumato
from sfumato import Bounds, Budget, InputError, Ledger, PrivateCCA, PrivateSIR, scan
from sfumato.cli.local import _labels, _read
from sfumato.local import NumberRandomiser, SliceRandomiser, ThresholdRandomiser
from sfumato.local.answers import Randomiser
from sfumato.local.records import RecordRandomiser
from sfumato.methods.inputs import fit_source, paired_source
from sfumato.sources import ArraySource, Source
from sfumato.sources.files import open_source
from sfumato.sources.formats import open_tables
from sfumato.sources.streams import PassingTable, SnapshotTable, SparkTable, SpilledTable
from sfumato.sources.table import Table

HUGE = [Decimal("sNaN"), Decimal("1e999"), -(10**5000)]
LONG = "secret" * 2_000
AWKWARD = [
    "secret", "1", "1.0", " 1", "01", "1e0", "1_000", "true", "FALSE", "NA", "nan", "inf", "1e400", "", " ", "é",
    '"', '5","secret', '"secret', 'secret"', "a\nb", "a\r\nb", "a,b", "a;b", "\0", "1\0", "\ud800", LONG, "9" * 5000,
    True, False, np.True_, 1, 1.0, np.int8(1), np.float32(0.1), 7, 2**53 + 1, 2**63, -(2**63) - 1, 10**400,
    1e308, -1.7e308, 5e-324, -0.0, float("nan"), float("inf"), np.longdouble("1e-4000"), Decimal("0.1"),
    *HUGE, 1j, None, pd.NA, pd.NaT, b"1", b"secret", b"\xff", datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01"), pd.Timestamp("2020"), [1.0], {"secret": 1}, object(),
]  # fmt: skip
N = 7
BASES = {
    "numbers": [0.0, 1.0, 1.0, 0.25, 0.0, 1.0, -3.5],
    "integers": [0, 1, 1, 2, 0, 1, 1],
    "truth": [True, False, True, True, False, False, True],
    "texts": ["no", "yes", "yes", "no", "other", "no", "yes"],
    "written numbers": ["0", "1.0", "1", "x", "0.0", "1", "2"],
}
OTHER = np.linspace(-1.0, 1.0, N)
CANNOT = (
    TypeError,
    ValueError,
    OverflowError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
    AttributeError,
    ArithmeticError,
)


def listed(cells):
    return list(cells)


def objects(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def typed(cells, base):
    """A numpy array of the base's type, in which single cells are set."""
    column = np.array(base)
    for i, cell in enumerate(cells):
        column[i] = cell
    return column


def frozen(cells, base):
    column = typed(cells, base)
    return column.astype("S") if column.dtype.kind == "U" else column


def in_polars(cells, **options):
    if any(cell is huge for cell in cells for huge in HUGE):
        raise ValueError("polars panics on numbers that it cannot hold")
    return pl.Series("cell", cells, **options)


MEMORY = {
    "list": lambda cells, base: listed(cells),
    "object array": lambda cells, base: objects(cells),
    "numpy": typed,
    "numpy bytes": frozen,
    "pandas": lambda cells, base: pd.Series(cells),
    "pandas objects": lambda cells, base: pd.Series(cells, dtype=object),
    "pandas categories": lambda cells, base: pd.Series(pd.Categorical(cells)),
    "polars": lambda cells, base: in_polars(cells),
    "polars, not strict": lambda cells, base: in_polars(cells, dtype=pl.Series(base).dtype, strict=False),
    "arrow": lambda cells, base: pa.array(cells, pa.array(base).type),
}
TABLES = {
    "list": lambda column: [list(row) for row in zip(column, OTHER.tolist(), strict=True)],
    "object array": lambda column: np.column_stack([column, objects(OTHER.tolist())]),
    "numpy": lambda column: np.column_stack([column, OTHER]),
    "numpy bytes": lambda column: np.column_stack([column, OTHER]),
    "pandas": lambda column: pd.DataFrame({"cell": column, "other": OTHER}),
    "pandas objects": lambda column: pd.DataFrame({"cell": column, "other": OTHER}),
    "pandas categories": lambda column: pd.DataFrame({"cell": column, "other": OTHER}),
    "polars": lambda column: pl.DataFrame({"cell": column, "other": OTHER}),
    "polars, not strict": lambda column: pl.DataFrame({"cell": column, "other": OTHER}),
    "arrow": lambda column: pa.table({"cell": column, "other": OTHER}),
}


def arrow_table(cells, base):
    return pa.table({"cell": pa.array(cells, pa.array(base).type), "other": OTHER})


def parquet(cells, base, folder):
    pq.write_table(arrow_table(cells, base), folder / "t.parquet", row_group_size=3)
    return folder / "t.parquet"


def arrow_file(cells, base, folder):
    feather.write_feather(arrow_table(cells, base), folder / "t.feather", chunksize=3)
    return folder / "t.feather"


def encoded(text):
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")


def quoted_csv(cells, base, folder):
    """As a careful writer would: quotes where they are needed."""
    lines = [b"cell,other\n"]
    for cell, other in zip(cells, OTHER.tolist(), strict=True):
        if isinstance(cell, bytes):
            lines.append(cell + f",{other}\n".encode())
            continue
        stream = io.StringIO(newline="")
        csv.writer(stream, lineterminator="\n").writerow([cell, other])
        lines.append(encoded(stream.getvalue()))
    (folder / "t.csv").write_bytes(b"".join(lines))
    return folder / "t.csv"


def careless_csv(cells, base, folder):
    """Cells pasted between commas: a quote opens a cell, a new line ends the record."""
    rows = [encoded(other) + b"," + encoded(cell) + b"\n" for cell, other in zip(cells, OTHER, strict=True)]
    (folder / "t.csv").write_bytes(b"other,cell\n" + b"".join(rows))
    return folder / "t.csv"


@contextlib.contextmanager
def unwritten():
    """There is no such file: its writer has errors of its own for cells that it does not take."""
    try:
        yield
    except Exception as error:
        raise ValueError("not written") from error


def excel(cells, base, folder):
    """Every cell of a sheet has a type of its own."""
    book = openpyxl.Workbook()
    with unwritten():
        for row in (("cell", "other"), *zip(cells, OTHER.tolist(), strict=True)):
            book.active.append(row)
        book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def stata(cells, base, folder):
    table = arrow_table(cells, base)
    with unwritten():
        pyreadstat.write_dta(table.to_pandas(), folder / "t.dta")
    return folder / "t.dta"


FILES = {
    "parquet": parquet,
    "feather": arrow_file,
    "csv": quoted_csv,
    "careless csv": careless_csv,
    "excel": excel,
    "stata": stata,
}


WRITTEN = {}


def written(name, cells, base, folder):
    """The file of these cells, written once: it is what opens it that differs from case to case."""
    key = (folder, name, id(base), *map(id, cells))  # cells live as long as this module
    if key not in WRITTEN:
        place = folder / str(len(WRITTEN))
        place.mkdir()
        try:
            WRITTEN[key] = FILES[name](cells, base, place)
        except CANNOT:
            WRITTEN[key] = None
    if WRITTEN[key] is None:
        raise ValueError("there is no such file")
    return WRITTEN[key]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


def contributions(source):
    chunks = [records for part in source.parts() for records in source.read(part)]
    x, y = np.concatenate([c.x for c in chunks]), np.concatenate([c.y for c in chunks])
    public = (source.response, source.n_features, source.feature_names, source.n_second)
    return public, [(row.tobytes(), value.tobytes()) for row, value in zip(x, y, strict=True)]


RESPONSES = {
    "declared numbers": {"classes": [0, 1]},
    "declared texts": {"classes": ["no", "yes"]},
    "undeclared": {},
    "categorical": {"response_kind": "categorical"},
    "numeric": {"response_kind": "numeric"},
}
BOX = np.column_stack([OTHER, OTHER[::-1]])


def in_memory(name, role):
    make, table = MEMORY[name], TABLES[name]

    def read(cells, base, folder):
        column = make(cells, base)
        if role == "feature":
            x = table(column)
            return lambda: fit_source(PrivateSIR(), x, OTHER, None)
        if role == "second table":
            y = table(column)
            return lambda: paired_source(PrivateCCA(), BOX, y)
        if role == "single second column":
            return lambda: paired_source(PrivateCCA(), BOX, column)
        options = RESPONSES[role]
        return lambda: fit_source(PrivateSIR(), BOX, column, options.get("classes"), options.get("response_kind"))

    return read


def in_arrow_table(role):
    return lambda cells, base, folder: _scanned(arrow_table(cells, base), role)


def in_arrow_stream(role):
    return lambda cells, base, folder: _scanned(arrow_table(cells, base).to_reader, role)


def in_file(name, role):
    return lambda cells, base, folder: _scanned(written(name, cells, base, folder), role)


def _scanned(table, role):
    def read():
        if role == "second table":
            return paired_source(PrivateCCA(), scan(table, features=["other"], second=["cell"]), None)
        if role == "feature":
            return fit_source(PrivateSIR(), scan(table, response="other"), None, None)
        if role == "categorical feature":
            declared = {"cell": ["0", "1"]}
            return fit_source(PrivateSIR(), open_source([table], "other", categorical=declared), None, None)
        if role == "categorical text feature":
            declared = {"cell": ["no", "yes"]}
            return fit_source(PrivateSIR(), open_source([table], "other", categorical=declared), None, None)
        classes = RESPONSES[role].get("classes")
        return fit_source(PrivateSIR(classes=classes), scan(table, response="cell", **RESPONSES[role]), None, classes)

    return read


class Device:
    """The integers that devices are about to randomise, in place of a source."""

    response = n_features = feature_names = None
    n_second = 0

    def __init__(self, values):
        self.values = values

    def parts(self):
        return [0]

    def read(self, part):
        yield type("Answers", (), {"x": np.atleast_2d(self.values.T).T, "y": self.values})


DEVICES = {
    "slices": lambda y: SliceRandomiser(1.0, edges=[0.5]).slices(y),
    "classes": lambda y: SliceRandomiser(1.0, classes=[0, 1]).slices(y),
    "text classes": lambda y: SliceRandomiser(1.0, classes=["no", "yes"]).slices(y),
    "thresholds": lambda y: ThresholdRandomiser(1.0, np.full(len(y), 0.5)).truths(y),
    "numbers": lambda y: NumberRandomiser(-1.0, 1.0, 1.0).integers(y),
    "records": lambda y: RecordRandomiser(2, Bounds(-1, 1), (0.5,), 1.0, 1e-6)._contributions(BOX, y)[:, 0],
}


def on_devices(name, question):
    def read(cells, base, folder):
        column = MEMORY[name](cells, base)
        return lambda: Device(DEVICES[question](column))

    return read


def from_device_file(name, question):
    kinds = {"cell": "text" if "classes" in question else "number"}

    def read(cells, base, folder):
        path = written(name, cells, base, folder)
        return lambda: Device(DEVICES[question](_labels(_read(path, kinds), "cell")))

    return read


IN_MEMORY = ("feature", "second table", "single second column", *RESPONSES)
IN_TABLES = ("feature", "second table", *RESPONSES)
IN_FILES = (*IN_TABLES, "categorical feature", "categorical text feature")
CASES = {
    **{f"{name}: {role}": in_memory(name, role) for name in MEMORY for role in IN_MEMORY},
    **{f"arrow table: {role}": in_arrow_table(role) for role in IN_TABLES},
    **{f"arrow stream: {role}": in_arrow_stream(role) for role in IN_TABLES},
    **{f"{name} file: {role}": in_file(name, role) for name in FILES for role in IN_FILES},
    **{f"{name}: device, {question}": on_devices(name, question) for name in MEMORY for question in DEVICES},
    **{
        f"{name} file: device, {question}": from_device_file(name, question)
        for name in FILES
        for question in DEVICES
        if question != "records"
    },
}


ALWAYS_REFUSED = {
    f"{name}: {role}" for name in ("pandas objects", "pandas categories") for role in ("feature", "second table")
}
"""Columns that are no numbers by their type, whatever is in them."""


def outcome(read, cells, base, folder):
    """Contributions of the records, "refused", or None where there is no such table."""
    try:
        open_it = read(cells, base, folder)
    except CANNOT:
        return None
    try:
        source = open_it()
    except InputError as error:
        return refused(error)
    return contributions(source)  # here nothing may raise any more


def refused(error):
    assert "secret" not in str(error) and "xff" not in str(error) and len(str(error)) < 400
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return "refused"


@pytest.mark.parametrize("case", CASES)
def test_one_cell_changes_no_other_record_or_the_table_is_refused(case, folder):
    read, compared = CASES[case], 0
    for base in BASES.values():  # a file of integers is one of numbers
        if "file" in case and base is BASES["integers"]:
            continue
        before = outcome(read, base, base, folder)
        if before is None or before == "refused":
            continue
        public, records = before
        assert len(records) == N
        for place, value in [*((3, value) for value in AWKWARD), (0, "secret"), (N - 1, '"secret')]:
            cells = [*base[:place], value, *base[place + 1 :]]
            after = outcome(read, cells, base, folder)
            if after is None or after == "refused":
                continue
            assert after[0] == public, repr(value)[:50]
            assert after[1][:place] + after[1][place + 1 :] == records[:place] + records[place + 1 :], repr(value)[:50]
            compared += 1
    assert compared > 0 or case in ALWAYS_REFUSED


def test_a_text_among_declared_numbers_is_one_record_and_no_more():
    """The attack: with classes 0 and 1, one text made all numbers text, and none of them a class any more."""
    for make in (list, objects, lambda cells: pd.Series(cells, dtype=object)):
        y = [0.0] * 550 + [1.0] * 450
        counts = [
            np.bincount(fit_source(PrivateSIR(), np.zeros((1000, 1)), make(cells), [0, 1])._chunks[0].y, minlength=3)
            for cells in (y, ["text", *y[1:]])
        ]
        assert counts[0].tolist() == [550, 450, 0] and counts[1].tolist() == [549, 450, 1]


def test_a_refused_table_spends_nothing(tmp_path):
    ledger = Ledger(Budget.approximate(10.0, 1e-6), "replace")
    x, y = np.random.default_rng(0).normal(size=(20, 2)), [*np.arange(19.0).tolist(), "secret"]
    path = quoted_csv([*range(6), "secret"], None, tmp_path)
    for X, response in ((x, y), (x, [*y[:19], b"\xff"]), (lambda: scan(path, response="cell"), None)):
        with pytest.raises(InputError):
            PrivateSIR(ledger=ledger).fit(X() if callable(X) else X, response)
    assert len(ledger) == 0 and ledger.spent() == 0


def test_a_text_far_down_a_csv_file_is_refused_as_one_at_its_top_is(tmp_path):
    """The type of a column is guessed from the first megabyte."""
    numbers, texts = ["1,2"] * 300_000, ["1,no"] * 300_000
    for lines, odd in ((numbers, "1,secret"), (texts, "1,2")):
        for place in (0, len(lines) - 1):
            (tmp_path / "t.csv").write_text("\n".join(["a,y", *lines[:place], odd, *lines[place + 1 :]]))
            with pytest.raises(InputError, match="kind"):
                scan(tmp_path / "t.csv", response="y").check()


def modules():
    for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
        if not re.search(r"\.(flower|nvflare|vantage6|__main__)", module.name):
            yield importlib.import_module(module.name)


def subclasses(kind):
    found = {child for child in kind.__subclasses__() if child.__module__.startswith("sfumato.")}
    return found.union(*map(subclasses, found))


def test_every_reader_of_the_package_is_in_this_registry(tmp_path):
    assert list(modules())
    base = BASES["numbers"]
    files = {type(open_tables([make(base, base, tmp_path)])[0]) for make in FILES.values()}
    streams = {
        SnapshotTable,
        SpilledTable,
        PassingTable,
        SparkTable,
    }  # batches of an engine that has given each column its type
    assert {kind for kind in subclasses(Table) if not inspect.isabstract(kind)} == files | streams
    read = {type(scan(make(base, base, tmp_path), response="cell")) for make in FILES.values()} | {ArraySource}
    assert subclasses(Source) == read
    known = {"SliceRandomiser", "NumberRandomiser", "ThresholdRandomiser"}
    assert {kind.__name__ for kind in subclasses(Randomiser)} == known


def test_no_module_but_the_readers_opens_a_table():
    calls = re.compile(r"\b(read_csv|open_csv|read_table|ParquetFile|read_parquet|open_file|loadtxt|genfromtxt)\(")
    folder = Path(sfumato.__file__).parent
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if calls.search(path.read_text())}
    assert {path for path in found if not path.startswith("sources/")} <= PUBLIC_FILES


PUBLIC_FILES = {"datasets.py", "cli/start.py", "research/real_data.py"}
"""Modules that read files of the package itself, or the public data of a paper."""
