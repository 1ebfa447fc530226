"""Cells: how one cell of a table is read, by itself and never by its neighbours.

Tables come from numpy, pandas, polars, Arrow, lists and files, and each guesses the type of a column from all of its
cells: one text turns a column of numbers into text. If cells were compared as that type says, replacing one record
would change how all others are read, and no sensitivity would hold. So a declared name and a cell are compared by a
`key` that is a function of the one cell alone.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.typing import IntArray

Key = float | str
_TRUTH = {"true": 1.0, "false": 0.0}
_NUMBERS = (float, int, np.bool_, Real, Decimal)  # the frequent ones first: an abstract class is slow to ask
_TEXTS = (str, bytes)
_ABSENT = {"NoneType", "NAType", "NaTType"}
"""Types of the values that stand for a missing one, in Python and pandas."""

UNREADABLE = "y must be one column of numbers or texts; convert dates, lists and other cells first."
NOT_UTF8 = "y has bytes that are not UTF-8; decode them first."
MIXED = (
    "y has cells of mixed kind, some numbers and some text; convert them, or declare classes or "
    "response_kind='categorical'."
)


def key(cell: Any) -> Key:
    """What a cell is compared by: a number if it is one or reads as one, else its text.

    =====================================  ==================================================================
    cell                                   key
    =====================================  ==================================================================
    true, false, in any case, or as text   1, 0
    a number of any type                   the nearest float64; -0.0 is 0
    a number too large for a float64       inf: such cells are refused as infinite ones are
    text that reads as a finite number     that number: ``"1"``, ``" 1.0"`` and ``"1e0"`` are 1
    other text, ``"nan"`` and ``"inf"``    the text as it is, spaces and case included
    bytes                                  as the text they are in UTF-8; others are refused
    anything else, such as a date          refused: its text would depend on the type of its column
    =====================================  ==================================================================

    >>> [key(cell) for cell in (True, 1, "1.0", " 1", b"1", "true")]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    >>> [key(cell) for cell in (-0.0, "yes", " yes", "nan", "1_000")]
    [0.0, 'yes', ' yes', 'nan', '1_000']
    """
    if isinstance(cell, _NUMBERS):
        return _float(cell) + 0.0  # -0.0 becomes 0.0
    if not isinstance(cell, _TEXTS):
        raise InputError(UNREADABLE)
    text = _decoded(cell) if isinstance(cell, bytes) else str.__str__(cell)  # not the name of an Enum
    truth = _TRUTH.get(text.strip().lower()) if len(text) < 100 else None
    number = _number(text) if truth is None else truth
    return text if number is None else number + 0.0


def is_missing(cell: Any) -> bool:
    """Whether a cell stands for a missing value: None, pandas' NA and NaT, NaN.

    >>> [is_missing(cell) for cell in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    return type(cell).__name__ in _ABSENT or (isinstance(cell, _NUMBERS) and math.isnan(_float(cell)))


def name(found: Key) -> str:
    """A key as text, the same for every way to write a number.

    >>> name(key("1.0")), name(key(2.5)), name(key("oak"))
    ('1', '2.5', 'oak')
    """
    if isinstance(found, str):
        return found
    return str(int(found)) if abs(found) < 2**53 and found == int(found) else repr(found)


def keys_of(names: Iterable[Any], parameter: str) -> tuple[Key, ...]:
    """The keys of declared names, which are public; two names for the same cells are refused.

    >>> keys_of(["no", "yes", 1], "classes")
    ('no', 'yes', 1.0)
    """
    first: dict[Key, Any] = {}
    for each in names:
        try:
            found = key(each)
        except InputError:
            found = math.nan
        if isinstance(found, float) and not math.isfinite(found):
            raise InputError(f"{parameter} must be finite numbers or texts, got {each!r}; leave it out or write text.")
        if found in first:
            raise InputError(f"{parameter}: {first[found]!r} and {each!r} name the same cells; leave one out.")
        first[found] = each
    return tuple(first)


def as_cells(values: Any) -> NDArray[Any]:
    """An array in which every cell is what was given: numpy makes a list of numbers text if one of them is."""
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return np.asarray(values, dtype=object)


def is_number(column: NDArray[Any]) -> bool:
    """Whether the *type* of a column is one of numbers, truth values included."""
    return column.dtype.kind in "biuf"


def kinds_of(column: NDArray[Any]) -> set[str]:
    """Which of "number", "text" and "missing" the cells are, by their types; other types are refused.

    A column with a type of its own is of one kind. In a column of objects every cell has a type, and is looked at.
    """
    if is_number(column):
        return {"number"}
    if column.dtype.kind in "USaT":
        return {"text"}
    if column.dtype.kind != "O":
        raise InputError(UNREADABLE)
    found = column.tolist()
    kinds = {_kind(each) for each in set(map(type, found))}
    return kinds if _are_finite([cell for cell in found if not isinstance(cell, _TEXTS)]) else kinds | {"missing"}


def encode(column: NDArray[Any], code: Callable[[Key], int]) -> IntArray:
    """A code for each cell, from its key; every distinct cell is looked at once."""
    if is_number(column):
        distinct, place = np.unique(np.asarray(column, dtype=np.float64), return_inverse=True)
        return np.asarray([code(key(cell)) for cell in distinct.tolist()], dtype=np.int64)[place]
    codes: dict[Any, int] = {}
    # Equal cells have equal keys, also where their types differ: 1 and True are equal in Python, and so are their keys.
    for cell in column.tolist():
        if cell not in codes:
            codes[cell] = code(key(cell))
    return np.fromiter(map(codes.__getitem__, column.tolist()), dtype=np.int64, count=len(column))


def position(keys: Sequence[Key]) -> Callable[[Key], int]:
    """The code of declared classes: the place among `keys`; all others share ``len(keys)``."""
    places = {each: i for i, each in enumerate(keys)}
    return lambda found: places.get(found, len(keys))


def _kind(kind: type) -> str:
    if kind.__name__ in _ABSENT:
        return "missing"
    if issubclass(kind, _NUMBERS):
        return "number"
    if issubclass(kind, _TEXTS):
        return "text"
    raise InputError(UNREADABLE)


def _are_finite(numbers: list[Any]) -> bool:
    try:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(np.asarray(numbers, dtype=np.float64)).all())
    except (TypeError, ValueError, OverflowError):  # a missing value, a signalling Decimal, a huge integer
        return False


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # a huge integer
        return math.inf
    except ValueError:  # a signalling Decimal
        return math.nan


def _number(text: str) -> float | None:
    """The finite number that a text is, in the digits and signs of ASCII; None if it is none."""
    if "_" in text or not text.isascii():  # "1_000" is a number to Python alone
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _decoded(cell: bytes) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:  # its text would quote the bytes
        raise InputError(NOT_UTF8) from None
