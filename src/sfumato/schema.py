"""Strict JSON: a value with its place in the file, read only as what it is declared to be.

Model files come from others. Whatever is wrong with one ends in an `InputError` that names the place.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import numpy as np

from sfumato.bounds import SEARCH, Bounds, PartialBounds
from sfumato.errors import InputError, SfumatoError
from sfumato.typing import FloatArray, IntArray, Relation

MOST_BYTES = 2**26
LARGEST = 1e150
"""Squares of numbers up to this do not overflow."""
LARGEST_WHOLE = 2**63 - 1


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

    def whole(self, least: int = 0, most: int = LARGEST_WHOLE) -> int:
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


T = TypeVar("T")
Sizes = dict[str, int]
"""Lengths by name: p features, k directions. A name that is new gets the length of what is read first."""
Reader = Callable[[Node, Sizes], Any]
HUGE = 1e300
"""Of numbers that are never squared."""


def optional(reader: Reader) -> Reader:
    """What `reader` reads, or null."""
    return lambda node, sizes: None if node.is_null else reader(node, sizes)


def given(check: Callable[[Any, Sizes], Any]) -> Reader:
    """A number, a word or null as it stands, once `check` has nothing to say."""

    def read(node: Node, sizes: Sizes) -> Any:
        if isinstance(node.value, (list, dict)):
            node.refuse("a number or a word")
        checked(node, lambda: check(node.value, sizes))
        return node.value

    return read


def word(allowed: Iterable[str]) -> Reader:
    """One of a few words."""
    words = tuple(allowed)
    return lambda node, sizes: node.one_of(words)


def number(node: Node, sizes: Sizes) -> int | float:
    """A finite number, an integer if it was one."""
    node.number()
    return node.value  # type: ignore[no-any-return]


def known_number(node: Node, sizes: Sizes) -> float:
    """A finite number, or null for one that is not known."""
    return float("nan") if node.is_null else node.number()


def truth(node: Node, sizes: Sizes) -> bool:
    """true or false."""
    return node.truth()


def whole(least: int = 0, most: int = LARGEST_WHOLE) -> Reader:
    """A whole number."""
    return lambda node, sizes: node.whole(least, most)


def length_of(name: str) -> Reader:
    """The number that this length has already."""
    return lambda node, sizes: node.whole(sizes[name], sizes[name])


def array(
    *shape: str,
    gaps: bool = False,
    most: float = LARGEST,
    must: str = "",
    holds: Callable[[FloatArray], bool] = lambda values: True,
) -> Reader:
    """Numbers of a shape, in the names of `Sizes`; null is nan if `gaps`. `must` says what `holds` asks for."""

    def read(node: Node, sizes: Sizes) -> FloatArray:
        for axis, name in enumerate(shape):
            if name not in sizes:
                sizes[name] = _length(_first(node, axis))
        values = node.array(*(sizes[name] for name in shape), gaps=gaps, most=most)
        if not holds(values):
            node.refuse(must)
        return values

    return read


def series(*, least: str = "", most: str = "") -> Reader:
    """A list of numbers that may be unknown, at least and at most as long as the lengths named."""

    def read(node: Node, sizes: Sizes) -> FloatArray:
        values = node.array(None, gaps=True, most=HUGE)
        if most and len(values) > sizes[most]:
            node.refuse(f"a list of at most {sizes[most]}")
        if least and len(values) < sizes[least]:
            node.refuse(f"a list of at least {sizes[least]}")
        return values

    return read


def places(name: str, below: str, *, ordered: bool = False) -> Reader:
    """Different positions below a length."""

    def read(node: Node, sizes: Sizes) -> IntArray:
        found = [element.whole(0, sizes[below] - 1) for element in node.elements()]
        if len(found) != sizes.setdefault(name, _length(node)) or len(set(found)) < len(found):
            node.refuse(f"{sizes[name]} different positions")
        if ordered and found != sorted(found):
            node.refuse("in increasing order")
        return np.asarray(found, dtype=np.int64)

    return read


def some_places(below: str) -> Reader:
    """Different positions below a length, in order; perhaps none."""

    def read(node: Node, sizes: Sizes) -> IntArray:
        found = [element.whole(0, sizes[below] - 1) for element in node.elements()]
        if found != sorted(set(found)):
            node.refuse("different positions, in increasing order")
        return np.asarray(found, dtype=np.int64)

    return read


def record(kind: type[T], must: str = "", holds: Callable[[T], bool] = lambda value: True, **members: Reader) -> Reader:
    """An object whose members are those of a frozen value."""

    def read(node: Node, sizes: Sizes) -> T:
        fields = node.fields(*members)
        value = kind(**{name: member(fields[name], sizes) for name, member in members.items()})
        if not holds(value):
            node.refuse(must)
        return value

    return read


def bounds(name: str) -> Reader:
    """Bounds of as many features as the length says, or the same for all."""

    def read(node: Node, sizes: Sizes) -> Bounds:
        fields = node.fields("lower", "upper")
        lower, upper = (
            member.array(sizes[name]) if isinstance(member.value, list) else member.array()
            for member in fields.values()
        )
        return checked(node, lambda: Bounds(lower, upper))

    return read


def said_of_bounds(name: str) -> Reader:
    """The parameter ``bounds``: null, "search", bounds of all features, or those of some, by name or position."""
    of_all = bounds(name)

    def read(node: Node, sizes: Sizes) -> Any:
        if node.is_null or isinstance(node.value, str):
            return None if node.is_null else node.one_of((SEARCH,))
        if not isinstance(node.value, dict) or "columns" not in node.value:
            return of_all(node, sizes)
        said = {}
        for element in node.fields("columns")["columns"].elements():
            column, *ends = element.elements() or [element]
            key = column.text() if isinstance(column.value, str) else column.whole(0, sizes[name] - 1)
            said[key] = _said_of_column(element, ends)
        return checked(node, lambda: PartialBounds.of(said, sizes[name])) and said

    return read


def _said_of_column(node: Node, ends: list[Node]) -> Any:
    """ "search", two numbers, or three whole ones for a range of integers."""
    if not 1 <= len(ends) <= 3 or (len(ends) == 3 and ends[2].value == 0):
        node.refuse("a column with 'search', two numbers, or three for a range of integers")
    if len(ends) == 1:
        return ends[0].one_of((SEARCH,))
    if len(ends) == 2:
        return tuple(number(end, {}) for end in ends)
    return range(*(end.whole(-(2**31), 2**31) for end in ends))


def labels(node: Node, sizes: Sizes) -> list[Any]:
    """Names of classes: text, numbers or truth values."""
    for element in node.elements():
        if not isinstance(element.value, (str, int, float, bool)):
            element.refuse("text or a number")
    if not node.value:
        node.refuse("a list of one or more")
    return list(node.value)


def texts(node: Node) -> tuple[str, ...]:
    """A list of strings."""
    return tuple(element.text() for element in node.elements())


def relation(node: Node, sizes: Sizes) -> Relation:
    """One of the two neighbouring relations."""
    return node.one_of(get_args(Relation))  # type: ignore[return-value]


def checked(node: Node, build: Callable[[], T]) -> T:
    """What `build` makes, its complaint in our words: theirs may repeat a value of any length."""
    try:
        return build()
    except SfumatoError as error:
        node.refuse(f"valid ({str(error)[:80].partition(',')[0].partition(';')[0]})")


def _first(node: Node, axis: int) -> Node:
    """The first of the first elements, `axis` levels down; `_length` has seen that there is one."""
    return node if axis == 0 else _first(node.elements()[0], axis - 1)


def _length(node: Node) -> int:
    found = len(node.elements())
    if not found:
        node.refuse("a list of one or more")
    return found
