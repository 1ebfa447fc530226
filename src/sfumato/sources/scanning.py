"""`scan`: from a name, a pattern or a table to its records."""

import glob as globbing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.sources.arrays import ArraySource
from sfumato.sources.base import MEMORY, Source, bytes_of
from sfumato.sources.responses import ResponseKind, declared_response


def scan(
    source: Any,
    *,
    response: str | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    second: Sequence[str] | None = None,
    response_kind: ResponseKind | None = None,
    person: str | None = None,
    memory: int | str = MEMORY,
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
    memory : int or str
        Bytes of records that may be kept from one pass over files to the next, as a number or as in "2GB". What does
        not fit is read again when it is needed; the answer is the same.

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
    from sfumato.sources.files import open_source
    from sfumato.sources.formats import open_tables

    paths = _paths(source)
    limit = bytes_of(memory)
    declared_response(True, classes, response_kind)  # refuses what is no list, and no kind
    chosen = _feature_columns(open_tables(paths[:1])[0].names, response, features, second or (), person)
    return open_source(
        paths,
        response,
        chosen,
        classes,
        second=second or (),
        response_kind=response_kind,
        person=person,
        memory=limit,
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
    from sfumato.sources.frames import binary_columns, features_to_array, response_to_array

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
