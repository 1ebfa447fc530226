"""Tables: numpy arrays, pandas, polars and Arrow tables as plain arrays.

No message here repeats a cell of the table: a conversion error that quotes the offending value, as numpy's own
do, would publish it.
"""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.records import Response
from sfumato.sources import declared_response, encode_response
from sfumato.typing import FloatArray, IntArray


def features_to_array(table: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Feature table as float64 array, with its column names (None for plain arrays, which pass unchanged)."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return table, None
    columns = [_numbers(frame[name], name) for name in frame.columns]
    x = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    return np.ascontiguousarray(x), tuple(str(name) for name in frame.columns)


def response_to_array(y: Any, classes: Sequence[Any] | None) -> tuple[FloatArray | IntArray, Response]:
    """Response as numbers or category codes, and what is public about it.

    Numbers and booleans are numeric unless `classes` declares them to be categories; anything else is text.
    """
    series = nw.from_native(y, series_only=True, pass_through=True)
    raw: NDArray[Any] = series.to_numpy() if isinstance(series, nw.Series) else np.asarray(y)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1:
        raise InputError("y must be one column; give a 1-d array of responses.")
    if raw.dtype.kind == "c":
        raise InputError("y must be real; Complex data not supported.")
    if raw.dtype == object:
        raw = _settle(raw)
    numeric = raw.dtype.kind in "biuf"
    response = declared_response(numeric, classes)
    encoded = encode_response(raw, response, classes)
    if not np.isfinite(encoded).all():
        raise InputError("y has missing or infinite values (NaN or inf); drop or impute them first.")
    return encoded, response


def _settle(raw: NDArray[Any]) -> NDArray[Any]:
    """An object column as numbers if all its cells are, else as text; missing cells are refused."""
    if any(value is None or (isinstance(value, float) and value != value) for value in raw):
        raise InputError("y has missing or infinite values (NaN or inf); drop or impute them first.")
    if all(isinstance(value, (bool, int, float, np.number, np.bool_)) for value in raw):
        return raw.astype(np.float64)
    return raw.astype(str)


def _numbers(column: Any, name: str) -> FloatArray:
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(f"x: column {name!r} is not numeric; encode it or leave it out.")
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"x: column {name!r} has missing values; drop or impute them first.") from None
