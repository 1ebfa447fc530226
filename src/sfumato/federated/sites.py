"""Sites seen another way: compared with each other as they answer, or each of them in units of its own.

*Do the sites agree?* A check on what they released anyway, so it costs nothing. Each site's noisy sums, divided by its
public size, estimate the same quantities if the sites' records come from one distribution. The difference between a
site and all others has a known noise variance and a sampling variance that the released sums themselves tell (counts:
p (1 - p) / n; moments and gradients: from the released second moments).

*Sites whose features have means and scales of their own* find them privately, and are asked in their own units.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from scipy.stats import chi2

from sfumato.bounds import Bounds, Grid, PartialBounds
from sfumato.errors import InputError
from sfumato.federated.task import SitesTask, SparseSites
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.release import Release
from sfumato.settings.federated import Sites, SitesLostError
from sfumato.statistics.gradients import ResidualProduct
from sfumato.statistics.histograms import LinearHistograms, NormHistogram, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.parts import OnColumns
from sfumato.steps.location import Located, Locating, Location
from sfumato.steps.symmetric import split_moments
from sfumato.sums import BoundedSum
from sfumato.typing import FloatArray, IntArray

LEVEL = 1e-4
"""Chance that any of the sites of one distribution is ever said to disagree, over all comparisons of a run."""
COMPARISONS = 12
"""More than a run ever makes for one site."""
_ABOUT = {
    ResponseHistogram: "the response",
    NormHistogram: "the length of records",
    LinearHistograms: "the spread of features",
    Moments: "means and covariance of the features",
    ResidualProduct: "how the response depends on the features",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One site against all others on one release."""

    site: str
    line: str
    about: str
    p_value: float


class ComparedSites:
    """Sites whose answers are compared as they come in. Implements `Sites`.

    The site that differs most from all others is set aside first and the rest compared again, so that one odd site does
    not make the others look odd; two sites that differ are both named, as nobody can tell which is right.

    Parameters
    ----------
    sites : Sites
        Under trust="sites" and public sizes; sums of shares cannot be told apart by site.
    leave_out : bool
        Leave a site that disagrees out of every later sum. What it released before stays in, and stays charged.
    """

    def __init__(self, sites: Sites, *, leave_out: bool = False) -> None:
        self._sites = sites
        self._leave_out = leave_out
        self.disagreeing: dict[str, Comparison] = {}

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site."""
        return self._sites.sizes

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """The releases of the sites that are still in."""
        releases = self._sites.ask(query, name)
        if self._leave_out:
            releases = {site: found for site, found in releases.items() if site not in self.disagreeing}
        asked = query.query if isinstance(query, OnColumns) else query
        if type(asked) in _ABOUT and all(self.sizes[site] for site in releases):
            self._compare(asked, name, dict(releases))
        return releases

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """The picks of the sites that are still in; nothing to compare, as honest sites may name different features."""
        picks = self._sites.pick(query, name, asked)
        return {site: found for site, found in picks.items() if not (self._leave_out and site in self.disagreeing)}

    def _compare(self, query: BoundedSum, name: str, releases: dict[str, Release]) -> None:
        agreeing = {site: found for site, found in releases.items() if site not in self.disagreeing}
        level = LEVEL / (len(self.sizes) * COMPARISONS)
        while len(agreeing) > 1:
            p_values = {site: self._p_value(query, site, agreeing) for site in agreeing}
            odd = min(p_values, key=lambda site: p_values[site])
            if p_values[odd] >= level:
                return
            for site in agreeing if len(agreeing) == 2 else (odd,):
                self.disagreeing[site] = Comparison(site, name, _ABOUT[type(query)], p_values[site])
            del agreeing[odd]

    def _p_value(self, query: BoundedSum, site: str, releases: Mapping[str, Release]) -> float:
        n = float(self.sizes[site] or 1)
        others = [name for name in releases if name != site]
        m = float(sum(self.sizes[name] or 0 for name in others))
        rest = np.sum([releases[name].value for name in others], axis=0)
        noise = np.sum([releases[name].noise_std ** 2 for name in others], axis=0)
        difference = releases[site].value / n - rest / m
        pooled = (releases[site].value + rest) / (n + m)
        variance = releases[site].noise_std ** 2 / n**2 + noise / m**2
        variance = variance + sampling_variance(query, pooled) * (1.0 / n + 1.0 / m)
        return float(chi2.sf(float((difference**2 / variance).sum()), difference.size))


def sampling_variance(query: BoundedSum, pooled: FloatArray) -> FloatArray:
    """Variance of one record's contribution, coordinate by coordinate, from the released mean contribution.

    Moments as for normal features; a gradient's entries share the released mean squared size evenly.
    """
    match query:
        case Moments():
            _, second = split_moments(pooled)
            diagonal = np.maximum(np.diag(second), 0.0)
            row, column = np.triu_indices(len(second))
            pairs = diagonal[row] * diagonal[column] + second[row, column] ** 2
            return np.concatenate([diagonal, pairs])
        case ResidualProduct():
            return np.full(query.shape, query.size**2 * 2.0 / query.shape[1])
    share = np.clip(pooled, 0.0, 1.0)
    return np.asarray(share * (1.0 - share))


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
