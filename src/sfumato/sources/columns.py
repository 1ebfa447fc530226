"""Columns: which columns of a table are features, and how a batch of them becomes numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Key, key, keys_of, position
from sfumato.errors import InputError
from sfumato.sources.names import suggest
from sfumato.sources.table import Kind, Table
from sfumato.typing import FloatArray, IntArray

CONVERT = "convert it, a decimal of a database by a cast (::float8)."
"""What to do about a column that is read neither as numbers nor as text."""
_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True)
class Columns:
    """Feature columns of a table, numeric or of declared categories.

    A categorical column becomes one 0/1 column for each category but the first, which is the reference; values
    that were not declared count as the reference. The list of categories is public and must not be read off the
    records.

    Parameters
    ----------
    features : tuple of str
        Column names.
    categorical : mapping of str to tuple of str
        Public categories of some of them.

    Examples
    --------
    >>> Columns(("age", "ward"), {"ward": ("north", "south", "west")}).names
    ('age', 'ward=south', 'ward=west')
    """

    features: tuple[str, ...]
    categorical: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("features: no feature column is left; name at least one.")
        for name, categories in self.categorical.items():
            suggest(name, self.features, "categorical")
            if len(set(categories)) < max(2, len(categories)):
                raise InputError(f"categorical: give column {name!r} two or more different categories, {name}=a|b|c.")
            keys_of(categories, "categorical")
        if len(set(self.names)) < len(self.names):
            raise InputError("features: a column is named twice; name each once.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        return tuple(name for column in self.features for name in self._encoded(column))

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """What columns must be read as in a file without types: declared categories as the text that is written."""
        return dict.fromkeys(self.categorical, "text")

    def only(self, features: Sequence[str]) -> "Columns":
        """Some of the features, with their categories."""
        return Columns(tuple(features), {name: c for name, c in self.categorical.items() if name in features})

    def beside(self, other: "Columns") -> "Columns":
        """These features, then those of another set."""
        return Columns((*self.features, *other.features), {**self.categorical, **other.categorical})

    def check(self, table: Table) -> None:
        """Refuse a table without these columns, or with columns that are no numbers."""
        for name in self.features:
            suggest(name, table.names, "features")
            if name not in self.categorical and table.kind(name) == "other":
                raise InputError(
                    f"features: column {name!r} is not numeric, a date perhaps; make it an age or a duration "
                    "(a decimal of a database: cast it, ::float8), or leave it out."
                )
            if name not in self.categorical and table.kind(name) == "text":
                commas = (
                    ""
                    if table.has_types or getattr(table, "decimal", ".") == ","
                    else "; where fractions follow a comma say so (--decimal , or decimal=',')"
                )
                raise InputError(
                    f"features: column {name!r} is not numeric; declare its categories (--categorical '{name}=a|b|c', "
                    f"or categorical={{{name!r}: [...]}}) or leave it out{commas}."
                )
        for name, categories in self.categorical.items():
            check_declared(categories, table, "categorical", name)

    def binary(self, tables: Sequence[Table]) -> tuple[int, ...]:
        """Positions of the encoded features that are 0 or 1: of categories, and of columns of true and false."""
        truth = {name for name in self.features if all(table.kind(name) == "truth" for table in tables)}
        known = truth | set(self.categorical)
        kinds = [name in known for name in self.features for _ in self._encoded(name)]
        return tuple(j for j, is_binary in enumerate(kinds) if is_binary)

    def encode(self, batch: Any) -> FloatArray:
        """A batch as (rows, features); NaN where a cell is missing."""
        x = np.empty((batch.num_rows, len(self.names)))
        place = 0
        for name in self.features:
            width = len(self._encoded(name))
            x[:, place : place + width] = self._numbers(batch.column(name), name)
            place += width
        return x

    def encode_categories(self, table: Any) -> Any:
        """An Arrow table of these columns with the encoded features instead of the categorical ones."""
        made: dict[str, Any] = {}
        for name in self.features:
            cells = table.column(name)
            encoded = self._numbers(cells.combine_chunks(), name).T if name in self.categorical else [cells]
            made |= zip(self._encoded(name), encoded, strict=True)
        return pa.table(made)

    def _numbers(self, cells: Any, name: str) -> FloatArray:
        categories = self.categorical.get(name)
        if categories is None:
            return numbers(cells)[:, None]
        code = encode_cells(cells, position(keys_of(categories, "categorical")))
        x = (code[:, None] == np.arange(1, len(categories))).astype(np.float64)
        x[missing(cells)] = np.nan
        return np.asarray(x)

    def _encoded(self, name: str) -> tuple[str, ...]:
        categories = self.categorical.get(name)
        return (name,) if categories is None else tuple(f"{name}={category}" for category in categories[1:])


def plain(cells: Any) -> Any:
    """Cells as such, where the file stores numbers of a dictionary."""
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells


def numbers(cells: Any) -> FloatArray:
    """Cells as float64, NaN where missing."""
    return np.asarray(plain(cells).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def missing(cells: Any) -> NDArray[np.bool_]:
    """Which cells are missing: null, or a number that is not finite."""
    known = plain(cells)
    if pa.types.is_floating(known.type):
        return ~np.isfinite(numbers(known))
    return np.asarray(known.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def encode_cells(cells: Any, code: Callable[[Key], int]) -> IntArray:
    """A code for each cell, from its key; 0 where a cell is missing. Every distinct cell is looked at once."""
    known = plain(cells)
    if pa.types.is_null(known.type):
        return np.zeros(len(known), dtype=np.int64)
    found = known.dictionary_encode()
    try:
        distinct = found.dictionary.to_pylist()
    except UnicodeDecodeError:  # its text would quote the bytes
        raise InputError("data: a column holds text that is not UTF-8; write it as UTF-8.") from None
    codes = np.asarray([code(key(cell)) for cell in distinct] or [0], dtype=np.int64)
    return np.asarray(codes[found.indices.fill_null(0).to_numpy(zero_copy_only=False)])


def check_declared(names: Sequence[Any], table: Table, parameter: str, column: str) -> None:
    """Refuse names that no cell of a column with such a type can have."""
    keys, kind = keys_of(names, parameter), table.kind(column) if table.has_types else "text"
    if kind == "other":
        raise InputError(f"{parameter}: column {column!r} is neither numbers nor text; {CONVERT}")
    if kind == "truth" and not {0.0, 1.0}.issuperset(keys):
        raise InputError(f"{parameter}: column {column!r} holds true and false, and so must its declared values.")
    if kind == "number" and any(isinstance(each, str) for each in keys):
        raise InputError(f"{parameter}: column {column!r} holds numbers, and so must its declared values.")
