"""`scan`: from a name, a pattern or a table to its records."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.sources.arrays import ArraySource, binary_columns, features_to_array, response_to_array
from sfumato.sources.base import ResponseKind, Source, bytes_of, declared_response, held_bytes
from sfumato.sources.names import FilePath, choose_columns, find


def scan(
    source: Any,
    *,
    response: str | None = None,
    features: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    second: Sequence[str] | None = None,
    response_kind: ResponseKind | None = None,
    person: str | None = None,
    memory: int | str | None = None,
    cluster: Any = None,
    decimal: str = ".",
    categorical: Mapping[str, Sequence[Any]] | None = None,
) -> Source:
    """Records in files, or in a table that hands over Arrow batches, read chunk by chunk.

    Parameters
    ----------
    source : str, Path, sequence of them, or a table
        A file (Parquet, CSV, Arrow, Feather), a pattern such as ``"data/*.parquet"``, or several; of an object store
        by its address, ``"s3://bucket/visits/*.parquet"``. Or a table: of Arrow, pandas or Polars (also lazy), a
        relation of DuckDB, the reader of a database, anything that has ``__arrow_c_stream__``, or a function that
        opens one; it is read once, so that every pass sees the same rows. A Spark DataFrame stays where it is.
    response : str, optional
        Name of the response column; principal components and canonical pairs have none.
    features : sequence of str, optional
        Feature columns; by default all other columns.
    classes : sequence, optional
        Public list of the categories of the response. Without it a text response is sorted into hash buckets
        and the buckets in use are found privately.
    second : sequence of str, optional
        Columns of the second table of `PrivateCCA`, the responses of `PrivateMultiSIR`, or time and status of
        `PrivateCensoredSIR`.
    response_kind : {"numeric", "categorical"}, optional
        What the response is, if it is not to be taken from the type of its column, which is public. A CSV file has
        no types: without it the response must be numbers alone or texts that are no numbers.
    person : str, optional
        Column that says whose row it is. A fit then protects persons: the first ``rows_per_person`` rows of each, in
        the order of the table, count.
    memory : int or str, optional
        Bytes that the process may take, as a number or as in "2GB": what does not fit is read again when it is needed,
        and the answer is the same. On a cluster it is the memory of each worker. By default 512 MiB are kept, beside
        what libraries and decoding take: some 235 MB, and for each core 67 MB and, of Parquet, 3 MB for each column.
    cluster : dask.distributed.Client or str, optional
        Who adds the records up, by a client or the address of a scheduler (``tls://host:8786``). The files must have
        the same names on all workers. The answer is the same to the last bit.
    decimal : {".", ","}
        What stands before the fraction of a number in text files; with a comma, cells are parted by something else.
    categorical : mapping of str to sequence, optional
        Public categories of feature columns, the reference first: ``{"ward": ["north", "south"]}``. Each of the others
        becomes a feature of 0 and 1, whose bounds are known; a cell that was not declared counts as the reference.
        ``transform`` takes tables with the columns themselves.

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
    limit = bytes_of(memory)
    declared_response(True, classes, response_kind)  # refuses what is no list, and no kind
    if any(isinstance(values, str) for values in dict(categorical or {}).values()):
        raise InputError("categorical: give a list of categories for each column, {'ward': ['north', 'south']}.")
    if type(source).__module__.startswith("pyarrow") and hasattr(source, "column") and not categorical:
        _refuse_cluster(cluster)
        return _from_table(source, response, features, classes, second or (), response_kind, person)
    from sfumato.sources.files import open_source, source_of
    from sfumato.sources.streams import SparkTable, is_spark, is_stream, snapshot

    options: dict[str, Any] = {
        "categorical": categorical,
        "second": second or (),
        "response_kind": response_kind,
        "person": person,
        "memory": limit,
    }
    if is_spark(source):
        _refuse_cluster(cluster)
        if person is not None:
            raise InputError(
                "person: the rows of a Spark table have no order; write it to Parquet files, in the order in which "
                "the rows of a person shall count, and scan those."
            )
        table = SparkTable(source)
        found = source_of([table], response, features, classes, **options)
        found.cluster = table
    elif is_stream(source):
        _refuse_cluster(cluster)
        found = source_of([snapshot(source, held_bytes(limit))], response, features, classes, **options)
    else:
        found = open_source(_paths(source), response, features, classes, decimal=decimal, **options)
        found.cluster = cluster
    return found


def _refuse_cluster(cluster: Any) -> None:
    if cluster is not None:
        raise InputError("cluster: workers read files themselves; scan files that they can open, not a table.")


def _from_table(
    table: Any,
    response: str | None,
    features: Sequence[str] | None,
    classes: Sequence[Any] | None,
    second: Sequence[str],
    response_kind: ResponseKind | None,
    person: str | None,
) -> Source:
    chosen, other = choose_columns(list(table.schema.names), response, features, second, person)
    selected = table.select([*chosen, *other])
    x, _ = features_to_array(selected)
    known = response is not None
    y, kind = response_to_array(table.column(response) if known else np.zeros(len(x)), classes, response_kind)
    return ArraySource(
        x,
        y,
        kind,
        (*chosen, *other),
        has_response=known,
        n_second=len(other),
        ids=None if person is None else table.column(person),
        binary=binary_columns(selected),
    )


def _paths(source: Any) -> list[FilePath]:
    try:
        names = [str(source)] if isinstance(source, (str, Path)) else [str(Path(item)) for item in source]
    except TypeError:
        raise InputError(
            "data: give a path, a pattern, a list of paths, or a table that hands over Arrow batches "
            "(__arrow_c_stream__)."
        ) from None
    if not names:
        raise InputError("data: an empty list names no file; give at least one.")
    return [path for name in names for path in find(name)]
