"""Streams of Arrow batches: what DuckDB, Polars, databases and Spark hand over."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.sources.formats import ArrowTable
from sfumato.sources.table import NO_KINDS, Kinds, Table, sliced, unquoted

_ROWS = 2**16
"""Rows of a part of a snapshot; databases hand over batches of a few thousand."""


class _Streamed(Table):
    """Batches that a stream gave, of a schema that it said first; there is no file to name."""

    def __init__(self, schema: Any, batches: Any) -> None:
        super().__init__(Path("the table"))
        self._schema, self._batches = schema, batches

    @cached_property
    def schema(self) -> Any:
        return self._schema


class SnapshotTable(_Streamed):
    """Batches that were read once and are in memory; its parts are batches.

    A table that others write to may change between two passes: what a stream gave first is what every pass sees.
    """

    _batches: Sequence[Any]

    def parts(self) -> int:
        return len(self._batches)

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        yield from sliced(self._batches[part].select(list(columns)), rows)

    @cached_property
    def held(self) -> int:  # type: ignore[override]
        return sum(int(batch.nbytes) for batch in self._batches)

    def count(self) -> int:
        return sum(int(batch.num_rows) for batch in self._batches)


class SpilledTable(ArrowTable):
    """The same in an open Arrow file without a name. It is read, not mapped, or its pages would count as memory."""

    def __init__(self, path: str) -> None:
        super().__init__(Path("the table"))
        self._file = pa.OSFile(path)

    def _source(self) -> Any:
        return self._file


class PassingTable(_Streamed):
    """Batches that come once and are not kept; one part, of a length that nobody knows."""

    _batches: Iterator[Any]

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        for batch in self._batches:
            yield from sliced(batch.select(list(columns)), rows)

    def count(self) -> int:
        raise InputError("data: the records of a stream that is passing are not counted.")

    def size(self, columns: int) -> int:
        return 2**62


class SparkTable(Table):
    """A Spark DataFrame; one part. Whoever reads it here brings its columns to this process."""

    def __init__(self, frame: Any) -> None:
        super().__init__(Path("the Spark table"))
        self.frame = frame

    @cached_property
    def schema(self) -> Any:
        return self.frame.limit(0).toArrow().schema

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        for batch in self.chosen(columns).toArrow().to_batches():
            yield from sliced(batch, rows)

    def chosen(self, columns: Sequence[str]) -> Any:
        """Some of the columns; a point in a name is one of the name."""
        return self.frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))

    def count(self) -> int:
        return int(self.frame.count())


def is_spark(source: Any) -> bool:
    """Whether something is a Spark DataFrame, classic or Connect."""
    return type(source).__module__.startswith("pyspark.") and hasattr(source, "mapInArrow")


def is_stream(source: Any) -> bool:
    """Whether something hands over Arrow batches: a stream, a lazy Polars frame, or a function that opens one."""
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "sink_ipc") or callable(source)


def snapshot(source: Any, memory: int) -> Table:
    """All that a stream gives: in memory up to `memory` bytes, else in a temporary file.

    The file is readable by nobody else and has lost its name before a record is asked for, so that it is gone with
    the process, however that ends.
    """
    complaint = "the table cannot be read as an Arrow stream ({}); make its columns numbers or texts, each of one kind."
    with unquoted(lambda kind: f"data: {complaint.format(kind)}"):
        if hasattr(source, "sink_ipc"):
            return _sunk(source)
        opened = source() if not hasattr(source, "__arrow_c_stream__") else source
        if hasattr(opened, "sink_ipc"):
            return _sunk(opened)
        if not hasattr(opened, "__arrow_c_stream__"):
            raise InputError("data: the function must give an Arrow stream, as a pyarrow.RecordBatchReader is.")
        reader = pa.RecordBatchReader.from_stream(opened)
        return _kept(reader.schema, _regrouped(reader), memory)


def _kept(schema: Any, batches: Iterator[Any], memory: int) -> Table:
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > memory:
            break
    else:
        return SnapshotTable(schema, held)
    with _nameless() as path:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            while held:
                writer.write_batch(held.pop(0))
            for batch in batches:
                writer.write_batch(batch)
        return SpilledTable(path)


def _sunk(frame: Any) -> Table:
    """A lazy Polars frame, which writes itself to a file without being in memory as a whole."""
    with _nameless() as path:
        frame.sink_ipc(path, compression="uncompressed")
        return SpilledTable(path)


@contextmanager
def _nameless() -> Iterator[str]:
    """A file of this user alone; its name is taken away when the block is left, what is open stays."""
    handle, path = tempfile.mkstemp(prefix="sfumato-", suffix=".arrow")
    os.close(handle)
    try:
        yield path
    finally:
        os.unlink(path)


def _regrouped(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows in batches of about `_ROWS`."""
    few: list[Any] = []
    for batch in batches:
        few.append(batch)
        if sum(each.num_rows for each in few) >= _ROWS:
            yield _joined(few)
            few = []
    if few:
        yield _joined(few)


def _joined(few: list[Any]) -> Any:
    if len(few) == 1:
        return few[0]
    joined = pa.Table.from_batches(few).combine_chunks().to_batches()
    return joined[0] if joined else few[0]
