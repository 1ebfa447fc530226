"""FileSource: the records of one or several files, held in memory if they are few."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.files.columns import Columns, codes, missing, numbers, plain, typed
from sfumato.files.formats import open_tables
from sfumato.files.names import expand, suggest
from sfumato.files.table import Table
from sfumato.records import Records, Response
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
    response : str or None
        Name of the response column; None where there is none, as for principal components.
    classes : sequence, optional
        Public list of the categories of the response.
    drop_missing : bool
        Skip records with a missing or infinite value instead of refusing the table. A skipped record adds
        nothing to any sum, so each record still moves a sum by no more than its bound. The number of complete
        records is private: fit with ``relation="add-remove"``, which never uses it. `count` tells the number
        of all rows, so that even ``relation="replace"`` stays private, though its means are then too small.
    second : Columns, optional
        The features of a second table: the other side of a canonical pair.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        columns: Columns,
        response: str | None,
        classes: Sequence[Any] | None = None,
        *,
        drop_missing: bool = False,
        second: Columns | None = None,
    ) -> None:
        self._tables, self.columns, self.second, self._drop = tuple(tables), columns, second, drop_missing
        self._all = columns if second is None else columns.beside(second)
        self._response, self._classes = response, None if classes is None else tuple(map(str, classes))
        for table in self._tables:
            self._all.check(table)
        self.has_response, self.response = response is not None, self._declared()
        self.feature_names = self._all.names
        self.binary = self._all.binary(self._tables)
        self.n_features, self.n_second = len(self._all.names), 0 if second is None else len(second.names)

    def _declared(self) -> Response:
        """What is public about the response: its kind, the same in all files, and its classes."""
        response = self._response
        if response is None:
            return Response()
        for table in self._tables:
            _check_response(table, response, self._classes)
        numeric = {table.kind(response) in ("number", "truth") for table in self._tables}
        if len(numeric) > 1:
            raise InputError(f"response: column {response!r} is numeric in some files only; mend the others.")
        return declared_response(numeric.pop(), self._classes)

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
        response = () if self._response is None else (self._response,)
        wanted = list(dict.fromkeys((*self._all.features, *response)))
        for batch in table.batches(part, wanted, chunk_rows(self.n_features)):
            x = self._all.encode(batch, table)
            y, complete = self._responses(batch, table)
            complete &= np.isfinite(x).all(axis=1)
            if complete.all():
                yield Records(x, y)
            elif not self._drop:
                raise InputError(self._complaint(x))
            elif complete.any():
                yield Records(x[complete], y[complete])

    def _responses(self, batch: Any, table: Table) -> tuple[FloatArray | IntArray, NDArray[np.bool_]]:
        """The responses of a batch, and where there is one; zeros where the table has none."""
        if self._response is None:
            return np.zeros(batch.num_rows), np.ones(batch.num_rows, dtype=bool)
        cells = batch.column(self._response)
        y = self._encode(cells, table, self._response)
        return y, np.asarray(~missing(cells) & np.isfinite(y))

    def _encode(self, cells: Any, table: Table, name: str) -> FloatArray | IntArray:
        if self._classes is not None:
            return codes(cells, typed(self._classes, table.kind(name), "classes", name))
        if self.response.categories is None:
            return numbers(cells)
        return encode_response(plain(cells).to_numpy(zero_copy_only=False), self.response, None)

    def _complaint(self, x: FloatArray) -> str:
        lacking = np.flatnonzero(~np.isfinite(x).all(axis=0))
        name = self._all.names[lacking[0]] if len(lacking) else self._response
        return f"data: column {name!r} has missing or infinite values; impute them, or drop such rows (--drop-missing)."


def open_source(
    paths: Sequence[Path],
    response: str | None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categorical: Mapping[str, Sequence[str]] | None = None,
    *,
    drop_missing: bool = False,
    second: Sequence[str] = (),
) -> FileSource:
    """Records of files of any known format; see `FileSource`. A feature may be a pattern, such as ``lab_*``."""
    tables = open_tables(paths)
    names = tables[0].names
    if response is not None:
        suggest(response, names, "response")
    other = tuple(expand(second, names, "second"))
    rest = [name for name in names if name != response and name not in other]
    chosen = rest if features is None else expand(features, names, "features")
    for parameter, named in (("features", chosen), ("second", other)):
        if response in named:
            raise InputError(f"{parameter}: {response!r} is the response; leave it out.")
    twice = [name for name in other if name in chosen]
    if twice:
        raise InputError(f"second: {twice[0]!r} is among the features of the first set too; name it once.")
    both = Columns((*chosen, *other), {name: tuple(values) for name, values in (categorical or {}).items()})
    columns, others = both.only(chosen), both.only(other) if other else None
    return FileSource(tables, columns, response, classes, drop_missing=drop_missing, second=others)


def _check_response(table: Table, response: str, classes: Sequence[str] | None) -> None:
    suggest(response, table.names, "response")
    if table.kind(response) == "other":
        raise InputError(f"response: column {response!r} is neither numbers nor text; convert it.")
    if classes is not None:
        if not classes:
            raise InputError("classes: name at least one category.")
        typed(classes, table.kind(response), "classes", response)
