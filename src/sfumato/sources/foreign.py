"""Files of other programs: Excel sheets, and tables of Stata, SPSS and SAS, by maintained readers (`sfumato[formats]`).

Such a file is in memory as a whole while it is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.sources.table import NO_KINDS, Kind, Table, sliced, unquoted

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

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
        wanted = {name: _DTYPES[kind] for name, kind in self.read_as(columns, kinds).items()}
        batch = self._load(use_columns=list(columns), dtypes=wanted)
        yield from sliced(batch.select(list(columns)), rows)

    def count(self) -> int:
        return int(self._load(use_columns=[0], dtypes="string").num_rows)

    def size(self, columns: int) -> int:
        return 8 * columns * self.count()

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

    def batches(
        self, part: int, columns: Sequence[str], rows: int, kinds: Mapping[str, Kind] = NO_KINDS
    ) -> Iterator[Any]:
        for batch in self._whole.select(list(columns)).slice(part * _ROWS, _ROWS).to_batches():
            yield from sliced(batch, rows)

    def count(self) -> int:
        return int(self._whole.num_rows)

    def size(self, columns: int) -> int:
        return 8 * columns * self.count()


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
