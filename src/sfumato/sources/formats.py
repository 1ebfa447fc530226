"""Formats: Parquet and Arrow files as tables, and which file is which."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.sources.foreign import EXCEL, STATISTICS, ExcelTable, StatisticsTable
from sfumato.sources.locations import FilePath, open_file
from sfumato.sources.table import NO_KINDS, Kind, Table, readable, sliced
from sfumato.sources.text import CsvTable

PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
CSV = tuple(text + packed for packed in ("", ".gz", ".zst", ".bz2") for text in (".csv", ".tsv", ".txt"))
_BUFFER = 2**16
"""Bytes of a column read at once: without it a row group is in memory whole, compressed, for each thread."""
_PAGES = 3 * 2**20
"""Bytes that decoding a column takes at the most: a dictionary and a page, each of a megabyte, packed and unpacked."""


class ParquetTable(Table):
    """A Parquet file; its parts are row groups."""

    @cached_property
    def schema(self) -> Any:
        return self._open().schema_arrow

    def parts(self) -> int:
        return int(self._metadata.num_row_groups)

    def rows(self, part: int) -> int | None:
        return int(self._metadata.row_group(part).num_rows)

    def decoding(self, columns: int) -> int:
        groups = (self._metadata.row_group(part) for part in range(self.parts()))
        column = max((group.total_byte_size for group in groups), default=0) // max(self._metadata.num_columns, 1)
        return columns * min(3 * int(column), _PAGES)

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
        with readable(self.path, "Parquet"):
            yield from self._open().iter_batches(
                batch_size=rows, row_groups=[part], columns=list(columns), use_threads=False
            )

    def count(self) -> int:
        return int(self._metadata.num_rows)

    def size(self, columns: int) -> int:
        return 8 * columns * self.count()

    @cached_property
    def _metadata(self) -> Any:
        with readable(self.path, "Parquet"):
            return pq.ParquetFile(open_file(self.path)).metadata

    def _open(self) -> Any:
        metadata, buffer = self._metadata, _BUFFER if isinstance(self.path, Path) else 2**20
        with readable(self.path, "Parquet"):
            return pq.ParquetFile(open_file(self.path), metadata=metadata, buffer_size=buffer, pre_buffer=False)


class ArrowTable(Table):
    """An Arrow or Feather (version 2) file, mapped into memory; its parts are record batches."""

    @cached_property
    def schema(self) -> Any:
        with readable(self.path, "Arrow"):
            found = self._open().schema
            list(found.names)  # not decoded before they are asked for
        return found

    def parts(self) -> int:
        return int(self._open().num_record_batches)

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
        places = [self.names.index(name) for name in columns]
        with readable(self.path, "Arrow"):
            batch = self._open(places).get_batch(part)
        yield from sliced(batch, rows)

    def count(self) -> int:
        with readable(self.path, "Arrow"):
            reader = self._open([0])
            return sum(int(reader.get_batch(i).num_rows) for i in range(reader.num_record_batches))

    def size(self, columns: int) -> int:
        return 8 * columns * self.count()

    def _open(self, places: list[int] | None = None) -> Any:
        with readable(self.path, "Arrow"):
            options = pa.ipc.IpcReadOptions(included_fields=sorted(places or []), use_threads=False)
            return pa.ipc.open_file(self._source(), options=options)

    def _source(self) -> Any:
        return pa.memory_map(str(self.path)) if isinstance(self.path, Path) else open_file(self.path)


def open_tables(paths: Sequence[FilePath], decimal: str = ".") -> list[Table]:
    """The files as tables, by their endings; `decimal` stands before the fractions of numbers in text files."""
    if decimal not in (".", ","):
        raise InputError(f"decimal must be '.' or ',', got {decimal!r}.")
    tables = [_table(path) for path in paths]
    for table in tables:
        if isinstance(table, CsvTable):
            table.decimal = decimal
    if len({type(table) for table in tables}) > 1:
        raise InputError("data: the files are of different formats; give files of one.")
    return tables


def _table(path: FilePath) -> Table:
    name = path.name.lower()
    if path.is_dir():
        raise InputError(f"data: {path} is a directory; give a file, or a pattern such as '{path}/*.parquet'.")
    formats: tuple[tuple[tuple[str, ...], type[Table]], ...] = (
        (PARQUET, ParquetTable),
        (ARROW, ArrowTable),
        (CSV, CsvTable),
        (EXCEL, ExcelTable),
        (tuple(STATISTICS), StatisticsTable),
    )
    for endings, table in formats:
        if name.endswith(endings):
            return table(path)
    known = ", ".join((*CSV[:2], *PARQUET[:1], *ARROW[:2]))
    raise InputError(f"data: the ending of {path} tells no format; use one of {known}.")
