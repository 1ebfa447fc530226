"""The built-in data are complete, small and described, and their bounds are not read from them."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sfumato import datasets
from sfumato.errors import InputError
from sfumato.methods.reference import SIR

LOADERS = {
    "flights": datasets.load_flights,
    "pendigits": datasets.load_pendigits,
    "wine": datasets.load_wine,
}
NUMERIC = [
    (name, column) for name in datasets.names() for column in datasets.domain(name) if column not in ("red", "test")
]


def test_every_data_set_has_a_loader_a_file_and_a_description():
    assert set(datasets.names()) == set(LOADERS)
    described = (datasets.path("wine").parent / "README.md").read_text()
    for name, load in LOADERS.items():
        assert isinstance(load(), pa.Table)
        assert load().equals(pq.read_table(datasets.path(name)))
        assert f"`{name}.parquet`" in described


@pytest.mark.parametrize(
    ("name", "rows", "columns"), [("flights", 50_000, 9), ("wine", 6497, 13), ("pendigits", 10_992, 18)]
)
def test_the_tables_have_their_known_size_and_no_gaps(name, rows, columns):
    table = LOADERS[name]()
    assert (table.num_rows, table.num_columns) == (rows, columns)
    assert sum(column.null_count for column in table.columns) == 0
    assert datasets.path(name).stat().st_size < 900_000


def test_the_parts_have_their_published_sizes():
    wine, digits, flights = datasets.load_wine(), datasets.load_pendigits(), datasets.load_flights()
    assert pc.sum(wine["red"]).as_py() == 1599
    assert pc.sum(digits["test"]).as_py() == 3498
    assert sorted(digits["digit"].unique().to_pylist()) == list(range(10))
    assert len(flights["carrier"].unique()) == 16


def test_small_numbers_are_stored_small():
    widths = {field.type.bit_width for field in datasets.load_pendigits().schema if field.name != "test"}
    assert widths == {8}
    assert {str(field.type) for field in datasets.load_flights().schema} == {"int8", "int16", "string"}


def test_every_numeric_column_has_public_bounds():
    for name, load in LOADERS.items():
        numeric = [f.name for f in load().schema if not pa.types.is_string(f.type)]
        assert list(datasets.domain(name)) == numeric
        assert all(lower < upper for lower, upper in datasets.domain(name).values())


@pytest.mark.parametrize(("name", "column"), NUMERIC)
def test_the_bounds_fit_the_column_without_being_read_from_it(name, column):
    values = LOADERS[name]()[column].to_numpy().astype(float)
    lower, upper = datasets.domain(name)[column]
    outside = np.mean((values < lower) | (values > upper))
    assert outside < 0.015  # delays of more than three hours: 1.2 % of departures
    spread = (upper - lower) / values.std()
    assert spread < 25  # bounds much wider than the data would drown a private estimate in noise
    if name == "wine":
        assert (lower, upper) != (values.min(), values.max())


def test_bounds_handed_out_cannot_change_the_stored_ones():
    datasets.domain("wine")["pH"] = (0, 14)
    assert datasets.domain("wine")["pH"] == (2.7, 4.2)


def test_arrival_delay_is_late_departure_plus_long_flight_for_the_distance():
    table = datasets.load_flights()
    x = np.column_stack([table[c].to_numpy() for c in ("dep_delay", "air_time", "distance", "day")])
    late, long, far, day = SIR(1).fit(x, table["arr_delay"].to_numpy()).directions_[0]
    assert 0.3 < long / late < 1.2
    assert far / long == pytest.approx(-0.12, abs=0.03)  # an aircraft needs 0.12 minutes per mile (500 mph)
    assert abs(day / late) < 0.1


@pytest.mark.parametrize("ask", [datasets.path, datasets.domain])
def test_an_unknown_name_is_refused_with_the_known_ones(ask):
    with pytest.raises(InputError, match="name must be one of 'flights', 'pendigits', 'wine', got 'iris'"):
        ask("iris")
