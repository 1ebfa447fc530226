"""One file as many sites, for a first try."""

from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.files.names import suggest


def by_column(path: str, column: str, response: str) -> dict[str, tuple[Any, Any]]:
    """The records of a file as sites ``name -> (X, y)``: one for each value of `column`."""
    table = _read(path)
    for name, option in ((column, "by"), (response, "response")):
        suggest(name, table.schema.names, option)
    labels = np.asarray(table.column(column).to_pylist(), dtype=object).astype(str)
    rest = table.drop_columns([column])
    features = rest.drop_columns([response])
    sites = {}
    for label in sorted(set(labels.tolist())):
        rows = np.flatnonzero(labels == label)
        sites[label] = (features.take(rows), np.asarray(rest.column(response).take(rows).to_pylist()))
    return sites


def _read(path: str) -> Any:
    try:
        if path.lower().endswith((".csv", ".csv.gz", ".tsv")):
            from pyarrow import csv

            return csv.read_csv(path)
        if path.lower().endswith((".arrow", ".feather")):
            from pyarrow import feather

            return feather.read_table(path)
        from pyarrow import parquet

        return parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a readable CSV, Parquet or Arrow file.") from error
