"""Tables in memory: numpy arrays, pandas, polars and Arrow tables as plain arrays, and records in chunks of them.

No message here repeats a cell of the table: a conversion error that quotes the offending value, as numpy's own
do, would publish it.
"""

import copy
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sfumato import cells, people
from sfumato.errors import InputError
from sfumato.records import Records, Response, is_finite
from sfumato.sources.base import ResponseKind, Source, chunk_rows, declared_response, encode_response
from sfumato.typing import FloatArray, IntArray


class ArraySource(Source):
    """Records in memory."""

    def __init__(
        self,
        x: FloatArray,
        y: FloatArray | IntArray,
        response: Response,
        names: tuple[str, ...] | None = None,
        *,
        has_response: bool = True,
        n_second: int = 0,
        ids: Any = None,
        binary: tuple[int, ...] = (),
    ) -> None:
        self.response, self.has_response, self.n_second, self.binary = response, has_response, n_second, binary
        self.n_features = x.shape[1]
        self.feature_names = names
        self.has_people, self._ids = ids is not None, ids
        rows = chunk_rows(self.n_features)
        self._chunks = [Records(x[i : i + rows], y[i : i + rows]) for i in range(0, len(x), rows)]

    def parts(self) -> list[int]:
        return list(range(len(self._chunks)))

    def read(self, part: Any) -> Iterator[Records]:
        yield self._chunks[part]

    def count(self) -> int:
        return sum(len(chunk) for chunk in self._chunks)

    def of(self, ids: Any) -> "ArraySource":
        """The same records, each with the id of its person."""
        return self._with(self._chunks, ids)

    def first_rows(self, rows: int) -> Source:
        if self._ids is None:
            return super().first_rows(rows)
        counts, begins = people.first_rows(self._ids, self.count(), rows), 0
        chunks = []
        for chunk in self._chunks:
            mine = counts[begins : begins + len(chunk)]
            begins += len(chunk)
            if mine.any():
                chunks.append(Records(chunk.x[mine], chunk.y[mine]))
        return self._with(chunks, None)

    def _with(self, chunks: list[Records], ids: Any) -> "ArraySource":
        other = copy.copy(self)
        other._chunks, other._ids, other.has_people = chunks, ids, ids is not None
        return other


MISSING_Y = "y has missing or infinite values (NaN, inf, too large for a float); drop or impute them first."

TOO_WIDE = (nw.Int128, nw.UInt128)
"""Types that numpy does not know."""


def features_to_array(table: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Feature table as float64 array, with its column names (None for plain arrays, which pass unchanged)."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    try:
        frame = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError("x has several columns of the same name; rename them.") from None
    if isinstance(frame, nw.LazyFrame):
        raise InputError("x is a lazy table; collect it first, or write Parquet files and scan them.")
    if not isinstance(frame, nw.DataFrame):
        return table, None
    columns = [_numbers(frame.get_column(name), name) for name in frame.columns]
    x = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    return np.ascontiguousarray(x), _column_names(frame.columns)


def binary_columns(table: Any) -> tuple[int, ...]:
    """Positions of the columns that hold true and false, as their type says; of a plain array, all or none."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return tuple(j for j, kind in enumerate(frame.schema.values()) if kind == nw.Boolean)
    kind = getattr(table, "dtype", None)
    return tuple(range(table.shape[1])) if kind == np.bool_ and len(table.shape) == 2 else ()


def response_to_array(
    y: Any, classes: Sequence[Any] | None, response_kind: ResponseKind | None = None
) -> tuple[FloatArray | IntArray, Response]:
    """Response as numbers or category codes, and what is public about it.

    Numbers and booleans are numeric unless `classes` or `response_kind` declare them to be categories; text is
    categories. Which of the two is read off the type of the column, or of every cell of a column of objects; where
    the cells are of both kinds, and nothing is declared, the table is refused.
    """
    raw = _raw(y)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1:
        raise InputError("y must be one column; give a 1-d array of responses.")
    if raw.dtype.kind == "c":
        raise InputError("y must be real; Complex data not supported.")
    kinds = cells.kinds_of(raw)
    if "missing" in kinds or (cells.is_number(raw) and not is_finite(raw)):
        raise InputError(MISSING_Y)
    if len(kinds) > 1 and classes is None and response_kind != "categorical":
        raise InputError(cells.MIXED)
    response = declared_response("text" not in kinds, classes, response_kind)
    return encode_response(raw, response, classes), response


def _column_names(names: Sequence[Any]) -> tuple[str, ...] | None:
    """Names as scikit-learn keeps them: only if all are text; numbered columns have none."""
    are_text = {isinstance(name, str) for name in names}
    if len(are_text) > 1:
        raise InputError("x has column names of which some are text and some are not; make all of them text.")
    return tuple(names) if are_text == {True} else None


def _raw(y: Any) -> NDArray[Any]:
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.dtype in TOO_WIDE:
            raise InputError("y has integers of 128 bits; cast it to 64 bits or to floats.")
        try:
            if series.null_count() > 0:
                raise InputError(MISSING_Y)
            return np.asarray(series.to_numpy())
        except UnicodeDecodeError:  # its text would quote the bytes
            raise InputError(cells.NOT_UTF8) from None
        except ArithmeticError:  # a signalling NaN among decimals
            raise InputError(MISSING_Y) from None
    try:
        return cells.as_cells(y)
    except ValueError:
        raise InputError("y must be one column; give a 1-d array of responses.") from None


def _numbers(column: Any, name: str) -> FloatArray:
    if column.dtype in TOO_WIDE:
        raise InputError(f"x: column {name!r} has integers of 128 bits; cast it to 64 bits or to floats.")
    if column.dtype.is_temporal():
        raise InputError(
            f"x: column {name!r} is not numeric but a date or a duration; make it a number, such as an age in days, or "
            "leave it out."
        )
    if isinstance(column.dtype, nw.Object | nw.Unknown):
        raise InputError(
            f"x: column {name!r} is not numeric (its cells are objects, or of a type of their own); cast it, as by "
            "astype(float), or leave it out."
        )
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(
            f"x: column {name!r} is not numeric; encode it, declare its categories "
            f"(scan(..., categorical={{{name!r}: [...]}})), or leave it out."
        )
    try:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"x: column {name!r} has missing values; drop or impute them first.") from None
