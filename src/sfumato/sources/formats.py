"""Formats: files of every kind as tables, and which file is which.

Parquet, Arrow and text; Excel sheets and the tables of Stata, SPSS and SAS by maintained readers (`sfumato[formats]`),
which hold such a file in memory as a whole while it is read.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.sources.names import FilePath, bytes_in, open_file, open_stream
from sfumato.sources.table import NO_KINDS, Kinds, Table, readable, sliced, unquoted

_DELIMITERS = ",;\t|"
_GUESSED_RATIO = 8
"""Bytes of text taken for one byte of a compressed file."""
_BLOCK = 2**22
_TYPES = {"number": pa.float64(), "truth": pa.bool_(), "text": pa.string(), "other": pa.string()}


class CsvTable(Table):
    """A text file with a line of column names; one part.

    Columns of declared categories are read as text. The kind of any other column is guessed from the first megabyte
    and holds for the whole file: a cell that does not fit is refused. Empty cells and unquoted NA, NaN or null are
    missing. One line is one record: a quote that is not closed on its line would make cells of the records below it
    part of its own, so cells that go on on the next line are refused. An empty line is no record; in a file of one
    column it may be a record whose cell is missing, and is refused.
    """

    has_types = False
    decimal = "."
    """What stands before the fraction of a number: a point or a comma, as `open_tables` is told."""

    @cached_property
    def schema(self) -> Any:
        with readable(self.path, "CSV", self._header):
            return self._open(pcsv.ConvertOptions(decimal_point=self.decimal)).schema

    @property
    def names(self) -> list[str]:
        return self._header

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        options = pcsv.ConvertOptions(
            column_types={name: _TYPES[kind] for name, kind in self.read_as(columns, kinds).items()},
            include_columns=list(columns),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=self.decimal,
        )
        found = 0
        with readable(self.path, "CSV", self.names):
            for batch in self._open(options, skip_empty=len(self.names) > 1):
                found += batch.num_rows
                yield from sliced(batch, rows)
        if found > self._lines - 1:
            raise InputError(f"data: {self.path} has empty lines; remove them, or write what the missing cells are.")
        if found != self._lines - 1:  # a record takes at least one line, so as many records as lines take one each
            raise InputError(
                f"data: {self.path} has a cell that goes on on the next line, or a quote that is not closed; keep "
                "every record on one line, or write Parquet."
            )

    def count(self) -> int:
        return sum(int(batch.num_rows) for batch in self.batches(0, self.names[:1], 2**20))

    def size(self, columns: int) -> int:
        return bytes_in(self.path) * (_GUESSED_RATIO if self.path.name.lower().endswith((".gz", ".zst", ".bz2")) else 1)

    @cached_property
    def _header(self) -> list[str]:
        with readable(self.path, "CSV"):
            names = list(self._open(pcsv.ConvertOptions()).schema.names)
        if sum(map(_is_number, names)) > len(names) / 2:
            raise InputError(f"data: the first line of {self.path} holds numbers; it must name the columns.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"data: {self.path} has more than one column {twice[0]!r}; rename all but one.")
        return names

    @cached_property
    def _lines(self) -> int:
        """Number of lines that are not empty."""
        count, at_start = 0, np.ones(1, dtype=bool)
        with readable(self.path, "CSV"), open_stream(self.path) as stream:
            while block := stream.read(_BLOCK):
                characters = np.frombuffer(block, dtype=np.uint8)
                ends = (characters == ord("\n")) | (characters == ord("\r"))
                count += int(np.count_nonzero(np.concatenate([at_start, ends[:-1]]) & ~ends))
                at_start = ends[-1:]
        return count

    @cached_property
    def _delimiter(self) -> str:
        with readable(self.path, "CSV"), open_stream(self.path) as stream:
            begin = stream.read(2**16)
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"data: {self.path} is in UTF-16, as spreadsheets write it; save it as UTF-8.")
        first = begin.decode("utf-8", errors="replace").lstrip().partition("\n")[0]
        return max(_DELIMITERS.replace(self.decimal, ""), key=first.count)

    def _open(self, options: Any, skip_empty: bool = True) -> Any:
        parse = pcsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=skip_empty)
        return pcsv.open_csv(open_stream(self.path), parse_options=parse, convert_options=options)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
STATISTICS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_ROWS = 2**16
_GUESSED = 1000
"""Rows of a sheet from which its types are guessed."""
_DTYPES = {"number": "float", "truth": "boolean", "text": "string", "other": "string"}


class ExcelTable(Table):
    """The first sheet of a workbook, with a line of column names; one part.

    Every cell has a type of its own, a column has none: what it is read as is guessed from the first rows, or declared,
    and holds for the whole sheet. A text in a column of numbers is a missing number.
    """

    has_types = False

    @cached_property
    def schema(self) -> Any:
        return self._load(n_rows=_GUESSED).schema

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        wanted = {name: _DTYPES[kind] for name, kind in self.read_as(columns, kinds).items()}
        batch = self._load(use_columns=list(columns), dtypes=wanted)
        yield from sliced(batch.select(list(columns)), rows)

    def count(self) -> int:
        return int(self._load(use_columns=[0], dtypes="string").num_rows)

    def _load(self, **options: Any) -> Any:
        with _readable(self.path, "an Excel sheet"):
            return _library("fastexcel").read_excel(_local(self.path)).load_sheet(0, **options).to_arrow()


class StatisticsTable(Table):
    """A file of Stata, SPSS or SAS; values, not their labels; one part for every 65,536 rows."""

    @cached_property
    def _whole(self) -> Any:
        reader = STATISTICS[Path(str(self.path)).suffix.lower()]
        with _readable(self.path, "a file of Stata, SPSS or SAS"):
            read = getattr(_library("pyreadstat"), reader)
            columns, _ = read(_local(self.path), output_format="dict", disable_datetime_conversion=True)
            return pa.table({name: pa.array(values) for name, values in columns.items()}).combine_chunks()

    @cached_property
    def schema(self) -> Any:
        return self._whole.schema

    def parts(self) -> int:
        return -(-self.count() // _ROWS)

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        for batch in self._whole.select(list(columns)).slice(part * _ROWS, _ROWS).to_batches():
            yield from sliced(batch, rows)

    def count(self) -> int:
        return int(self._whole.num_rows)


def _library(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"data: {name} is not installed; pip install 'sfumato[formats]'.") from None


def _local(path: Any) -> str:
    if not isinstance(path, Path):
        raise InputError(f"data: {path} must be copied to this machine, or written as Parquet.")
    return str(path)


def _readable(path: Any, form: str) -> AbstractContextManager[None]:
    """A reader's own complaint becomes our sentence."""
    return unquoted(
        lambda kind: f"data: {path} is not readable as {form} ({kind}); check that it is whole, or write CSV."
    )


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

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        with readable(self.path, "Parquet"):
            yield from self._open().iter_batches(
                batch_size=rows, row_groups=[part], columns=list(columns), use_threads=False
            )

    def count(self) -> int:
        return int(self._metadata.num_rows)

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

    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        places = [self.names.index(name) for name in columns]
        with readable(self.path, "Arrow"):
            batch = self._open(places).get_batch(part)
        yield from sliced(batch, rows)

    def count(self) -> int:
        with readable(self.path, "Arrow"):
            reader = self._open([0])
            return sum(int(reader.get_batch(i).num_rows) for i in range(reader.num_record_batches))

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
