"""FileSource: the records of one or several files, of which as much is kept between passes as memory allows."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Key, keys_of, name, position
from sfumato.errors import InputError
from sfumato.people import MISSING_ID, Tally, keys
from sfumato.records import Kept, Loan, Memory, Records, Response, is_finite
from sfumato.sources.base import ResponseKind, Source, bucket, chunk_rows, declared_response, kept_bytes, working_bytes
from sfumato.sources.columns import CONVERT, Columns, check_declared, encode_cells, missing, numbers
from sfumato.sources.formats import open_tables
from sfumato.sources.names import FilePath, choose_columns, file_of, stamp, suggest
from sfumato.sources.table import Kind, Table
from sfumato.typing import FloatArray, IntArray

Array = TypeVar("Array", bound=NDArray[Any])
_IDS = 2**16
"""Ids that are looked at together."""


class Place(NamedTuple):
    """Consecutive slices of a part of a file: the same records in every process that opens the same files.

    `table` is the number of the file, `part` that of its row group or batch. A slice is `chunk_rows` rows of it; these
    are the `first` to before the `last`, or to the end (None) where the file does not say how many there are.
    """

    table: int
    part: int
    first: int = 0
    last: int | None = None


class FileSource(Source):
    """Records of files with the same columns.

    Parameters
    ----------
    tables : sequence of Table
        The files.
    columns : Columns
        The features.
    response, classes, response_kind, person
        As in `scan`; of several files, the kind of the response is the same in all. Which rows of a person count
        (`first_rows`) is settled before incomplete ones are skipped.
    drop_missing : bool
        Skip records with a missing or infinite value instead of refusing the table. A skipped record adds
        nothing to any sum, so each record still moves a sum by no more than its bound. The number of complete
        records is private: fit with ``relation="add-remove"``, which never uses it. `count` tells the number
        of all rows, so that even ``relation="replace"`` stays private, though its means are then too small.
    second : Columns, optional
        The features of a second table: the other side of a canonical pair, or several responses.
    memory : int, optional
        Bytes that the process may take, `working` ones included. The first pass decodes everything and checks it. Later
        ones decode only the columns that a question touches, and nothing of what was kept: responses, what questions
        have in common (the whitened integers), and as much of the features as there is room for beside them.

    Attributes
    ----------
    working : int
        About how many bytes the process takes if nothing is kept.
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
        memory: int | None = None,
    ) -> None:
        self.recipe: dict[str, Any] = {}
        self._known: dict[tuple[int, int], _Part] = {}
        self._stamps: dict[int, object] = {}
        self._tables, self.columns, self.second, self._drop = tuple(tables), columns, second, drop_missing
        self._all = columns if second is None else columns.beside(second)
        self._response, self._classes = response, None if classes is None else tuple(classes)
        self._response_kind = response_kind
        self._person, self.has_people = person, person is not None
        self._counted: dict[tuple[int, int], NDArray[np.uint8]] | None = None
        for table in self._tables:
            self._all.check(table)
            if person is not None:
                suggest(person, table.names, "person")
                if table.has_types and table.kind(person) == "other":  # of a file without types they are read as text
                    raise InputError(f"person: column {person!r} is neither numbers nor text; {CONVERT}")
        self.has_response, self.response = response is not None, self._declared()
        if classes is not None:
            self.classes = tuple(name(key) for key in keys_of(classes, "classes"))
        self.feature_names = self._all.names
        self.binary = self._all.binary(self._tables)
        self.n_features, self.n_second = len(self._all.names), 0 if second is None else len(second.names)
        decoding = max(table.decoding(len(self.columns_read)) for table in self._tables)
        self.working = working_bytes(decoding) + sum(table.held for table in self._tables)
        self._memory = Memory(kept_bytes(memory, self.working))

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
        whole = (Place(i, part) for i, table in enumerate(self._tables) for part in range(table.parts()))
        return [piece for place in whole for piece in self._slices(place, self._tables[place.table].rows(place.part))]

    def split(self, parts: Sequence[Any], lanes: int) -> Sequence[Sequence[Any]]:
        places = [Place(*part) for part in parts]
        slices = [piece for each in places for piece in self._slices(each, self._part(each).rows)]
        return cut_places(slices, lanes) or [[]]

    def _slices(self, place: Place, rows: int | None) -> list[Place]:
        """One by one, as far as it is known how many they are."""
        last = -(-rows // self._slice) if place.last is None and rows is not None else place.last
        return [place] if last is None else [place._replace(first=k, last=k + 1) for k in range(place.first, last)]

    def read(self, part: Any) -> Iterator[Records]:
        place = Place(*part)
        known, k = self._part(place), place.first
        whole, features, response = (
            self._stream(place, columns) for columns in (self.columns_read, self._all.features, [self._response or ""])
        )
        while k != place.last and (known.rows is None or k * self._slice < known.rows):
            if k not in known.chunks:
                records = self._read_first(place, k, whole)
            else:
                records = self._read_again(place, known.chunks[k], features, response)
            if records is not None:
                yield records
            k += 1

    def _part(self, place: Place) -> "_Part":
        return self._known.setdefault((place.table, place.part), _Part())

    def _stream(self, place: Place, columns: Sequence[str]) -> "_Stream":
        table = self._tables[place.table]
        first = self._stamps.setdefault(place.table, stamp(table.path))
        return _Stream(table, first, place.part, columns, self._slice, self._kinds)

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
        other._counted = {
            (i, part): np.packbits(self._first(tally, Place(i, part)))
            for i, table in enumerate(self._tables)
            for part in range(table.parts())
        }
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
    def _slice(self) -> int:
        """Rows of a slice."""
        return chunk_rows(self.n_features)

    @cached_property
    def _reserve(self) -> float:
        """Bytes that features leave free: two numbers of each record, its response and the bins that it may lie in."""
        return 2.0 * sum(table.size(self.n_features + 1) for table in self._tables) / (self.n_features + 1)

    @cached_property
    def _kept_part(self) -> float:
        """The part of the features that may stay in memory until there is something better to keep."""
        whole = self._reserve * self.n_features / 2.0
        return (self._memory.limit - self._reserve) / max(whole, 1.0)

    def _stays(self, place: Place, row: int) -> bool:
        """Whether features from a row on may stay: the last ones of each part, as whoever reads decodes from its begin.

        Where it is not known how many rows a part has, all or none.
        """
        rows = self._tables[place.table].rows(place.part)
        return self._kept_part >= 1.0 or (rows is not None and row >= (1.0 - self._kept_part) * rows)

    def _read_first(self, place: Place, k: int, stream: "_Stream") -> Records | None:
        """All columns of a slice at once, every value checked; what the next pass needs is remembered."""
        table, known, begin = self._tables[place.table], self._part(place), k * self._slice
        batch = stream.rows(begin, self._slice)
        found = 0 if batch is None else batch.num_rows
        if found < self._slice:
            known.rows = begin + found
        if batch is None:
            return None
        x = self._all.encode(batch)
        y, complete = self._responses(batch, table)
        if not (complete.all() and is_finite(x)):
            complete &= np.isfinite(x).all(axis=1)
            if not complete.all() and not self._drop:
                raise InputError(self._complaint(x))
        if self._counted is not None:
            bits = self._counted[place.table, place.part][begin // 8 : -(-(begin + found) // 8)]
            complete &= np.unpackbits(bits)[begin % 8 :][:found].astype(bool)
        rows = _RowRange(begin, found, None if complete.all() else np.packbits(complete))
        kept = Kept(self._memory)
        if not complete.any():
            known.chunks[k] = None
            return None
        x, y = rows.of(x), rows.of(y)
        own = self.has_response and self._memory.claim(known, y.nbytes)
        lent = self._memory.lend(x, self._reserve) if self._stays(place, begin) else Loan()
        known.chunks[k] = _Chunk(rows, lent, y.copy() if own else None, kept)  # Arrow's blocks are larger
        return Records(x, y, kept)

    def _read_again(
        self, place: Place, chunk: "_Chunk | None", features: "_Stream", responses: "_Stream"
    ) -> Records | None:
        """Only what is touched: y if it was not kept, x if a question is about it."""
        if chunk is None:
            return None
        y = np.zeros(chunk.rows.count()) if chunk.y is None else chunk.y
        if chunk.y is None and self.has_response:
            y = chunk.rows.of(self._responses(responses.all_of(chunk.rows), self._tables[place.table])[0])
        x = chunk.lent.x
        return Records(partial(self._features, features, chunk) if x is None else x, y, chunk.kept)

    def _features(self, stream: "_Stream", chunk: "_Chunk") -> FloatArray:
        x = chunk.rows.of(self._all.encode(stream.all_of(chunk.rows)))
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
    lent: Loan
    y: FloatArray | IntArray | None
    kept: Kept


class _Part:
    """What is known of a part of a file: the slices that were read (None: no row of it counts), and its rows.

    How many rows there are is known when its end was reached.
    """

    def __init__(self) -> None:
        self.chunks: dict[int, _Chunk | None] = {}
        self.rows: int | None = None


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

    def all_of(self, wanted: _RowRange) -> Any:
        """The rows that were there before."""
        found = self.rows(wanted.begin, wanted.length)
        if found is None or found.num_rows < wanted.length:
            raise InputError(self.changed)
        return found

    def rows(self, begin: int, most: int) -> Any:
        """The rows from `begin` on, not before those of the last time, as one batch; fewer at the end, then None."""
        while self._row < begin and self._next(begin - self._row) is not None:
            pass
        found = []
        while most > 0 and (batch := self._next(most)) is not None:
            found.append(batch)
            most -= batch.num_rows
        if len(found) < 2:
            return found[0] if found else None
        return pa.Table.from_batches(found).combine_chunks().to_batches()[0]

    def _next(self, most: int) -> Any:
        """The next batch, or as much of it as is wanted."""
        if self._batches is None:
            if stamp(self._path) != self._stamp:
                raise InputError(self.changed)
            self._batches = (batch for batch in self._open() if batch.num_rows)
        batch = self._rest if self._rest is not None else next(self._batches, None)
        if batch is None:
            return None
        self._rest = batch.slice(most) if batch.num_rows > most else None
        self._row += min(most, batch.num_rows)
        return batch.slice(0, most)


def cut_places(places: Sequence[Place], pieces: int) -> list[list[Place]]:
    """Places in `pieces` lists that can be read apart, consecutive slices as one place.

    Whoever begins within a row group decodes what stands before it in vain, so that row groups are cut only where there
    are fewer than two for each list.

    >>> slices = [Place(0, 0, 0, 1), Place(0, 0, 1, 2), Place(0, 0, 2, 3), Place(0, 1, 0, 1)]
    >>> [[tuple(place) for place in piece] for piece in cut_places(slices, 2)]
    [[(0, 0, 0, 2)], [(0, 0, 2, 3), (0, 1, 0, 1)]]
    """
    groups = [list(group) for _, group in groupby(places, key=lambda place: place[:2])]
    units = groups if len(groups) >= 2 * pieces else [[place] for place in places]
    lists: list[list[Place]] = [[] for _ in range(pieces)]
    before = 0
    for unit in units:
        lists[(2 * before + len(unit)) * pieces // (2 * len(places))].extend(unit)
        before += len(unit)
    return [_joined(each) for each in lists if each]


def _joined(places: Sequence[Place]) -> list[Place]:
    joined: list[Place] = []
    for place in places:
        if joined and (*joined[-1][:2], joined[-1].last) == place[:3]:
            joined[-1] = joined[-1]._replace(last=place.last)
        else:
            joined.append(place)
    return joined


def open_source(paths: Sequence[FilePath], *columns: Any, decimal: str = ".", **options: Any) -> FileSource:
    """Records of files of any known format (`open_tables`); `columns` and `options` are those of `source_of`."""
    source = source_of(open_tables(paths, decimal), *columns, **options)
    source.recipe |= {"paths": [str(path.absolute()) for path in paths], "decimal": decimal}
    return source


class Reading(TypedDict, total=False):
    """How records are read, in the words of `FileSource`."""

    drop_missing: bool
    response_kind: ResponseKind | None
    person: str | None
    memory: int | None


def source_of(
    tables: Sequence[Table],
    response: str | None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categorical: Mapping[str, Sequence[Any]] | None = None,
    *,
    second: Sequence[str] = (),
    **reading: Unpack[Reading],
) -> FileSource:
    """Records of tables with the same columns; see `FileSource`. A feature may be a pattern, such as ``lab_*``."""
    chosen, other = choose_columns(tables[0].names, response, features, second, reading.get("person"))
    both = Columns((*chosen, *other), {name: tuple(values) for name, values in (categorical or {}).items()})
    beside = both.only(other) if other else None
    source = FileSource(tables, both.only(chosen), response, classes, second=beside, **reading)
    source.recipe = {
        "response": response,
        "features": chosen,
        "classes": None if classes is None else list(keys_of(classes, "classes")),
        "categorical": {name: list(keys_of(values, "categorical")) for name, values in both.categorical.items()},
        "second": other,
        **reading,
    }
    return source


def open_recipe(recipe: Mapping[str, Any]) -> Source:
    """The source of `FileSource.recipe`, in whichever process: the same records in the same parts."""
    wanted = dict(recipe)
    rows = wanted.pop("rows_per_person", None)
    source = open_source([file_of(name) for name in wanted.pop("paths")], **wanted)
    return source if rows is None else source.first_rows(rows)
