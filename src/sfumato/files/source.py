"""FileSource: the records of one or several files, held in memory if they are few."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.files.columns import Columns, codes, missing, numbers, plain, typed
from sfumato.files.formats import open_tables
from sfumato.files.names import suggest
from sfumato.files.table import Table
from sfumato.records import Records
from sfumato.sources import Source, chunk_rows, declared_response, encode_response
from sfumato.typing import FloatArray, IntArray

HOLD_BYTES = 2**28
"""Tables up to this size are read once and kept; larger ones are read anew on every pass."""


class FileSource(Source):
    """Records of files with the same columns.

    Parameters
    ----------
    tables : sequence of Table
        The files.
    columns : Columns
        The features.
    response : str
        Name of the response column.
    classes : sequence, optional
        Public list of the categories of the response.
    drop_missing : bool
        Skip records with a missing or infinite value instead of refusing the table. A skipped record adds
        nothing to any sum, so each record still moves a sum by no more than its bound. The number of complete
        records is private: fit with ``relation="add-remove"``, which never uses it. `count` tells the number
        of all rows, so that even ``relation="replace"`` stays private, though its means are then too small.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        columns: Columns,
        response: str,
        classes: Sequence[Any] | None = None,
        *,
        drop_missing: bool = False,
    ) -> None:
        self._tables, self.columns, self._drop = tuple(tables), columns, drop_missing
        self._response, self._classes = response, None if classes is None else tuple(map(str, classes))
        for table in self._tables:
            columns.check(table)
            _check_response(table, response, self._classes)
        if len({table.kind(response) in ("number", "truth") for table in self._tables}) > 1:
            raise InputError(f"response: column {response!r} is numeric in some files only; mend the others.")
        self.response = declared_response(self._tables[0].kind(response) in ("number", "truth"), self._classes)
        self.feature_names = columns.names
        self.n_features = len(columns.names)

    @property
    def table_names(self) -> list[str]:
        """All columns of the files, features or not."""
        return self._tables[0].names

    def parts(self) -> list[int]:
        return list(range(len(self._kept if self._kept is not None else self._places)))

    def read(self, part: int) -> Iterator[Records]:
        if self._kept is not None:
            yield self._kept[part]
        else:
            yield from self._read(*self._places[part])

    def count(self) -> int:
        return self._rows

    @cached_property
    def _rows(self) -> int:
        if self._kept is not None and not self._drop:
            return sum(map(len, self._kept))
        return sum(table.count() for table in self._tables)

    @cached_property
    def _places(self) -> list[tuple[Table, int]]:
        return [(table, part) for table in self._tables for part in range(table.parts())]

    @cached_property
    def _kept(self) -> list[Records] | None:
        if sum(table.size(self.n_features + 1) for table in self._tables) > HOLD_BYTES:
            return None
        return [records for place in self._places for records in self._read(*place)]

    def _read(self, table: Table, part: int) -> Iterator[Records]:
        wanted = list(dict.fromkeys((*self.columns.features, self._response)))
        for batch in table.batches(part, wanted, chunk_rows(self.n_features)):
            x = self.columns.encode(batch, table)
            cells = batch.column(self._response)
            complete = np.isfinite(x).all(axis=1) & ~missing(cells)
            y = self._encode(cells, table)
            complete &= np.isfinite(y)
            if complete.all():
                yield Records(x, y)
            elif not self._drop:
                raise InputError(self._complaint(x))
            elif complete.any():
                yield Records(x[complete], y[complete])

    def _encode(self, cells: Any, table: Table) -> FloatArray | IntArray:
        if self._classes is not None:
            return codes(cells, typed(self._classes, table.kind(self._response), "classes", self._response))
        if self.response.categories is None:
            return numbers(cells)
        return encode_response(plain(cells).to_numpy(zero_copy_only=False), self.response, None)

    def _complaint(self, x: FloatArray) -> str:
        lacking = np.flatnonzero(~np.isfinite(x).all(axis=0))
        name = self.columns.names[lacking[0]] if len(lacking) else self._response
        return f"data: column {name!r} has missing or infinite values; impute them, or drop such rows (--drop-missing)."


def open_source(
    paths: Sequence[Path],
    response: str,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categorical: Mapping[str, Sequence[str]] | None = None,
    *,
    drop_missing: bool = False,
) -> FileSource:
    """Records of files of any known format; see `FileSource`."""
    tables = open_tables(paths)
    suggest(response, tables[0].names, "response")
    chosen = features if features is not None else [name for name in tables[0].names if name != response]
    if response in chosen:
        raise InputError(f"features: {response!r} is the response; leave it out.")
    declared = {name: tuple(values) for name, values in (categorical or {}).items()}
    return FileSource(tables, Columns(tuple(chosen), declared), response, classes, drop_missing=drop_missing)


def _check_response(table: Table, response: str, classes: Sequence[str] | None) -> None:
    suggest(response, table.names, "response")
    if table.kind(response) == "other":
        raise InputError(f"response: column {response!r} is neither numbers nor text; convert it.")
    if classes is not None:
        if not classes:
            raise InputError("classes: name at least one category.")
        typed(classes, table.kind(response), "classes", response)
