"""Sources: the only readers of tables and files; they yield records in chunks and can be read many times."""

import copy
import glob as globbing
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato import cells, people
from sfumato.errors import InputError
from sfumato.records import HASH_BUCKETS, Records, Response
from sfumato.typing import FloatArray, IntArray

ResponseKind = Literal["numeric", "categorical"]
HASHED = Response(categories=HASH_BUCKETS, hashed=True)
_MOST_CLASSES = 2**15
MISSING = "x or y has missing or infinite values; drop or impute them first."
MOST_ROWS = 2**15
"""Rows of a chunk at the most, so that sums of 30-bit products stay exact in float64."""
CHUNK_VALUES = 2**19
"""Numbers per chunk, 4 MiB: smaller ones pay more in interpreter time than the processor's cache gives back."""


def chunk_rows(n_features: int) -> int:
    """Rows of a chunk, `MOST_ROWS` at most."""
    return min(MOST_ROWS, max(2**9, CHUNK_VALUES // max(n_features, 1)))


class Source(ABC):
    """Records that can be read as often as needed, part by part."""

    n_features: int
    feature_names: tuple[str, ...] | None
    response: Response
    has_response: bool = True
    n_second: int = 0
    """How many of the features, the last ones, are those of a second table: the other side of a canonical pair."""
    has_people: bool = False
    """Whether every record is known to belong to a person, so that `first_rows` can tell which of them count."""
    binary: tuple[int, ...] = ()
    """Features that are 0 or 1, as the type of their column says: true and false, and the indicators of a category."""

    @abstractmethod
    def parts(self) -> list[int]:
        """Numbers of the parts; parts may be read at the same time by several threads."""

    @abstractmethod
    def read(self, part: int) -> Iterator[Records]:
        """The records of a part, in chunks."""

    @abstractmethod
    def count(self) -> int:
        """Number of records. Private under the add-remove relation: for the curator's own eyes."""

    def first_rows(self, rows: int) -> "Source":
        """The same records, of each person the first `rows` only; missing ids are refused."""
        raise InputError("x was scanned without ids; name their column: scan(..., person='patient_id').")

    def check(self) -> None:
        """Refuse values outside the declared domain, before anything is spent."""
        for part in self.parts():
            for records in self.read(part):
                if not records.is_finite():
                    raise InputError(MISSING)


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

    def read(self, part: int) -> Iterator[Records]:
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


def scan(
    source: Any,
    *,
    response: str | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    second: Sequence[str] | None = None,
    response_kind: ResponseKind | None = None,
    person: str | None = None,
) -> Source:
    """Records in files (Parquet, CSV, Arrow, Feather) or an Arrow table, read chunk by chunk.

    Parameters
    ----------
    source : str, Path, sequence of paths, or pyarrow.Table
        A file, a glob pattern such as ``"data/*.parquet"``, several files, or a table.
    response : str, optional
        Name of the response column; principal components and canonical pairs have none.
    features : sequence of str, optional
        Feature columns; by default all other columns.
    classes : sequence, optional
        Public list of the categories of the response. Without it a text response is sorted into hash buckets
        and the buckets in use are found privately.
    second : sequence of str, optional
        Columns of the second table of `PrivateCCA`.
    response_kind : {"numeric", "categorical"}, optional
        What the response is, if it is not to be taken from the type of its column, which is public. A CSV file has
        no types: without it the response must be numbers alone or texts that are no numbers.
    person : str, optional
        Column that says whose row it is. A fit then protects persons: the first ``rows_per_person`` rows of each, in
        the order of the table, count.

    Returns
    -------
    Source
        To be given to ``fit``.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.parquet"
    >>> pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0.5, 0.7]}), path)
    >>> scan(path, response="y").feature_names
    ('a', 'b')
    """
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "column"):
        return _from_table(source, response, features, classes, second or (), response_kind, person)
    from sfumato.files.formats import open_tables
    from sfumato.files.source import open_source

    paths = _paths(source)
    declared_response(True, classes, response_kind)  # refuses what is no list, and no kind
    chosen = _feature_columns(open_tables(paths[:1])[0].names, response, features, second or (), person)
    return open_source(
        paths, response, chosen, classes, second=second or (), response_kind=response_kind, person=person
    )


def _from_table(
    table: Any,
    response: str | None,
    features: Sequence[str] | None,
    classes: Sequence[Any] | None,
    second: Sequence[str],
    response_kind: ResponseKind | None,
    person: str | None,
) -> Source:
    from sfumato.tables import binary_columns, features_to_array, response_to_array

    chosen = _feature_columns(list(table.schema.names), response, features, second, person)
    selected = table.select([*chosen, *second])
    x, _ = features_to_array(selected)
    known = response is not None
    y, kind = response_to_array(table.column(response) if known else np.zeros(len(x)), classes, response_kind)
    return ArraySource(
        x,
        y,
        kind,
        (*chosen, *second),
        has_response=known,
        n_second=len(second),
        ids=None if person is None else table.column(person),
        binary=binary_columns(selected),
    )


def _paths(source: Any) -> list[Path]:
    if isinstance(source, (str, Path)):
        found = sorted(globbing.glob(str(source)))
        if not found:
            raise InputError(f"path: no file matches {str(source)!r}; check the name or the pattern.")
        return [Path(name) for name in found]
    try:
        paths = [Path(item) for item in source]
    except TypeError:
        raise InputError("path: give a path, a glob pattern, a list of paths or a pyarrow.Table.") from None
    missing = [path for path in paths if not path.exists()]
    if missing or not paths:
        raise InputError(f"path: {missing[0] if missing else 'an empty list'} does not name a file; check the name.")
    return paths


def _feature_columns(
    names: Sequence[str],
    response: str | None,
    features: Sequence[str] | None,
    second: Sequence[str],
    person: str | None = None,
) -> list[str]:
    """The feature columns of the first table, every name checked against those of the table."""
    for parameter, column in (("response", response), ("person", person)):
        if column is not None:
            _known(column, names, parameter)
    if person is not None and person == response:
        raise InputError(f"person: {person!r} is the response; leave one of them out.")
    for parameter, given in (("features", features), ("second", second)):
        if isinstance(given, str):
            raise InputError(f"{parameter} must be a list of column names, got {given!r}; write [{given!r}].")
    others = {response, person, *second}
    chosen = list(features) if features is not None else [name for name in names if name not in others]
    for name, parameter in (*((name, "features") for name in chosen), *((name, "second") for name in second)):
        _known(name, names, parameter)
        if name == response:
            raise InputError(f"{parameter}: {response!r} is the response; leave it out.")
        if name == person:
            raise InputError(f"{parameter}: {person!r} says whose row it is; leave it out.")
    twice = [name for name in second if name in chosen]
    if twice:
        raise InputError(f"second: {twice[0]!r} is a feature of the first table too; name it once.")
    if not chosen:
        raise InputError("features: no feature column is left; name at least one.")
    return chosen


def _known(name: str, names: Sequence[str], parameter: str) -> None:
    if list(names).count(name) > 1:
        raise InputError(f"{parameter}: several columns are called {name!r}; rename them.")
    if name not in names:
        import difflib

        close = difflib.get_close_matches(str(name), names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(map(repr, names[:8]))}."
        raise InputError(f"{parameter}: there is no column {name!r}; {hint}")


def response_kind_of(given: Any) -> ResponseKind | None:
    """A declared kind, checked."""
    match given:
        case None | "numeric" | "categorical":
            return given
    raise InputError("response_kind must be 'numeric', 'categorical' or None, which is the type of the column.")


def declared_response(
    numeric: bool, classes: Sequence[Any] | None, response_kind: ResponseKind | None = None
) -> Response:
    """What is public about a response whose column is of this type, with these declared classes or this kind."""
    response_kind = response_kind_of(response_kind)
    if classes is not None:
        if isinstance(classes, str) or not hasattr(classes, "__len__") or not 0 < len(classes) < _MOST_CLASSES:
            raise InputError(f"classes must be a list of 1 to {_MOST_CLASSES - 1} names; for instance ['no', 'yes'].")
        if response_kind == "numeric":
            raise InputError("response_kind must be 'categorical' or None where classes are declared.")
        return Response(categories=len(cells.keys_of(classes, "classes")) + 1)
    if response_kind == "numeric" and not numeric:
        raise InputError("response_kind is 'numeric', but the response is not of a numeric type; convert it first.")
    return Response() if numeric and response_kind != "categorical" else HASHED


def encode_response(raw: NDArray[Any], response: Response, classes: Sequence[Any] | None) -> FloatArray | IntArray:
    """Numbers as float64, declared classes as their position (others share the last code), names as buckets.

    The code of a class or name depends on its own cell alone (`sfumato.cells`).
    """
    if response.categories is None:
        return np.asarray(raw, dtype=np.float64)
    if classes is None:
        return cells.encode(raw, lambda key: bucket(cells.name(key)))
    return cells.encode(raw, cells.position(cells.keys_of(classes, "classes")))


def bucket(name: str) -> int:
    """Public hash bucket of a category name, the same on every machine."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big") % HASH_BUCKETS
