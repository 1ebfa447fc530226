"""FileSource: the records of one or several files, held in memory if they are few."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Key, keys_of, name, position
from sfumato.errors import InputError
from sfumato.files.columns import Columns, check_declared, encode_cells, missing, numbers
from sfumato.files.formats import open_tables
from sfumato.files.names import expand, suggest
from sfumato.files.table import Kind, Table
from sfumato.people import MISSING_ID, Tally, keys
from sfumato.records import Records, Response
from sfumato.sources import ResponseKind, Source, bucket, chunk_rows, declared_response
from sfumato.typing import FloatArray, IntArray

_IDS = 2**16
"""Ids that are looked at together."""
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
    response_kind : {"numeric", "categorical"}, optional
        What the response is. None: what its column is, in all files alike; in a CSV file, which has no types, its
        cells must then be numbers alone, or texts that are no numbers.
    person : str, optional
        Column that says whose row it is. Which rows of a person count (`first_rows`) is settled before incomplete ones
        are skipped.
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
        response_kind: ResponseKind | None = None,
        person: str | None = None,
    ) -> None:
        self._tables, self.columns, self.second, self._drop = tuple(tables), columns, second, drop_missing
        self._all = columns if second is None else columns.beside(second)
        self._response, self._classes = response, None if classes is None else tuple(classes)
        self._response_kind = response_kind
        self._person, self.has_people = person, person is not None
        self._counted: list[NDArray[np.uint8]] | None = None
        for table in self._tables:
            self._all.check(table)
            if person is not None:
                _check_person(table, person)
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
            suggest(response, table.names, "response")
            self._check_response(table, response)
        if self._response_kind is not None or self._classes is not None:
            return declared_response(self._response_kind == "numeric", self._classes, self._response_kind)
        numeric = {table.kind(response) in ("number", "truth") for table in self._tables}
        if len(numeric) > 1:
            raise InputError(f"response: column {response!r} is numeric in some files only; mend the others.")
        return declared_response(numeric.pop(), None)

    def _check_response(self, table: Table, response: str) -> None:
        """Refuse a column whose type is not what was declared; a file without types has none to refuse."""
        declared = self._response_kind is not None or self._classes is not None
        kind = "text" if declared and not table.has_types else table.kind(response)
        if kind == "other":
            raise InputError(f"response: column {response!r} is neither numbers nor text; convert it.")
        if table.has_types and kind == "text" and self._response_kind == "numeric":
            raise InputError(f"response_kind is 'numeric', but column {response!r} holds text; convert it first.")
        if self._classes is not None:
            if not self._classes:
                raise InputError("classes: name at least one category.")
            check_declared(self._classes, table, "classes", response)

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
            yield from self._read(part)

    def count(self) -> int:
        return self._rows

    def first_rows(self, rows: int) -> Source:
        if self._person is None:
            return super().first_rows(rows)
        tally, other = Tally(rows), copy.copy(self)
        for lazy in ("_kept", "_rows"):  # what was read so far has all rows
            vars(other).pop(lazy, None)
        other._counted = [np.packbits(self._first(tally, *place)) for place in self._places]
        return other

    def _first(self, tally: Tally, table: Table, part: int) -> NDArray[np.bool_]:
        """Which rows of a part count, in one pass over the ids."""
        found, person = [], self._person or ""
        for batch in table.batches(part, [person], _IDS, {person: "text"}):
            cells = batch.column(0)
            cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
            if cells.null_count or cells.dictionary.null_count:
                raise InputError(f"person: column {self._person!r} {MISSING_ID}")
            index = np.asarray(cells.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
            found.append(tally.first(keys(cells.dictionary.to_pylist(), f"person: column {self._person!r}"), index))
        return np.concatenate(found) if found else np.zeros(0, dtype=bool)

    @cached_property
    def _rows(self) -> int:
        if self._kept is not None and not self._drop:  # of which the first of each person, after `first_rows`
            return sum(map(len, self._kept))
        return sum(table.count() for table in self._tables)

    @cached_property
    def _places(self) -> list[tuple[Table, int]]:
        return [(table, part) for table in self._tables for part in range(table.parts())]

    @cached_property
    def _kept(self) -> list[Records] | None:
        if sum(table.size(self.n_features + 1) for table in self._tables) > HOLD_BYTES:
            return None
        return [records for part in range(len(self._places)) for records in self._read(part)]

    def _read(self, place: int) -> Iterator[Records]:
        (table, part), row = self._places[place], 0
        counted = None if self._counted is None else np.unpackbits(self._counted[place]).astype(bool)
        response = () if self._response is None else (self._response,)
        wanted = list(dict.fromkeys((*self._all.features, *response)))
        for batch in table.batches(part, wanted, chunk_rows(self.n_features), self._kinds):
            x = self._all.encode(batch)
            y, complete = self._responses(batch, table)
            complete &= np.isfinite(x).all(axis=1)
            if not complete.all() and not self._drop:
                raise InputError(self._complaint(x))
            if counted is not None:
                complete &= counted[row : row + len(x)]
                row += len(x)
            if complete.all():
                yield Records(x, y)
            elif complete.any():
                yield Records(x[complete], y[complete])

    def _responses(self, batch: Any, table: Table) -> tuple[FloatArray | IntArray, NDArray[np.bool_]]:
        """The responses of a batch, and where there is one; zeros where the table has none."""
        if self._response is None:
            return np.zeros(batch.num_rows), np.ones(batch.num_rows, dtype=bool)
        cells = batch.column(self._response)
        y = self._encode(cells, table)
        return y, np.asarray(~missing(cells) & np.isfinite(y))

    def _encode(self, cells: Any, table: Table) -> FloatArray | IntArray:
        if self.response.categories is None:
            return numbers(cells)
        if self._classes is not None:
            return encode_cells(cells, position(keys_of(self._classes, "classes")))
        if table.has_types or self._response_kind is not None:
            return encode_cells(cells, lambda key: bucket(name(key)))
        return encode_cells(cells, self._bucket_of_text)

    def _bucket_of_text(self, key: Key) -> int:
        """The bucket of a text; a number was taken for text on account of other cells, which must not be."""
        if isinstance(key, float):
            raise InputError(
                f"response: column {self._response!r} has cells of mixed kind, some numbers and some text; declare its "
                "classes or its kind (response_kind='categorical'), or mend it."
            )
        return bucket(key)

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        """What columns of declared categories, or of a declared kind, are read as in a file without types."""
        if self._response is None or (self._response_kind is None and self._classes is None):
            return self._all.kinds
        return {**self._all.kinds, self._response: "number" if self._response_kind == "numeric" else "text"}

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
    response_kind: ResponseKind | None = None,
    person: str | None = None,
) -> FileSource:
    """Records of files of any known format; see `FileSource`. A feature may be a pattern, such as ``lab_*``."""
    tables = open_tables(paths)
    names = tables[0].names
    if response is not None:
        suggest(response, names, "response")
    if person is not None:
        suggest(person, names, "person")
    other = tuple(expand(second, names, "second"))
    rest = [name for name in names if name not in (response, person, *other)]
    chosen = rest if features is None else expand(features, names, "features")
    for parameter, named in (("features", chosen), ("second", other)):
        if response in named:
            raise InputError(f"{parameter}: {response!r} is the response; leave it out.")
        if person in named:
            raise InputError(f"{parameter}: {person!r} says whose row it is; leave it out.")
    if person is not None and person == response:
        raise InputError(f"person: {person!r} is the response; leave one of them out.")
    twice = [name for name in other if name in chosen]
    if twice:
        raise InputError(f"second: {twice[0]!r} is among the features of the first set too; name it once.")
    both = Columns((*chosen, *other), {name: tuple(values) for name, values in (categorical or {}).items()})
    columns, others = both.only(chosen), both.only(other) if other else None
    return FileSource(
        tables,
        columns,
        response,
        classes,
        drop_missing=drop_missing,
        second=others,
        response_kind=response_kind,
        person=person,
    )


def _check_person(table: Table, person: str) -> None:
    suggest(person, table.names, "person")
    if table.has_types and table.kind(person) == "other":  # of a file without types they are read as text
        raise InputError(f"person: column {person!r} is neither numbers nor text; convert it.")
