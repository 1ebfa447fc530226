"""Text files: CSV, TSV and their kin."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from sfumato.errors import InputError
from sfumato.files.table import Table, readable, sliced

_DELIMITERS = ",;\t|"
_GUESSED_RATIO = 8
"""Bytes of text taken for one byte of a compressed file."""


class CsvTable(Table):
    """A text file with a line of column names; one part.

    The kind of a column is public, like its name. It is read off the first megabyte and holds for the whole
    file: a cell that does not fit is refused. Empty cells and unquoted NA, NaN or null are missing.
    """

    @cached_property
    def schema(self) -> Any:
        with readable(self.path, "CSV", self._header):
            return self._open(pcsv.ConvertOptions()).schema

    @property
    def names(self) -> list[str]:
        return self._header

    def parts(self) -> int:
        return 1

    def batches(self, part: int, columns: Sequence[str], rows: int, *, text: bool = False) -> Iterator[Any]:
        kinds = {"number": pa.float64(), "truth": pa.bool_(), "text": pa.string(), "other": pa.string()}
        types = {name: pa.string() if text else kinds[self.kind(name)] for name in columns}
        options = pcsv.ConvertOptions(
            column_types=types,
            include_columns=list(columns),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with readable(self.path, "CSV", self.names):
            for batch in self._open(options):
                yield from sliced(batch, rows)

    def count(self) -> int:
        return sum(int(batch.num_rows) for batch in self.batches(0, self.names[:1], 2**20))

    def size(self, columns: int) -> int:
        return self.path.stat().st_size * (_GUESSED_RATIO if self.path.suffix == ".gz" else 1)

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
    def _delimiter(self) -> str:
        with readable(self.path, "CSV"), pa.input_stream(str(self.path), compression="detect") as stream:
            first = stream.read(2**16).decode("utf-8", errors="replace").lstrip().partition("\n")[0]
        return max(_DELIMITERS, key=first.count)

    def _open(self, options: Any) -> Any:
        parse = pcsv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        return pcsv.open_csv(self.path, parse_options=parse, convert_options=options)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
