"""Columns: which columns of a table are features, and how a batch of them becomes numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.files.names import suggest
from sfumato.files.table import Kind, Table
from sfumato.typing import FloatArray, IntArray

_TRUTH = {"true": "true", "1": "true", "1.0": "true", "false": "false", "0": "false", "0.0": "false"}
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
        if len(set(self.names)) < len(self.names):
            raise InputError("features: a column is named twice; name each once.")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        return tuple(name for column in self.features for name in self._encoded(column))

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
            if name not in self.categorical and table.kind(name) not in ("number", "truth"):
                raise InputError(
                    f"features: column {name!r} is not numeric; declare its categories ({name}=a|b|c) or leave it out."
                )
        for name, categories in self.categorical.items():
            typed(categories, table.kind(name), "categorical", name)

    def binary(self, tables: Sequence[Table]) -> tuple[int, ...]:
        """Positions of the encoded features that are 0 or 1: of categories, and of columns of true and false."""
        truth = {name for name in self.features if all(table.kind(name) == "truth" for table in tables)}
        known = truth | set(self.categorical)
        kinds = [name in known for name in self.features for _ in self._encoded(name)]
        return tuple(j for j, is_binary in enumerate(kinds) if is_binary)

    def encode(self, batch: Any, table: Table) -> FloatArray:
        """A batch as (rows, features); NaN where a cell is missing."""
        x = np.empty((batch.num_rows, len(self.names)))
        place = 0
        for name in self.features:
            width = len(self._encoded(name))
            x[:, place : place + width] = self._numbers(batch.column(name), name, table.kind(name))
            place += width
        return x

    def _numbers(self, cells: Any, name: str, kind: Kind) -> FloatArray:
        categories = self.categorical.get(name)
        if categories is None:
            return numbers(cells)[:, None]
        code = codes(cells, typed(categories, kind, "categorical", name))
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
    """Which cells are missing: null, or not a number."""
    return np.asarray(pc.is_null(plain(cells), nan_is_null=True).to_numpy(zero_copy_only=False), dtype=bool)


def codes(cells: Any, names: Any) -> IntArray:
    """Position of each cell among `names`; ``len(names)`` for others."""
    found = pc.index_in(plain(cells).cast(names.type, safe=False), value_set=names)
    return np.asarray(found.fill_null(len(names)).to_numpy(zero_copy_only=False), dtype=np.int64)


def typed(names: Sequence[str], kind: Kind, parameter: str, column: str) -> Any:
    """Declared names as an Arrow array to compare cells with: "1" is 1.0 among numbers, and true among truth values."""
    if kind == "truth":
        words = [_TRUTH.get(str(name).lower()) for name in names]
        if None in words:
            raise InputError(f"{parameter}: column {column!r} holds true and false, and so must its declared values.")
        return pa.array(words, pa.string())
    if kind != "number":
        return pa.array([str(name) for name in names], pa.string())
    try:
        return pa.array([float(name) for name in names], pa.float64())
    except ValueError:
        raise InputError(f"{parameter}: column {column!r} holds numbers, and so must its declared values.") from None
