"""Table: one file of records in columns, whatever its format."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import pyarrow as pa

from sfumato.errors import InputError
from sfumato.sources.names import FilePath

Kind = Literal["number", "truth", "text", "other"]
Kinds = Mapping[str, Kind]
"""What some columns are read as in a file without types."""
NO_KINDS: Kinds = MappingProxyType({})


class Table(ABC):
    """One file of records in columns."""

    has_types: ClassVar[bool] = True
    """Whether the file says what its columns are; if not, it is guessed from cells and binds nobody."""

    held: int = 0
    """Bytes of the table that are in memory all the time."""

    def __init__(self, path: FilePath) -> None:
        self.path = path

    @cached_property
    @abstractmethod
    def schema(self) -> Any:
        """The Arrow schema: names and types of the columns."""

    @property
    def names(self) -> list[str]:
        """Column names, in order."""
        return list(self.schema.names)

    def kind(self, name: str) -> Kind:
        """What the cells of a column are."""
        return kind_of(self.schema.field(name).type)

    def parts(self) -> int:
        """Number of parts that can be read apart."""
        return 1

    def rows(self, part: int) -> int | None:
        """Rows of a part, if the file says so without being read."""
        return None

    def decoding(self, columns: int) -> int:
        """About how many bytes are taken while `columns` columns of a part are decoded."""
        return 2**25

    def read_as(self, columns: Sequence[str], kinds: Kinds) -> dict[str, Kind]:
        """What the cells of some columns are read as in a file without types: as said, or as guessed."""
        return {name: kinds[name] if name in kinds else self.kind(name) for name in columns}

    @abstractmethod
    def batches(self, part: int, columns: Sequence[str], rows: int, kinds: Kinds = NO_KINDS) -> Iterator[Any]:
        """Record batches of some columns, of at most `rows` rows."""

    def whole(self, kinds: Kinds = NO_KINDS, columns: Sequence[str] | None = None) -> Any:
        """All parts as one Arrow table, all columns or some."""
        names = self.names if columns is None else columns
        batches = [batch for part in range(self.parts()) for batch in self.batches(part, names, 2**20, kinds)]
        table = pa.Table.from_batches(batches, None if batches else self.schema)
        return table.replace_schema_metadata(self.schema.metadata)

    @abstractmethod
    def count(self) -> int:
        """Number of rows."""

    def size(self, columns: int) -> int:
        """About how many bytes `columns` columns of numbers take in memory."""
        return 8 * columns * self.count()


def kind_of(arrow_type: Any) -> Kind:
    """The kind of cells of an Arrow type. A column without any value so far counts as numbers."""
    types = pa.types
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_boolean(arrow_type):
        return "truth"
    if types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_null(arrow_type):
        return "number"
    is_text = (types.is_string, types.is_large_string, types.is_string_view)
    return "text" if any(test(arrow_type) for test in is_text) else "other"


@contextmanager
def readable(path: FilePath, form: str, names: Sequence[str] = ()) -> Iterator[None]:
    """Turn a reader's complaint into ours: pyarrow quotes the offending cell, which must not be seen."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        place = re.match(r"In CSV column #(\d+):", str(error))
        if place and int(place[1]) < len(names):
            name = names[int(place[1])]
            reason = f"column {name!r} of {path} has cells of another kind than it; mend or leave out the column."
        elif "Empty CSV file" in str(error):
            reason = f"{path} is empty; it needs a line of column names and records."
        elif "Expected" in str(error):
            reason = f"{path} has a row with more or fewer cells than column names; mend it."
        else:
            reason = f"{path} is not a readable {form} file; check that it is whole and in UTF-8."
        raise InputError(f"data: {reason}") from None
    except UnicodeDecodeError:  # its text would quote the bytes
        raise InputError(f"data: {path} has names that are not UTF-8; save it as UTF-8.") from None
    except MemoryError:  # a damaged file may claim to hold more than there is
        raise InputError(f"data: {path} does not fit in memory, or is damaged; split it or write it again.") from None
    except OSError as error:
        raise InputError(f"data: {path} cannot be read ({error.strerror or f'not a {form} file'}).") from None


@contextmanager
def unquoted(sentence: Callable[[str], str]) -> Iterator[None]:
    """Say ``sentence(kind of error)`` whatever a library complains of: its own text may quote a cell."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(sentence(type(error).__name__)) from None


def sliced(batch: Any, rows: int) -> Iterator[Any]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
