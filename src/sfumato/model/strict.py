"""Strict JSON: a value with its place in the file, read only as what it is declared to be.

Model files come from others. Whatever is wrong with one ends in an `InputError` that names the place.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from sfumato.errors import InputError
from sfumato.typing import FloatArray

MOST_BYTES = 2**26
LARGEST = 1e150
"""Squares of numbers up to this do not overflow."""


class Node:
    """A JSON value and where it stands, such as ``ledger.entries[3].noise_std``."""

    def __init__(self, value: Any, place: str = "") -> None:
        self.value, self.place = value, place

    @property
    def is_null(self) -> bool:
        """Whether the value is null."""
        return self.value is None

    def refuse(self, must: str) -> NoReturn:
        """Raise, saying what the value must be; the value itself is not repeated."""
        raise InputError(f"model: {self.place or 'the file'} must be {must}; write the file anew with save_model.")

    def fields(self, *names: str) -> dict[str, "Node"]:
        """The members of an object that has exactly these."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        prefix = f"{self.place}." if self.place else ""
        for name in names:
            if name not in self.value:
                Node(None, prefix + name).refuse("present")
        for name in self.value:
            if name not in names:
                Node(None, prefix + name[:40]).refuse("absent: this version does not know it")
        return {name: Node(self.value[name], prefix + name) for name in names}

    def items(self) -> Iterator[tuple[str, "Node"]]:
        """The members of an object with any names."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        for name, value in self.value.items():
            yield name, Node(value, f"{self.place}[{name[:40]!r}]")

    def elements(self) -> list["Node"]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [Node(value, f"{self.place}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            self.refuse("text")
        return self.value

    def one_of(self, allowed: Iterable[str]) -> str:
        """One of a few words."""
        words = list(allowed)
        if self.value not in words:
            self.refuse(f"one of {', '.join(map(repr, words))}")
        return str(self.value)

    def truth(self) -> bool:
        """true or false."""
        if not isinstance(self.value, bool):
            self.refuse("true or false")
        return self.value

    def whole(self, least: int = 0, most: int = 2**63 - 1) -> int:
        """A whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not least <= self.value <= most:
            self.refuse(str(least) if least == most else f"a whole number from {least} on")
        return self.value

    def number(self, most: float = LARGEST) -> float:
        """A finite number, small enough to reckon with."""
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool) or not abs(self.value) <= most:
            self.refuse("a finite number")
        return float(self.value)

    def array(self, *shape: int | None, gaps: bool = False, most: float = LARGEST) -> FloatArray:
        """Nested lists of numbers of a shape (None: any length); null is NaN if `gaps`."""
        return np.asarray(self._rows(shape, gaps, most), dtype=np.float64).reshape(self._shape(shape))

    def _rows(self, shape: Sequence[int | None], gaps: bool, most: float) -> Any:
        if not shape:
            return math.nan if gaps and self.is_null else self.number(most)
        rows = self.elements()
        if shape[0] is not None and len(rows) != shape[0]:
            self.refuse(f"a list of {shape[0]}")
        return [row._rows(shape[1:], gaps, most) for row in rows]

    def _shape(self, shape: Sequence[int | None]) -> tuple[int, ...]:
        return tuple(len(self.value) if size is None else size for size in shape)


def read_json(path: Path) -> Node:
    """The content of a JSON file, not yet trusted."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"model: {path} is larger than {MOST_BYTES // 2**20} MiB; it is no model file.")
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"model: {path} cannot be read ({error.strerror}); check the name.") from None
    except UnicodeDecodeError:
        raise InputError(f"model: {path} is not UTF-8 text; it is no model file.") from None
    try:
        return Node(json.loads(content, object_pairs_hook=_object, parse_constant=_constant))
    except (ValueError, RecursionError):
        raise InputError(f"model: {path} is not valid JSON; it is no model file, or was cut short.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
