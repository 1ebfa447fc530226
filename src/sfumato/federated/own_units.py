"""Sites whose features have means and scales of their own: each finds them privately and is asked in its own units."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, cast

from sfumato.bounds import Bounds, Grid, PartialBounds
from sfumato.errors import InputError
from sfumato.federated.task import SitesTask, SparseSites
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.privacy.asking import Asking
from sfumato.release import Release
from sfumato.settings.federated import SitesLostError
from sfumato.steps.location import Located, Locating, Location
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

NEEDS = (
    "own_units=True needs bounds=None, trust='sites' and a method that does not compare features in their own units, "
    "as components do, nor picks some of them."
)
UNITS = Bounds(-1.0, 1.0)
"""A feature in the units of its own site: 0 at the middle of the site's bounds, 1 at the end."""


class Askable(Protocol):
    """Sites that can each be asked a question of its own."""

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site, None where it is private."""

    def each(self, queries: Mapping[str, BoundedSum], name: str) -> Mapping[str, Release]:
        """The releases of the sites in `queries` that answered."""


class OwnUnits:
    """Sites that answer every question about features measured from their own middle, in their own half widths.

    Implements `Sites`. Where a question holds a grid over features, each site is asked with the grid over *its* bounds.
    Those come from releases of that site alone, so a record's contribution still depends on the record and on earlier
    releases only, and every bound of a sum holds for every grid: nothing else changes, neither noise nor cost. A site
    need not take the grid on trust either: it checks it as it checks every parameter.

    Parameters
    ----------
    sites : Askable
    n_features : int
    minimum : int
        With fewer sites whose bounds were found the run ends with `SitesLostError`.
    """

    def __init__(self, sites: Askable, n_features: int, minimum: int = 1) -> None:
        self._sites = sites
        self.bounds = _find_all(sites, n_features)
        if len(self.bounds) < max(minimum, 1):
            raise SitesLostError(f"only {len(self.bounds)} sites found units of their own, {minimum} are needed.")
        self._grids = {site: bounds.grid(n_features) for site, bounds in self.bounds.items()}
        self._known: dict[tuple[str, int], tuple[Any, Any]] = {}

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site, None where it is private."""
        return self._sites.sizes

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's release, each in its own units."""
        return self._sites.each({site: self._in_units(query, site) for site in self._grids}, name)

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """Not with units of their own: a sparse fit needs public bounds."""
        raise RuntimeError(f"line {name!r}: sites with units of their own do not vote.")

    def _in_units(self, value: Any, site: str) -> Any:
        """The question with every grid replaced by the site's; equal parts stay one object, so nothing is redone."""
        if isinstance(value, Grid):
            return self._grids[site]
        if not is_dataclass(value) or isinstance(value, type):
            return value
        known = self._known.get((site, id(value)))
        if known is None or known[0] is not value:  # an id may be given again once its first owner is gone
            parts = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
            changed = {name: self._in_units(part, site) for name, part in parts.items()}
            same = all(changed[name] is part for name, part in parts.items())
            known = (value, value if same else replace(value, **changed))
            self._known[site, id(value)] = known
        return known[1]


def _find_all(sites: Askable, n_features: int) -> dict[str, Bounds]:
    """Every site's bounds, found side by side; a site that misses a round has none and takes no further part."""
    search = Location(PartialBounds.nothing(n_features), share=1.0, standardises=True)  # the plan has the true share
    searches = {site: Locating(search).run(n_features, size) for site, size in sites.sizes.items()}
    asked = {site: next(search) for site, search in searches.items()}  # one search for each, driven in step
    found: dict[str, Bounds] = {}
    while asked:
        line = next(iter(asked.values())).line
        releases = sites.each({site: one.query for site, one in asked.items()}, line)
        asked = {}
        for site, release in releases.items():
            try:
                asked[site] = searches[site].send(release)
            except StopIteration as end:
                found[site] = cast(Located, end.value).bounds
    return found


def refuse_unless_own(estimator: Any, share: int = 1) -> None:
    """Units of their own are found from the share that pays for bounds, by sites that each add all their noise."""
    if isinstance(estimator, PrivateSparseSIR) or estimator.about.own_units or share != 1:
        raise InputError(NEEDS)
    given = [getattr(estimator, name, None) for name in ("bounds", "y_bounds")]
    if not all(bounds is None or isinstance(bounds, str) for bounds in given):
        raise InputError(NEEDS)


def in_own_units(task: SitesTask | SparseSites) -> SitesTask:
    """The task with a search for bounds that also standardises."""
    search = getattr(task, "bounds", None)
    if not isinstance(search, Location):
        raise InputError(NEEDS)
    return cast(SitesTask, replace(cast(Any, task), bounds=replace(search, standardises=True)))


def columns_of(task: Any) -> int:
    """Features whose units are looked for: of two tables those of both."""
    return int(getattr(task, "size", task.n_features))


def run_in_own_units(task: SitesTask | SparseSites) -> Asking[Any]:
    """Walk the rest of the plan once every site has found its bounds: features have the units of their sites."""
    return cast(SitesTask, replace(cast(Any, task), bounds=UNITS)).run()
