"""FileSource: the records of one or several files, of which as much is kept between passes as memory allows."""

import copy
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Key, keys_of, name, position
from sfumato.errors import InputError
from sfumato.people import MISSING_ID, Tally, keys
from sfumato.records import Kept, Memory, Records, Response, is_finite
from sfumato.sources.base import MEMORY, Source, chunk_rows, kept_bytes
from sfumato.sources.columns import CONVERT, Columns, check_declared, encode_cells, missing, numbers
from sfumato.sources.formats import open_tables
from sfumato.sources.locations import FilePath, file_of, stamp
from sfumato.sources.names import choose_columns, suggest
from sfumato.sources.responses import ResponseKind, bucket, declared_response
from sfumato.sources.table import Kind, Table
from sfumato.typing import FloatArray, IntArray

Array = TypeVar("Array", bound=NDArray[Any])
_IDS = 2**16
"""Ids that are looked at together."""


class Place(NamedTuple):
    """A part of a file: the same records in every process that opens the same files.

    `table` is the number of the file, `part` that of its row group or batch. A `chunk` of it is for this process alone.
    """

    table: int
    part: int
    chunk: int | None = None


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
        The features of a second table: the other side of a canonical pair, or several responses.
    response_kind : {"numeric", "categorical"}, optional
        What the response is. None: what its column is, in all files alike; in a CSV file, which has no types, its
        cells must then be numbers alone, or texts that are no numbers.
    person : str, optional
        Column that says whose row it is. Which rows of a person count (`first_rows`) is settled before incomplete ones
        are skipped.
    memory : int
        Bytes that the process may take. The first pass decodes everything and checks it. Later ones decode only the
        columns that a question touches, and nothing of what was kept: all features if they fit, else the responses and
        what questions have in common (the whitened integers), as far as there is room.

    Attributes
    ----------
    recipe : dict
        How another process opens the same source (`open_recipe`), as plain JSON data: public values only.
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
        memory: int = MEMORY,
    ) -> None:
        self.recipe: dict[str, Any] = {}
        self._memory = Memory(kept_bytes(memory))
        self._known: dict[tuple[Any, ...], _Known] = {}
        self._tables, self.columns, self.second, self._drop = tuple(tables), columns, second, drop_missing
        self._all = columns if second is None else columns.beside(second)
        self._response, self._classes = response, None if classes is None else tuple(classes)
        self._response_kind = response_kind
        self._person, self.has_people = person, person is not None
        self._counted: dict[tuple[Any, ...], NDArray[np.uint8]] | None = None
        for table in self._tables:
            self._all.check(table)
            if person is not None:
                _check_person(table, person)
        self.has_response, self.response = response is not None, self._declared()
        if classes is not None:
            self.classes = tuple(name(key) for key in keys_of(classes, "classes"))
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
            raise InputError(f"response: column {response!r} is neither numbers nor text; {CONVERT}")
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

    @cached_property
    def columns_read(self) -> list[str]:
        """The columns of the files that records are made of."""
        response = () if self._response is None else (self._response,)
        return list(dict.fromkeys((*self._all.features, *response)))

    def parts(self) -> list[Place]:
        return [Place(i, part) for i, table in enumerate(self._tables) for part in range(table.parts())]

    def split(self, parts: Sequence[Any]) -> list[Any]:
        return [piece for part in parts for piece in self._pieces(Place(*part))]

    def _pieces(self, place: Place) -> list[Place]:
        """The chunks of a part that is in memory: threads may share them."""
        known = self._known.get(place[:2])
        if known is None or not known.holds_x or place.chunk is not None:
            return [place]
        return [place._replace(chunk=k) for k in range(len(known.chunks))]

    def read(self, part: Any) -> Iterator[Records]:
        place = Place(*part)
        known = self._known.get(place[:2])
        if known is None:
            known = yield from self._read_first(place)
            self._known[place[:2]] = known
        else:
            yield from self._read_again(place, known)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the files itself: what was read of them stays here."""
        if "paths" not in self.recipe:
            raise InputError("data: a table that is read once cannot be sent to another process; write it to a file.")
        return open_recipe, (self.recipe,)

    def count(self) -> int:
        if self._counted is not None and not self._drop:
            return sum(int(np.unpackbits(packed).sum()) for packed in self._counted.values())
        return self._rows

    def first_rows(self, rows: int) -> Source:
        if self._person is None:
            return super().first_rows(rows)
        tally, other = Tally(rows), copy.copy(self)
        other.recipe = self.recipe | {"rows_per_person": rows}
        other._known = {}  # what was read so far has all rows
        other._counted = {place[:2]: np.packbits(self._first(tally, place)) for place in self.parts()}
        return other

    def _first(self, tally: Tally, place: Place) -> NDArray[np.bool_]:
        """Which rows of a part count, in one pass over the ids."""
        found, person = [], self._person or ""
        for batch in self._tables[place.table].batches(place.part, [person], _IDS, {person: "text"}):
            cells = batch.column(0)
            cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
            if cells.null_count or cells.dictionary.null_count:
                raise InputError(f"person: column {self._person!r} {MISSING_ID}")
            index = np.asarray(cells.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
            found.append(tally.first(keys(cells.dictionary.to_pylist(), f"person: column {self._person!r}"), index))
        return np.concatenate(found) if found else np.zeros(0, dtype=bool)

    @cached_property
    def _rows(self) -> int:
        return sum(table.count() for table in self._tables)

    @cached_property
    def _fits(self) -> bool:
        """Whether all features may stay in memory, beside their whitened integers."""
        return 1.5 * sum(table.size(self.n_features + 1) for table in self._tables) <= self._memory.limit

    def _read_first(self, place: Place) -> Generator[Records, None, "_Known"]:
        """All columns at once, every value checked; what the next pass needs is remembered."""
        table, row = self._tables[place.table], 0
        known = _Known(self._memory, stamp(table.path))
        counted = None if self._counted is None else np.unpackbits(self._counted[place[:2]]).astype(bool)
        for batch in table.batches(place.part, self.columns_read, chunk_rows(self.n_features), self._kinds):
            x = self._all.encode(batch)
            y, complete = self._responses(batch, table)
            if not (complete.all() and is_finite(x)):
                complete &= np.isfinite(x).all(axis=1)
                if not complete.all() and not self._drop:
                    raise InputError(self._complaint(x))
            if counted is not None:
                complete &= counted[row : row + len(x)]
            rows = _RowRange(row, len(x), None if complete.all() else np.packbits(complete))
            row += len(x)
            if complete.any():
                x, y = rows.of(x), rows.of(y)
                yield Records(x, y, known.add(rows, x if self._fits else None, y if self.has_response else None))
        return known

    def _read_again(self, place: Place, known: "_Known") -> Iterator[Records]:
        """Only what is touched: y if it was not kept, x if a question is about it."""
        table = self._tables[place.table]
        features, responses = (
            _Stream(table, known.stamp, place.part, columns, chunk_rows(self.n_features), self._kinds)
            for columns in (self._all.features, [self._response or ""])
        )
        for chunk in known.chunks if place.chunk is None else [known.chunks[place.chunk]]:
            y: FloatArray | IntArray
            if chunk.y is not None:
                y = chunk.y
            elif self.has_response:
                y, _ = self._responses(responses.rows(chunk.rows), table)
                y = chunk.rows.of(y)
            else:
                y = np.zeros(chunk.rows.count())
            yield Records(partial(self._features, features, chunk) if chunk.x is None else chunk.x, y, chunk.kept)

    def _features(self, stream: "_Stream", chunk: "_Chunk") -> FloatArray:
        x = chunk.rows.of(self._all.encode(stream.rows(chunk.rows)))
        if not is_finite(x):
            raise InputError(stream.changed)
        return x

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


@dataclass(frozen=True, slots=True)
class _RowRange:
    """Rows of a part, `begin` and how many, and which of them count: all, or those of the packed bits."""

    begin: int
    length: int
    counted: NDArray[np.uint8] | None

    def of(self, values: Array) -> Array:
        """The values of the rows that count."""
        if self.counted is None:
            return values
        return cast(Array, values[np.unpackbits(self.counted, count=self.length).astype(bool)])

    def count(self) -> int:
        """How many rows count."""
        return self.length if self.counted is None else int(np.unpackbits(self.counted, count=self.length).sum())


class _Chunk(NamedTuple):
    """A chunk of records: where it is, and what was kept of it."""

    rows: _RowRange
    x: FloatArray | None
    y: FloatArray | IntArray | None
    kept: Kept


class _Known:
    """What is known of a part that was read once."""

    def __init__(self, memory: Memory, stamp: object) -> None:
        self._memory, self.stamp = memory, stamp
        self.chunks: list[_Chunk] = []

    @property
    def holds_x(self) -> bool:
        """Whether the features of all chunks were kept."""
        return all(chunk.x is not None for chunk in self.chunks)

    def add(self, rows: _RowRange, x: FloatArray | None, y: FloatArray | IntArray | None) -> Kept:
        """Remember a chunk, with as much of it as there is room for."""
        y = y if y is not None and self._memory.claim(self, y.nbytes) else None
        x = x if x is not None and self._memory.claim(self, x.nbytes) else None
        self.chunks.append(_Chunk(rows, x, y, Kept(self._memory)))
        return self.chunks[-1].kept


class _Stream:
    """Some columns of a part, opened when first asked for, handed out row by row.

    Where the batches of a file end may depend on the columns that are read, so rows are counted. A file that is no
    longer what it was when it was first read is refused.
    """

    def __init__(self, table: Table, stamp: object, *wanted: Any) -> None:
        self.changed = f"data: {table.path} changed while it was read; fit a copy that does not change."
        self._path, self._stamp, self._open = table.path, stamp, partial(table.batches, *wanted)
        self._batches: Iterator[Any] | None = None
        self._row = 0
        self._rest: Any = None

    def rows(self, wanted: _RowRange) -> Any:
        """The rows as one batch; later ones than those before."""
        self._take(wanted.begin - self._row)
        found = self._take(wanted.length)
        if sum(batch.num_rows for batch in found) < wanted.length:
            raise InputError(self.changed)
        return found[0] if len(found) == 1 else pa.Table.from_batches(found).combine_chunks().to_batches()[0]

    def _take(self, count: int) -> list[Any]:
        if self._batches is None:
            if stamp(self._path) != self._stamp:
                raise InputError(self.changed)
            self._batches = self._open()
        found = []
        while count > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                break
            found.append(batch.slice(0, count))
            self._rest = batch.slice(count) if batch.num_rows > count else None
            count -= found[-1].num_rows
            self._row += found[-1].num_rows
        return found


def open_source(paths: Sequence[FilePath], *columns: Any, decimal: str = ".", **options: Any) -> FileSource:
    """Records of files of any known format (`open_tables`); `columns` and `options` are those of `source_of`."""
    source = source_of(open_tables(paths, decimal), *columns, **options)
    source.recipe |= {"paths": [str(path.absolute()) for path in paths], "decimal": decimal}
    return source


def source_of(
    tables: Sequence[Table],
    response: str | None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categorical: Mapping[str, Sequence[Any]] | None = None,
    *,
    drop_missing: bool = False,
    second: Sequence[str] = (),
    response_kind: ResponseKind | None = None,
    person: str | None = None,
    memory: int = MEMORY,
) -> FileSource:
    """Records of tables with the same columns; see `FileSource`. A feature may be a pattern, such as ``lab_*``."""
    chosen, other = choose_columns(tables[0].names, response, features, second, person)
    both = Columns((*chosen, *other), {name: tuple(values) for name, values in (categorical or {}).items()})
    source = FileSource(
        tables,
        both.only(chosen),
        response,
        classes,
        drop_missing=drop_missing,
        second=both.only(other) if other else None,
        response_kind=response_kind,
        person=person,
        memory=memory,
    )
    source.recipe = {
        "response": response,
        "features": chosen,
        "classes": None if classes is None else list(keys_of(classes, "classes")),
        "categorical": {name: list(keys_of(values, "categorical")) for name, values in both.categorical.items()},
        "drop_missing": drop_missing,
        "second": other,
        "response_kind": response_kind,
        "person": person,
        "memory": memory,
    }
    return source


def open_recipe(recipe: Mapping[str, Any]) -> Source:
    """The source of `FileSource.recipe`, in whichever process: the same records in the same parts."""
    wanted = dict(recipe)
    rows = wanted.pop("rows_per_person", None)
    source = open_source([file_of(name) for name in wanted.pop("paths")], **wanted)
    return source if rows is None else source.first_rows(rows)


def _check_person(table: Table, person: str) -> None:
    suggest(person, table.names, "person")
    if table.has_types and table.kind(person) == "other":  # of a file without types they are read as text
        raise InputError(f"person: column {person!r} is neither numbers nor text; {CONVERT}")
