"""Fields of a model file: small readers, put together to whole estimators in `kinds`.

A reader takes a value with its place, and the lengths known so far, and returns what the estimator keeps; what it
does not expect it refuses by its place.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, get_args

import numpy as np

from sfumato.bounds import SEARCH, Bounds, PartialBounds
from sfumato.errors import SfumatoError
from sfumato.model.strict import LARGEST, Node
from sfumato.typing import FloatArray, IntArray, Relation

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


def whole(least: int = 0, most: int = 2**63 - 1) -> Reader:
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
