"""Text files: CSV, TSV and their kin."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from sfumato.errors import InputError
from sfumato.sources.locations import bytes_in, open_stream
from sfumato.sources.table import NO_KINDS, Kind, Table, readable, sliced

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

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
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
