"""Unit: whom a guarantee protects, a record or a person with all their rows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.errors import InputError
from sfumato.statistics.parts import PerPerson
from sfumato.sums import BoundedSum
from sfumato.typing import Relation, is_whole

Kind = Literal["record", "person"]
MOST_ROWS = 10_000
_TEXT = re.compile(r"person, (?P<rows>[1-9][0-9]{0,5}) rows(?P<declared>, declared)?")
_CHANGES: dict[Relation, str] = {"replace": "replacing", "add-remove": "adding or removing"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What neighbouring data sets differ in.

    Parameters
    ----------
    rows : int or None
        Of each person at most so many rows count; None: a record is protected, whoever it belongs to.
    declared : bool
        Nobody's rows were counted: that no person has more than `rows` is what the user vouches for.

    Examples
    --------
    >>> print(Unit(5))
    person, 5 rows
    >>> neighbours("replace", [Unit(5)])
    'replacing any one person with all their rows (at most 5 of them count)'
    """

    rows: int | None = None
    declared: bool = False

    @property
    def kind(self) -> Kind:
        """A record or a person."""
        return "record" if self.rows is None else "person"

    @property
    def factor(self) -> int:
        """How many times the noise of a record's guarantee is needed."""
        return self.rows or 1

    def of(self, query: BoundedSum) -> BoundedSum:
        """The query with the bounds that hold for this unit."""
        return query if self.rows is None else PerPerson(query, self.rows)

    def __str__(self) -> str:
        return "record" if self.rows is None else f"person, {self.rows} rows{', declared' if self.declared else ''}"


RECORD = Unit()


def unit_from(text: str) -> Unit:
    """The unit that was written as text; `ValueError` if none was.

    >>> unit_from("person, 5 rows, declared"), unit_from("record")
    (Unit(rows=5, declared=True), Unit(rows=None, declared=False))
    """
    if text == "record":
        return RECORD
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ValueError("not a unit")
    return Unit(int(found["rows"]), found["declared"] is not None)


def unit_of(rows_per_person: Any, has_ids: bool) -> Unit:
    """The unit of a fit: one row of each person counts unless more are asked for; without ids the user vouches.

    >>> unit_of(None, has_ids=True), unit_of(None, has_ids=False) == RECORD
    (Unit(rows=1, declared=False), True)
    """
    if rows_per_person is None:
        return Unit(1) if has_ids else RECORD
    if not is_whole(rows_per_person, 1, MOST_ROWS):
        raise InputError(
            f"rows_per_person must be a whole number from 1 to {MOST_ROWS}, or None, got {rows_per_person!r}."
        )
    return Unit(int(rows_per_person), declared=not has_ids)


def is_count_public(relation: Relation, rows_per_person: int | None) -> bool:
    """Whether the number of records is public: neighbours have as many of them, as no person has several or none."""
    return relation == "replace" and rows_per_person is None


def neighbours(relation: Relation, units: Iterable[Unit], kind: Kind | None = None) -> str:
    """With respect to what the releases of these units, together, are private. `kind`: where there is none yet."""
    found = set(units)
    change, rows = _CHANGES[relation], [unit.rows for unit in found if unit.rows is not None]
    if not rows and kind != "person":
        return f"{change} any one record"
    whole = f"{change} any one person with all their rows"
    vouched = [unit.rows for unit in found if unit.rows is not None and unit.declared]
    if vouched:
        return f"{whole}, if nobody has more than {min(vouched)} of them (declared, not checked)"
    return f"{whole} (at most {max(rows)} of them {'counts' if max(rows) == 1 else 'count'})" if rows else whole
