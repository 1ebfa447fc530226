"""Sites whose features have means and scales of their own: each finds them privately and is asked in its own units."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sfumato.bounds import Bounds, Grid
from sfumato.estimators.pipeline import Outcome, Task, solve
from sfumato.iterate.location import find_bounds
from sfumato.iterate.ranks import find_ranks
from sfumato.privacy.curator import Curator
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

UNITS = Bounds(-1.0, 1.0)
"""A feature in the units of its own site: 0 at the middle of the site's bounds, 1 at the end."""


class OwnUnits:
    """Sites that answer every question about features measured from their own middle, in their own half widths.

    Implements `Sites`. Where a question holds a grid over features, each site is asked with the grid over *its* bounds.
    Those come from releases of that site alone, so a record's contribution still depends on the record and on earlier
    releases only, and every bound of a sum holds for every grid: nothing else changes, neither noise nor cost.
    """

    def __init__(self, doors: Mapping[str, Curator], sizes: Mapping[str, int | None], n_features: int) -> None:
        self._doors, self._sizes = doors, sizes
        self.bounds = {site: find_bounds(door, n_features) for site, door in doors.items()}
        self._grids = {site: bounds.grid(n_features) for site, bounds in self.bounds.items()}
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site, None where it is private."""
        return self._sizes

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's release, each in its own units."""
        return {site: door.answer(self._in_units(query, site), name) for site, door in self._doors.items()}

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """The picks of those asked, each in its own units."""
        return {site: self._doors[site].select(self._in_units(query, site), name) for site in asked}

    def _in_units(self, value: Any, site: str) -> Any:
        """The question with every grid replaced by the site's; equal parts stay one object, so nothing is redone."""
        if isinstance(value, Grid):
            return self._grids[site]
        if not is_dataclass(value) or isinstance(value, type):
            return value
        known = self._known.get((site, id(value)))
        if known is None or known[0] is not value:
            parts = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
            changed = {name: self._in_units(part, site) for name, part in parts.items()}
            same = all(changed[name] is part for name, part in parts.items())
            known = (value, value if same else replace(value, **changed))
            self._known[site, id(value)] = known
        return known[1]


def run_in_own_units(task: Task, curator: Curator) -> Outcome:
    """Walk the rest of the plan once every site has found its bounds."""
    return solve(task, curator, find_ranks(curator, task.response, task.schedule.bins), UNITS)
