"""People: whose rows are whose, and which of a person's rows count.

The first rows of each person count, in the order of the table. Which ones they are depends on that person's own rows
and on their order alone: replacing a person, or adding or removing one, leaves everybody else's counted rows as they
are. No message here repeats an id.
"""

import re
from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sfumato import cells
from sfumato.errors import InputError
from sfumato.typing import IntArray

MISSING_ID = "has missing ids; give every row the id of its person, or leave such rows out."
_WHOLE = re.compile(r"([+-]?[0-9]{1,4000})(?:\.0*)?")


class Tally:
    """Counts the rows of each person as they come, and says which are among the first `rows` of theirs.

    Memory is one number and one key for each person, however many rows there are.

    >>> tally = Tally(rows=2)
    >>> tally.first(["ann", "bob"], np.array([0, 1, 0, 0]))
    array([ True,  True,  True, False])
    >>> tally.first(["bob", "ann"], np.array([0, 1, 0]))
    array([ True, False, False])
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._place: dict[Hashable, int] = {}
        self._seen = np.zeros(2**10, dtype=np.int64)

    def first(self, keys: Sequence[Hashable], index: IntArray) -> NDArray[np.bool_]:
        """Which of the next rows count; row i belongs to the person ``keys[index[i]]``."""
        places = [self._place.setdefault(key, len(self._place)) for key in keys]
        person = np.asarray(places, dtype=np.int64)[index]
        if len(self._place) > len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros(2 * len(self._place), dtype=np.int64)])
        order = np.argsort(person, kind="stable")
        begins = np.flatnonzero(np.diff(person[order], prepend=-1))
        rank = np.empty(len(person), dtype=np.int64)
        rank[order] = np.arange(len(person)) - np.repeat(begins, np.diff(begins, append=len(person)))
        counts = self._seen[person] + rank < self._rows
        np.add.at(self._seen, person, 1)
        return np.asarray(counts)


def first_rows(ids: Any, n_rows: int, rows: int) -> NDArray[np.bool_]:
    """Which of the `n_rows` rows of a table count: the first `rows` of each person, whose ids stand row by row.

    >>> first_rows(["7", 7.0, "ann", "007"], 4, rows=1)
    array([ True, False,  True, False])
    """
    raw = _raw(ids)
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim != 1:
        raise InputError("groups must be one column; give a 1-d array with the id of each row's person.")
    if len(raw) != n_rows:
        raise InputError("groups and x must have the same number of rows.")
    if raw.dtype == object:
        return Tally(rows).first(keys(raw, "groups"), np.arange(n_rows))
    distinct, index = np.unique(raw, return_inverse=True)
    return Tally(rows).first(keys(distinct, "groups"), np.asarray(index, dtype=np.int64))


def keys(given: Sequence[Any] | NDArray[Any], name: str) -> list[Hashable]:
    """What each id is compared by; missing ones, and those that are neither number nor text, are refused as `name`."""
    try:
        found = [key(cell) for cell in given]
    except InputError:  # of `cells`, about a response
        raise InputError(f"{name} must be one column of numbers or texts; convert dates and other cells.") from None
    if any(each is None for each in found):
        raise InputError(f"{name} {MISSING_ID}")
    return found


def key(cell: Any) -> Hashable:
    """What an id is compared by: the key of its cell (`sfumato.cells.key`); None if it is missing.

    It is a function of the cell alone, so that no row changes how another is read, and the same person has the same key
    in every file: 7, 7.0, "7" and "007" are one. Two things are stricter than for a class. Whole numbers are compared
    exactly, of any length: two people whose ids round to the same float64 would share their rows, and one of them
    could decide which rows of the other count. And text that is empty or "nan" is missing: it says of nobody whose row
    it is.

    >>> [key(cell) for cell in ("12345678901234567890", 7.0, "7.0", True, " a1 ", "", float("nan"))]
    [12345678901234567890, 7.0, 7, 1, 'a1', None, None]
    """
    if cells.is_missing(cell):
        return None
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Decimal) and cell.is_finite() and cell == cell.to_integral_value():
        return int(cell)
    if not isinstance(cell, (str, bytes)):
        return cells.key(cell)
    text = (cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else str.__str__(cell)).strip()
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        return int(whole[1])
    return None if text.lower() in ("", "nan") else cells.key(text)


def _raw(ids: Any) -> NDArray[Any]:
    series = nw.from_native(ids, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.null_count() > 0:
            raise InputError(f"groups {MISSING_ID}")
        if series.dtype in (nw.Int128, nw.UInt128):  # numpy does not know them, Python does
            return np.asarray(series.to_list(), dtype=object)
        return np.asarray(series.to_numpy())
    try:
        return cells.as_cells(ids)
    except ValueError:
        raise InputError("groups must be one column; give a 1-d array with the id of each row's person.") from None
